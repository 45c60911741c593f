"""Equality, copies and dumps of entries: their values count, not what holds them."""

import copy
import pickle
from typing import Any
from unittest.mock import ANY

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import PrivateAttr
from support.factories import make_entry
from tokenrecords import TokenEntry

NAN, INF = float("nan"), float("inf")


def with_ids(value, **changes):
    return make_entry(prompt_token_ids=value, **changes)


def assigned(value):
    """An entry with a prompt that validation would not let through."""
    entry = make_entry()
    entry.prompt_token_ids = value
    return entry


def with_log_probs(value, **changes):
    return make_entry(generation_token_ids=[0] * len(value), generation_log_probs=value, **changes)


EQUAL = [
    (with_ids([1, 2]), with_ids([1, 2])),
    (with_ids([1, 2]), with_ids(np.array([1, 2]))),
    (with_ids(np.array([1, 2], np.int8)), with_ids(np.array([1, 2], ">u8"))),
    (with_ids(np.array([2**63], np.uint64)), with_ids([2**63])),
    (with_ids(np.array([2**63 - 1])), with_ids(np.array([2**63 - 1], np.uint64))),
    (with_ids([]), with_ids(np.array([], np.int32))),
    (with_ids(np.array([])), with_ids(np.array([], np.uint8))),
    (with_ids(np.arange(6)[::2]), with_ids([0, 2, 4])),
    (with_ids(np.arange(3)[::-1]), with_ids([2, 1, 0])),
    (with_log_probs([NAN]), with_log_probs([NAN])),
    (with_log_probs([NAN]), with_log_probs([float("nan")])),
    (with_log_probs([NAN, -INF]), with_log_probs(np.array([NAN, -INF], np.float16))),
    (with_log_probs(np.array([NAN])), with_log_probs(np.array([NAN], ">f4"))),
    (with_log_probs([0.0]), with_log_probs([-0.0])),
    (with_log_probs([-0.5]), with_log_probs(np.array([-0.5], np.float32))),
    (with_log_probs([float(np.float32(-0.1))]), with_log_probs(np.array([-0.1], np.float32))),
    (with_log_probs([-1.0]), with_log_probs(np.array([-1]))),
    (assigned((1, 2)), assigned(np.array([1, 2]))),
    (assigned([1.0, 2.0]), assigned(np.array([1, 2]))),
    (make_entry(note=[NAN, {"a": NAN}]), make_entry(note=[float("nan"), {"a": float("nan")}])),
    (make_entry(note=np.arange(2)), make_entry(note=np.arange(2))),
    (make_entry(note={"a": [np.arange(2)]}), make_entry(note={"a": [[0, 1]]})),
    (make_entry(note=(1, (2,))), make_entry(note=(1, (2,)))),
    (make_entry(a=1, b=2), make_entry(b=2, a=1)),
    (make_entry(routed_experts=np.zeros((1, 2, 3), np.int8)), make_entry(routed_experts=np.zeros((1, 2, 3), np.int16))),
    (make_entry(created_at=NAN), make_entry(created_at=float("nan"))),
    (make_entry(output_items=[{1: np.arange(2)}]), make_entry(output_items=[{1: np.arange(2)}])),
    (make_entry(model=""), make_entry()),
]


@pytest.mark.parametrize(("a", "b"), EQUAL)
def test_equal(a, b):
    assert a == b
    assert b == a
    assert not a != b  # noqa: SIM202


DIFFERENT = [
    (with_ids([1, 2]), with_ids([2, 1])),
    (with_ids([1, 2]), with_ids([1])),
    (with_ids([]), with_ids([0])),
    (with_ids(np.array([], np.int32)), with_ids(np.array([0]))),
    (with_ids([1, 2]), with_ids(np.array([2, 1]))),
    (with_ids(np.array([1, 2])), with_ids(np.array([1, 2, 3]))),
    (with_ids(np.array([1])), with_ids(np.array([1, 1]))),  # these would broadcast
    (with_ids(np.array([2**63 - 1])), with_ids(np.array([2**63], np.uint64))),  # equal as floats
    (with_ids(np.array([2**64 - 1], np.uint64)), with_ids(np.array([-1]))),  # equal bytes
    (with_ids([2**63 - 1]), with_ids(np.array([2**63], np.uint64))),
    (assigned(np.array([2**53 + 1])), assigned([2.0**53])),
    (assigned(np.array([2**53 + 1])), assigned(np.array([2.0**53]))),
    (assigned(np.array([1])), assigned(None)),
    (assigned(np.array([1])), assigned("1")),
    (assigned(np.array([1, 2])), assigned({1, 2})),
    (with_log_probs([NAN]), with_log_probs([0.0])),
    (with_log_probs([0.0]), with_log_probs([NAN])),
    (with_log_probs([NAN, 0.0]), with_log_probs([0.0, NAN])),
    (with_log_probs(np.array([NAN])), with_log_probs(np.array([0.0]))),
    (with_log_probs([-0.1]), with_log_probs(np.array([-0.1], np.float32))),
    (make_entry(model="a"), make_entry(model="b")),
    (make_entry(note=1), make_entry()),
    (make_entry(), make_entry(note=None)),
    (make_entry(note=1), make_entry(note=2)),
    (make_entry(note=1), make_entry(other=1)),
    (make_entry(note=None), make_entry(other=None)),
    (make_entry(note=[1]), make_entry(note=(1,))),
    (make_entry(note=[1, 2]), make_entry(note=[1])),
    (make_entry(note={"a": 1}), make_entry(note={"a": 1, "b": 2})),
    (make_entry(note={"a": 1}), make_entry(note={"b": 1})),
    (make_entry(note=np.zeros((1, 2))), make_entry(note=np.zeros((2, 1)))),
    (make_entry(note=[np.array([1])]), make_entry(note=[1])),
    (make_entry(note=[np.array([[1]])]), make_entry(note=[np.array([1])])),
    (make_entry(routed_experts=np.zeros((1, 2, 3), np.int8)), make_entry(routed_experts=np.zeros((1, 3, 2), np.int8))),
    (make_entry(routed_experts=np.zeros((1, 1, 1), np.int8)), make_entry(routed_experts=None)),
]


@pytest.mark.parametrize(("a", "b"), DIFFERENT)
def test_different(a, b):
    assert a != b
    assert b != a
    assert not a == b  # noqa: SIM201


def test_other_types():
    class Sub(TokenEntry):
        pass

    entry = make_entry()
    assert entry != Sub(**entry.model_dump())
    assert Sub(**entry.model_dump()) == Sub(**entry.model_dump())
    assert entry != entry.model_dump()
    assert entry != None  # noqa: E711
    assert entry == ANY


def test_private_attributes_count():
    class Sub(TokenEntry):
        _seen: Any = PrivateAttr(default=0)

    a, b = Sub(**make_entry().model_dump()), Sub(**make_entry().model_dump())
    assert a == b
    b._seen = 1
    assert a != b


def test_not_hashable():
    with pytest.raises(TypeError, match="unhashable type: 'TokenEntry'"):
        hash(make_entry())


arrays = st.one_of(
    st.lists(st.integers(0, 2**63 - 1)).map(lambda ids: np.array(ids, np.int64)),
    st.lists(st.integers(0, 2**64 - 1)).map(lambda ids: np.array(ids, np.uint64)),
    st.lists(st.integers(0, 127)).map(lambda ids: np.array(ids, np.int8)),
)


@given(arrays, arrays)
def test_equality_is_that_of_lists(a, b):
    same = a.tolist() == b.tolist()
    assert (with_ids(a) == with_ids(b)) is same
    assert (with_ids(a) == with_ids(b.tolist())) is same
    assert (with_ids(a.tolist()) == with_ids(b)) is same


def filled():
    return with_ids(
        np.arange(3, dtype=">i2"),
        routed_experts=np.zeros((1, 1, 2), np.int8),
        generation_log_probs=np.array([NAN], np.float32),
        output_items=[{"a": [1]}],
        note={"b": [2]},
        parent_resolution="root",
    )


def test_copy_shares_the_arrays():
    entry = filled()
    for twin in (copy.copy(entry), entry.model_copy()):
        assert twin == entry
        assert twin is not entry
        assert twin.prompt_token_ids is entry.prompt_token_ids
        assert twin.output_items is entry.output_items


def test_deepcopy_shares_nothing():
    entry = filled()
    for twin in (copy.deepcopy(entry), entry.model_copy(deep=True)):
        assert twin == entry
        assert twin.prompt_token_ids.dtype == entry.prompt_token_ids.dtype
        assert not np.shares_memory(twin.prompt_token_ids, entry.prompt_token_ids)
        assert twin.output_items[0]["a"] is not entry.output_items[0]["a"]
        twin.prompt_token_ids[0] = 9
        assert twin != entry


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_pickle(protocol):
    entry = filled()
    twin = pickle.loads(pickle.dumps(entry, protocol))
    assert twin == entry
    alone = pickle.loads(pickle.dumps(entry.prompt_token_ids, protocol))  # below 5 numpy keeps no byte order
    assert twin.prompt_token_ids.dtype == alone.dtype
    assert twin.generation_log_probs.dtype == np.float32
    assert twin.parent_resolution is entry.parent_resolution
    assert twin.model_fields_set == entry.model_fields_set


def test_model_copy_with_an_update():
    entry = filled()
    twin = entry.model_copy(update={"prompt_token_ids": [5], "model": "m"})
    assert twin.prompt_token_ids == [5]
    assert twin.model == "m"
    assert entry.prompt_token_ids.tolist() == [0, 1, 2]


def test_model_dump_gives_what_is_held():
    entry = filled()
    dump = entry.model_dump()
    for name in ("prompt_token_ids", "generation_log_probs", "routed_experts"):
        assert dump[name] is getattr(entry, name)
    assert dump["generation_token_ids"] == [3]
    assert TokenEntry(**dump) == entry
    assert TokenEntry.model_validate(dump).prompt_token_ids is entry.prompt_token_ids


def test_model_dump_copies_lists():
    entry = make_entry(routed_experts=[[[0, 1]]])
    dump = entry.model_dump()
    for name in ("prompt_token_ids", "generation_token_ids", "generation_log_probs", "routed_experts", "output_items"):
        assert dump[name] == getattr(entry, name)
        assert dump[name] is not getattr(entry, name)


def test_model_dump_keeps_non_finite_floats():
    dump = with_log_probs([NAN, INF]).model_dump()
    assert str(dump["generation_log_probs"]) == "[nan, inf]"


def test_repr_shows_the_array():
    assert "prompt_token_ids=array([0, 1, 2], dtype='>i2')" in repr(filled())
    assert repr(make_entry()).startswith("TokenEntry(schema_version=1, rollout_id='r', model_call_id='c', model=''")
