"""Where the prompt of a fragment leaves the call that it was to continue."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from support.factories import call
from tokenrecords.lineage.paths import Terminal, find_paths
from tokenrecords.report.breaks import BreakShown, breaks_of
from tokenrecords.report.calls import in_tree_order


def breaks(*entries) -> list[tuple[str, str, int]]:
    ordered = [each for each, _ in in_tree_order(find_paths(entries, Terminal()).links.calls)]
    found = breaks_of({each: place for place, each in enumerate(ordered)})
    assert all(type(each) is BreakShown for each in found)
    return [(ordered[each.call].id, ordered[each.other].id, each.position) for each in found]


def test_the_named_call_is_compared_first() -> None:
    near = call("near", [1, 2], [3, 4])
    named = call("named", [1], [9])
    assert breaks(near, named, call("b", [1, 2, 3, 5], [6], "named")) == [("b", "named", 1)]


def test_without_a_name_it_is_the_nearest_call() -> None:
    lost = call("b", [1, 2, 3, 5], [6], parent_resolution="unresolved")
    assert breaks(call("a", [1], [7]), call("c", [1, 2], [3, 4]), lost) == [("b", "c", 3)]


def test_a_prompt_that_ends_within_the_named_call_leaves_it_there() -> None:
    assert breaks(call("a", [1], [2, 3]), call("b", [1, 2], [4], "a")) == [("b", "a", 2)]


def test_a_call_that_holds_all_of_its_parent_leaves_nothing() -> None:
    assert breaks(call("a", [1], [2], digest="0" * 64), call("b", [1, 2, 3], [4], "a")) == []
    assert breaks(call("a", [1], [2]), call("b", [1, 2, 3], [4], "a")) == []
    assert breaks(call("a", [1], [2]), call("b", [5], [4], parent_resolution="unresolved")) == []


ids = st.lists(st.integers(0, 2), min_size=1, max_size=6)


@given(ids, ids, ids)
def test_the_position_is_the_first_that_differs(first, generated, prompt) -> None:
    whole = [*first, *generated]
    same = 0
    while same < min(len(whole), len(prompt)) and whole[same] == prompt[same]:
        same += 1
    found = breaks(call("a", first, generated), call("b", np.array(prompt).tolist(), [9], "a"))
    assert found == ([] if same == len(whole) else [("b", "a", same)])
