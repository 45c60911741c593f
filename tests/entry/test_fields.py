"""Arrays in the fields of a `TokenEntry`: kept as they are, refused, converted."""

import array
import ctypes

import numpy as np
import pytest
from pydantic import ValidationError
from support.factories import make_entry
from support.holders import Array, DLPack, NeedsCpu
from tokenrecords import TokenEntry

INTEGERS = [np.dtype(code).newbyteorder(order) for code in "bBhHiIlLqQ" for order in "<>"]
FLOATS = [np.dtype(code).newbyteorder(order) for code in "efd" for order in "<>"]
ID_FIELDS = ("prompt_token_ids", "generation_token_ids")


def ids_of(value, name="prompt_token_ids"):
    return getattr(make_entry(**{name: value, "generation_log_probs": [0.0] * length(name, value)}), name)


def length(name, value):
    return len(value) if name == "generation_token_ids" else 1


def log_probs_of(value, count=None):
    return make_entry(
        generation_token_ids=[0] * (len(value) if count is None else count), generation_log_probs=value
    ).generation_log_probs


def refusal(make):
    with pytest.raises(ValidationError) as caught:
        make()
    (error,) = caught.value.errors()
    return error["loc"], error["msg"]


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
@pytest.mark.parametrize("name", ID_FIELDS)
def test_integer_arrays_are_kept(name, dtype):
    array_ = np.arange(5, dtype=dtype)
    read_only = array_.copy()
    read_only.flags.writeable = False
    for value in (
        array_,
        array_[::-2],
        read_only,
        array_[:0],
        array_.view(np.recarray),
        np.broadcast_to(array_[:1], 3),
    ):
        assert ids_of(value, name) is value


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_float_arrays_are_kept(dtype):
    array_ = np.linspace(-1, 0, 6).astype(dtype)
    for value in (array_, array_[::-2], array_[:0]):
        assert log_probs_of(value) is value


def test_values_are_not_looked_at():
    assert ids_of(np.array([-1])).tolist() == [-1]
    assert np.isnan(log_probs_of(np.array([np.nan]))).all()
    assert log_probs_of(np.array([0.5, np.inf, -np.inf])).tolist() == [0.5, np.inf, -np.inf]


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_integer_log_probs_become_float64(dtype):
    value = log_probs_of(np.array([0, 3], dtype))
    assert value.dtype == np.float64
    assert value.dtype.isnative
    assert value.tolist() == [0.0, 3.0]


def test_lists_become_new_lists_of_their_type():
    for value in ([], [-0.5], [-1], [-0.5, -1], [True], [np.float32(-0.5)]):
        kept = log_probs_of(value)
        assert [type(x) for x in kept] == [float] * len(value)
        assert kept == value
        assert kept is not value
    for value in ([], [1], [True], [np.int64(2)], [2**70]):
        kept = ids_of(value)
        assert [type(x) for x in kept] == [int] * len(value)
        assert kept == value
        assert kept is not value


@pytest.mark.parametrize("dtype", ["f8", "f4", "f2", ">f8", "c16"])
def test_an_empty_float_array_holds_no_ids(dtype):
    value = ids_of(np.array([], dtype))
    assert value.dtype == np.int64
    assert value.shape == (0,)


@pytest.mark.parametrize("dtype", ["i4", "u8", "c8", "c16", "longdouble"])
def test_an_empty_numeric_array_holds_no_log_probs(dtype):
    value = log_probs_of(np.array([], dtype))
    assert value.dtype == np.float64
    assert value.shape == (0,)


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "longdouble", "c16", "bool", "U1", "S1", "M8[s]", "m8[s]", "V4"])
@pytest.mark.parametrize("name", ID_FIELDS)
def test_arrays_that_hold_no_ids(name, dtype):
    value = np.zeros(1, dtype)
    loc, message = refusal(lambda: make_entry(**{name: value}))
    assert loc == (name,)
    assert message == f"Value error, token ids must be integers, got an array of dtype {value.dtype}"


@pytest.mark.parametrize("dtype", ["longdouble", "c8", "bool", "U1", "S1", "M8[s]", "m8[s]", "V4"])
def test_arrays_that_hold_no_log_probs(dtype):
    value = np.zeros(1, dtype)
    loc, message = refusal(lambda: make_entry(generation_log_probs=value))
    assert loc == ("generation_log_probs",)
    wanted = f"log-probs must be float16, float32 or float64, got an array of dtype {value.dtype}"
    assert message == f"Value error, {wanted}"


@pytest.mark.parametrize("dtype", ["bool", "U1", "M8[s]"])
def test_an_empty_array_of_no_numbers_is_refused(dtype):
    for name in (*ID_FIELDS, "generation_log_probs"):
        loc, message = refusal(lambda name=name: make_entry(**{name: np.array([], dtype)}))
        assert loc == (name,)
        assert str(np.dtype(dtype)) in message


@pytest.mark.parametrize("shape", [(), (1, 2), (0, 3), (2, 1, 1)])
def test_one_dimension_is_needed(shape):
    for name in (*ID_FIELDS, "generation_log_probs"):
        for wrap in (np.array, Array, DLPack):
            loc, message = refusal(lambda name=name, wrap=wrap: make_entry(**{name: wrap(np.zeros(shape, np.int32))}))
            assert loc == (name,)
            assert f"one dimension is needed, got {len(shape)}" in message
            assert str(shape) in message


def test_scalars_are_refused():
    for value in (np.int64(5), np.float32(5)):
        for name in ("prompt_token_ids", "generation_log_probs"):
            assert "got 0" in refusal(lambda name=name, value=value: make_entry(**{name: value}))[1]


def test_masked_arrays_are_refused():
    for name in (*ID_FIELDS, "generation_log_probs"):
        loc, message = refusal(lambda name=name: make_entry(**{name: np.ma.array([1])}))
        assert loc == (name,)
        assert "masked" in message


def test_packed_bytes_are_refused():
    for value in (bytearray(b"12"), memoryview(b"12"), memoryview(b"12").cast("b"), memoryview(np.zeros(2, np.uint8))):
        for name in (*ID_FIELDS, "generation_log_probs"):
            loc, message = refusal(lambda name=name, value=value: make_entry(**{name: value}))
            assert loc == (name,)
            assert f"{type(value).__name__}: bytes are not a token sequence" in message


def test_object_arrays_become_lists():
    assert ids_of(np.array([1, "2", 3.0, 2**64], object)) == [1, 2, 3, 2**64]
    assert log_probs_of(np.array([-1, "-0.5", "NaN"], object))[:2] == [-1.0, -0.5]
    loc, message = refusal(lambda: ids_of(np.array([1, None], object)))
    assert loc == ("prompt_token_ids", 1)
    assert "integer" in message


@pytest.mark.parametrize("wrap", [Array, DLPack])
def test_what_gives_an_array_is_that_array(wrap):
    ids, log_probs = np.arange(3, dtype=np.int32), np.zeros(3, np.float32)
    entry = make_entry(prompt_token_ids=wrap(ids), generation_token_ids=wrap(ids), generation_log_probs=wrap(log_probs))
    for value, wanted in (
        (entry.prompt_token_ids, ids),
        (entry.generation_token_ids, ids),
        (entry.generation_log_probs, log_probs),
    ):
        assert type(value) is np.ndarray
        assert value.dtype == wanted.dtype
        assert np.shares_memory(value, wanted)


@pytest.mark.parametrize("code", "bBhHiIlLqQ")
def test_buffers_of_ids_are_not_copied(code):
    numbers = array.array(code, [1, 2, 3])
    for value in (numbers, *([memoryview(numbers)] if code not in "bB" else [])):
        kept = ids_of(value)
        assert type(kept) is np.ndarray
        assert kept.dtype == np.dtype(code)
        numbers[0] = 9
        assert kept.tolist() == [9, 2, 3]
        numbers[0] = 1


@pytest.mark.parametrize("kind", [ctypes.c_uint8, ctypes.c_int32, ctypes.c_int64, ctypes.c_int32.__ctype_be__])
def test_ctypes_arrays_are_not_copied(kind):
    numbers = (kind * 3)(1, 2, 3)
    kept = ids_of(numbers)
    assert type(kept) is np.ndarray
    numbers[0] = 9
    assert kept.tolist() == [9, 2, 3]


def test_buffers_of_log_probs_are_not_copied():
    for code in "fd":
        numbers = array.array(code, [-0.5, -1.0])
        kept = log_probs_of(numbers)
        numbers[0] = -2.0
        assert kept.tolist() == [-2.0, -1.0]
    numbers = (ctypes.c_float * 1)(-0.5)
    assert isinstance(log_probs_of(numbers), np.ndarray)


def test_buffers_of_the_wrong_kind_are_refused():
    for value in (array.array("d", [1.0]), (ctypes.c_double * 1)(1.0)):
        assert "float64" in refusal(lambda value=value: ids_of(value))[1]


class Stops:
    def __array__(self, dtype=None, copy=None):
        raise StopIteration


def test_exports_that_fail_are_validation_errors():
    assert "StopIteration" in refusal(lambda: ids_of(Stops()))[1]
    assert "Tensor.cpu()" in refusal(lambda: ids_of(NeedsCpu()))[1]


def test_as_lists():
    items, routes = [{}], np.zeros((1, 1, 1), np.int8)
    entry = make_entry(
        prompt_token_ids=np.array([2**64 - 1], np.uint64), generation_token_ids=np.array([1], ">i2"),
        generation_log_probs=np.array([-0.1], np.float32), output_items=items, routed_experts=routes, note="x",
    )  # fmt: skip
    lists = entry.as_lists()
    assert lists.prompt_token_ids == [2**64 - 1]
    assert lists.generation_token_ids == [1]
    assert lists.generation_log_probs == [float(np.float32(-0.1))]
    for name in (*ID_FIELDS, "generation_log_probs"):
        assert type(getattr(lists, name)) is list
        assert type(getattr(lists, name)[0]) in (int, float)
    assert lists.routed_experts is routes
    assert lists.output_items is entry.output_items
    assert lists.note == "x"
    assert lists == entry
    assert isinstance(entry.prompt_token_ids, np.ndarray)  # the entry itself is as it was


def test_as_lists_of_lists_is_equal():
    entry = make_entry()
    assert entry.as_lists() == entry
    assert entry.as_lists() is not entry


NARROWEST = [
    ([], np.int32),
    ([0, 2**30], np.int32),
    ([2**31 - 1], np.int32),
    ([-(2**31)], np.int32),
    ([2**31], np.int64),
    ([-(2**31) - 1], np.int64),
    ([1, 2**63 - 1], np.int64),
    ([-1, 2**63 - 1], np.int64),
    ([2**63], np.uint64),
    ([0, 2**64 - 1], np.uint64),
]


@pytest.mark.parametrize(("ids", "dtype"), NARROWEST)
def test_lists_become_the_narrowest_dtype(ids, dtype):
    array_ = make_entry(prompt_token_ids=ids).as_arrays().prompt_token_ids
    assert array_.dtype == dtype
    assert array_.tolist() == ids


@pytest.mark.parametrize("ids", [[2**64], [-1, 2**63], [-(2**63) - 1]])
def test_ids_that_no_dtype_holds_stay_a_list(ids):
    entry = make_entry(prompt_token_ids=ids).as_arrays()
    assert entry.prompt_token_ids == ids
    assert isinstance(entry.generation_token_ids, np.ndarray)
    assert isinstance(entry.generation_log_probs, np.ndarray)


def test_arrays_stay_as_they_are():
    ids, log_probs = np.arange(3, dtype=">u2"), np.zeros(3, np.float16)
    entry = make_entry(prompt_token_ids=ids, generation_token_ids=ids, generation_log_probs=log_probs).as_arrays()
    assert entry.prompt_token_ids is ids
    assert entry.generation_token_ids is ids
    assert entry.generation_log_probs is log_probs


def test_log_probs_become_float64():
    log_probs = make_entry(generation_log_probs=[-0.1]).as_arrays("int16").generation_log_probs
    assert log_probs.dtype == np.float64
    assert log_probs.tolist() == [-0.1]
    assert (
        make_entry(generation_token_ids=[], generation_log_probs=[]).as_arrays().generation_log_probs.dtype
        == np.float64
    )


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_a_given_dtype(dtype):
    most = int(np.iinfo(dtype).max)
    for ids in ([1, most], [], np.array([1, most], dtype), np.array([], np.uint64), np.array([1, 2], np.int64)):
        array_ = make_entry(prompt_token_ids=ids).as_arrays(dtype).prompt_token_ids
        assert array_.dtype == dtype
        assert array_.tolist() == list(ids)


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_an_id_that_does_not_fit_is_named(dtype):
    limits = np.iinfo(dtype)
    for bad in (int(limits.max) + 1, int(limits.min) - 1):
        holders = [[1, bad, bad + 1]]
        if -(2**63) <= bad < 2**64:
            holders.append(np.array([1, bad], np.int64 if bad < 2**63 else np.uint64))
        for ids in holders:
            for name in ID_FIELDS:
                entry = make_entry(**{name: ids, **zeros(name, ids)})
                with pytest.raises(ValueError, match=rf"^{name}\[1\] is {bad}: it does not fit {np.dtype(dtype)}$"):
                    entry.as_arrays(dtype)


def zeros(name, ids):
    return {"generation_log_probs": [0.0] * len(ids)} if name == "generation_token_ids" else {}


@pytest.mark.parametrize("dtype", ["f4", "f8", "bool", "O", "U1", "c8"])
def test_a_dtype_that_is_no_integer(dtype):
    with pytest.raises(TypeError, match=rf"^dtype is {np.dtype(dtype)}: token ids need an integer dtype$"):
        make_entry().as_arrays(dtype)


def test_conversions_keep_type_extras_and_set_fields():
    class Sub(TokenEntry):
        pass

    entry = Sub(**make_entry(note="x").model_dump(exclude_defaults=True))
    for twin in (entry.as_lists(), entry.as_arrays(), entry.as_arrays("u8")):
        assert type(twin) is Sub
        assert twin.model_extra == {"note": "x"}
        assert twin.model_fields_set == entry.model_fields_set
        assert twin.model_dump_json(exclude_unset=True) == entry.model_dump_json(exclude_unset=True)


def test_conversions_mark_no_field_as_set():
    entry = TokenEntry.model_construct(_fields_set={"model"}, **make_entry().model_dump())
    for twin in (entry.as_lists(), entry.as_arrays()):
        assert twin.model_fields_set == {"model"}
