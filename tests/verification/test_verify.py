"""Faults of records, each planted in a sound rollout and found."""

from __future__ import annotations

import json
import pickle
import re
import sys
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from support.factories import as_arrays, call, conversation, delta
from support.places import DOCS
from tokenrecords import Finding, Report, TokenEntry, VerificationError, build_chains, stamp_lineage, verify
from tokenrecords.entry.model import set_origin
from tokenrecords.verification.findings import SEVERITIES

if TYPE_CHECKING:
    from collections.abc import Callable

VOCAB = 1_000


def rollout() -> list[TokenEntry]:
    """A sound rollout: full and delta records, and a call that generated ten ids."""
    full, deltas = conversation(3), conversation(3, deltas=True)
    long = call("long", [1], list(range(10)))
    return [*full, *(entry.model_copy(update={"rollout_id": "d"}) for entry in deltas), long]


def set_(position: int, **fields: Any) -> Callable[[list[TokenEntry]], None]:
    def plant(entries: list[TokenEntry]) -> None:
        for name, value in fields.items():
            setattr(entries[position], name, value)

    return plant


def restamped(position: int, **fields: Any) -> Callable[[list[TokenEntry]], None]:
    def plant(entries: list[TokenEntry]) -> None:
        set_(position, **fields)(entries)
        stamp_lineage(entries[position], entries[position].parent_call_id, entries[position].parent_resolution)

    return plant


def with_log_prob(value: float) -> Callable[[list[TokenEntry]], None]:
    return set_(6, generation_log_probs=[-0.5] * 7 + [value, value, -0.5])


def conflict(entries: list[TokenEntry]) -> None:
    entries.append(entries[1].model_copy(update={"generation_token_ids": [201, 999]}))


def cycle_of_deltas(entries: list[TokenEntry]) -> None:
    # The second call of rollout "d" continues the third, which continues it.
    entries[4].parent_call_id = "c2"


# code: (what plants it, positions of the findings, field, index)
FAULTS: dict[str, list[tuple[Callable[[list[TokenEntry]], None], list[int], str | None, int | None]]] = {
    "field_invalid": [
        (set_(2, cum_len="9"), [2], "cum_len", None),
        (set_(2, schema_version=2), [2], "schema_version", None),
        (set_(2, generation_token_ids=[1, None]), [2], "generation_token_ids", 1),
        (set_(2, parent_resolution="adopted"), [2], "parent_resolution", None),
    ],
    "call_id_conflict": [(conflict, [7], "generation_token_ids", None)],
    "length_mismatch": [(set_(1, generation_log_probs=[-0.5]), [1], "generation_log_probs", None)],
    "id_negative": [
        (set_(1, generation_token_ids=[201, -1]), [1], "generation_token_ids", 1),
        (set_(0, prompt_token_ids=[-100]), [0], "prompt_token_ids", 0),
        (set_(5, prompt_token_ids=[-1]), [5], "prompt_token_ids", 0),
    ],
    "id_outside_vocab": [
        (restamped(6, generation_token_ids=[*range(9), VOCAB]), [6], "generation_token_ids", 9),
        (set_(6, prompt_token_ids=[2**64]), [6], "prompt_token_ids", 0),
    ],
    "log_prob_not_finite": [
        (with_log_prob(float(value)), [6], "generation_log_probs", 7) for value in ("nan", "inf", "-inf")
    ],
    "log_prob_positive": [(with_log_prob(0.5), [6], "generation_log_probs", 7)],
    "log_prob_sentinel": [(with_log_prob(-9999.0), [6], "generation_log_probs", 7)],
    "item_index_outside": [
        (set_(1, token_item_index=0), [1], "token_item_index", None),
        (set_(1, token_item_index=-1, output_items=[{}]), [1], "token_item_index", None),
    ],
    "parent_contradiction": [
        (set_(2, parent_call_id=None), [2], "parent_resolution", None),
        (set_(2, parent_resolution="root"), [2], "parent_resolution", None),
        (set_(5, parent_resolution=None), [5], "parent_resolution", None),
    ],
    "parent_self": [
        (set_(2, parent_call_id="c2"), [2], "parent_call_id", None),
        (set_(5, parent_call_id="c2"), [5], "parent_call_id", None),
    ],
    "parent_cycle": [
        (set_(0, parent_call_id="c2", parent_resolution="resolved"), [0], "parent_call_id", None),
        (cycle_of_deltas, [4, 5], "parent_call_id", None),
    ],
    "parent_not_prefix": [
        (set_(2, parent_call_id="long"), [2], "prompt_token_ids", 0),
        (restamped(2, prompt_token_ids=[100, 200, 300, 101, 201, 999, 102]), [2], "prompt_token_ids", 5),
        (restamped(2, prompt_token_ids=[100, 200, 300]), [2], "prompt_token_ids", None),
    ],
    "delta_unreconstructable": [
        (set_(5, parent_call_id="gone"), [5], "prompt_token_ids", None),
        (set_(5, parent_call_id=None), [5], "prompt_token_ids", None),
        (set_(5, digest="0" * 64), [5], "prompt_token_ids", None),
    ],
    "cum_len_mismatch": [
        (set_(1, cum_len=7), [1], "cum_len", None),
        (set_(5, cum_len=3), [5], "cum_len", None),
    ],
    "digest_mismatch": [
        (set_(1, digest="0" * 64), [1], "digest", None),
        (set_(6, generation_token_ids=[*range(9), 77]), [6], "digest", None),
    ],
    "log_probs_all_zero": [(set_(6, generation_log_probs=[0.0] * 10), [6], "generation_log_probs", None)],
    "empty_generation": [
        (restamped(6, generation_token_ids=[], generation_log_probs=[]), [6], "generation_token_ids", None)
    ],
    "parent_missing": [(set_(2, parent_call_id="gone"), [2], "parent_call_id", None)],
    "tokens_in_items": [(set_(1, output_items=[{}, {"generation_token_ids": [9]}]), [1], "output_items", 1)],
    "routes_unreadable": [
        (set_(1, routed_experts=42), [1], "routed_experts", None),
        (set_(1, routed_experts=[[0, 1]]), [1], "routed_experts", None),
        (set_(1, routed_experts=np.zeros((1, 1, 2))), [1], "routed_experts", None),
        (set_(1, routed_experts="nrlre1:int16:1x1x2:AAAB"), [1], "routed_experts", None),
    ],
    "no_digest": [(set_(1, digest=None), [1], "digest", None), (set_(5, digest=None), [5], "digest", None)],
    "no_resolution": [(set_(0, parent_resolution=None), [0], "parent_resolution", None)],
    "unresolved_parent": [
        (set_(2, parent_resolution="unresolved", parent_call_id=None), [2], "parent_resolution", None)
    ],
    "unknown_field": [(set_(1, generation_logprobs=[]), [1], "generation_logprobs", None)],
}  # fmt: skip
PLANTED = [(code, fault) for code, faults in FAULTS.items() for fault in faults]


@pytest.mark.parametrize("kind", ["lists", "arrays"])
@pytest.mark.parametrize(("code", "fault"), PLANTED, ids=[code for code, _ in PLANTED])
def test_a_planted_fault_is_found_and_nothing_else(code: str, fault: Any, kind: str) -> None:
    plant, positions, field, index = fault
    entries = rollout()
    if kind == "arrays":
        entries = as_arrays(entries)
    plant(entries)
    report = verify(entries, vocab_size=VOCAB)
    assert [(f.code, f.position, f.field, f.index) for f in report.findings] == [
        (code, position, field, index) for position in positions
    ]
    for finding in report.findings:
        entry = entries[finding.position or 0]
        assert (finding.rollout_id, finding.model_call_id) == (entry.rollout_id, entry.model_call_id)
        assert finding.severity == SEVERITIES[code]
    keys = {(entry.rollout_id, entry.model_call_id) for entry in entries}
    wrong = {keys_of(entries[position]) for position in positions} if SEVERITIES[code] == "error" else set()
    assert report.sound == keys - wrong
    assert report.ok == (not wrong)


def keys_of(entry: TokenEntry) -> tuple[str, str]:
    return entry.rollout_id, entry.model_call_id


def test_every_code_is_planted_and_has_its_row_in_the_docs() -> None:
    assert FAULTS.keys() | {"unreadable_line"} == SEVERITIES.keys()
    rows = re.findall(
        r"^\| `(\w+)` \| (\w+) \| .+ \| .+ \|$", (DOCS / "findings.md").read_text(encoding="utf-8"), re.MULTILINE
    )
    assert dict(rows) == dict(SEVERITIES)
    assert [code for code, _ in rows] == list(SEVERITIES)


@pytest.mark.parametrize("convert", [list, as_arrays])
def test_sound_records_have_no_findings(convert: Any) -> None:
    entries = convert(rollout())
    before = pickle.dumps(entries)
    report = verify(iter(entries), vocab_size=VOCAB)
    assert (report.findings, report.ok, report.counts) == ([], True, {})
    assert (report.records, report.ids) == (7, 18 + 9 + 11)
    assert len(report.sound) == 7
    report.raise_for_errors()
    assert pickle.dumps(entries) == before
    assert str(verify([])) == "0 records with 0 ids: nothing found"


def test_limits_are_where_they_should_be() -> None:
    def codes(*log_probs: float, dtype: Any = np.float64) -> list[str]:
        entry = call("a", [1], list(range(len(log_probs))), generation_log_probs=np.array(log_probs, dtype))
        return [finding.code for finding in verify([entry], vocab_size=100).findings]

    assert codes(1e-4, -9998.9) == []
    assert codes(1.1e-4) == ["log_prob_positive"]
    assert codes(-9999.0) == ["log_prob_sentinel"]
    assert codes(*[0.0] * 7) == codes(*[-0.0] * 7, -1e-9) == []
    assert codes(*[-0.0] * 8) == ["log_probs_all_zero"]
    assert codes(1e-4, -0.5, dtype=np.float32) == codes(0.0, -0.5, dtype=np.float16) == []
    assert codes(float("nan"), 3.0, -1e5, dtype=np.float32) == [
        "log_prob_not_finite",
        "log_prob_positive",
        "log_prob_sentinel",
    ]
    assert [finding.code for finding in verify([call("a", [99], [100])], vocab_size=100).findings] == [
        "id_outside_vocab"
    ]


def test_a_cycle_of_calls_without_ids_is_found() -> None:
    a, b = call("a", [1], [], "b"), call("b", [1], [], "a")
    assert verify([a, b]).counts == {"parent_cycle": 2, "empty_generation": 2}


def test_a_call_that_leads_into_a_cycle_is_not_on_it() -> None:
    entries = conversation(3)
    entries[0].parent_call_id, entries[0].parent_resolution = "c1", "resolved"
    assert [(f.code, f.position) for f in verify(entries).findings] == [("parent_cycle", 0)]
    deltas = conversation(4, deltas=True)
    deltas[1].parent_call_id = "c2"
    assert [(f.code, f.position) for f in verify(deltas).findings] == [
        ("parent_cycle", 1),
        ("parent_cycle", 2),
        ("delta_unreconstructable", 3),
    ]


def test_rollouts_and_call_ids_are_told_apart() -> None:
    entries = [*conversation(2), *(entry.model_copy(update={"rollout_id": "s"}) for entry in conversation(2))]
    entries[3].parent_call_id = "of another rollout"
    assert verify(entries).counts == {"parent_missing": 1}
    repeated = [*conversation(2), *as_arrays(conversation(2))]
    assert verify(repeated).findings == []


def test_a_finding_names_the_line_of_a_file() -> None:
    entry = call("a", [1], [2], digest="0" * 64)
    set_origin(entry, "records.tokens.jsonl", 7)
    (finding,) = verify([call("b", [1], [2]), entry]).findings
    assert (finding.path, finding.line, finding.position) == ("records.tokens.jsonl", 7, 1)
    assert str(finding).startswith("records.tokens.jsonl:7: error digest_mismatch: call 'a' of rollout 'r': digest is ")
    assert json.loads(json.dumps(finding.as_dict()))["severity"] == "error"


def test_a_report_can_be_raised_and_sent() -> None:
    report = verify([call("a", [1], [2], digest="0" * 64), call("b", [1], [2], digest=None)])
    with pytest.raises(VerificationError, match="digest_mismatch") as raised:
        report.raise_for_errors()
    assert raised.value.report is report
    assert pickle.loads(pickle.dumps(raised.value)).report == report
    assert str(report).splitlines()[0] == "2 records with 4 ids: 1 error, 1 info"
    assert report.counts == {"digest_mismatch": 1, "no_digest": 1}
    assert str(verify([call(str(n), [1], [2], digest=None) for n in range(60)])).splitlines()[-1] == "... and 10 more"


def test_reports_are_merged() -> None:
    good, bad = verify([call("a", [1], [2])]), verify([call("a", [1], [2], digest="0" * 64), call("b", [1], [2])])
    line = Report([Finding("unreadable_line", "torn", path="x.jsonl", line=3)])
    merged = Report.merged([good, bad, line])
    assert (merged.records, merged.ids, merged.sound) == (3, 6, {("r", "b")})
    assert merged.counts == {"unreadable_line": 1, "digest_mismatch": 1}
    assert str(merged).splitlines()[-1] == "x.jsonl:3: error unreadable_line: torn"
    assert Report.merged([]) == Report()


BROKEN_VALUES: list[Any] = [
    *(None, True, -1, 7, 2**70, 1.5, float("nan"), np.float64(1.0), "text", b"bytes", object()),
    *([], [[]], [None], ["x"], [1.5], [True], [-1], [2**70], [2**2000], [-1, 2**63]),
    *({}, {"a": 1}, {1}, (1, 2), range(3), np.array(3), np.zeros((2, 2), int), np.zeros(3), np.array(["a"])),
    *(np.array([None]), np.ma.masked_array([1, 2], [0, 1]), np.array([1], ">u8")),
]


@pytest.mark.parametrize("name", sorted(TokenEntry.model_fields))
def test_no_assigned_value_makes_it_raise(name: str) -> None:
    for value in BROKEN_VALUES:
        for position in range(7):
            entries = rollout()
            setattr(entries[position], name, value)
            report = verify(entries, vocab_size=VOCAB)
            assert str(report)
            assert all(isinstance(finding.as_dict(), dict) for finding in report.findings)
            chains = [entry for entry in entries if isinstance(entry.rollout_id, str) and entry.rollout_id == "r"]
            assert build_chains(chains).notes.roots > 0


@pytest.mark.parametrize("name", sorted(TokenEntry.model_fields))
def test_no_missing_field_makes_it_raise(name: str) -> None:
    for position in range(7):
        entries = rollout()
        del entries[position].__dict__[name]
        assert verify(entries).records == 7


def test_what_is_no_record_is_found() -> None:
    report = verify([None, {"rollout_id": "r"}, call("a", [1], [2])])  # type: ignore[list-item]
    assert [str(finding) for finding in report.findings] == [
        "error field_invalid: it is a NoneType: a TokenEntry is needed",
        "error field_invalid: it is a dict: a TokenEntry is needed",
    ]
    assert report.sound == {("r", "a")}


def test_options_are_checked() -> None:
    with pytest.raises(ValueError, match="vocab_size is 0"):
        verify([], vocab_size=0)
    with pytest.raises(TypeError, match="float"):
        verify([], vocab_size=1.5)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="threads is 0"):
        verify([call("a", [1], [2])], threads=0)


def test_all_digests_go_through_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    from tokenrecords import _core

    entries = as_arrays([*conversation(50), delta(call("x", [1], [2], "c0", rollout_id="s"), 0)])

    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("one digest at a time")

    batches = []

    def compute(sequences: Any, **options: Any) -> list[str]:
        batches.append(list(sequences))
        return _core.compute_digests(batches[-1], **options)

    replaced = {"compute_digest": refuse, "prefix_digest": refuse, "joint_digest": refuse, "compute_digests": compute}
    ours = [module for name, module in sys.modules.items() if name.startswith("tokenrecords.") and module is not _core]
    for module in ours:
        for name in replaced.keys() & vars(module).keys():
            monkeypatch.setattr(module, name, replaced[name])
    assert verify(entries).counts == {"delta_unreconstructable": 1}
    assert sum(map(len, batches)) == 50
    assert len(batches) <= 2
