"""Expert routes: every encoding there and back, and what is refused."""

import base64
import io
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenrecords.tokens.routed_experts import decode_routed_experts, encode_routed_experts, shape_of_routes

ROUTES = np.arange(12, dtype=np.int16).reshape(3, 2, 2)
ENCODINGS = ("lists", "nrlre1", "npy", "int32", "object")


def b64(data: bytes) -> str:
    return base64.b64encode(data).decode()


@given(
    st.tuples(st.integers(0, 4), st.integers(1, 3), st.integers(1, 3)),
    st.sampled_from(["int8", "int16", "int32", "uint8", "uint16", "int64", ">i2"]),
    st.sampled_from(ENCODINGS),
)
def test_there_and_back(shape, dtype, encoding):
    routes = (np.arange(np.prod(shape)) % 100).reshape(shape).astype(dtype)
    if encoding == "nrlre1" and routes.dtype.name not in ("int8", "int16", "int32"):
        with pytest.raises(ValueError, match="nrlre1 holds int8, int16, int32"):
            encode_routed_experts(routes, encoding)
        return
    value = encode_routed_experts(routes, encoding)
    # Empty lists say nothing of layers and top_k.
    back = decode_routed_experts(value, tokens=shape[0], shape=None if value == [] else shape[1:])
    assert np.array_equal(back, routes) or (value == [] and len(back) == 0)
    assert back.dtype.name == ("int32" if encoding in ("lists", "int32") else routes.dtype.name)


def test_strided_routes():
    for encoding in ENCODINGS:
        value = encode_routed_experts(ROUTES[::2], encoding)
        assert np.array_equal(decode_routed_experts(value, tokens=2, shape=(2, 2)), ROUTES[::2])


def test_known_values():
    assert decode_routed_experts([[[0, 1]], [[2, 3]]], tokens=2).tolist() == [[[0, 1]], [[2, 3]]]
    assert decode_routed_experts("nrlre1:int8:1x1x2:AAE=", tokens=1).tolist() == [[[0, 1]]]
    assert decode_routed_experts(b64(b"\0\0\0\0\1\0\0\0"), tokens=1, shape=(1, 2)).tolist() == [[[0, 1]]]
    assert decode_routed_experts(b64(b"\0\0\0\0\1\0\0\0"), tokens=1, shape=(1, 1, 2)).tolist() == [[[0, 1]]]
    value = {"data": "AAE=", "dtype": "uint8", "shape": [1, 1, 2], "start": 0}
    assert decode_routed_experts(value, tokens=1).tolist() == [[[0, 1]]]
    file = io.BytesIO()
    np.save(file, ROUTES.astype(np.uint16))
    assert decode_routed_experts(b64(file.getvalue()), tokens=4, rows="tokens-1").dtype == np.uint16
    assert decode_routed_experts(ROUTES, tokens=3) is ROUTES
    assert decode_routed_experts([], tokens=0).shape == (0, 0, 0)


def test_rows_are_said_not_guessed():
    assert len(decode_routed_experts(ROUTES, tokens=4, rows="tokens-1")) == 3
    with pytest.raises(ValueError, match="3 rows, but 4 tokens with rows='tokens' want 4"):
        decode_routed_experts(ROUTES, tokens=4)
    with pytest.raises(ValueError, match="3 rows, but 3 tokens with rows='tokens-1' want 2"):
        decode_routed_experts(ROUTES, tokens=3, rows="tokens-1")
    with pytest.raises(ValueError, match="rows must be"):
        decode_routed_experts(ROUTES, tokens=3, rows="any")


def test_rows_from_a_start_on():
    value = {**encode_routed_experts(ROUTES, "object"), "start": 2}
    assert np.array_equal(decode_routed_experts(value, tokens=5), ROUTES)
    with pytest.raises(ValueError, match="3 rows after a start of 2, but 3 tokens"):
        decode_routed_experts(value, tokens=3)


def test_an_object_may_begin_neither_before_nor_behind_the_start_of_the_caller():
    value = {**encode_routed_experts(ROUTES, "object"), "start": 5}
    for start in (4, 6):
        with pytest.raises(ValueError, match=rf"^start is {start}: the routed_experts object says 5$"):
            decode_routed_experts(value, tokens=8, start=start)


def test_the_shape_that_routes_say_themselves():
    for encoding in ("lists", "nrlre1", "npy", "object"):
        assert shape_of_routes(encode_routed_experts(ROUTES, encoding)) == (3, 2, 2)
    assert shape_of_routes({**encode_routed_experts(ROUTES, "object"), "start": 4}) == (7, 2, 2)
    assert shape_of_routes(encode_routed_experts(ROUTES, "int32")) is None
    for size in (2, 6, 7):
        with pytest.raises(ValueError, match=rf"^routed_experts holds {size} bytes: whole int32 numbers are needed$"):
            shape_of_routes(b64(bytes(size)))


def test_empty_rows_count():
    assert decode_routed_experts([[], []], tokens=2).shape == (2, 0, 0)
    with pytest.raises(ValueError, match="routed_experts has 2 rows, but 3 tokens"):
        decode_routed_experts([[], []], tokens=3)


def test_bytes_behind_a_npy_file_are_a_fault():
    file = base64.b64decode(encode_routed_experts(ROUTES, "npy"))
    with pytest.raises(ValueError, match=r"no readable \.npy file: 25 bytes for int16 of shape \(3, 2, 2\)$"):
        decode_routed_experts(b64(file + b"\0"), tokens=3)


def test_rows_from_a_start_that_the_caller_knows():
    for encoding in ENCODINGS:
        value = encode_routed_experts(ROUTES, encoding)
        if encoding == "object":
            value = {**value, "start": 4}
        found = decode_routed_experts(value, tokens=8, rows="tokens-1", start=4, shape=(2, 2))
        assert np.array_equal(found, ROUTES)
        with pytest.raises(ValueError, match=r"3 rows( after a start of \d)?, but 8 tokens|start is 5: the routed"):
            decode_routed_experts(value, tokens=8, rows="tokens-1", start=5, shape=(2, 2))
    for number in (np.int64(2), np.uint8(2)):
        value = {**encode_routed_experts(ROUTES, "object"), "start": number}
        assert decode_routed_experts(value, tokens=5, start=number).shape == (3, 2, 2)
    with pytest.raises(ValueError, match=r"^start is 4: the routed_experts object says 0$"):
        decode_routed_experts(encode_routed_experts(ROUTES, "object"), tokens=7, start=4)
    for wrong in (-1, True, 1.0, None):
        with pytest.raises(ValueError, match=r"^start is .*: an integer of 0 or more is needed"):
            decode_routed_experts(ROUTES, tokens=3, start=wrong)


def test_a_header_that_promises_more_than_is_there():
    header = b"{'descr': '<i4', 'fortran_order': False, 'shape': (200000, 1000, 200), }".ljust(117) + b"\n"
    with pytest.raises(ValueError, match=r"no readable .npy file: 0 bytes for int32 of shape"):
        decode_routed_experts(b64(b"\x93NUMPY\x01\x00\x76\x00" + header), tokens=4)


@pytest.mark.parametrize("header", ["{'descr': (", "{[]: 1}"])
def test_a_header_that_is_no_header_is_no_error_of_another_kind(header):
    data = b"\x93NUMPY\1\0" + len(header).to_bytes(2, "little") + header.encode()
    with pytest.raises(ValueError, match=r"^routed_experts holds no readable .npy file: "):
        decode_routed_experts(b64(data), tokens=1)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (None, "must be integers"),
        (5, "3 dimensions"),
        ("", "need shape"),
        ("####", "not base64"),
        ("é", "not base64"),
        ("AAE", "not base64"),
        (b64(b"\x93NUMPY\1\0torn"), "no readable .npy"),
        ("nrlre1:", "no nrlre1"),
        ("nrlre1:uint8:1x1x2:AAE=", "no nrlre1"),
        ("nrlre1:int8:1x2:AAE=", "no nrlre1"),
        ("nrlre1:int8:1x-1x2:AAE=", "no nrlre1"),
        ("nrlre1:int8:1x1x3:AAE=", "2 bytes, but int8"),
        ("nrlre1:int8:99999999999x99999999999x9:AAE=", "2 bytes, but int8"),
        ({"data": "AAE=", "dtype": "float32", "shape": [1, 1, 2]}, "object needs data"),
        ({"data": None, "dtype": "uint8", "shape": [1, 1, 2]}, "object needs data"),
        ({"data": "AAE=", "dtype": "uint8", "shape": [1, -1, 2]}, "sizes of 0 or more"),
        ({"data": "AAE=", "dtype": "uint8", "shape": [2]}, "3 dimensions"),
        ({"data": "AAE=", "dtype": "uint8", "shape": [1, 1, 3]}, "2 bytes, but uint8"),
        ([[[0, 1]], [[2]]], "rectangular"),
        ([[[0.5]]], "must be integers"),
        ([[[2**40]]], "int32"),
        (np.zeros((1, 1, 2)), "must be integers"),
    ],
)
def test_broken_values(value, message):
    with pytest.raises(ValueError, match=message):
        decode_routed_experts(value, tokens=1)


def test_object_arrays_in_npy_are_refused():
    file = io.BytesIO()
    np.save(file, np.array([[[object]]]), allow_pickle=True)
    with pytest.raises(ValueError, match="npy"):
        decode_routed_experts(b64(file.getvalue()), tokens=1)


@pytest.mark.parametrize(
    ("shape", "message"), [((0, 2), "no whole rows"), ((1, 3), "no whole rows"), ((2,), "shape must be")]
)
def test_wrong_shapes_for_flat_values(shape, message):
    with pytest.raises(ValueError, match=message):
        decode_routed_experts(b64(bytes(8)), tokens=1, shape=shape)


def test_a_shape_that_disagrees():
    with pytest.raises(ValueError, match="but shape"):
        decode_routed_experts(ROUTES, tokens=3, shape=(2, 3))
    with pytest.raises(ValueError, match="but shape"):
        decode_routed_experts(b64(bytes(16)), tokens=2, shape=(1, 1, 2))


def test_what_can_not_be_encoded():
    with pytest.raises(ValueError, match="encoding must be one of lists"):
        encode_routed_experts(ROUTES, "base85")
    with pytest.raises(ValueError, match="3 dimensions"):
        encode_routed_experts(ROUTES[0], "npy")
    with pytest.raises(ValueError, match="int32"):
        encode_routed_experts(np.array([[[2**40]]]), "int32")


def test_arrays_of_either_byte_order_become_the_same_text() -> None:
    routes = np.arange(6, dtype="<i2").reshape(3, 1, 2)
    for encoding in ("nrlre1", "int32", "object"):
        assert encode_routed_experts(routes.astype(">i2"), encoding) == encode_routed_experts(routes, encoding)


def test_a_shape_beyond_64_bits_is_not_empty() -> None:
    value = {"data": "", "dtype": "int8", "shape": [2**32, 2**32, 1], "start": 0}
    with pytest.raises(ValueError, match=r"holds 0 bytes, but int8 of shape"):
        decode_routed_experts(value, tokens=2**32)


@pytest.mark.parametrize("shape", [(1,), (1, 1, 1, 1), ()])
def test_a_shape_has_two_or_three_sizes(shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match=r"^shape is \(.*\): shape must be \(layers, top_k\)"):
        decode_routed_experts("AAAAAA==", tokens=1, shape=shape)


def test_sizes_are_plain_digits_and_a_long_text_is_shown_short() -> None:
    for sizes in ("\u0661x1x1", "1x1", "1x1x-1", "1x1x1x1", "axbxc"):
        with pytest.raises(ValueError, match="nrlre1") as caught:
            decode_routed_experts(f"nrlre1:int8:{sizes}:" + "A" * 1_000, tokens=1)
        assert len(str(caught.value)) < 200


@pytest.mark.parametrize("shape", [(0,), (2, 0), (2, 1, 0), (0, 2, 2)])
def test_lists_of_no_numbers_keep_their_rows(shape) -> None:
    routes = decode_routed_experts(np.empty(shape, np.int32).tolist(), tokens=shape[0])
    assert routes.dtype == np.int32
    assert routes.shape == (*shape, 0, 0)[:3] if shape[0] else routes.shape == (0, 0, 0)


def test_lists_of_no_numbers_are_of_three_levels_at_most() -> None:
    with pytest.raises(ValueError, match=r"has shape \(1, 1, 1, 0\): 3 dimensions"):
        decode_routed_experts([[[[]]]], tokens=1)


def test_objects_in_a_npy_file_are_not_unpickled() -> None:
    """Though it holds as many bytes as its header says."""
    count = 1 + len(pickle.dumps(np.empty(1, object))) // 8
    file = io.BytesIO()
    np.lib.format.write_array_header_1_0(file, {"descr": "|O", "fortran_order": False, "shape": (count, 1, 1)})
    file.write(pickle.dumps(np.empty(1, object)).ljust(8 * count, b"\0"))
    with pytest.raises(ValueError, match=r"no readable \.npy file: Object arrays cannot be loaded"):
        decode_routed_experts(b64(file.getvalue()), tokens=count)


@pytest.mark.parametrize("version", [(1, 0), (2, 0), (3, 0)])
def test_npy_files_of_each_version(version) -> None:
    file = io.BytesIO()
    np.lib.format.write_array(file, ROUTES, version=version)
    assert decode_routed_experts(b64(file.getvalue()), tokens=3).tolist() == ROUTES.tolist()


@pytest.mark.parametrize(
    "fields",
    [
        {"shape": None},
        {"shape": 4},
        {"shape": "112"},
        {"data": None},
        {"data": b"AAE="},
        {"dtype": None},
        {"dtype": "f4"},
    ],
)
def test_an_object_that_lacks_a_part(fields) -> None:
    whole = {"data": "AAE=", "dtype": "int8", "shape": [1, 1, 2]}
    assert decode_routed_experts(whole, tokens=1).tolist() == [[[0, 1]]]
    with pytest.raises(ValueError, match=r"^a routed_experts object needs data \(base64\), dtype"):
        decode_routed_experts({**whole, **fields}, tokens=1)
    with pytest.raises(ValueError, match=r"^a routed_experts object needs data"):
        shape_of_routes({**whole, **fields})
