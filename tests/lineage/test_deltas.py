"""Full prompts for delta records."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from support.factories import as_arrays, call, conversation, delta
from tokenrecords import TokenEntry, compute_digest, expand_deltas, group_by_rollout

TURNS = 10_000


def prompts(entries: list[TokenEntry]) -> list[list[int]]:
    return [np.asarray(entry.prompt_token_ids).tolist() for entry in entries]


def failed(*entries: TokenEntry) -> dict[str, str]:
    return {call_id: why for (_, call_id), why in expand_deltas(entries).failed.items()}


def long_conversation() -> list[TokenEntry]:
    """Calls of three ids each, without gaps; only the last one is stamped, for speed."""
    entries = [
        call(f"c{n}", [3 * n], [3 * n + 1, 3 * n + 2], f"c{n - 1}" if n else None, prompt_is_delta=n > 0, digest=None)
        for n in range(TURNS)
    ]
    entries[-1].digest = compute_digest(np.arange(3 * TURNS))
    return entries


@pytest.mark.parametrize("convert", [list, as_arrays])
def test_deltas_become_full(convert: Any) -> None:
    entries = convert(conversation(4, deltas=True))
    before = pickle.dumps(entries)
    for order in (entries, entries[::-1]):
        expansion = expand_deltas(iter(order))
        assert expansion.failed == {}
        full = sorted(expansion.entries, key=lambda entry: entry.model_call_id)
        assert prompts(full) == prompts(conversation(4))
        assert not any(entry.prompt_is_delta for entry in full)
        assert all(isinstance(entry.prompt_token_ids, np.ndarray) for entry in full[1:])
        assert [entry.model_call_id for entry in expansion.entries] == [entry.model_call_id for entry in order]
    assert pickle.dumps(entries) == before


def test_what_is_full_is_the_same_object() -> None:
    entries = as_arrays(conversation(3))
    expansion = expand_deltas(entries)
    assert all(full is entry for full, entry in zip(expansion.entries, entries, strict=True))
    mixed = as_arrays(conversation(3, deltas=True))
    assert expand_deltas(mixed).entries[0] is mixed[0]
    assert expand_deltas([]).entries == []


def test_what_is_not_the_prompt_is_shared() -> None:
    entry = conversation(2, deltas=True)
    full = expand_deltas(entry).entries[1]
    assert full.generation_token_ids is entry[1].generation_token_ids
    assert (full.parent_call_id, full.cum_len, full.digest) == ("c0", 6, entry[1].digest)


def test_a_long_chain_takes_the_memory_of_its_last_call() -> None:
    entries = long_conversation()
    full = expand_deltas(entries[::-1]).entries
    assert len(full) == TURNS
    arrays = [entry.prompt_token_ids for entry in full if entry.model_call_id != "c0"]
    assert all(np.shares_memory(arrays[0][:1], array[:1]) for array in arrays)
    assert max(map(len, arrays)) == 3 * TURNS - 2
    assert full[0].prompt_token_ids.tolist() == list(range(3 * TURNS - 2))
    with pytest.raises(ValueError, match="read-only"):
        arrays[0][0] = 5


def test_branches_do_not_mix() -> None:
    root = call("a", [1], [2])
    branches = [delta(call(f"b{n}", [1, 2, n], [n, n], "a"), 2) for n in range(3)]
    leaves = [delta(call(f"c{n}{m}", [1, 2, n, n, n, m], [9], f"b{n}"), 5) for n in range(3) for m in range(2)]
    full = expand_deltas([*leaves, *branches, root])
    assert full.failed == {}
    assert prompts(full.entries) == [
        *([1, 2, n, n, n, m] for n in range(3) for m in range(2)),
        *([1, 2, n] for n in range(3)),
        [1],
    ]


def test_a_parent_that_is_missing_is_named() -> None:
    entries = conversation(4, deltas=True)
    why = "parent call 'c1' is not there"
    assert failed(entries[0], *entries[2:]) == {"c2": why, "c3": why}
    assert [e.model_call_id for e in expand_deltas([entries[0], *entries[2:]]).entries] == ["c0"]
    nobody = entries[1].model_copy(update={"parent_call_id": None})
    assert failed(nobody) == {"c1": "parent call None is not there"}


def test_cycles_are_found() -> None:
    def looped(size: int) -> list[TokenEntry]:
        return [delta(call(f"x{n}", [1], [2], f"x{(n + 1) % size}"), 0) for n in range(size)]

    assert failed(*looped(1)) == {"x0": "its parents form a cycle: x0 -> x0"}
    tail = delta(call("t", [1], [2], "x1"), 0)
    assert set(failed(*looped(3), tail)) == {"x0", "x1", "x2", "t"}
    assert failed(*looped(3))["x0"] == "its parents form a cycle: x0 -> x1 -> x2 -> x0"
    # What leads into a cycle is not on it, wherever it stands.
    assert set(failed(tail, *looped(3)).values()) == {"its parents form a cycle: x1 -> x2 -> x0 -> x1"}
    assert failed(*looped(4))["x0"] == "its parents form a cycle: x0 -> x1 -> x2 -> x3 -> x0"
    assert failed(*looped(5))["x0"] == "its parents form a cycle: x0 -> x1 -> x2 -> ... -> x0"
    assert failed(*looped(TURNS))["x0"] == "its parents form a cycle: x0 -> x1 -> x2 -> ... -> x0"


def test_a_cycle_through_a_full_record_hides_no_prompt() -> None:
    entries = conversation(3, deltas=True)
    entries[0].parent_call_id, entries[0].parent_resolution = "c2", "resolved"  # type: ignore[assignment]
    assert expand_deltas(entries).failed == {}


def test_each_is_checked_against_its_own_digest_only() -> None:
    entries = conversation(4, deltas=True)
    entries[1].digest = "0" * 64
    (why,) = failed(*entries).values()
    assert why == f"its sequence has the digest {conversation(2)[1].digest}, recorded is {'0' * 64!r}"
    assert failed(*entries).keys() == {"c1"}
    entries[1].digest = ""
    assert failed(*entries).keys() == {"c1"}
    entries[1].digest = None
    assert failed(*entries) == {}
    entries[0].digest = "of a full record: not asked"
    assert failed(*entries) == {}


def test_another_parent_of_the_same_name_is_noticed() -> None:
    entries = conversation(3, deltas=True)
    other = call("c0", [1], [2])
    assert failed(other, *entries).keys() == {"c1", "c2"}  # the first record counts
    assert failed(entries[0], other, *entries[1:]) == {}


def test_rollouts_do_not_mix() -> None:
    other = [entry.model_copy(update={"rollout_id": "s"}) for entry in conversation(3, deltas=True)]
    mixed = [entry for pair in zip(conversation(3, deltas=True), other, strict=True) for entry in pair]
    assert expand_deltas(mixed).failed == {}
    assert set(expand_deltas(mixed[1:]).failed) == {("r", "c1"), ("r", "c2")}
    groups = group_by_rollout(iter(mixed))
    assert list(groups) == ["r", "s"]
    assert groups["s"] == other
    assert all(got is entry for got, entry in zip(groups["s"], other, strict=True))


def test_dtypes_are_widened_where_an_id_needs_it() -> None:
    entries = as_arrays(conversation(2, deltas=True))
    big = call("c2", [100, 200, 300, 101, 201, 301, 2**40], [2**63], "c1")
    full = expand_deltas([*entries, delta(big, 6)]).entries
    assert full[2].prompt_token_ids.dtype == np.uint64
    assert full[2].prompt_token_ids.tolist() == big.prompt_token_ids
    assert full[1].prompt_token_ids.tolist() == [100, 200, 300, 101]
    assert expand_deltas(entries).entries[1].prompt_token_ids.dtype == np.int32


def test_ids_that_are_none_cost_only_their_calls() -> None:
    entries = conversation(4, deltas=True)
    entries[2].prompt_token_ids = [2**64]
    why = "prompt_token_ids of call 'c2' holds ids that no integer dtype holds together"
    assert failed(*entries) == {"c2": why, "c3": why}
    entries[2].prompt_token_ids = [-1]
    assert failed(*entries)["c2"] == "id 6 of its sequence is negative: -1"
    entries[2].prompt_token_ids, entries[2].generation_token_ids = [102], [202, -5]
    assert failed(*entries)["c2"] == "id 8 of its sequence is negative: -5"
    entries[2].digest = entries[3].digest = None
    assert failed(*entries) == {}
    entries[3].generation_token_ids = [2**63]
    assert "no integer dtype holds all ids" in failed(*entries)["c3"]
    after = [delta(call(f"after{n}", [1], [n], "c3"), 0) for n in range(3)]
    assert failed(*after, *entries).keys() == {"c3", "after0", "after1", "after2"}
    entries[0].generation_token_ids = ["x"]
    why = failed(*entries)
    assert why.keys() == {"c1", "c2", "c3"}
    assert why["c1"] == "call 'c0': generation_token_ids[0] is 'x': token ids must be integers, got str"


def test_calls_before_one_that_spoils_their_array_share_it_all_the_same() -> None:
    entries = conversation(6, deltas=True)
    entries[4].prompt_token_ids, entries[4].digest = [-1], None
    entries[5].generation_token_ids = [2**63]
    full = expand_deltas(entries)
    assert full.failed == {("r", "c5"): "no integer dtype holds all ids of its sequence"}
    first, *others = [entry.prompt_token_ids for entry in full.entries[1:]]
    assert [np.asarray(first).tolist() == np.asarray(ids)[: len(first)].tolist() for ids in others] == [True] * 3
    assert [np.shares_memory(first, ids) for ids in others] == [True] * 3


@pytest.mark.parametrize("status", ["root", "unresolved", None, np.array([1, 2])])
def test_a_delta_continues_the_call_that_it_names_whatever_is_said_of_it(status: Any) -> None:
    entries = conversation(2, deltas=True)
    entries[1].parent_resolution = status
    assert prompts(expand_deltas(entries).entries) == prompts(conversation(2))
    full = conversation(2)
    full[1].parent_resolution = status
    assert expand_deltas(full).entries == full


def test_a_prompt_that_spoils_the_array_of_its_calls_costs_no_id_before_it() -> None:
    entries = conversation(4, deltas=True)
    entries[2].prompt_token_ids, entries[2].digest = [-1], None
    entries[3].prompt_token_ids = [2**63]
    full = expand_deltas(entries)
    assert full.failed == {("r", "c3"): "no integer dtype holds all ids of its sequence"}
    assert prompts(full.entries)[2] == [100, 200, 300, 101, 201, 301, -1]
    assert full.entries[2].prompt_token_ids.dtype.kind == "i"
