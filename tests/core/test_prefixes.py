"""The private functions of the extension, which the Python half builds on."""

import array

import numpy as np
import pytest
from support import oracle
from tokenrecords import _core

WHOLE = list(range(1_000, 1_300))
HOLDERS = pytest.mark.parametrize("hold", [list, tuple, np.array, lambda ids: np.array(ids, ">u4"), lambda ids: ids])


@HOLDERS
@pytest.mark.parametrize("length", [0, 1, 2, 127, 128, 129, 300])
def test_prefix_digest(hold, length):
    assert _core.prefix_digest(length, ids=hold(WHOLE)) == oracle.digest(WHOLE[:length])


@HOLDERS
def test_a_prefix_longer_than_the_sequence(hold):
    with pytest.raises(ValueError, match=r"^length is 301, but ids has 300 ids$"):
        _core.prefix_digest(301, ids=hold(WHOLE))
    with pytest.raises((OverflowError, ValueError)):
        _core.prefix_digest(-1, ids=hold(WHOLE))


def test_a_prefix_is_all_that_is_read():
    assert _core.prefix_digest(2, ids=[1, 2, "x"]) == oracle.digest([1, 2])
    assert _core.prefix_digest(2, ids=np.array([1, 2, -1])) == oracle.digest([1, 2])


def test_joint_digest():
    assert _core.joint_digest() == (0, oracle.digest([]))
    assert _core.joint_digest(a=[], b=()) == (0, oracle.digest([]))
    assert _core.joint_digest(a=[1], b=np.array([2]), c=range(3, 5)) == (4, oracle.digest([1, 2, 3, 4]))
    assert _core.joint_digest(a=np.arange(200), b=np.arange(300)) == (500, oracle.digest([*range(200), *range(300)]))


@pytest.mark.parametrize("length", [2, 200, 400])
def test_an_error_names_its_part(length):
    good, bad = np.ones(length, np.int64), np.ones(length, np.int64)
    bad[1] = -9
    for hold in (np.array, list):
        with pytest.raises(ValueError, match=r"^second\[1\] is -9: token ids must be non-negative, got -9$"):
            _core.joint_digest(first=good, second=hold(bad), third=bad)
        with pytest.raises(ValueError, match=r"^second\[1\] is -9: token ids must be non-negative, got -9$"):
            _core.stands_at(0, zeroth=np.ones(2 * length, int), first=good, second=hold(bad))
        with pytest.raises(ValueError, match=r"^whole\[1\] is -9: token ids must be non-negative, got -9$"):
            _core.stands_at(0, whole=hold(bad), first=good)
        with pytest.raises(TypeError, match=r"^third is of type str"):
            _core.joint_digest(first=good, second=good, third="text")


@HOLDERS
def test_stands_at(hold):
    whole = hold(WHOLE)
    for at, length in ((0, 300), (0, 0), (300, 0), (1, 299), (299, 1), (5, 200)):
        part = WHOLE[at : at + length]
        assert _core.stands_at(at, whole=whole, a=hold(part))
        assert _core.stands_at(at, whole=whole, a=hold(part[:2]), b=hold(part[2:]))
        assert _core.stands_at(at + 1, whole=whole, a=hold(part)) == (not part and at < 300)
        for place in {0, length // 2, length - 1} & set(range(length)):
            other = list(part)
            other[place] += 1
            assert not _core.stands_at(at, whole=whole, a=hold(other))
    assert not _core.stands_at(301, whole=whole)
    assert not _core.stands_at(299, whole=whole, a=hold([1_299, 1_300]))
    assert not _core.stands_at(2**63, whole=whole, a=hold([1]))


def test_copies_of_lists():
    for values in ([], [1], [1, 2**100, -5]):
        copy = _core.copy_int_list(values)
        assert copy == values
        assert copy is not values
    for values in ([], [1.0], [float("inf"), -0.5]):
        copy = _core.copy_float_list(values)
        assert copy == values
        assert copy is not values

    class Ints(list):
        pass

    for values in ((1,), Ints([1]), [True], [1, 1.0], [1, None], np.array([1]), None, "1"):
        assert _core.copy_int_list(values) is None
    for values in ((1.0,), Ints([1.0]), [1], [1.0, 1], [1.0, None], np.array([1.0]), None, "1"):
        assert _core.copy_float_list(values) is None


def test_int32_arrays():
    for values in ([], [0], [1, -1, 2**30 - 1, -(2**30) + 1]):
        found = _core.int32_array(values)
        assert found.dtype == np.int32
        assert found.tolist() == values
    for values in ([2**30], [1, -(2**30)], [2**70], [True], [1.0], (1,), None):
        assert _core.int32_array(values) is None


def test_array_over():
    ids = np.arange(3)
    assert _core.array_over(ids) is ids
    assert np.shares_memory(_core.array_over(memoryview(ids)), ids)
    numbers = array.array("i", [1])
    assert _core.array_over(numbers).tolist() == [1]
    for value in ([1], (1,), "1", b"1", None, 5, {1}, {1: 2}, range(3), iter([1])):
        assert _core.array_over(value) is None
    for value in (bytearray(1), memoryview(b"1"), np.ma.array([1])):
        with pytest.raises(TypeError, match=r"^the value is (of type|a masked)"):
            _core.array_over(value)
