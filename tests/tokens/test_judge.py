"""The judge of token ids, log-probs and loss masks."""

from __future__ import annotations

import array
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.holders import Array, DLPack, Index
from tokenrecords.tokens.arrays import (
    Fault,
    as_dtype,
    as_list,
    check_ids,
    first_negative,
    id_array,
    integer_dtype,
    join_arrays,
    log_prob_array,
    mask_array,
    same,
    same_ids,
    shared_dtype,
    shown,
)


def fault(judge: Any, *arguments: Any) -> tuple[str, int | None, type[Exception]]:
    with pytest.raises(Fault) as caught:
        judge(*arguments)
    return caught.value.of("x"), caught.value.index, caught.value.kind


@pytest.mark.parametrize(
    ("ids", "dtype"),
    [
        ([], np.int32),
        ([0], np.int32),
        ([2**31 - 1, -(2**31)], np.int32),
        ([2**31], np.int64),
        ([-(2**31) - 1], np.int64),
        ([2**63 - 1, -(2**63)], np.int64),
        ([2**63], np.uint64),
        ([2**64 - 1, 0], np.uint64),
        ([np.int16(3), 4], np.int32),
        ([Index(lambda: 7)], np.int32),
    ],
)
def test_ids_get_the_first_dtype_that_holds_them(ids: list[Any], dtype: Any) -> None:
    for held in (ids, tuple(ids)):
        found = id_array(held)
        assert isinstance(found, np.ndarray)
        assert (found.dtype, found.tolist()) == (dtype, [int(np.array(i.__index__(), object)) for i in ids])


def test_ids_that_no_dtype_holds_stay_a_list() -> None:
    for ids in ([2**64], [-1, 2**63], (2**64, 1)):
        assert id_array(ids) == list(ids)
        assert type(id_array(ids)) is list


@pytest.mark.parametrize("dtype", ["u1", "i1", "<i2", ">i4", "<u8", ">u8"])
def test_arrays_and_what_exports_one_are_not_copied(dtype: str) -> None:
    ids = np.arange(6, dtype=dtype)[::2]
    assert id_array(ids) is ids
    holders = (Array(ids), DLPack(ids)) if dtype[0] == "<" else (Array(ids),)
    for holder in holders:
        assert np.shares_memory(id_array(holder), ids)
    numbers = array.array("i", [1, 2])
    assert np.shares_memory(id_array(numbers), np.asarray(numbers))
    assert id_array(range(3)).tolist() == [0, 1, 2]
    assert id_array(np.array([1, 2**63], object)).dtype == np.uint64
    assert (id_array(np.empty(0)).dtype, id_array(np.empty(0, complex)).tolist()) == (np.int64, [])


@pytest.mark.parametrize(
    ("value", "message", "index"),
    [
        ([1, None], "x[1] is None: token ids must be integers, got NoneType", 1),
        ([1.0], "x[0] is 1.0: token ids must be integers, got float", 0),
        ([0, True], "x[1] is True: token ids must be integers, got bool", 1),
        ([0, np.True_], "x[1] is np.True_: token ids must be integers, got bool", 1),
        (["7"], "x[0] is '7': token ids must be integers, got str", 0),
        ("12", "x is '12': token ids must be integers, got str", None),
        (b"12", "x is b'12': token ids must be integers, got bytes", None),
        (None, "x is None: token ids must be integers, got NoneType", None),
        (7, "x is 7: token ids must be integers, got int", None),
        ({1}, "x is {1}: token ids must be integers, got set", None),
        (
            np.array([1.5]),
            "x is an array of dtype float64: token ids must be integers, got an array of dtype float64",
            None,
        ),
        (np.array([True]), "x is an array of dtype bool: token ids must be integers, got an array of dtype bool", None),
        (np.array([None]), "x[0] is None: token ids must be integers, got NoneType", 0),
    ],
)
def test_what_is_not_a_sequence_of_ids(value: Any, message: str, index: int | None) -> None:
    assert fault(id_array, value) == (message, index, TypeError)


def test_what_gives_no_sequence() -> None:
    assert fault(id_array, np.ones((2, 1), int))[0] == "x is an array of shape (2, 1): one dimension is needed, got 2"
    assert fault(id_array, np.int64(3))[0].startswith("x is np.int64(3): token ids must be integers")
    assert fault(id_array, np.ma.array([1]))[0].startswith("x is a masked array: ")
    assert fault(id_array, bytearray(b"ab"))[0].startswith("x is of type bytearray: bytes are not a token sequence")


def test_a_fault_says_itself_without_a_name() -> None:
    with pytest.raises(Fault, match=r"^token ids must be integers, got an array of dtype float64$"):
        id_array(np.array([1.5]))
    with pytest.raises(Fault, match=r"^the value is an array of shape \(1, 1\): one dimension is needed, got 1?2$"):
        id_array(np.ones((1, 1), int))
    error = Fault("-9", "token ids must be non-negative, got -9", 2).error("x")
    assert (type(error), str(error)) == (ValueError, "x[2] is -9: token ids must be non-negative, got -9")


@pytest.mark.parametrize("dtype", [np.int8, np.int64, ">i4"])
def test_ids_below_zero_or_too_large_are_refused_where_they_must_be_ids(dtype: Any) -> None:
    check_ids(np.array([0, 5], dtype))
    wrong = fault(check_ids, np.array([0, 5, -9, -1], dtype))
    assert wrong == ("x[2] is -9: token ids must be non-negative, got -9", 2, ValueError)
    check_ids([0, 2**64 - 1])
    message = f"x[1] is {2**64}: token ids must be below 2**64, got {2**64}"
    assert fault(check_ids, [0, 2**64, -1]) == (message, 1, ValueError)
    assert fault(check_ids, [2**63, -1])[0] == "x[1] is -1: token ids must be non-negative, got -1"


def test_the_first_negative_id() -> None:
    assert first_negative(np.array([1, -2, -3])) == 1
    for ids in (np.array([], int), np.array([0, 1]), np.array([2**64 - 1], np.uint64)):
        assert first_negative(ids) is None


def test_ids_of_a_wanted_dtype() -> None:
    ids = np.array([1, 255])
    assert as_dtype(ids, np.dtype(np.int64)) is ids
    assert as_dtype(ids, np.dtype(np.uint8)).tolist() == [1, 255]
    assert as_dtype(np.array([], int), np.dtype(np.int8)).dtype == np.int8
    assert as_dtype([2**63, 0], np.dtype(np.uint64)).tolist() == [2**63, 0]
    assert fault(as_dtype, ids, np.dtype(np.int8)) == ("x[1] is 255: it does not fit int8", 1, ValueError)
    assert fault(as_dtype, np.array([0, -1]), np.dtype(np.uint64))[0] == "x[1] is -1: it does not fit uint64"
    assert fault(as_dtype, np.array([2**63], np.uint64), np.dtype(np.int64))[1] == 0
    assert integer_dtype("u2") == np.uint16
    for wrong in ("f4", "bool", "O", "c16", "S1"):
        with pytest.raises(TypeError, match=r"^dtype is .*: token ids need an integer dtype$"):
            integer_dtype(wrong)


def test_log_probs_keep_their_float_dtype() -> None:
    for dtype in (np.float16, np.float32, np.float64, ">f8"):
        held = np.array([-0.5, np.nan], dtype)
        assert log_prob_array(held) is held
    assert (log_prob_array([-0.5, 0, np.float32(1)]).tolist(), log_prob_array(()).dtype) == (
        [-0.5, 0.0, 1.0],
        np.float64,
    )
    assert log_prob_array(np.array([-1, 0])).dtype == np.float64
    assert log_prob_array(np.array([-1, 0.5], object)).tolist() == [-1.0, 0.5]
    assert log_prob_array(range(-2, 0)).tolist() == [-2.0, -1.0]
    assert log_prob_array(np.empty(0, complex)).dtype == np.float64


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ([0.0, None], "x[1] is None: log-probs must be numbers, got NoneType"),
        ([True], "x[0] is True: log-probs must be numbers, got bool"),
        (["NaN"], "x[0] is 'NaN': log-probs must be numbers, got str"),
        ([-0.5, 10**400], "x[1] is 1000"),
        ("0", "x is '0': log-probs must be numbers, got str"),
        (-0.5, "x is -0.5: log-probs must be numbers, got float"),
        (np.array([1j]), "x is an array of dtype complex128: log-probs must be float16, float32 or float64"),
        (np.array([True]), "x is an array of dtype bool: log-probs must be float16, float32 or float64"),
        (np.ones((1, 2)), "x is an array of shape (1, 2): one dimension is needed, got 2"),
        (np.ones(1, np.longdouble), "x is an array of dtype float128: log-probs must be float16, float32 or float64"),
    ],
)
def test_what_is_not_a_sequence_of_log_probs(value: Any, message: str) -> None:
    assert fault(log_prob_array, value)[0].startswith(message)


def test_masks_are_zeros_and_ones() -> None:
    for mask in ([1, 0], (True, False), [np.int8(1), np.False_], np.array([1, 0], np.uint64), np.array([True, False])):
        found = mask_array(mask)
        assert (found.dtype, found.tolist()) == (np.bool_, [True, False])
    assert mask_array([]).tolist() == mask_array(np.empty(0)).tolist() == []
    for wrong, index in (
        ([0, 2], 1),
        ([-1], 0),
        ([0.0], 0),
        (["1"], 0),
        ([None], 0),
        (np.array([0, 1, 3]), 2),
        (np.array([-1]), 0),
    ):
        message, at, _ = fault(mask_array, wrong)
        assert (at, "a mask must hold 0 and 1" in message) == (index, True)
    for wrong in ("10", 1, None, {1}, np.array([0.5]), np.ones((1, 1), bool)):
        assert fault(mask_array, wrong)[1] is None


def test_values_are_shown_short() -> None:
    assert shown("a") == "'a'"
    assert shown("a" * 78) == repr("a" * 78)
    assert shown("a" * 79) == "'" + "a" * 76 + "..."
    assert shown(10**5000) == f"an int of {(10**5000).bit_length():,} bits"

    class Mute:
        def __repr__(self) -> str:
            raise ValueError

    assert shown(Mute()) == "<Mute>"


def test_lists_of_values() -> None:
    ids = [1]
    assert as_list(ids) is ids
    assert as_list(np.array([1, 2])) == as_list((1, 2)) == as_list(range(1, 3)) == [1, 2]
    assert (as_list("12"), as_list(None)) == ("12", None)


def test_parts_are_joined_in_a_dtype_that_holds_them() -> None:
    small, signed, large = np.array([1], np.uint8), np.array([-1], np.int16), np.array([2**63], np.uint64)
    for parts, dtype in (
        ([small, small], np.uint8),
        ([small, np.array([255])], np.uint8),
        ([small, np.array([256])], np.int64),
        ([small, signed], np.int64),
        ([small, large], np.uint64),
        ([signed, np.array([], np.uint64)], np.int16),
    ):
        joined = join_arrays(parts)
        assert joined is not None
        assert (joined.dtype, joined.tolist()) == (dtype, [i for part in parts for i in part.tolist()])
    assert shared_dtype([signed, large]) is None
    assert join_arrays([signed, large]) is None


def test_equal_ids_whatever_holds_them() -> None:
    assert same_ids(np.array([1, 2], np.int8), np.array([1, 2], np.uint64))
    assert not same_ids(np.array([1, 2]), np.array([1, 3]))
    assert not same_ids(np.array([1]), np.array([1, 1]))
    assert same_ids(np.array([-1]), np.array([-1], np.int8))
    assert not same_ids(np.array([-1]), np.array([2**64 - 1], np.uint64))


values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-3, 3)
    | st.sampled_from([0.5, float("nan"), 2.0**53])
    | st.text(max_size=2),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=1), inner, max_size=2),
    max_leaves=6,
)


def plain(value: Any) -> Any:
    """A value that == compares as `same` does: NaN as itself, and all else by type-blind equality."""
    if isinstance(value, float) and value != value:  # noqa: PLR0124 - NaN
        return "NaN!"
    if isinstance(value, list):
        return [plain(item) for item in value]
    return {key: plain(item) for key, item in value.items()} if isinstance(value, dict) else value


@given(values, values)
def test_same_is_equality_with_nan_equal_to_itself(a: Any, b: Any) -> None:
    assert same(a, a)
    assert same(a, b) == (plain(a) == plain(b))


def test_large_ids_are_told_apart_across_kinds() -> None:
    assert not same(np.array([2**53 + 1]), np.array([2.0**53]))
    assert not same([2**63], np.array([2**63 - 1]))
    assert same(np.array([1.0, np.nan], np.float32), [1, float("nan")])
    assert same((1, 2), np.array([1, 2]))
    assert not same([np.array([1])], [1, 2])
