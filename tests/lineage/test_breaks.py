"""Where a prompt breaks off from an earlier call, as `verify` says it."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.fingerprints import twin
from tokenrecords import TokenEntry, build_chains, link_entries, verify

if TYPE_CHECKING:
    import random


def made(call_id: str, prompt: Any, generation: Any, **fields: Any) -> TokenEntry:
    fields.setdefault("rollout_id", "r")
    scores = [-0.5] * len(generation)
    ids = {"prompt_token_ids": prompt, "generation_token_ids": generation, "generation_log_probs": scores}
    return TokenEntry(model_call_id=call_id, **ids, **fields)


def lost(call_id: str, prompt: Any, generation: Any = (9,), **fields: Any) -> TokenEntry:
    return made(call_id, list(prompt), list(generation), parent_resolution="unresolved", **fields)


def broken(*entries: TokenEntry) -> list[tuple[str, int | None, str]]:
    findings = [finding for finding in verify(entries).findings if finding.code == "prefix_broken"]
    assert all((finding.severity, finding.field) == ("warning", "prompt_token_ids") for finding in findings)
    return [(str(finding.model_call_id), finding.index, finding.message) for finding in findings]


def test_position_call_and_both_ids_are_said() -> None:
    calls = link_entries([made("t2", [1, 2, 3, 4, 70007, 6], [8]), made("t1", [1, 2], [3, 4, 70002])])
    message = "prompt_token_ids[4] is 70007, where call 't1', whose prompt it starts with, generated 70002"
    assert broken(*calls) == [("t2", 4, message)]
    assert build_chains(calls).reasons == ["several_roots", "several_chains", "unresolved_parents"]


@pytest.mark.parametrize(
    ("prompt", "index"),
    [
        ([1, 2, 9], 2),  # at the first generated id
        ([1, 2, 3, 9, 5], 3),
        ([1, 2, 3, 4, 9], 4),
        ([1, 2, 3, 4, 5], None),  # all of it
        ([1, 2, 3, 4, 5, 6], None),
        ([1, 2, 3, 4], None),  # it ends inside
        ([1, 2], None),
        ([1, 9, 3], None),  # another prompt
        ([1], None),
        ([], None),
    ],
)
def test_only_a_break_inside_the_generation_is_one(prompt: list[int], index: int | None) -> None:
    for convert in (list, lambda ids: np.array(ids, np.uint16), lambda ids: np.array(ids, ">i8")):
        found = broken(made("a", convert([1, 2]), convert([3, 4, 5])), lost("b", convert(prompt)))
        assert [place for _, place, _ in found] == ([] if index is None else [index])


def test_only_unresolved_calls_of_the_same_rollout_are_looked_at() -> None:
    parent = made("a", [1, 2], [3, 4])
    assert broken(made("b", [1, 2, 3, 9], [5]), parent) == []
    assert broken(lost("b", [1, 2, 3, 9], rollout_id="s"), parent) == []
    assert broken(lost("b", [1, 2, 3, 9]), made("a", [1, 2], [])) == []
    assert broken(lost("b", [1, -2, 3, 9]), made("a", [1, -2], [3, 4])) == []
    assert broken(lost("b", [1, 2, 9]), made("a", [1, 2], [-3, 4])) == []
    named = lost("b", [1, 2, 3, 9])
    named.parent_resolution, named.parent_call_id = None, "a"
    assert broken(named, parent) == []  # parent_not_prefix says it
    assert verify([named, parent]).counts["parent_not_prefix"] == 1


def test_the_nearest_call_is_the_one_that_shares_most() -> None:
    calls = [made("a", [1], [2, 3, 4, 5, 8]), made("b", [1, 2], [3, 8]), made("c", [1, 2, 3], [7])]
    [(_, index, message)] = broken(*calls, lost("x", [1, 2, 3, 4, 5, 6]))
    assert (index, "call 'a'" in message) == (5, True)
    [(_, index, message)] = broken(*calls[1:], lost("x", [1, 2, 3, 4]))
    assert (index, "call 'b'" in message) == (3, True)
    twins = [made(name, [1, 2], [3, last]) for name, last in (("d", 5), ("b", 6), ("c", 4))]
    assert "call 'b'" in broken(*twins, lost("x", [1, 2, 3, 9]))[0][2]


def test_the_prompts_of_deltas_are_full_ones() -> None:
    first = made("a", [1], [2], parent_resolution="root")
    second = made("b", [3], [4, 5], prompt_is_delta=True, parent_call_id="a", parent_resolution="resolved")
    assert broken(lost("x", [1, 2, 3, 4, 9]), second, first)[0][:2] == ("x", 4)


ids = st.lists(st.integers(1, 2), max_size=4)


@given(st.lists(st.tuples(ids, ids, st.booleans()), max_size=8), st.randoms(use_true_random=True))
def test_any_set_says_what_a_look_at_every_pair_says(given: list[Any], rng: random.Random) -> None:
    make = {True: lost, False: made}
    entries = [make[is_lost](f"c{k}", prompt, list(ids)) for k, (prompt, ids, is_lost) in enumerate(given)]
    expected = {}
    for entry, other in itertools.product(entries, entries):
        prompt, whole = entry.prompt_token_ids, [*other.prompt_token_ids, *other.generation_token_ids]
        pairs = zip(prompt, whole, strict=False)
        shared = next((k for k, (x, y) in enumerate(pairs) if x != y), None)
        if entry.parent_resolution and shared is not None and shared >= len(other.prompt_token_ids):
            key = -shared, other.model_call_id
            expected[entry.model_call_id] = min(key, expected.get(entry.model_call_id, key))
    rng.shuffle(entries)
    found = {call_id: (-(index or 0), message.split("'")[1]) for call_id, index, message in broken(*entries)}
    assert found == expected


def test_of_equal_calls_the_least_id_is_said() -> None:
    twins = [made(name, [1], [2, 3]) for name in "ba"]
    [(_, _, message)] = broken(*twins, lost("x", [1, 2, 9]))
    assert "call 'a'" in message


def test_a_prompt_with_the_same_fingerprint_is_another_one() -> None:
    assert broken(made("twin", [2, twin(1, 5, 2)], [3]), lost("x", [1, 5, 9])) == []


@pytest.mark.parametrize(("found", "generated"), [(2**60, 3), (3, 2**60), (2**63, 2**62)])
def test_ids_of_any_size_are_told_apart(found: int, generated: int) -> None:
    message = f"is {found}, where call 'a', whose prompt it starts with, generated {generated}"
    for start in ([], [2]):
        [(_, index, text)] = broken(made("a", [1], [*start, generated]), lost("x", [1, *start, found]))
        assert (index, text.endswith(message)) == (1 + len(start), True)
