"""Calls that are linked: what a proof costs, and whom."""

from __future__ import annotations

import numpy as np
import pytest
from support.factories import call, conversation
from tokenrecords import build_chains, verify
from tokenrecords.lineage.paths import Terminal, find_paths


def test_a_wrong_digest_of_a_parent_unlinks_every_child() -> None:
    children = [call(name, [1, 2, place], [4], "a") for place, name in enumerate("bcd")]
    build = build_chains([call("a", [1], [2], digest="0" * 64), *children])
    assert build.notes.parent_link_failures == {"parent_digest_mismatch": 3}
    assert [chain.call_ids for chain in build.chains] == [["a"], ["b"], ["c"], ["d"]]


@pytest.mark.parametrize(("status", "failures"), [("root", {}), ("unresolved", {"parent_unresolved": 1})])
def test_a_delta_is_read_through_its_parent_and_continues_none_where_it_says_so(
    status: str, failures: dict[str, int]
) -> None:
    first, second = conversation(2, deltas=True)
    build = build_chains([first, second.model_copy(update={"parent_resolution": status})])
    assert [chain.call_ids for chain in build.chains] == [["c0"], ["c1"]]
    assert build.chains[1].token_ids.tolist() == [100, 200, 300, 101, 201, 301]
    assert (build.notes.roots, build.notes.parent_link_failures) == (2, failures)


@pytest.mark.parametrize("log_prob", [-1e300, float("-inf")])
def test_log_probs_beyond_float32_are_compared_without_a_warning(log_prob: float) -> None:
    entries = [call("a", [1], [2], generation_log_probs=np.array([log_prob])) for _ in range(2)]
    assert "call_id_conflict" not in verify(entries).counts
    assert build_chains(entries).notes.parent_link_failures == {}


def test_records_that_are_no_calls_come_by_their_ids() -> None:
    unreadable = [call(name, [1], [2], cum_len="7") for name in "cb"]
    conflicting = [call("a", [1], [2]), call("a", [1], [3])]
    assert find_paths([*unreadable, *conflicting], Terminal()).links.left_out == [
        ("a", "duplicate_call_id_conflict"),
        ("b", "record_unreadable"),
        ("c", "record_unreadable"),
    ]


def test_log_probs_that_can_not_be_read_are_no_conflict() -> None:
    for broken in (["x", -0.5], None):
        again = call("a", [1], [2, 3], generation_log_probs=broken)
        assert verify([call("a", [1], [2, 3]), again]).counts == {"field_invalid": 1}


def test_a_call_that_adds_nothing_to_its_parent_continues_it() -> None:
    entries = [call("a", [1], [2]), call("b", [1, 2], [], "a")]
    assert verify(entries).counts == {"empty_generation": 1}


def test_masks_that_can_not_be_read_are_a_conflict_where_they_differ() -> None:
    def counts(*masks: list[int]) -> dict[str, int]:
        return verify(call("a", [1], [2, 3], generation_loss_mask=mask) for mask in masks).counts

    assert counts([1, 5], [1, 5]) == {"mask_invalid": 2}
    assert counts([1, 5], [5, 1]) == {"call_id_conflict": 1, "mask_invalid": 1}
