"""What is said of records beside others: values, and nothing twice."""

from __future__ import annotations

import re
from typing import Any

import pytest
from support.factories import as_arrays, call, conversation
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
    entries[3].parent_call_id = "of another rollout"
    assert verify(entries).counts == {"parent_missing": 1}
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
