"""`link_entries`: parents of a whole set, whatever its order."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.factories import call, delta, make_entry
from support.fingerprints import twin
from support.oracle import digest
from support.watch import threads_asked
from tokenrecords import TokenEntry, build_chains, compute_digest, expand_deltas, link_entries, verify

if TYPE_CHECKING:
    from collections.abc import Sequence


def made(call_id: str, prompt: Sequence[int], generation: Sequence[int], **fields: Any) -> TokenEntry:
    fields.setdefault("rollout_id", "r")
    ids = {"prompt_token_ids": list(prompt), "generation_token_ids": list(generation)}
    return TokenEntry(model_call_id=call_id, **ids, generation_log_probs=[-0.5] * len(generation), **fields)


def said(entry: TokenEntry) -> tuple[str, str | None, str]:
    return str(entry.parent_resolution), entry.parent_call_id, entry.parent_resolution_reason


def links(*entries: TokenEntry) -> dict[str, tuple[str, str | None, str]]:
    return {entry.model_call_id: said(entry) for entry in link_entries(entries)}


ROOT = ("root", None, "")
LOST = ("unresolved", None, "no_prefix_parent")
MISMATCH = ("unresolved", None, "prefix_mismatch")


def test_entries_are_stamped_in_place_and_come_in_their_order() -> None:
    entries = [made("b", [1, 2, 3, 4], [5]), made("x", [7], [8], rollout_id="s"), made("a", [1, 2], [3])]
    linked = link_entries(iter(entries))
    assert [found is given for found, given in zip(linked, entries, strict=True)] == [True] * 3
    assert [said(entry) for entry in entries] == [("resolved", "a", ""), ROOT, ROOT]
    assert [entry.digest for entry in entries] == [digest([1, 2, 3, 4, 5]), digest([7, 8]), digest([1, 2, 3])]
    assert [entry.cum_len for entry in entries] == [5, 2, 3]


def test_the_longest_sequence_is_the_parent() -> None:
    assert links(made("a", [1], [2]), made("b", [1, 2, 3], [4]), made("c", [1, 2, 3, 4, 5], [6]))["c"] == (
        "resolved",
        "b",
        "",
    )
    # Nothing new after the parent is enough.
    assert links(made("a", [1], [2]), made("b", [1, 2], [4]))["b"] == ("resolved", "a", "")


def test_of_equal_sequences_the_latest_is_the_parent_then_the_greatest_id() -> None:
    child = made("x", [1, 2, 3], [4], created_at=9.0)
    twins = [
        made("a", [1], [2], created_at=2.0),
        made("c", [1], [2], created_at=1.0),
        made("b", [1], [2], created_at=2.0),
    ]
    assert links(*twins, child)["x"] == ("resolved", "b", "")
    twins[0].created_at = 3.0
    child.parent_call_id = child.parent_resolution = None
    assert links(child, *twins)["x"] == ("resolved", "a", "")


def test_a_named_parent_is_kept_where_it_is_proven() -> None:
    calls = [made("a", [1], [2]), made("b", [1], [2, 3])]
    # A longer prefix is there; the name decides.
    assert links(*calls, made("c", [1, 2, 3, 4], [5], parent_call_id="a", parent_resolution="resolved"))["c"] == (
        "resolved",
        "a",
        "",
    )
    assert links(*calls, made("c", [1, 2, 3, 4], [5], parent_call_id="a"))["c"] == ("resolved", "a", "")


@pytest.mark.parametrize("named", ["a", "gone", "c"])
def test_a_named_parent_that_is_not_proven_leaves_the_call_unresolved(named: str) -> None:
    found = links(made("a", [9], [2]), made("b", [1], [2]), made("c", [1, 2, 4], [5], parent_call_id=named))
    assert found["c"] == MISMATCH


def test_a_parent_of_another_rollout_is_none() -> None:
    entries = [
        made("a", [1], [2], rollout_id="s"),
        made("b", [1, 2, 3], [4]),
        made("c", [1, 2, 5], [4], parent_call_id="a"),
    ]
    assert links(*entries) == {"a": ROOT, "b": ROOT, "c": MISMATCH}


def test_a_parent_whose_record_was_changed_proves_nothing() -> None:
    parent = call("a", [1], [2])
    for change in ({"digest": "0" * 64}, {"cum_len": 3}):
        entries = [
            parent.model_copy(update=change),
            made("b", [1, 2, 3], [4]),
            made("c", [1, 2, 3], [4], parent_call_id="a"),
        ]
        assert links(*entries) == {"a": ROOT, "b": LOST, "c": MISMATCH}
        assert {name: getattr(entries[0], name) for name in change} == change  # what was recorded stays


def test_a_root_stays_one() -> None:
    found = links(made("a", [1], [2]), made("b", [1, 2, 3], [4], parent_resolution="root"))
    assert found == {"a": ROOT, "b": ROOT}


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({"created_at": 1.0}, {"created_at": 2.0}),
        ({"prompt": [1]}, {"prompt": [8, 9]}),
        ({"call_id": "a"}, {"call_id": "b"}),
        ({"created_at": 1.0, "prompt": [8, 9], "call_id": "b"}, {"created_at": 2.0, "prompt": [1], "call_id": "a"}),
        ({"created_at": 5.0}, {"created_at": float("nan")}),
        ({"created_at": 5.0}, {"created_at": 1.0, "generation": []}),
    ],
)
def test_the_earliest_call_without_a_parent_is_the_root(first: dict[str, Any], second: dict[str, Any]) -> None:
    kinds = ({"call_id": "x", "prompt": [5], "generation": [7]}, {"call_id": "y", "prompt": [6], "generation": [7]})
    entries = [made(**{**kind, **given}) for kind, given in zip(kinds, (first, second), strict=True)]
    ids = [entry.model_call_id for entry in entries]
    for order in (entries, entries[::-1]):
        for entry in order:
            entry.parent_resolution = None
        assert links(*order) == {ids[0]: ROOT, ids[1]: LOST}


def test_calls_with_the_prompt_of_the_root_are_roots() -> None:
    found = links(made("a", [1, 2], [3]), made("b", [1, 2], [4]), made("c", [1, 3], [4]))
    assert found == {"a": ROOT, "b": ROOT, "c": LOST}


def test_a_call_that_generated_nothing_is_nobodys_parent() -> None:
    aborted, again = made("a", [1, 2], []), made("b", [1, 2], [3])
    assert links(aborted, again, made("c", [1, 2, 3, 4], [])) == {"a": ROOT, "b": ROOT, "c": ("resolved", "b", "")}
    each_other = [made("a", [1], [], parent_call_id="b"), made("b", [1], [], parent_call_id="a")]
    assert links(*each_other) == {"a": MISMATCH, "b": MISMATCH}
    assert links(made("a", [1], [], parent_call_id="a")) == {"a": MISMATCH}


def test_deltas_keep_their_parents_and_are_parents() -> None:
    full = [call("a", [1], [2]), call("b", [1, 2, 3], [4], "a")]
    entries = [made("c", [1, 2, 3, 4, 5], [6]), delta(full[1], 2), full[0]]
    before = entries[1].model_copy()
    assert links(*entries) == {"a": ROOT, "b": ("resolved", "a", ""), "c": ("resolved", "b", "")}
    assert entries[1] == before
    alone = delta(full[1], 2)
    assert links(alone, made("x", [1], [2])) == {"b": ("resolved", "a", ""), "x": ROOT}


def test_what_can_not_be_read_stays_as_it_is() -> None:
    for field, value in (
        ("prompt_token_ids", ["x"]),
        ("created_at", "now"),
        ("generation_token_ids", [2**64]),
        ("digest", 5),
    ):
        bad = made("a", [1], [2])
        setattr(bad, field, value)
        assert links(bad, made("b", [1, 2, 3], [4])) == {"a": ("None", None, ""), "b": ROOT}
    mixed = make_entry(prompt_token_ids=np.array([2**63], np.uint64), generation_token_ids=np.array([-1]))
    assert said(link_entries([mixed])[0]) == ("None", None, "")


def test_a_negative_id_proves_nothing() -> None:
    entries = [made("a", [-1], [2]), made("b", [-1, 2, 3], [4])]
    assert links(*entries) == {"a": ROOT, "b": LOST}
    assert links(made("a", [1], [-2]), made("b", [1, -2, 3], [4])) == {"a": ROOT, "b": LOST}
    assert links(*entries[:1], made("c", [-1, 2, 3], [4], parent_call_id="a"))["c"] == MISMATCH
    assert [entry.digest for entry in entries] == [None, None]


def test_linking_twice_changes_nothing_and_calls_that_come_later_are_found() -> None:
    late = made("c", [1, 2, 3, 4, 5], [6])
    entries = [late, made("a", [1], [2])]
    assert links(*entries)["c"] == ("resolved", "a", "")
    entries = [made("c", [1, 2, 3, 4, 5], [6]), made("z", [7], [8])]
    assert links(*entries) == {"c": LOST, "z": ROOT}
    assert links(*entries) == {"c": LOST, "z": ROOT}
    assert links(*entries, made("b", [1, 2, 3], [4]))["c"] == ("resolved", "b", "")


def test_arguments_of_link_entries() -> None:
    assert link_entries([]) == []
    with pytest.raises(TypeError, match=r"^entries is TokenEntry: several entries are needed; put it in a list"):
        link_entries(make_entry())
    with pytest.raises(ValueError, match="threads"):
        link_entries([make_entry()], threads=0)


ids = st.lists(st.integers(1, 2), max_size=3)
calls = st.lists(
    st.tuples(
        st.sampled_from("rs"), ids, ids, st.sampled_from([0.0, 1.0]), st.sampled_from([None, "root", "c0", "c3"])
    ),
    max_size=7,
)


@given(calls, st.randoms(use_true_random=True))
def test_any_set_is_linked_as_the_rule_says_whatever_its_order(given: list[Any], rng: random.Random) -> None:
    entries = []
    for place, (rollout, prompt, generation, time, said_of_parent) in enumerate(given):
        fields: dict[str, Any] = {"rollout_id": rollout, "created_at": time}
        if said_of_parent == "root":
            fields["parent_resolution"] = "root"
        elif said_of_parent:
            fields["parent_call_id"] = said_of_parent
        entries.append(made(f"c{place}", prompt, generation, **fields))
    expected = {entry.model_call_id: expect(entry, entries) for entry in entries}
    rng.shuffle(entries)
    assert links(*entries) == expected
    assert all(entry.digest == compute_digest(entry.prompt_token_ids + entry.generation_token_ids) for entry in entries)


def expect(entry: TokenEntry, entries: list[TokenEntry]) -> tuple[str, str | None, str]:
    """The rule of the docstring, in the plainest words."""
    mine = [other for other in entries if other.rollout_id == entry.rollout_id]
    if entry.parent_resolution == "root":
        return ROOT
    parent = parent_of(entry, mine)
    if parent:
        return "resolved", parent, ""
    if entry.parent_call_id:
        return MISMATCH
    orphans = [o for o in mine if o.parent_resolution == "root" or not (parent_of(o, mine) or o.parent_call_id)]
    age = lambda o: (not o.generation_token_ids, o.created_at, len(o.prompt_token_ids), o.model_call_id)
    return ROOT if min(orphans, key=age).prompt_token_ids == entry.prompt_token_ids else LOST


def parent_of(entry: TokenEntry, mine: list[TokenEntry]) -> str | None:
    def starts(other: TokenEntry) -> bool:
        whole = other.prompt_token_ids + other.generation_token_ids
        return entry.prompt_token_ids[: len(whole)] == whole

    named = [other for other in mine if other.model_call_id == entry.parent_call_id]
    if entry.parent_call_id:
        mine_is_longer = named and (
            named[0].generation_token_ids
            or len(named[0].prompt_token_ids) < len(entry.prompt_token_ids + entry.generation_token_ids)
        )
        return entry.parent_call_id if mine_is_longer and starts(named[0]) else None
    fitting = [other for other in mine if other.generation_token_ids and starts(other)]
    best = max(
        fitting,
        key=lambda o: (len(o.prompt_token_ids + o.generation_token_ids), o.created_at, o.model_call_id),
        default=None,
    )
    return best.model_call_id if best else None


def test_a_shuffled_log_is_trainable_after_linking() -> None:
    entries = [made(f"t{k}", range(3 * k + 1), [3 * k + 1], created_at=float(k)) for k in range(20)]
    random.Random(3).shuffle(entries)
    link_entries(entries)
    build = build_chains(entries)
    assert build.main is not None
    assert build.main.call_ids == [f"t{k}" for k in range(20)]
    assert verify(entries).ok
    assert not expand_deltas(entries).failed


def test_a_lost_parent_stays_lost_when_it_is_linked_again() -> None:
    lost = made("c", [1, 2, 4], [5], parent_call_id="gone")
    for _ in range(3):
        assert links(lost) == {"c": MISMATCH}
        assert build_chains([lost]).reasons == ["unresolved_parents"]
    first, other = made("a", [1], [2], created_at=1.0), made("b", [7], [8], created_at=2.0)
    known = made(
        "x", [9], [9], created_at=0.0, parent_resolution="unresolved", parent_resolution_reason="prefix_mismatch"
    )
    assert links(known, first, other) == {"x": MISMATCH, "a": ROOT, "b": LOST}


def test_a_time_that_is_not_a_number_is_the_earliest_of_equal_parents() -> None:
    child = made("x", [1, 2, 3], [4])
    assert (
        links(made("b", [1], [2], created_at=float("nan")), made("a", [1], [2], created_at=1.0), child)["x"][1] == "a"
    )


def test_the_shortest_prompt_is_the_root_however_much_it_generated() -> None:
    assert links(made("a", [1, 2], [3]), made("b", [9], [4, 5, 6, 7])) == {"a": LOST, "b": ROOT}


def test_a_delta_that_leads_nowhere_is_nobodys_parent() -> None:
    alone = made("b", [1], [2], prompt_is_delta=True, parent_call_id="gone", parent_resolution="resolved")
    assert links(alone, made("c", [1, 2, 3], [4]))["c"] == ROOT


def test_a_call_that_is_there_twice_is_not_its_own_parent_and_either_may_be_named() -> None:
    twins = [made("c", [1], [2]), made("c", [1, 2, 3], [4])]
    for order in (twins, twins[::-1]):
        link_entries(order)
        assert all(entry.parent_call_id is None for entry in order)
    for order in ([[2], [9]], [[9], [2]]):
        records = [made("a", [1], generation) for generation in order]
        assert links(*records, made("b", [1, 9, 3], [4], parent_call_id="a"))["b"] == ("resolved", "a", "")


def test_threads_are_checked_where_nothing_is_linked() -> None:
    with pytest.raises(ValueError, match="threads"):
        link_entries([], threads=0)


def test_a_delta_of_a_changed_parent_keeps_what_it_says() -> None:
    first, second = call("a", [1], [2], digest="0" * 64), delta(call("b", [1, 2, 3], [4], "a"), 2)
    assert links(first, second)["b"] == ("resolved", "a", "")


def test_a_call_that_lost_its_parent_gets_no_other_one() -> None:
    lost = made("c", [1, 2, 3], [4], parent_resolution="unresolved", parent_resolution_reason="prefix_mismatch")
    assert links(made("a", [1], [2]), lost) == {"a": ROOT, "c": MISMATCH}


def test_a_reason_counts_for_an_unresolved_call_alone() -> None:
    entry = made("c", [1, 2, 3], [4], parent_resolution_reason="prefix_mismatch")
    assert links(made("a", [1], [2]), entry)["c"] == ("resolved", "a", "")


def test_the_reason_of_a_call_that_stays_unresolved_stays() -> None:
    why = {"parent_resolution": "unresolved", "parent_resolution_reason": "the engine was restarted"}
    found = links(made("a", [1], [2]), made("c", [9], [4], created_at=1.0, **why))
    assert found["c"] == ("unresolved", None, "the engine was restarted")


def test_a_reason_that_is_no_text_is_replaced() -> None:
    entry = made("c", [9], [4], created_at=1.0, parent_resolution="unresolved")
    entry.parent_resolution_reason = np.array(["a", "b"])  # type: ignore[assignment]
    assert links(made("a", [1], [2]), entry)["c"] == LOST


@pytest.mark.parametrize("half", [{"cum_len": 9}, {"digest": "0" * 64}])
def test_half_a_stamp_is_left_as_it_is(half: dict[str, Any]) -> None:
    [entry] = link_entries([made("a", [1], [2], **half)])
    assert {name: getattr(entry, name) for name in ("cum_len", "digest")} == {"cum_len": None, "digest": None, **half}


def test_a_sequence_with_the_same_fingerprint_is_no_parent() -> None:
    entries = [made("twin", [2], [twin(1, 5, 2)]), made("c", [1, 5, 3], [4])]
    assert links(*entries) == {"twin": ROOT, "c": LOST}
    # One of the same length, or a shorter one, is found behind it.
    for parent in (made("a", [1], [5]), made("a", [], [1])):
        entries[1].parent_resolution = None
        assert links(*entries, parent)["c"] == ("resolved", "a", "")
        entries[1].parent_call_id = None


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("link", [link_entries, build_chains, expand_deltas])
def test_every_batch_of_digests_is_asked_for_as_many_threads(
    monkeypatch: pytest.MonkeyPatch, link: Any, threads: int
) -> None:
    full = [call("a", [1], [2]), call("b", [1, 2, 3], [4], "a"), call("again", [1, 2, 3], [5], "a")]
    entries = [full[0], delta(full[1], 2), full[2], made("x", [1, 2, 3, 4, 6], [7], parent_call_id="gone")]
    asked = threads_asked(monkeypatch)
    link(entries, threads=threads)
    assert set(asked) == {threads}
    assert len(asked) == {link_entries: 3, build_chains: 4, expand_deltas: 1}[link]
