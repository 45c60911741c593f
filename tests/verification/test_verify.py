"""Faults of records, each planted in a sound rollout and found."""

from __future__ import annotations

import pickle
import re
import sys
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from support.factories import as_arrays, call, conversation, delta
from support.places import DOCS
from tokenrecords import TokenEntry, build_chains, encode_routed_experts, stamp_lineage, verify
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


def mask(value: Any) -> Callable[[list[TokenEntry]], None]:
    return set_(1, generation_loss_mask=value)


def routes(value: Any) -> Callable[[list[TokenEntry]], None]:
    """Routes for the second call, which has six tokens."""
    return set_(1, routed_experts=value)


def conflict(**fields: Any) -> Callable[[list[TokenEntry]], None]:
    def plant(entries: list[TokenEntry]) -> None:
        entries.append(entries[1].model_copy())
        set_(7, **fields)(entries)

    return plant


def cycle_of_deltas(entries: list[TokenEntry]) -> None:
    # The second call of rollout "d" continues the third, which continues it.
    entries[4].parent_call_id = "c2"


# code: (what plants it, positions of the findings, field, index)
FAULTS: dict[str, list[tuple[Callable[[list[TokenEntry]], None], list[int], str | None, int | None]]] = {
    "field_invalid": [
        (set_(2, cum_len="9"), [2], "cum_len", None),
        (set_(2, schema_version=2), [2], "schema_version", None),
        (set_(2, schema_version=0), [2], "schema_version", None),
        (set_(1, digest=7), [1], "digest", None),
        (set_(2, generation_log_probs=[-0.5, None]), [2], "generation_log_probs", 1),
        (set_(2, generation_token_ids=[1, None]), [2], "generation_token_ids", 1),
        (set_(2, parent_resolution="adopted"), [2], "parent_resolution", None),
    ],
    "call_id_conflict": [
        (conflict(generation_token_ids=[201, 999]), [7], "generation_token_ids", None),
        (conflict(prompt_token_ids=[100, 200, 300, 102]), [7], "prompt_token_ids", None),
        (conflict(generation_log_probs=[-0.5, -0.75]), [7], "generation_log_probs", None),
        (conflict(generation_log_probs=np.array([np.nan, -0.625])), [7], "generation_log_probs", None),
        (conflict(generation_loss_mask=[1, 0]), [7], "generation_loss_mask", None),
    ],
    "length_mismatch": [(set_(1, generation_log_probs=[-0.5]), [1], "generation_log_probs", None)],
    "id_negative": [
        (set_(1, generation_token_ids=[201, -1]), [1], "generation_token_ids", 1),
        (set_(0, prompt_token_ids=[-100]), [0], "prompt_token_ids", 0),
        (set_(5, prompt_token_ids=[-1]), [5], "prompt_token_ids", 0),
    ],
    "id_outside_vocab": [
        (restamped(6, generation_token_ids=[*range(9), VOCAB]), [6], "generation_token_ids", 9),
        (restamped(6, generation_token_ids=[*range(8), VOCAB, 2 * VOCAB]), [6], "generation_token_ids", 8),
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
        (set_(2, parent_resolution="root", parent_call_id="gone"), [2], "parent_resolution", None),
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
    "mask_invalid": [
        (mask([1, 2]), [1], "generation_loss_mask", 1),
        (mask([1, "x"]), [1], "generation_loss_mask", 1),
        (mask([1.0, 0.0]), [1], "generation_loss_mask", 0),
        (mask([1]), [1], "generation_loss_mask", None),
        (mask("11"), [1], "generation_loss_mask", None),
        (mask(np.array([0.0, 1.0])), [1], "generation_loss_mask", None),
        (mask(np.array([0, 3])), [1], "generation_loss_mask", 1),
        (mask(np.ones((2, 1), bool)), [1], "generation_loss_mask", None),
    ],
    "tokens_in_items": [(set_(1, output_items=[{}, {"generation_token_ids": [9]}]), [1], "output_items", 1)],
    "routes_unreadable": [
        (set_(1, routed_experts=42), [1], "routed_experts", None),
        (set_(1, routed_experts=[[0, 1]]), [1], "routed_experts", None),
        (set_(1, routed_experts=np.zeros((1, 1, 2))), [1], "routed_experts", None),
        (set_(1, routed_experts="nrlre1:int16:1x1x2:AAAB"), [1], "routed_experts", None),
        (set_(1, routed_experts={"data": "AA==", "dtype": "int8", "shape": [2, 1, 1]}), [1], "routed_experts", None),
        *(
            (set_(1, routed_experts=text), [1], "routed_experts", None)
            for text in ("k05VTVBZnothing", "not base64", "AAAAAAEA")
        ),
    ],
    "routes_incomplete": [
        *((routes(np.zeros((rows, 1, 2), np.int8)), [1], "routed_experts", None) for rows in (0, 4, 7)),
        *(
            (routes(encode_routed_experts(np.zeros((4, 1, 2), np.int8), encoding)), [1], "routed_experts", None)
            for encoding in ("lists", "nrlre1", "npy", "object")
        ),
        (routes({"data": "AAA=", "dtype": "int8", "shape": [2, 1, 1], "start": 2}), [1], "routed_experts", None),
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
    of_files = {"unreadable_line", "lost_call", "incomplete_rollout", "no_checksum", "records_retired"}
    assert FAULTS.keys() | of_files | {"prefix_broken"} == SEVERITIES.keys()
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


def test_a_record_again_at_float32_precision_is_no_conflict() -> None:
    first, again = call("c", [1], [2, 3]), call("c", [1], [2, 3])
    first.generation_log_probs, again.generation_log_probs = [-0.1, float("nan")], np.array([-0.1, np.nan], np.float32)
    assert verify([first, again]).counts == {"log_prob_not_finite": 2}
    again.generation_loss_mask = [True, 1]  # as none
    assert verify([first, again]).counts == {"log_prob_not_finite": 2}
    again.generation_loss_mask = [True, 0]
    assert verify([first, again]).counts == {"call_id_conflict": 1, "log_prob_not_finite": 1}


@pytest.mark.parametrize("rows", [5, 6])
def test_complete_routes_are_no_finding(rows: int) -> None:
    entries = rollout()
    for value in (
        np.zeros((rows, 1, 2), np.int8),
        {"data": "AAA=", "dtype": "int8", "shape": [2, 1, 1], "start": rows - 2},
    ):
        routes(value)(entries)
        assert not verify(entries).findings
    routes("AAAAAAEAAAA=")(entries)  # flat numbers, which say no shape
    assert not verify(entries).findings
    # Those of a delta record may be of what it adds: one id and two generated ones.
    entries[5].routed_experts = np.zeros((rows - 3, 1, 2), np.int8)
    assert not verify(entries).findings


def test_log_probs_of_tokens_that_a_tool_wrote_mean_nothing() -> None:
    entries = rollout()
    long = entries[6]
    long.generation_log_probs = [float("nan"), 3.0, -9999.0, -0.5, *[0.0] * 6]
    long.generation_loss_mask = [0, 0, 0, 1, *[1] * 6]
    assert not verify(entries).findings
    long.generation_loss_mask = np.array([1, 0, 0, 1, *[1] * 6])
    assert [(f.code, f.index) for f in verify(entries).findings] == [("log_prob_not_finite", 0)]
    long.generation_log_probs = [-0.5, *[0.0] * 9]
    long.generation_loss_mask = [False] + [True] * 9
    assert [(f.code, f.message) for f in verify(entries).findings] == [
        ("log_probs_all_zero", "all 9 log-probs are 0.0")
    ]
    long.generation_loss_mask = [0] * 10
    assert not verify(entries).findings
