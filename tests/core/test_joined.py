"""`joined_ids`: two sequences of one kind as a new one."""

import numpy as np
import pytest
from support import oracle
from tokenrecords._core import joined_ids

CODES = ["i1", "u1", "<i2", ">u2", "<i4", ">i4", "<u8", ">i8"]


def layouts(code):
    """Five ids in every way in which an array can hold them."""
    values = np.array([0, 7, 120, 3, 99], code)
    yield values
    yield np.repeat(values, 3)[::3]
    yield values[::-1].copy()[::-1]
    yield np.frombuffer(b"x" + values.tobytes(), code, offset=1)  # at an odd address, read-only
    yield np.broadcast_to(np.array(5, code), 5)
    yield np.array([*range(40)], code).reshape(5, 8)[:, 3]
    yield values[:0]
    yield np.array([np.iinfo(code).min, np.iinfo(code).max], code)


@pytest.mark.parametrize("code", CODES)
def test_arrays_of_one_dtype_in_any_layout(code):
    for first in layouts(code):
        for second in layouts(code):
            joined = joined_ids(first, second)
            assert joined.dtype == np.dtype(code)
            assert joined.dtype.byteorder == first.dtype.byteorder
            assert joined.tolist() == oracle.cumulative(first, second)


def test_the_new_array_is_its_own():
    first, second = np.arange(3), np.arange(2)
    joined = joined_ids(first, second)
    assert type(joined) is np.ndarray
    assert joined.flags.owndata
    assert joined.flags.writeable
    assert joined.flags.c_contiguous
    joined[:] = 9
    assert [*first, *second] == [0, 1, 2, 0, 1]
    first[:] = 8
    assert joined.tolist() == [9] * 5


def test_lists():
    first, second = [1, "x"], [2**70]
    joined = joined_ids(first, second)
    assert joined == [1, "x", 2**70]
    assert type(joined) is list
    assert first == [1, "x"]
    assert joined_ids([], []) == []


class Items(list):
    """A list of another type."""


ONE = np.arange(1)
OTHERS = [
    (ONE, np.arange(1, dtype="u8")),
    (ONE, np.arange(1, dtype="i4")),
    (ONE, ONE.astype(ONE.dtype.newbyteorder())),
    (ONE, [0]),
    ([0], ONE),
    (ONE.reshape(1, 1), ONE),
    (ONE, np.array(0)),
    (ONE.astype("f8"), ONE.astype("f8")),
    (ONE.astype(bool), ONE.astype(bool)),
    (ONE.astype(object), ONE.astype(object)),
    ([0], (0,)),
    (Items(), []),
    ([], Items()),
    (None, None),
]


@pytest.mark.parametrize(("first", "second"), OTHERS)
def test_nothing_of_all_else(first, second):
    assert joined_ids(first, second) is None


def test_what_no_memory_holds_is_an_error():
    endless = np.broadcast_to(np.int8(0), 2**62)
    with pytest.raises((MemoryError, ValueError)):
        joined_ids(endless, endless)
    with pytest.raises((MemoryError, ValueError)):
        joined_ids(endless, endless[:0])
