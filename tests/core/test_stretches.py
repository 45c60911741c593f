"""Stretches of an array go to their places in another one, and nowhere else."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenrecords._core import copy_stretches


def places(*numbers):
    return np.array(numbers, np.int64)


@pytest.mark.parametrize("dtype", ["bool", "int16", "float32", ">i4", "int64"])
@given(st.lists(st.tuples(st.integers(0, 20), st.integers(0, 9), st.integers(0, 5)), max_size=6))
def test_as_numpy_assigns(dtype, stretches):
    source, at, expected = np.arange(30).astype(dtype), 0, np.full(100, 99).astype(dtype)
    target, to = expected.copy(), []
    for start, length, gap in stretches:
        at += gap
        expected[at : at + length] = source[start : start + length]
        to.append(at)
        at += length
    starts, lengths = (places(*(each[part] for each in stretches)) for part in (0, 1))
    copy_stretches(source.view(np.uint8), target.view(np.uint8), starts, lengths, places(*to), target.itemsize)
    assert target.tolist() == expected.tolist()


def test_to_the_very_ends():
    source, target = np.array([1, 2, 3], np.int32), np.full(4, 99, np.int32)
    copy_stretches(source.view(np.uint8), target.view(np.uint8), places(0, 3), places(3, 0), places(1, 4), 4)
    assert target.tolist() == [99, 1, 2, 3]


@pytest.mark.parametrize(
    ("start", "length", "at"),
    [
        *[(0, 4, 0), (3, 1, 0), (-1, 1, 0), (0, -1, 0), (0, 1, 3), (0, 2, 2), (0, 1, -1)],
        *[(2**62, 1, 0), (1, 2**62, 0), (0, 1, 2**63 - 1)],
    ],
)
def test_what_is_not_within_the_arrays_is_refused(start, length, at):
    source, target = np.arange(3, dtype=np.int32), np.zeros(3, np.int32)
    starts, lengths, to = places(1, start), places(1, length), places(0, at)
    with pytest.raises(IndexError, match="stretch 1 is not within the arrays"):
        copy_stretches(source.view(np.uint8), target.view(np.uint8), starts, lengths, to, 4)
    assert target.tolist() == [1, 0, 0]


@pytest.mark.parametrize("short", [0, 1, 2])
def test_as_many_of_each(short):
    of_each = [places(0) if index == short else places(0, 0) for index in range(3)]
    with pytest.raises(ValueError, match="starts, lengths and places are not of one length"):
        copy_stretches(np.zeros(4, np.uint8), np.zeros(4, np.uint8), *of_each, 1)


def test_arrays_without_gaps_are_needed():
    one = places(0)
    with pytest.raises(TypeError, match="contiguous"):
        copy_stretches(np.zeros(8, np.uint8)[::2], np.zeros(4, np.uint8), one, one, one, 1)
    with pytest.raises(TypeError, match="contiguous"):
        copy_stretches(np.zeros(8, np.uint8), np.zeros(8, np.uint8)[::2], one, one, one, 1)
    read_only = np.zeros(4, np.uint8)
    read_only.flags.writeable = False
    with pytest.raises(TypeError, match="not writeable"):
        copy_stretches(np.zeros(8, np.uint8), read_only, one, one, one, 1)
