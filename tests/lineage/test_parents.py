"""`resolve_parent`: which call a call continues, by the exact tokens."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.factories import DELTA, bare
from tokenrecords import ParentResolutionStatus, compute_digest, cumulative_tokens, resolve_parent, stamp_lineage
from tokenrecords.lineage.parents import as_delta

ROOT, RESOLVED, UNRESOLVED = ParentResolutionStatus
NO_PREFIX, MISMATCH = (None, UNRESOLVED, "no_prefix_parent"), (None, UNRESOLVED, "prefix_mismatch")
IS_ROOT = (None, ROOT, "")


def child_of(name):
    return name, RESOLVED, ""


def test_the_first_call_is_a_root():
    assert resolve_parent(bare("a", [1, 2]), []) == IS_ROOT
    assert resolve_parent(bare("a", [1, 2]), iter(())) == IS_ROOT
    assert resolve_parent(bare("a", []), []) == IS_ROOT


def test_the_results_are_plain():
    parent, status, reason = resolve_parent(bare("b", [1, 2, 3]), [bare("a", [1, 2], [3])])
    assert type(parent) is str
    assert type(status) is ParentResolutionStatus
    assert type(reason) is str


@pytest.mark.parametrize("hold", [list, np.array, lambda ids: np.array(ids, ">u8")])
@pytest.mark.parametrize("hold_prompt", [list, np.array, lambda ids: np.array(ids, ">i2")])
def test_a_cumulative_sequence_that_starts_the_prompt(hold, hold_prompt):
    first = bare("a", hold([1, 2]), [3])
    assert resolve_parent(bare("b", hold_prompt([1, 2, 3, 4])), [first]) == child_of("a")
    assert resolve_parent(bare("b", hold_prompt([1, 2, 3])), [first]) == child_of("a")
    assert resolve_parent(bare("b", hold_prompt([1, 2, 9, 4])), [first]) == NO_PREFIX
    assert resolve_parent(bare("b", hold_prompt([2, 1, 3, 4])), [first]) == NO_PREFIX
    assert resolve_parent(bare("b", hold_prompt([0, 1, 2, 3])), [first]) == NO_PREFIX
    assert resolve_parent(bare("b", hold_prompt([1, 2])), [first]) == NO_PREFIX  # its prompt alone is not enough


def test_the_longest_is_the_parent():
    short, long, other = bare("a", [1], [2]), bare("b", [1, 2], [3]), bare("x", [1, 2, 3, 4], [9])
    for earlier in ([short, long, other], [other, long, short], [long, other, short]):
        assert resolve_parent(bare("c", [1, 2, 3, 4, 5]), earlier) == child_of("b")
        assert resolve_parent(bare("c", [1, 2]), earlier) == child_of("a")


def test_the_longest_counts_prompt_and_generation():
    assert resolve_parent(bare("c", [1, 2, 3, 4]), [bare("a", [1], [2, 3]), bare("b", [1, 2], [])]) == child_of("a")


def test_of_equal_ones_the_latest_is_the_parent():
    same = [bare("a", [1], [2, 3]), bare("b", [1, 2], [3]), bare("c", [1, 2, 3])]
    assert resolve_parent(bare("d", [1, 2, 3, 4]), same) == child_of("c")
    assert resolve_parent(bare("d", [1, 2, 3, 4]), same[::-1]) == child_of("a")
    assert resolve_parent(bare("d", [1, 2, 3, 4]), iter(same[:2])) == child_of("b")


def test_calls_of_other_rollouts_are_passed_over():
    other = bare("a", [1], [2], rollout_id="s")
    assert resolve_parent(bare("b", [1, 2, 3]), [other]) == IS_ROOT
    assert resolve_parent(bare("b", [1, 2, 3]), [other, bare("c", [7])]) == NO_PREFIX
    named = bare("b", [1, 2, 3], parent_call_id="a")
    assert resolve_parent(named, [other]) == MISMATCH


def test_an_empty_sequence_is_no_parent():
    assert resolve_parent(bare("b", [1, 2]), [bare("a", [])]) == NO_PREFIX
    assert resolve_parent(bare("b", [1, 2], parent_call_id="a"), [bare("a", [])]) == MISMATCH


def test_a_call_is_not_its_own_parent():
    entry = bare("a", [1, 2])  # without generated ids its sequence starts its own prompt
    for itself in (entry, entry.model_copy(), bare("a", [1], [2])):
        assert resolve_parent(entry, [itself]) == IS_ROOT
    assert resolve_parent(entry, [bare("x", [7]), entry]) == NO_PREFIX
    named = bare("a", [1, 2], parent_call_id="a")
    assert resolve_parent(named, [named]) == MISMATCH


def test_the_prompt_of_an_earlier_root_again():
    root = bare("a", [1, 2], [3], parent_resolution="root")
    for hold in (list, np.array):
        assert resolve_parent(bare("b", hold([1, 2])), [root]) == IS_ROOT
        assert resolve_parent(bare("b", hold([1, 2])), [bare("x", [9]), root, bare("y", [9])]) == IS_ROOT
        assert resolve_parent(bare("b", hold([1])), [root]) == NO_PREFIX
        assert resolve_parent(bare("b", hold([1, 2, 4])), [root]) == NO_PREFIX
        assert resolve_parent(bare("b", hold([2, 1])), [root]) == NO_PREFIX
    assert resolve_parent(bare("b", [1, 2]), [bare("a", [1, 2], [3], parent_resolution="unresolved")]) == NO_PREFIX
    resolved = bare("a", [1, 2], [3], parent_resolution="resolved", parent_call_id="z")
    assert resolve_parent(bare("b", [1, 2]), [resolved]) == NO_PREFIX


def test_a_parent_before_a_root():
    root, longer = bare("a", [1, 2], [], parent_resolution="root"), bare("b", [1], [2])
    assert resolve_parent(bare("c", [1, 2]), [root, longer]) == child_of("b")


def test_a_named_parent_is_checked():
    first, second = bare("a", [1], [2]), bare("b", [1, 2], [3])
    named = bare("c", [1, 2, 3], parent_call_id="a")
    assert resolve_parent(named, [first, second]) == child_of("a")  # though b is longer
    assert resolve_parent(named, [second]) == MISMATCH
    assert resolve_parent(named, []) == MISMATCH
    assert resolve_parent(bare("c", [1, 3], parent_call_id="a"), [first]) == MISMATCH
    assert resolve_parent(bare("c", [1], parent_call_id="a"), [first]) == MISMATCH
    assert resolve_parent(bare("c", [1, 2], parent_call_id=""), [first]) == MISMATCH
    # a call captured twice: either will do
    assert resolve_parent(named, [bare("a", [9], [9]), first]) == child_of("a")
    assert resolve_parent(named, [first, bare("a", [9], [9])]) == child_of("a")


def delta_call(name, whole, own, **changes):
    """A call whose prompt is stored as a delta, stamped with its full sequence."""
    entry = bare(name, own, **{**DELTA, **changes})
    return stamp_lineage(entry, "p", RESOLVED, whole)


@pytest.mark.parametrize("hold", [list, np.array])
def test_a_delta_call_is_compared_by_its_digest(hold):
    parent = delta_call("a", [1, 2, 3], [3])
    assert resolve_parent(bare("b", hold([1, 2, 3, 4])), [parent]) == child_of("a")
    assert resolve_parent(bare("b", hold([1, 2, 3])), [parent]) == child_of("a")
    assert resolve_parent(bare("b", hold([1, 2, 4, 4])), [parent]) == NO_PREFIX
    assert resolve_parent(bare("b", hold([3, 4])), [parent]) == NO_PREFIX  # the delta alone is not its sequence
    assert resolve_parent(bare("b", hold([1, 2])), [parent]) == NO_PREFIX
    assert resolve_parent(bare("b", hold([1, 2, 3]), parent_call_id="a"), [parent]) == child_of("a")
    assert resolve_parent(bare("b", hold([1, 2, 4]), parent_call_id="a"), [parent]) == MISMATCH


def test_the_length_of_a_delta_call_is_its_full_one():
    parent, shorter = delta_call("a", [1, 2, 3], [3]), bare("b", [1], [2])
    for earlier in ([parent, shorter], [shorter, parent]):
        assert resolve_parent(bare("c", [1, 2, 3, 4]), earlier) == child_of("a")


def test_a_delta_call_without_a_stamp_is_no_parent():
    for changes in ({}, {"cum_len": 3}, {"digest": compute_digest([1, 2, 3])}, {"cum_len": 0, "digest": "x"}):
        assert resolve_parent(bare("b", [1, 2, 3]), [bare("a", [3], **DELTA, **changes)]) == NO_PREFIX


def test_a_digest_without_a_length_is_no_stamp():
    earlier = bare("a", [1, 2], [], **DELTA, digest=compute_digest([1, 2]))
    assert resolve_parent(bare("b", [1, 2, 3]), [earlier]) == NO_PREFIX


def test_a_delta_entry_has_no_full_prompt():
    with pytest.raises(ValueError, match="'b' of rollout 'r' stores a delta prompt"):
        resolve_parent(bare("b", [3], **DELTA), [])


def test_nothing_is_changed():
    entry, earlier = bare("b", [1, 2, 3]), [bare("a", [1], [2], parent_resolution="root")]
    before = [item.model_dump() for item in (entry, *earlier)]
    resolve_parent(entry, earlier)
    assert [item.model_dump() for item in (entry, *earlier)] == before
    assert len(earlier) == 1


def test_the_result_is_a_stamp():
    earlier = []
    for entry in (
        bare("a", [1], [2]),
        bare("b", [1, 2, 3], [4]),
        bare("c", [1], [9]),
        bare("d", [5]),
    ):
        parent, status, reason = resolve_parent(entry, earlier)
        stamp_lineage(entry, parent, status)
        entry.parent_resolution_reason = reason
        earlier.append(entry)
    assert [(e.parent_call_id, str(e.parent_resolution), e.parent_resolution_reason) for e in earlier] == [
        (None, "root", ""), ("a", "resolved", ""), (None, "root", ""), (None, "unresolved", "no_prefix_parent")
    ]  # fmt: skip


def test_bad_ids_are_named():
    with pytest.raises(ValueError, match=r"^prompt_token_ids\[1\] is -9: token ids must be non-negative, got -9$"):
        resolve_parent(bare("b", [1, -9, 3]), [bare("a", [1], [-9])])
    with pytest.raises(ValueError, match=r"^prompt_token_ids\[1\] is -9: token ids must be non-negative, got -9$"):
        resolve_parent(bare("b", np.array([1, -9, 3])), [delta_call("a", [1, 2], [2])])


@given(
    st.lists(st.tuples(st.lists(st.integers(0, 1), max_size=3), st.lists(st.integers(0, 1), max_size=2)), max_size=6),
    st.lists(st.integers(0, 1), max_size=6),
    st.sampled_from([list, np.array]),
)
def test_the_rule_in_plain_python(calls, prompt, hold):
    earlier = [bare(str(place), p, g) for place, (p, g) in enumerate(calls)]
    best = None
    for entry in earlier:
        whole = cumulative_tokens(entry)
        if whole and prompt[: len(whole)] == whole and (best is None or len(whole) >= best[0]):
            best = len(whole), entry.model_call_id
    wanted = child_of(best[1]) if best else NO_PREFIX if earlier else IS_ROOT
    asked = bare("x", np.array(prompt, np.int32) if hold is np.array else prompt)
    assert resolve_parent(asked, earlier) == wanted


@pytest.mark.parametrize("hold", [list, np.array])
def test_a_delta_does_not_hold_the_prompt_that_it_was_made_of(hold):
    entry = bare("b", hold([1, 2, 3, 4]), [5])
    made = as_delta(entry, bare("a", [1], [2]))
    assert (list(made.prompt_token_ids), made.prompt_is_delta, entry.prompt_is_delta) == ([3, 4], True, False)
    assert getattr(made.prompt_token_ids, "base", None) is None
