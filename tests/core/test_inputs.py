"""Everything that may hold token ids gives the encoding and the digest of the same list."""

import array
import collections
import collections.abc
import ctypes
import enum
import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import oracle
from support.holders import Array, DLPack, Index
from tokenrecords import compute_digest, encode_token_ids

INTEGER_CODES = "bBhHiIlLqQ"


def assert_same(token_ids, values):
    values = [int(value) for value in values]
    assert encode_token_ids(token_ids) == oracle.encode(values)
    assert compute_digest(token_ids) == oracle.digest(values)


def values_for(dtype, length):
    """Ids that use every byte of the dtype, from 0 to its largest."""
    most = int(np.iinfo(dtype).max)
    return [(i * 0x9E37_79B9_7F4A_7C15 + most) % (most + 1) if i else most for i in range(length)]


def strided(a):
    wide = np.zeros(3 * len(a), a.dtype)
    wide[1::3] = a
    return wide[1::3]


def read_only(a):
    a = a.copy()
    a.flags.writeable = False
    return a


def unaligned(a):
    memory = np.zeros(a.nbytes + 1, np.uint8)
    moved = memory[1:].view(a.dtype)
    moved[:] = a
    return moved


def column(a):
    table = np.zeros((len(a), 3), a.dtype)
    table[:, 1] = a
    return table[:, 1]


def field(a):
    rows = np.zeros(len(a), [("flag", "u1"), ("id", a.dtype)])
    rows["id"] = a
    return rows["id"]


LAYOUTS = {
    "contiguous": np.copy,
    "strided": strided,
    "reversed": lambda a: a[::-1].copy()[::-1],
    "reversed and strided": lambda a: strided(a[::-1])[::-1],
    "read-only": read_only,
    "unaligned": unaligned,
    "a column": column,
    "a field": field,
    "a subclass": lambda a: a.view(np.recarray),
    "a slice at an offset": lambda a: np.concatenate((a[:1], a, a[:1]), dtype=a.dtype)[len(a[:1]) :][: len(a)],
}


@pytest.mark.parametrize("length", [0, 1, 5, 129, 300])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("order", "<>")
@pytest.mark.parametrize("code", INTEGER_CODES)
def test_arrays(code, order, layout, length):
    dtype = np.dtype(code).newbyteorder(order)
    values = values_for(dtype, length)
    token_ids = LAYOUTS[layout](np.array(values, dtype))
    assert token_ids.dtype == dtype
    assert_same(token_ids, values)


@pytest.mark.parametrize("code", INTEGER_CODES)
def test_broadcast_arrays(code):
    value = np.iinfo(code).max
    token_ids = np.broadcast_to(np.array(value, code), (300,))
    assert token_ids.strides == (0,)
    assert_same(token_ids, [value] * 300)


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "c8", "i4", "object"])
def test_an_empty_array_is_the_empty_sequence(dtype):
    assert_same(np.array([], dtype), [])
    assert_same(np.array([1, 2, 3], dtype)[3:], [])


def test_object_arrays_are_read_by_element():
    assert_same(np.array([1, 2**63, True, np.uint8(3)], object), [1, 2**63, 1, 3])
    assert_same(np.array([1, 2**64 - 1, 5, 6], object)[::-2], [6, 2**64 - 1])


def test_memory_maps(tmp_path):
    np.arange(1_000, dtype=np.int32).tofile(tmp_path / "ids")
    assert_same(np.memmap(tmp_path / "ids", np.int32, "r"), range(1_000))
    assert_same(np.memmap(tmp_path / "ids", np.int32, "r", offset=8), range(2, 1_000))


@pytest.mark.parametrize("code", INTEGER_CODES)
@pytest.mark.parametrize("length", [0, 1, 300])
def test_array_array(code, length):
    values = values_for(code, length)
    assert_same(array.array(code, values), values)


@pytest.mark.parametrize("code", INTEGER_CODES.replace("b", "").replace("B", ""))
@pytest.mark.parametrize("length", [0, 1, 300])
def test_memoryviews(code, length):
    values = values_for(code, length)
    view = memoryview(array.array(code, values))
    assert_same(view, values)
    assert_same(view[::-1], values[::-1])
    assert_same(memoryview(np.array(values, np.dtype(code).newbyteorder(">"))), values)


def test_memoryviews_over_bytes_with_a_format():
    assert_same(memoryview(bytearray(b"\x01\x00\x02\x00")).cast("H"), np.frombuffer(b"\x01\x00\x02\x00", np.uint16))


@pytest.mark.parametrize(
    "kind",
    [
        ctypes.c_int8, ctypes.c_uint8, ctypes.c_int16, ctypes.c_uint16, ctypes.c_int32, ctypes.c_uint32,
        ctypes.c_int64, ctypes.c_uint64, ctypes.c_int32.__ctype_be__, ctypes.c_uint64.__ctype_be__,
    ],
)  # fmt: skip
def test_ctypes_arrays(kind):
    assert_same((kind * 5)(1, 2, 127, 4, 5), [1, 2, 127, 4, 5])
    assert_same((kind * 0)(), [])


@pytest.mark.parametrize("wrap", [Array, DLPack])
def test_what_gives_an_array(wrap):
    for code in INTEGER_CODES:
        values = values_for(code, 300)
        assert_same(wrap(np.array(values, code)), values)
    assert_same(wrap(np.arange(10)[::2]), range(0, 10, 2))
    assert_same(wrap(np.array([], np.int32)), [])


def test_what_gives_an_array_interface():
    class Interface:
        memory = np.arange(5, dtype=np.int32)
        __array_interface__ = memory.__array_interface__

        def __array__(self, dtype=None, copy=None):
            return self.memory

    assert_same(Interface(), range(5))


class Ids(list):
    pass


Pair = collections.namedtuple("Pair", "first second")  # noqa: PYI024


class Sequence(collections.abc.Sequence):
    def __init__(self, values):
        self.values = values

    def __getitem__(self, index):
        return self.values[index]

    def __len__(self):
        return len(self.values)


class SizedAndIndexed:
    def __init__(self, values):
        self.values = values

    def __getitem__(self, index):
        return self.values[index]

    def __len__(self):
        return len(self.values)


@pytest.mark.parametrize(
    "kind", [list, tuple, Ids, collections.deque, collections.UserList, Sequence, SizedAndIndexed, np.array]
)
@pytest.mark.parametrize("length", [0, 1, 2, 300])
def test_sequences(kind, length):
    values = list(range(7, 7 + length))
    assert_same(kind(values), values)


def test_named_tuples():
    assert_same(Pair(1, 2), [1, 2])


@pytest.mark.parametrize(
    "token_ids", [range(0), range(1), range(5, 500, 3), range(10, -1, -1), range(2**64 - 3, 2**64)], ids=str
)
def test_ranges(token_ids):
    assert_same(token_ids, token_ids)


class Special(enum.IntEnum):
    BOS = 128_000


class Id(int):
    __slots__ = ()

    def __index__(self):  # an int is taken for what it is
        return 99


def test_elements_that_are_integers():
    token_ids = [True, False, Special.BOS, Id(5), np.int64(1), np.uint8(2), np.uint64(2**64 - 1), np.array(5)]
    expected = [1, 0, 128_000, 5, 1, 2, 2**64 - 1, 5]
    assert_same(token_ids, expected)
    assert_same(tuple(token_ids), expected)
    assert_same([Index(lambda: 7), Index(lambda: 2**64 - 1)], [7, 2**64 - 1])


@given(st.lists(st.sampled_from([0, 1, 2**30 - 1, 2**30, 2**63, True, Special.BOS, Id(3), np.int8(4)])))
def test_mixed_elements(values):
    plain = [int(value) for value in values]
    for token_ids in (values, tuple(values), np.array(values, object), collections.deque(values)):
        assert_same(token_ids, plain)


@pytest.mark.parametrize("length", [3, 128, 300])
def test_a_list_that_grows_meanwhile_is_read_as_long_as_it_was(length):
    for function, wanted in ((encode_token_ids, oracle.encode), (compute_digest, oracle.digest)):
        token_ids = [2] * length
        token_ids[0] = Index(lambda: (token_ids.extend([7] * 500), 1)[1])  # noqa: B023
        assert function(token_ids) == wanted([1] + [2] * (length - 1))


def test_items_are_read_once():
    counter = itertools.count()
    assert encode_token_ids([Index(lambda: next(counter)) for _ in range(300)]) == oracle.encode(range(300))
    assert next(counter) == 300
