"""What is said of records beside others: values, and nothing twice."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from support.factories import as_arrays, call, conversation, delta
from support.watch import threads_asked
from tokenrecords import stamp_lineage, verify


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
    for gone in ("of no rollout", "c2"):  # which the other rollout has
        entries[3].parent_call_id = gone
        assert verify([*entries, conversation(3)[2]]).counts == {"parent_missing": 1}
    repeated = [*conversation(2), *as_arrays(conversation(2))]
    assert verify(repeated).findings == []


def test_the_other_calls_of_a_cycle_are_counted() -> None:
    for size, others in ((2, "1 other"), (3, "2 others")):
        entries = [call(f"x{n}", [1], [2], f"x{(n + 1) % size}") for n in range(size)]
        assert {finding.message for finding in verify(entries).findings} == {
            f"its parents lead back to it, over {others}"
        }


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"prompt_token_ids": [100, 200, 300, 101, 201, 999, 102]}, r"^prompt_token_ids\[5\] is 999\b.*'c1' has 301$"),
        ({"prompt_token_ids": [100, 200, 300]}, r"'c1' has 6 ids\b.* 3$"),
        ({"parent_call_id": "gone"}, "'gone'"),
        ({"cum_len": 7}, r"^cum_len is 7\b.* 9 ids$"),
        ({"digest": "0" * 64}, f"^digest is '{'0' * 64}'.* '{conversation()[2].digest}'$"),
    ],
)
def test_the_values_are_said(fields: dict[str, Any], message: str) -> None:
    entries = conversation()
    for name, value in fields.items():
        setattr(entries[2], name, value)
    if "prompt_token_ids" in fields:
        stamp_lineage(entries[2], "c1", "resolved")
    (finding,) = verify(entries).findings
    assert re.search(message, finding.message), finding.message


def test_of_a_record_that_is_not_used_nothing_else_is_said() -> None:
    entries = conversation()
    other = entries[1].model_copy(update={"generation_token_ids": [201, 999], "token_item_index": 5})
    assert verify([*entries, other]).counts == {"call_id_conflict": 1}


def test_what_is_wrong_with_a_delta_is_not_said_of_the_full_call_that_continues_it() -> None:
    entries = [*conversation(2, deltas=True), conversation(3)[2]]
    entries[1].parent_call_id = "gone"
    assert [(finding.code, finding.position) for finding in verify(entries).findings] == [
        ("delta_unreconstructable", 1)
    ]


def test_a_parent_that_can_not_be_read_is_not_missing() -> None:
    entries = conversation()
    entries[1].generation_token_ids = [1, None]  # type: ignore[list-item]
    assert verify(entries).counts == {"field_invalid": 1}


def test_a_parent_without_a_decision_is_taken_as_it_is() -> None:
    entries = conversation()
    entries[2].parent_resolution = None
    assert verify(entries).findings == []


def test_a_cycle_of_calls_with_negative_ids_is_found() -> None:
    a, b = call("a", [1], [2], "b", prompt_token_ids=[-1]), call("b", [1], [2], "a", prompt_token_ids=[-1])
    assert verify([a, b]).counts == {"id_negative": 2, "parent_cycle": 2}


def test_a_cycle_is_said_of_each_delta_whose_parent_is_not_known() -> None:
    entries = conversation(3, deltas=True)
    entries[0].parent_call_id, entries[0].parent_resolution = "c2", "resolved"  # type: ignore[assignment]
    entries[1].digest = entries[2].digest = "0" * 64
    assert [(f.code, f.position) for f in verify(entries).findings] == [("parent_cycle", 1), ("parent_cycle", 2)]


def test_a_length_of_zero_is_a_length() -> None:
    assert verify([call("a", [1], [2], cum_len=0)]).counts == {"cum_len_mismatch": 1}


def test_of_a_record_that_is_there_twice_routes_are_counted_once() -> None:
    entry = call("a", [1, 2, 3], [4], routed_experts=np.zeros((1, 1, 1), np.int8))
    assert [(f.code, f.position) for f in verify([entry, entry]).findings] == [("routes_incomplete", 0)]


def test_a_field_that_can_not_be_read_hides_no_delta_that_leads_nowhere() -> None:
    entry = delta(call("b", [1, 2, 3], [4], "gone", created_at="now"), 2)
    assert verify([entry]).counts == {"field_invalid": 1, "delta_unreconstructable": 1}


@pytest.mark.parametrize("threads", [1, 2])
def test_every_batch_of_digests_is_asked_for_as_many_threads(monkeypatch: pytest.MonkeyPatch, threads: int) -> None:
    lost = call("x", [100, 200, 9], [7], parent_resolution="unresolved")
    entries = [*conversation(2, deltas=True), lost]
    asked = threads_asked(monkeypatch)
    assert verify(entries, threads=threads).counts == {"prefix_broken": 1, "unresolved_parent": 1}
    assert asked == [threads] * 3  # of the deltas, of where the prompt breaks off, and of all


def test_what_is_hashed_is_no_copy_where_a_prompt_holds_it(monkeypatch: pytest.MonkeyPatch) -> None:
    from tokenrecords.verification import calls

    entries = as_arrays(conversation(3))
    hashed: list[Any] = []
    compute = calls.compute_digests

    def watched(sequences: Any, **options: Any) -> list[str]:
        hashed.extend(sequences)
        return compute(hashed, **options)

    monkeypatch.setattr(calls, "compute_digests", watched)
    assert verify(entries).ok
    assert [np.shares_memory(hashed[n], entries[n + 1].prompt_token_ids) for n in (0, 1)] == [True, True]


def test_a_delta_whose_parent_is_there_and_cannot_be_read_is_told_so() -> None:
    first, second, third = conversation(3, deltas=True)
    first.prompt_token_ids = None  # type: ignore[assignment]
    elsewhere = second.model_copy(update={"rollout_id": "elsewhere"})
    report = verify([first, second, third, elsewhere])
    told = {
        (finding.rollout_id, finding.model_call_id): finding.message
        for finding in report.findings
        if finding.code == "delta_unreconstructable"
    }
    assert told == {
        ("r", "c1"): "parent call 'c0' can't be read",
        ("r", "c2"): "parent call 'c0' can't be read",
        ("elsewhere", "c1"): "parent call 'c0' is not there",
    }
