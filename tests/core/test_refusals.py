"""What holds no token ids is refused, by an exception that names argument, position and value."""

import array
import asyncio
import collections
import ctypes
import datetime as dt
import decimal
import fractions
import mmap
import re

import numpy as np
import pytest
from support.holders import Array, DLPack, Index, NeedsCpu
from tokenrecords import compute_digest, encode_token_ids

BOTH = pytest.mark.parametrize("function", [encode_token_ids, compute_digest])


class Text(str):
    __slots__ = ()


def mapped():
    return mmap.mmap(-1, 8)


PACKED = {
    "bytes": b"\x01\x02",
    "no bytes": b"",
    "bytearray": bytearray(b"\x01\x02"),
    "memoryview": memoryview(b"\x01\x02"),
    "memoryview of a bytearray": memoryview(bytearray(2)),
    "memoryview of signed bytes": memoryview(b"\x01\x02").cast("b"),
    "memoryview of characters": memoryview(b"\x01\x02").cast("c"),
    "memoryview of array.array bytes": memoryview(array.array("B", [1, 2])),
    "memoryview of a uint8 array": memoryview(np.zeros(2, np.uint8)),
    "memoryview of ctypes bytes": memoryview((ctypes.c_ubyte * 2)()),
    "empty memoryview": memoryview(b""),
    "mmap": mapped(),
}


@BOTH
@pytest.mark.parametrize("name", PACKED)
def test_packed_bytes(function, name):
    kind = type(PACKED[name]).__name__
    with pytest.raises(TypeError, match=rf"^token_ids is of type {kind}: bytes are not a token sequence .*frombuffer"):
        function(PACKED[name])


WHOLES = {
    "text": ("ab", "token_ids is of type str: text"),
    "no text": ("", "token_ids is of type str: text"),
    "subclass of str": (Text("12"), "token_ids is of type Text: text"),
    "set": ({1, 2}, "token_ids is of type set: a set is unordered"),
    "empty set": (set(), "token_ids is of type set: a set is unordered"),
    "frozenset": (frozenset([1]), "token_ids is of type frozenset: a set is unordered"),
    "dict": ({1: 9}, "token_ids is of type dict: a mapping"),
    "empty dict": ({}, "token_ids is of type dict: a mapping"),
    "OrderedDict": (collections.OrderedDict({1: 2}), "token_ids is of type OrderedDict: a mapping"),
    "Counter": (collections.Counter([1]), "token_ids is of type Counter: a mapping"),
    "UserDict": (collections.UserDict({0: 1}), "token_ids is of type UserDict: a mapping"),
    "dict keys": ({1: 9}.keys(), "token_ids is of type dict_keys"),
    "dict values": ({1: 9}.values(), "token_ids is dict_values"),
    "dict items": ({1: 9}.items(), "token_ids is of type dict_items"),
    "None": (None, "token_ids is None: a sequence of token ids is needed"),
    "int": (5, "token_ids is 5: a sequence of token ids is needed, got int"),
    "bool": (True, "token_ids is True: a sequence of token ids is needed, got bool"),
    "float": (1.5, "token_ids is 1.5: a sequence of token ids is needed, got float"),
    "numpy scalar": (np.int64(5), "token_ids is a scalar of dtype int64"),
    "numpy float scalar": (np.float64(5), "token_ids is a scalar of dtype float64"),
    "0-d array": (np.array(5), "token_ids is a scalar of dtype int64"),
    "ctypes scalar": (ctypes.c_int(3), "token_ids is a scalar of dtype int32: a sequence"),
    "iterator": (iter([1]), "a sequence of token ids is needed, got list_iterator"),
    "generator": ((i for i in [1]), "a sequence of token ids is needed, got generator"),
    "map": (map(int, "1"), "a sequence of token ids is needed, got map"),
    "a class": (list, "a sequence of token ids is needed, got type"),
    "a function": (len, "a sequence of token ids is needed, got builtin_function_or_method"),
}


@BOTH
@pytest.mark.parametrize("name", WHOLES)
def test_objects_that_are_no_sequence_of_integers(function, name):
    value, message = WHOLES[name]
    with pytest.raises(TypeError, match=re.escape(message)) as caught:
        function(value)
    assert str(caught.value).startswith("token_ids is ")


ARRAYS = {
    "float64": np.array([1.0]),
    "float32": np.array([1.0], "f4"),
    "float16": np.array([1.0], "f2"),
    "complex128": np.array([1j]),
    "bool": np.array([True]),
    "<U1": np.array(["1"]),
    "|S1": np.array([b"1"]),
    "datetime64[s]": np.array(["2026-01-01"], "M8[s]"),
    "timedelta64[s]": np.array([1], "m8[s]"),
    "|V4": np.zeros(1, "V4"),
    "[('a', '<i4')]": np.zeros(1, [("a", "<i4")]),
    str(np.dtype(np.longdouble)): np.zeros(1, np.longdouble),
}
EMPTY = {"bool": np.array([], bool), "<U1": np.array([], "<U1"), "datetime64[s]": np.array([], "M8[s]")}


@BOTH
@pytest.mark.parametrize("arrays", [ARRAYS, EMPTY], ids=["filled", "empty"])
def test_arrays_of_another_dtype(function, arrays):
    for dtype, values in arrays.items():
        wrapped = (values, Array(values))
        for token_ids in wrapped:
            with pytest.raises(TypeError, match=re.escape(f"token_ids has dtype {dtype}: token ids must be integers")):
                function(token_ids)


@BOTH
def test_buffers_of_another_kind(function):
    floats = array.array("d", [1.0])
    for token_ids in (floats, memoryview(floats), DLPack(np.array([1.0])), (ctypes.c_double * 1)(1.0)):
        with pytest.raises(TypeError, match=r"^token_ids has dtype float64: token ids must be integers"):
            function(token_ids)


@BOTH
@pytest.mark.parametrize("dimensions", [2, 3])
def test_arrays_of_more_dimensions(function, dimensions):
    for token_ids in (
        np.ones((1,) * dimensions, int),
        np.zeros((0,) * dimensions, int),
        np.ones((2,) * dimensions),
        np.ones((1,) * dimensions, object),
        Array(np.ones((2,) * dimensions, int)),
        DLPack(np.ones((2,) * dimensions, int)),
        memoryview(np.ones((2,) * dimensions, int)),
    ):
        message = rf"^token_ids has shape \(.*\): one dimension is needed, got {dimensions}$"
        with pytest.raises(ValueError, match=message):
            function(token_ids)


@BOTH
def test_a_matrix_has_two_dimensions(function):
    with pytest.raises(ValueError, match=r"token_ids has shape \(1, 2\): one dimension is needed, got 2"):
        function(np.ones((1, 2), int).view(np.matrix))


@BOTH
def test_masked_arrays(function):
    for token_ids in (np.ma.array([1, 2], mask=[0, 1]), np.ma.array([1, 2]), np.ma.array([])):
        with pytest.raises(TypeError, match=r"^token_ids is a masked array"):
            function(token_ids)


@BOTH
def test_a_masked_array_behind_an_export(function):
    with pytest.raises(TypeError, match=r"^token_ids is a masked array"):
        function(Array(np.ma.array([1, 2], mask=[0, 1])))


NO_INTEGERS = {
    "float": (1.0, "1.0", "float"),
    "NaN": (float("nan"), "nan", "float"),
    "None": (None, "None", "NoneType"),
    "text": ("1", "'1'", "str"),
    "bytes": (b"1", "b'1'", "bytes"),
    "list": ([1], "[1]", "list"),
    "tuple": ((1,), "(1,)", "tuple"),
    "Decimal": (decimal.Decimal(3), "Decimal('3')", "Decimal"),
    "Fraction": (fractions.Fraction(3), "Fraction(3, 1)", "Fraction"),
    "complex": (1j, "1j", "complex"),
    "date": (dt.date(2026, 1, 2), "datetime.date(2026, 1, 2)", "date"),
    "float32": (np.float32(1.0), repr(np.float32(1.0)), "float32"),
    "float64": (np.float64(1.0), repr(np.float64(1.0)), "float64"),
    "bool_": (np.bool_(True), repr(np.bool_(True)), type(np.bool_(True)).__name__),
    "array": (np.array([1, 2]), "array([1, 2])", "ndarray"),
    "index that gives text": (Index(lambda: "x"), "<an index>", "Index"),
    "index that gives a float": (Index(lambda: 1.0), "<an index>", "Index"),
    "index that fails": (Index(TypeError("no")), "<an index>", "Index"),
}
BAD_VALUES = {
    "-1": (-1, "-1", "non-negative"),
    "-9": (-9, "-9", "non-negative"),
    "-2**30": (-(2**30), str(-(2**30)), "non-negative"),
    "-2**63": (-(2**63), str(-(2**63)), "non-negative"),
    "-2**70": (-(2**70), str(-(2**70)), "non-negative"),
    "int64(-1)": (np.int64(-1), "-1", "non-negative"),
    "int8(-128)": (np.int8(-128), "-128", "non-negative"),
    "2**64": (2**64, str(2**64), "below 2**64"),
    "2**200": (2**200, str(2**200), "below 2**64"),
    "10**5000": (10**5000, "an int of 16610 bits", "below 2**64"),
    "-10**5000": (-(10**5000), "an int of 16610 bits", "non-negative"),
    "index of -3": (Index(lambda: -3), "-3", "non-negative"),
    "index of 2**64": (Index(lambda: 2**64), str(2**64), "below 2**64"),
}
ELEMENTS = [
    *((TypeError, it, f"{text}: token ids must be integers, got {kind}") for it, text, kind in NO_INTEGERS.values()),
    *((ValueError, item, f"{text}: token ids must be {rule}, got {text}") for item, text, rule in BAD_VALUES.values()),
]  # fmt: skip


def object_array(items):
    array = np.empty(len(items), object)
    for place, item in enumerate(items):
        array[place] = item
    return array


@BOTH
@pytest.mark.parametrize(("error", "item", "message"), ELEMENTS, ids=[*NO_INTEGERS, *BAD_VALUES])
@pytest.mark.parametrize("position", [0, 2, 127, 128, 1_500])
def test_elements(function, error, item, message, position):
    items = [1] * position + [item, 2, -5, None]
    for token_ids in (items, tuple(items), collections.deque(items), object_array(items)):
        with pytest.raises(error) as caught:
            function(token_ids)
        assert str(caught.value) == f"token_ids[{position}] is {message}"
        assert type(caught.value) is error


@BOTH
@pytest.mark.parametrize("dtype", ["i1", "<i2", ">i2", "<i4", ">i4", "<i8", ">i8"])
@pytest.mark.parametrize("position", [0, 2, 127, 128, 129, 1_500])
def test_negative_elements_of_arrays(function, dtype, position):
    token_ids = np.ones(position + 3, dtype)
    for value in (-9, np.iinfo(dtype).min):
        token_ids[position : position + 2] = value, -2
        for view in (token_ids, np.repeat(token_ids, 2)[::2], token_ids[::-1].copy()[::-1]):
            with pytest.raises(ValueError, match=r"^token_ids\[") as caught:
                function(view)
            wanted = f"token_ids[{position}] is {value}: token ids must be non-negative, got {value}"
            assert str(caught.value) == wanted


@BOTH
def test_a_range_below_zero(function):
    with pytest.raises(ValueError, match=r"^token_ids\[2\] is -1: token ids must be non-negative, got -1$"):
        function(range(1, -3, -1))


@BOTH
def test_long_values_are_shortened(function):
    with pytest.raises(
        TypeError, match=r"^token_ids\[0\] is 'x+\.\.\.: token ids must be integers, got str$"
    ) as caught:
        function(["x" * 1_000_000])
    assert len(str(caught.value)) < 200


class Silent:
    def __repr__(self):
        raise RuntimeError("no text")


@BOTH
def test_values_without_a_text_are_named_by_their_type(function):
    with pytest.raises(TypeError, match=r"^token_ids\[1\] is <Silent>: token ids must be integers, got Silent$"):
        function([0, Silent()])


@BOTH
def test_exceptions_of_an_element_pass(function):
    for error in (ValueError("mine"), KeyError("mine"), ZeroDivisionError("mine"), KeyboardInterrupt(), SystemExit(1)):
        for kind in (list, tuple):
            with pytest.raises(type(error)) as caught:
                function(kind([0, Index(error)]))
            assert caught.value is error


SHRINK = {"clear": list.clear, "cut": lambda ids: ids.__delitem__(slice(-1, None))}


@BOTH
@pytest.mark.parametrize("shrink", SHRINK)
@pytest.mark.parametrize(
    ("length", "place"), [(n, at) for n in (2, 127, 128, 129, 300) for at in (0, 126, 127, 128, 255) if at < n - 1]
)
def test_a_list_that_shrinks_meanwhile(function, shrink, length, place):
    token_ids = [1] * length
    token_ids[place] = Index(lambda: (SHRINK[shrink](token_ids), 1)[1])
    with pytest.raises(RuntimeError, match="token_ids became shorter while it was read: no item"):
        function(token_ids)


class StopsAt:
    """Raises StopIteration in the method that it is told."""

    def __init__(self, method):
        self.method = method

    def _answer(self, method, value):
        if self.method == method:
            raise StopIteration
        return value

    def __len__(self):
        return self._answer("__len__", 2)

    def __getitem__(self, index):
        return self._answer("__getitem__", 1)

    def __iter__(self):
        return self._answer("__iter__", iter([1, 2]))


class ArrayStops:
    def __array__(self, dtype=None, copy=None):
        raise StopIteration


class DLPackStops:
    def __dlpack__(self, **options):
        raise StopIteration

    def __dlpack_device__(self):
        return 1, 0


STOPS = {
    "element": [Index(StopIteration())],
    "element of a tuple": (0, Index(StopIteration("x"))),
    "element of an object array": object_array([Index(StopIteration())]),
    "__len__": StopsAt("__len__"),
    "__iter__": StopsAt("__iter__"),
    "__array__": ArrayStops(),
    "__dlpack__": DLPackStops(),
}


@BOTH
@pytest.mark.parametrize("name", STOPS)
def test_stop_iteration_never_escapes(function, name):
    with pytest.raises(TypeError, match=r"^token_ids.*StopIteration") as caught:
        function(STOPS[name])
    assert isinstance(caught.value.__cause__, StopIteration)


@BOTH
def test_a_sequence_shorter_than_its_length_is_no_empty_sequence(function):
    class Cut:
        def __len__(self):
            return 2

        def __getitem__(self, index):
            raise StopIteration

    with pytest.raises((TypeError, ValueError, RuntimeError), match="token_ids"):
        function(Cut())


BAD = [[1], [Index(StopIteration())], [3]]


@BOTH
def test_a_bad_sequence_does_not_end_a_loop(function):
    with pytest.raises(TypeError, match=r"token_ids\[0\]"):
        list(map(function, BAD))
    with pytest.raises(TypeError, match=r"token_ids\[0\]"):
        list(function(token_ids) for token_ids in BAD)  # noqa: C400
    with pytest.raises(TypeError, match=r"token_ids\[0\] is 2.0"):
        list(map(function, [[1], [2.0], [3]]))


@BOTH
@pytest.mark.parametrize("token_ids", [[1.0], BAD[1]], ids=["a float", "StopIteration"])
def test_a_bad_sequence_does_not_hang_a_future(function, token_ids):
    async def wait():
        await asyncio.wait_for(asyncio.to_thread(function, token_ids), 60)

    with pytest.raises(TypeError, match=r"token_ids\[0\]"):
        asyncio.run(wait())


class OnAnotherDevice:
    def __dlpack__(self, **options):
        raise BufferError("not on the CPU")

    def __dlpack_device__(self):
        return 2, 0


@BOTH
def test_exports_that_fail(function):
    with pytest.raises(TypeError, match=r"^token_ids is of type OnAnotherDevice, which gives no array") as caught:
        function(OnAnotherDevice())
    assert caught.value.__cause__ is not None
    with pytest.raises(TypeError, match=r"^token_ids is of type NeedsCpu, which .*: .*Tensor\.cpu\(\)"):
        function(NeedsCpu())
    with pytest.raises(TypeError, match=r"^token_ids is of type Array, which gives no array"):
        function(Array("no array"))


@BOTH
def test_a_released_memoryview(function):
    view = memoryview(array.array("i", [1]))
    view.release()
    with pytest.raises((TypeError, ValueError), match="token_ids"):
        function(view)


@pytest.mark.parametrize("length", [2**60, 2**61, 2**62])
def test_an_encoding_that_no_memory_holds(length):
    with pytest.raises((OverflowError, MemoryError)):
        encode_token_ids(np.broadcast_to(np.array(1, np.uint8), (length,)))
