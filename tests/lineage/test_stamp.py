"""`cumulative_tokens` and `stamp_lineage`."""

import inspect

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import oracle
from support.factories import DELTA, bare, make_entry
from support.holders import Index
from tokenrecords import ParentResolutionStatus, TokenEntry, compute_digest, cumulative_tokens, stamp_lineage

ROOT, RESOLVED, UNRESOLVED = ParentResolutionStatus


def test_lists_give_a_new_list():
    for prompt, generation in (([1, 2], [3]), ([], [3]), ([1, 2], []), ([], []), ([2**64, -1], [7])):
        entry = bare("c", prompt, generation)
        whole = cumulative_tokens(entry)
        assert whole == oracle.cumulative(prompt, generation)
        assert type(whole) is list
        assert whole is not entry.prompt_token_ids
        assert whole is not entry.generation_token_ids
        whole.append(0)
        assert entry.prompt_token_ids == prompt
        assert entry.generation_token_ids == generation


def ids(dtype, *values):
    return np.array(values, dtype)


DTYPES = [
    (ids("i4", 1, 2), ids("i4", 3), "i4"),
    (ids("i4", 1, 2), [3], "i4"),
    (ids("i4", 1, 2), ids("i8", 3), "i4"),
    (ids("i4", 1), ids("u8", 3), "i4"),
    (ids("i4"), [3], "i4"),
    (ids("i4", 1), [], "i4"),
    (ids("i4"), [], "i4"),
    (ids("i4"), ids("u1"), "i4"),
    (ids(">i4", 1), ids("<i8", 2), ">i4"),
    (ids("u1", 255), ids("i8", 255), "u1"),
    (ids("u1", 255), [256], "i8"),
    (ids("i1", 1), ids("u1", 200), "i8"),
    (ids("i4", 1), [2**31], "i8"),
    (ids("i4", 1), [2**63 - 1], "i8"),
    (ids("u4", 1), [2**32], "i8"),
    (ids("i4", 1), [2**63], "u8"),
    (ids("i8", 1), [2**63], "u8"),
    (ids("i8", 1), ids("u8", 2**64 - 1), "u8"),
    (ids("u8", 2**63), ids("i8", 1), "u8"),
    (ids("u8", 2**63), [1], "u8"),
    (ids("u8", 1), ids("i4", 2), "u8"),
    (ids("u8", 1), [-1], "i8"),
    (ids("u1", 1), ids("i1", -1), "i8"),
    (ids("i4", -1), [2**31], "i8"),
]


@pytest.mark.parametrize(("prompt", "generation", "dtype"), DTYPES)
def test_arrays_keep_or_widen_their_dtype(prompt, generation, dtype):
    whole = cumulative_tokens(bare("c", prompt, generation))
    assert whole.dtype == np.dtype(dtype)
    assert whole.tolist() == oracle.cumulative(prompt, generation)
    assert not np.shares_memory(whole, prompt)


NO_DTYPE = [
    (ids("i4", 1), [2**64]),
    (ids("i4", -1), [2**63]),
    (ids("i8", -1), ids("u8", 2**63)),
    (ids("u8", 2**63), [-1]),
    (ids("u8", 2**63), ids("i1", -1)),
    (ids("i4", 1), [-1, 2**63]),
    (ids("i4", 1), [-(2**63) - 1]),
]


@pytest.mark.parametrize(("prompt", "generation"), NO_DTYPE)
def test_what_no_dtype_holds_is_a_list(prompt, generation):
    whole = cumulative_tokens(bare("c", prompt, generation))
    assert whole == oracle.cumulative(prompt, generation)
    assert type(whole) is list
    assert all(type(id_) is int for id_ in whole)


def test_a_list_prompt_gives_a_list():
    for generation in (ids("u8", 2**64 - 1), ids(">i2", 3), ids("i4")):
        whole = cumulative_tokens(bare("c", [1, 2], generation))
        assert whole == oracle.cumulative([1, 2], generation)
        assert type(whole) is list
        assert all(type(id_) is int for id_ in whole)


parts = st.one_of(
    st.lists(st.integers(-1, 2**64)),
    *(
        st.lists(st.integers(int(np.iinfo(code).min), int(np.iinfo(code).max))).map(lambda v, c=code: np.array(v, c))
        for code in ("i1", "u1", ">i2", "i4", ">u4", "i8", "u8")
    ),
)


@given(parts, parts)
def test_no_id_is_changed(prompt, generation):
    whole = cumulative_tokens(bare("c", prompt, generation))
    values = oracle.cumulative(prompt, generation)
    assert list(map(int, whole)) == values
    if isinstance(prompt, np.ndarray) and (
        not values or (min(values) >= -(2**63) and max(values) < 2**63) or (min(values) >= 0 and max(values) < 2**64)
    ):
        assert whole.dtype in (prompt.dtype, np.int64, np.uint64)
    else:
        assert type(whole) is list


def test_a_delta_prompt_has_no_full_sequence():
    with pytest.raises(ValueError, match="'c' of rollout 'r' stores a delta prompt"):
        cumulative_tokens(make_entry(**DELTA))


def test_only_entries():
    with pytest.raises((AttributeError, TypeError)):
        cumulative_tokens({"prompt_token_ids": [1]})


SAME = [
    ([1, 2], [3]),
    ([], []),
    ([], [3]),
    ([1, 2], []),
    (ids("i4", 1, 2), [3]),
    ([1, 2], ids(">u8", 3)),
    (ids("i8"), ids("u1", 3)),
    (list(range(1_000)), np.arange(500, dtype=">i2")),
    (np.arange(127), np.arange(130)),
    ([2**64 - 1], [2**63]),
    (np.arange(100_000), np.arange(7)),
]


@pytest.mark.parametrize(("prompt", "generation"), SAME)
def test_length_and_digest(prompt, generation):
    whole = oracle.cumulative(prompt, generation)
    for cumulative in (None, whole, tuple(whole), np.array(whole, np.uint64)):
        entry = bare("c", prompt, generation)
        assert stamp_lineage(entry, None, cumulative=cumulative) is entry
        assert entry.cum_len == len(whole)
        assert type(entry.cum_len) is int
        assert entry.digest == oracle.digest(whole)
        assert type(entry.digest) is str


def test_the_signature():
    parameters = inspect.signature(stamp_lineage).parameters
    assert list(parameters) == ["entry", "parent_call_id", "parent_resolution", "cumulative"]
    assert parameters["parent_call_id"].default is inspect.Parameter.empty
    assert parameters["parent_resolution"].default is None
    assert parameters["cumulative"].default is None


@pytest.mark.parametrize(
    ("parent", "status"),
    [("p", RESOLVED), (None, ROOT), (None, UNRESOLVED), (None, None), ("p", None), ("", None)],
)
def test_parents(parent, status):
    for entry in (
        stamp_lineage(make_entry(), parent, status, [1, 2, 3]),
        stamp_lineage(make_entry(), parent, parent_resolution=status),
        stamp_lineage(entry=make_entry(), parent_call_id=parent, parent_resolution=status, cumulative=(1, 2, 3)),
        stamp_lineage(make_entry(), parent, status and str(status)),
        # what an earlier stamp said does not stay
        stamp_lineage(stamp_lineage(make_entry(), "other", RESOLVED), parent, status),
        stamp_lineage(stamp_lineage(make_entry(), None, ROOT), parent, status),
    ):
        assert entry.parent_call_id == parent
        assert entry.parent_resolution is status
        assert entry.cum_len == 3
        assert entry.digest == compute_digest([1, 2, 3])
        assert TokenEntry.model_validate_json(entry.model_dump_json()) == entry


def test_nothing_else_is_set():
    entry = make_entry(parent_resolution_reason="x", model="m")
    before = entry.model_dump()
    stamp_lineage(entry, "p", RESOLVED)
    after = entry.model_dump()
    assert {name for name in after if after[name] != before[name]} == {
        "cum_len", "digest", "parent_call_id", "parent_resolution"
    }  # fmt: skip
    assert entry.model_fields_set >= {"cum_len", "digest", "parent_call_id", "parent_resolution"}


@pytest.mark.parametrize("delta", [[1, 2], ids("i4", 1, 2), []])
@pytest.mark.parametrize("head", [[9], [], list(range(200))])
def test_a_delta_entry_is_stamped_with_its_full_sequence(delta, head):
    whole = [*head, *map(int, delta), 3]
    for cumulative in (whole, tuple(whole), np.array(whole, np.int16)):
        entry = stamp_lineage(bare("c", delta, [3], **DELTA), "p", RESOLVED, cumulative)
        assert entry.cum_len == len(whole)
        assert entry.digest == oracle.digest(whole)
        assert entry.parent_call_id == "p"
        assert entry.parent_resolution is RESOLVED


def test_a_stamp_is_not_renewed_by_itself():
    entry = stamp_lineage(make_entry(), None)
    entry.prompt_token_ids = [1, 2, 3, 4]
    assert entry.digest == compute_digest([1, 2, 3])


NEGATIVE = make_entry(prompt_token_ids=[1, -9])
FAILURES = {
    "resolved without a parent": (make_entry(), (None, RESOLVED), ValueError, "requires parent_call_id, got None"),
    "resolved with an empty parent": (make_entry(), ("", RESOLVED), ValueError, "requires parent_call_id, got ''"),
    "root with a parent": (make_entry(), ("p", ROOT), ValueError, "'root': it cannot carry parent_call_id, got 'p'"),
    "root with an empty parent": (make_entry(), ("", ROOT), ValueError, "cannot carry parent_call_id, got ''"),
    "unresolved with a parent": (make_entry(), ("p", UNRESOLVED), ValueError, "'unresolved': it cannot carry"),
    "root as text with a parent": (make_entry(), ("p", "root"), ValueError, "cannot carry parent_call_id"),
    "unknown text": (make_entry(), (None, "rooot"), ValueError, "^parent_resolution is 'rooot': one of root, "),
    "no status": (make_entry(), (None, 5), TypeError, "^parent_resolution is 5: "),
    "no call id": (make_entry(), (5, "resolved"), TypeError, "^parent_call_id is 5: "),
    "too long": (make_entry(), (None, None, [1, 2, 3, 4]), ValueError, "disagree: it has 4 ids, .* have 3"),
    "too long in front": (make_entry(), (None, None, [0, 1, 2, 3]), ValueError, "disagree"),
    "too short": (make_entry(), (None, None, [1, 2]), ValueError, "disagree: it has 2 ids, .* have 3"),
    "empty": (make_entry(), (None, None, []), ValueError, "disagree: it has 0 ids"),
    "other ids": (make_entry(), (None, None, [1, 2, 4]), ValueError, "'c' disagree"),
    "other order": (make_entry(), (None, None, np.array([2, 1, 3])), ValueError, "disagree"),
    "other id far back": (
        bare("c", np.arange(5_000), [1]), (None, None, [*range(4_999), 0, 1]), ValueError, "disagree"
    ),
    "floats": (make_entry(), (None, None, [1.0, 2.0, 3.0]), TypeError, r"cumulative\[0\] is 1.0"),
    "float array": (make_entry(), (None, None, np.array([1.0, 2.0, 3.0])), TypeError, "cumulative has dtype float64"),
    "text": (make_entry(), (None, None, "123"), TypeError, "cumulative is of type str"),
    "bytes": (make_entry(), (None, None, b"\x01\x02\x03"), TypeError, "cumulative is of type bytes"),
    "generator": (make_entry(), (None, None, (i for i in (1, 2, 3))), TypeError, "cumulative is .*generator"),
    "set": (make_entry(), (None, None, {1, 2, 3}), TypeError, "cumulative is of type set"),
    "two dimensions": (make_entry(), (None, None, np.array([[1, 2, 3]])), ValueError, "one dimension is needed, got 2"),
    "negative in cumulative": (make_entry(), (None, None, [1, 2, -3]), ValueError, r"cumulative\[2\] is -3"),
    "StopIteration": (make_entry(), (None, None, [1, 2, Index(StopIteration)]), TypeError, r"cumulative\[2\]"),
    "negative in the prompt": (NEGATIVE, (None,), ValueError, r"^prompt_token_ids\[1\] is -9: .*non-negative, got -9"),
    "negative in the generation": (
        make_entry(generation_token_ids=np.array([-1])), ("p", RESOLVED), ValueError, r"^generation_token_ids\[0\]"
    ),
    "negative in a long generation": (
        bare("c", np.arange(200), np.array([*range(300), -1])), (None,), ValueError,
        r"^generation_token_ids\[300\] is -1: token ids must be non-negative, got -1$",
    ),
    "too large": (make_entry(prompt_token_ids=[2**64]), (None,), ValueError, r"^prompt_token_ids\[0\] is 18446744073"),
    "delta without cumulative": (make_entry(**DELTA), ("p", RESOLVED), ValueError, "'c' .*delta prompt"),
    "delta without a parent": (make_entry(**DELTA), (None, None, [9, 1, 2, 3]), ValueError, "delta prompt"),
    "delta as root": (make_entry(**DELTA), (None, ROOT, [9, 1, 2, 3]), ValueError, "delta prompt"),
    "delta without a status": (make_entry(**DELTA), ("p", None, [9, 1, 2, 3]), ValueError, "delta prompt"),
    "delta, other end": (make_entry(**DELTA), ("p", RESOLVED, [7, 7]), ValueError, "disagree"),
    "delta, other ids": (make_entry(**DELTA), ("p", RESOLVED, [9, 1, 2, 4]), ValueError, "must end with"),
    "delta, not at the end": (make_entry(**DELTA), ("p", RESOLVED, [1, 2, 3, 9]), ValueError, "must end with"),
    "delta, bad in front": (make_entry(**DELTA), ("p", RESOLVED, [-9, 1, 2, 3]), ValueError, r"cumulative\[0\] is -9"),
}  # fmt: skip


@pytest.mark.parametrize("name", FAILURES)
def test_a_failed_stamp_changes_nothing(name):
    entry, arguments, error, message = FAILURES[name]
    before, fields_set = entry.model_dump(), set(entry.model_fields_set)
    with pytest.raises(error, match=message) as caught:
        stamp_lineage(entry, *arguments)
    assert type(caught.value) is error
    after = entry.model_dump()
    assert all(np.array_equal(after[field], before[field]) for field in before)
    assert entry.model_fields_set == fields_set


def test_a_failed_stamp_keeps_the_earlier_one():
    entry = stamp_lineage(make_entry(), "p", RESOLVED)
    before = entry.model_dump()
    with pytest.raises(ValueError, match="disagree"):
        stamp_lineage(entry, None, ROOT, [1])
    assert entry.model_dump() == before


@pytest.mark.parametrize(("length", "place"), [(n, at) for n in (3, 128, 300) for at in (0, 2, 127) if at < n])
def test_a_prompt_that_changes_while_it_is_hashed(length, place):
    for change in (list.clear, list.pop, lambda ids_: ids_.extend([5] * 500)):
        entry, prompt = bare("c", [], [7, 8, 9]), [1] * length
        prompt[place] = Index(lambda prompt=prompt, change=change: (change(prompt), 1)[1])
        entry.prompt_token_ids = prompt  # not validated
        try:
            stamp_lineage(entry, None)
        except RuntimeError as error:
            assert "prompt_token_ids became shorter" in str(error)  # noqa: PT017
            assert entry.cum_len is entry.digest is None
        else:
            assert entry.cum_len == length + 3
            assert entry.digest == oracle.digest([1] * length + [7, 8, 9])


@given(parts, parts, st.booleans())
def test_only_the_own_ids_are_a_cumulative(prompt, generation, delta):
    prompt, generation = ([abs(int(i)) % 2**64 for i in ids_] for ids_ in (prompt, generation))
    whole = oracle.cumulative(prompt, generation)
    entry = bare("c", prompt, generation, **(DELTA if delta else {}))
    arguments = ("p", RESOLVED) if delta else (None, ROOT)
    stamp_lineage(entry, *arguments, whole)
    assert (entry.cum_len, entry.digest) == (len(whole), oracle.digest(whole))
    for place in range(len(whole)):
        other = list(whole)
        other[place] ^= 1
        with pytest.raises(ValueError, match="disagree"):
            stamp_lineage(entry, *arguments, other)
    if whole:
        with pytest.raises(ValueError, match="disagree"):
            stamp_lineage(entry, *arguments, whole[:-1])


def test_a_generation_that_is_no_sequence_of_ids_is_named():
    entry = make_entry(prompt_token_ids=np.array([1]))
    entry.generation_token_ids = [2, "x"]
    with pytest.raises(TypeError, match=r"^generation_token_ids\[1\] is 'x': token ids must be integers, got str$"):
        cumulative_tokens(entry)
