"""The judge of token ids and log-probs: the array that holds them, and the fault that is found."""

from __future__ import annotations

import array
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.holders import Array
from tokenrecords.tokens.arrays import (
    Fault,
    as_dtype,
    as_list,
    check_ids,
    first_negative,
    id_array,
    join_arrays,
    log_prob_array,
    mask_array,
    same,
    same_ids,
    shared_dtype,
    shown,
)


@pytest.mark.parametrize(
    ("ids", "dtype"),
    [
        ([], "int32"),
        ([-(2**31), 2**31 - 1], "int32"),
        ((0, 2**31), "int64"),
        ([-(2**31) - 1], "int64"),
        ([-(2**63), 2**63 - 1], "int64"),
        ([0, 2**63], "uint64"),
        (range(3), "int32"),
        ([np.uint8(7), 1], "int32"),
        (np.array([1, 2], object), "int32"),
        (np.array([]), "int64"),
    ],
)
def test_ids_become_the_first_array_that_holds_them(ids: Any, dtype: str) -> None:
    found = id_array(ids)
    assert isinstance(found, np.ndarray)
    assert (found.dtype, found.tolist()) == (np.dtype(dtype), list(ids))


def test_ids_that_no_dtype_holds_stay_a_list() -> None:
    for ids in ([2**64], [-1, 2**63], [-(2**63) - 1]):
        assert id_array(ids) == ids


def test_arrays_of_ids_are_not_copied() -> None:
    ids = np.array([3, -1], ">i2")
    assert id_array(ids) is ids
    assert id_array(Array(ids)) is ids
    numbers = array.array("i", [1, 2])
    found = id_array(numbers)
    numbers[0] = 9
    assert found[0] == 9


@pytest.mark.parametrize(
    ("ids", "kind", "message"),
    [
        ([1, True], TypeError, "ids[1] is True: token ids must be integers, got bool"),
        ([np.True_], TypeError, "token ids must be integers, got bool"),
        ([1, 2.0], TypeError, "ids[1] is 2.0: token ids must be integers, got float"),
        ([None], TypeError, "ids[0] is None: token ids must be integers, got NoneType"),
        ("12", TypeError, "ids is '12': token ids must be integers, got str"),
        ({1, 2}, TypeError, "ids is {1, 2}: token ids must be integers, got set"),
        (None, TypeError, "ids is None: token ids must be integers, got NoneType"),
        (np.array([1.0]), TypeError, "ids is an array of dtype float64: token ids must be integers"),
        (np.array([], bool), TypeError, "ids is an array of dtype bool: token ids must be integers"),
        (np.zeros((2, 1), int), ValueError, "ids is an array of shape (2, 1): one dimension is needed"),
        (b"12", TypeError, "ids is b'12': token ids must be integers, got bytes"),
    ],
)
def test_what_holds_no_ids(ids: Any, kind: type[Exception], message: str) -> None:
    with pytest.raises(Fault) as caught:
        id_array(ids)
    assert message in caught.value.of("ids")
    error = caught.value.error("ids")
    assert (type(error), str(error)) == (kind, caught.value.of("ids"))


def test_a_fault_says_what_is_needed_without_a_name_too() -> None:
    with pytest.raises(Fault, match="one dimension is needed"):
        id_array(np.zeros((1, 1), int))


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        ([2**64 - 1, -1], "ids[1] is -1: token ids must be non-negative, got -1"),
        ([0, 2**64], f"ids[1] is {2**64}: token ids must be below 2**64, got {2**64}"),
        (np.array([0, 5, -3, -9], np.int8), "ids[2] is -3: token ids must be non-negative, got -3"),
    ],
)
def test_ids_out_of_bounds(ids: Any, message: str) -> None:
    with pytest.raises(Fault) as caught:
        check_ids(ids)
    assert caught.value.of("ids") == message


def test_ids_within_bounds() -> None:
    for ids in ([], [0, 2**64 - 1], np.array([], np.int8), np.array([0]), np.array([2**64 - 1], np.uint64)):
        check_ids(ids)
    assert first_negative(np.array([5, -3, -9])) == 1
    assert first_negative(np.array([2**63], np.uint64)) is None


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "uint64"])
def test_ids_in_a_wanted_dtype(dtype: str) -> None:
    wanted, limits = np.dtype(dtype), np.iinfo(dtype)
    low, high = int(limits.min), int(limits.max)
    assert as_dtype([low, high], wanted).tolist() == [low, high]
    held = np.array([1], wanted)
    assert as_dtype(held, wanted) is held
    for ids in ([0, low - 1], [0, high + 1]):
        with pytest.raises(Fault) as caught:
            as_dtype(ids, wanted)
        assert caught.value.of("ids") == f"ids[1] is {ids[1]}: it does not fit {dtype}"


@pytest.mark.parametrize("dtype", ["<f2", ">f4", "<f8"])
def test_arrays_of_log_probs_are_kept(dtype: str) -> None:
    log_probs = np.array([-0.5, float("nan")], dtype)
    assert log_prob_array(log_probs) is log_probs


@pytest.mark.parametrize(
    "values", [[], [-0.5, -1], (-0.5,), [np.float32(-0.5)], np.array([-2, -1]), np.array([-0.5, -1], object)]
)
def test_other_log_probs_become_float64(values: Any) -> None:
    found = log_prob_array(values)
    assert (found.dtype, found.tolist()) == (np.dtype(np.float64), [float(value) for value in values])


def test_an_integer_keeps_all_digits_that_float64_has() -> None:
    assert log_prob_array(np.array([-(2**52) - 1])).tolist() == [-(2.0**52) - 1]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([-0.5, None], "p[1] is None: log-probs must be numbers, got NoneType"),
        ([True], "p[0] is True: log-probs must be numbers, got bool"),
        (["-1"], "p[0] is '-1': log-probs must be numbers, got str"),
        ([0, 2**1024], "p[1] is 17976931348"),
        ([-(2**1024)], "log-probs must be numbers that a float holds"),
        ("x", "p is 'x': log-probs must be numbers, got str"),
        (np.array([1j]), "p is an array of dtype complex128: log-probs must be float16, float32 or float64"),
        (np.array([True]), "p is an array of dtype bool: log-probs must be float16, float32 or float64"),
        (np.array([0], np.longdouble), "log-probs must be float16, float32 or float64"),
    ],
)
def test_what_holds_no_log_probs(values: Any, message: str) -> None:
    with pytest.raises(Fault) as caught:
        log_prob_array(values)
    assert message in caught.value.of("p")


def test_the_largest_integers_that_a_float_holds() -> None:
    largest = int(np.finfo(np.float64).max)
    assert log_prob_array([largest, -largest]).tolist() == [float(largest), -float(largest)]


def test_a_dtype_that_several_arrays_share() -> None:
    def dtype_of(*parts: Any) -> Any:
        return shared_dtype([np.array(ids, dtype) for ids, dtype in parts])

    assert dtype_of(([1], "int16"), ([2], "int16")) == np.int16
    assert dtype_of(([1], "int16"), ([2], "uint64")) == np.int16
    assert dtype_of(([1], "int16"), ([], "uint64")) == np.int16
    assert dtype_of(([1], "int16"), ([2**15], "int64")) == np.int64
    assert dtype_of(([1], "int16"), ([2**63], "uint64")) == np.uint64
    assert dtype_of(([-1], "int16"), ([2**63], "uint64")) is None
    joined = join_arrays([np.array([1], np.int16), np.array([2**15])])
    assert joined is not None
    assert joined.tolist() == [1, 2**15]
    assert join_arrays([np.array([-1]), np.array([2**63], np.uint64)]) is None


def test_equal_ids_are_equal_in_any_dtype() -> None:
    for values in ([], [1, 2], [-1, 2]):
        ids = np.array(values, np.int64)
        assert same_ids(ids, ids.astype(np.int8))
        assert not same_ids(ids, np.append(ids, 3))
        assert not same_ids(np.append(ids, 3), ids)
        assert not same_ids(np.append(ids, 3), np.append(ids, 4).astype(np.int8))
    # As floats they would be equal.
    assert not same_ids(np.array([2**63 - 1]), np.array([2**63], np.uint64))


def test_values_are_equal_deeply() -> None:
    nan = float("nan")
    assert same([nan, {"a": [nan]}], [float("nan"), {"a": [float("nan")]}])
    assert same(np.array([nan]), [nan])
    assert same(np.array([nan], np.float16), np.array([float("nan")]))
    assert same(np.array([2**63 - 1]), [2**63 - 1])
    assert not same(np.array([2**63 - 1]), np.array([2.0**63]))
    assert not same([1], [1, 2])
    assert not same([nan, "a"], [nan, "a", "b"])
    assert not same([1], (1,))
    assert not same({"a": 1}, {"a": 1, "b": 2})
    assert not same({"a": 1, "b": 2}, {"a": 1})
    assert not same(nan, 1.0)


def test_long_values_are_shown_short() -> None:
    assert shown("x" * 78) == repr("x" * 78)
    assert shown("x" * 79) == "'" + "x" * 76 + "..."
    assert shown(1 << 20_000) == "an int of 20,001 bits"
    assert shown([1 << 20_000]) == "<list>"


def test_values_as_a_list() -> None:
    given = [1]
    assert as_list(given) is given
    assert as_list((1, 2)) == as_list(np.array([1, 2], np.uint64)) == as_list(range(1, 3)) == [1, 2]
    assert (as_list("12"), as_list(None)) == ("12", None)


def test_masks_are_zeros_and_ones() -> None:
    for mask in ([1, 0], (True, False), [np.int8(1), np.False_], np.array([1, 0], np.uint64), np.array([True, False])):
        found = mask_array(mask)
        assert (found.dtype, found.tolist()) == (np.bool_, [True, False])
    assert mask_array([]).tolist() == mask_array(np.empty(0)).tolist() == []
    lists = ([0, 2], 1), ([-1], 0), ([0.0], 0), (["1"], 0), ([None], 0)
    for wrong, index in (*lists, (np.array([0, 1, 3]), 2), (np.array([-1]), 0)):
        with pytest.raises(Fault, match=r"a mask must hold 0 and 1") as caught:
            mask_array(wrong)
        assert caught.value.index == index
    for whole in ("10", 1, None, {1}, np.array([0.5])):
        with pytest.raises(Fault, match=r"^a mask must hold 0 and 1, got |: a mask must hold 0 and 1, got ") as caught:
            mask_array(whole)
        assert caught.value.index is None
    with pytest.raises(Fault, match="one dimension is needed"):
        mask_array(np.ones((1, 1), bool))


def test_an_int_of_too_many_digits_is_shown_by_its_size() -> None:
    assert shown(10**5000) == f"an int of {(10**5000).bit_length():,} bits"
    with pytest.raises(Fault, match="token ids must be below 2"):
        check_ids([10**5000])


values = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from([0.5, float("nan")]) | st.text(max_size=2),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=1), inner, max_size=2),
    max_leaves=6,
)


def plain(value: Any) -> Any:
    """The value with a text for NaN, so that == takes NaN for itself."""
    if isinstance(value, float):
        return "NaN!" if math.isnan(value) else value
    if isinstance(value, list):
        return [plain(item) for item in value]
    return {key: plain(item) for key, item in value.items()} if isinstance(value, dict) else value


@given(values, values)
def test_same_is_equality_with_nan_equal_to_itself(a: Any, b: Any) -> None:
    assert same(a, a)
    assert same(a, b) == (plain(a) == plain(b))


def test_of_several_wrong_flags_of_an_array_the_first_is_named() -> None:
    with pytest.raises(Fault) as caught:
        mask_array(np.array([1, 2, 0, 3]))
    assert caught.value.of("mask") == "mask[1] is 2: a mask must hold 0 and 1"


def test_an_empty_array_of_no_numbers_is_no_sequence() -> None:
    for dtype in ("f4", "c8", "i2"):
        assert id_array(np.empty(0, dtype)).dtype.kind == "i"
        assert log_prob_array(np.empty(0, dtype)).dtype.kind == "f"
    for dtype in ("?", "U1", "M8[s]"):
        with pytest.raises(Fault, match="token ids must be integers, got an array of dtype"):
            id_array(np.empty(0, dtype))
