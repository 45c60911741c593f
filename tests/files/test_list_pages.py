"""Lists of numbers as Parquet's pages: the same lists come back, and every damage is refused or changes nothing."""

import random
import re
import zlib

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenrecords.files.list_pages import BYTE_STREAM_SPLIT, PAGE, PLAIN, in_pages, read_lists, write_page
from tokenrecords.files.thrift import BINARY, I32, STRUCT, Field, read_struct, written

LENGTHS = st.lists(st.sampled_from([0, 0, 1, 2, 7, 8, 9, 63, 64, 65, 200]), max_size=12)


def list_type(dtype):
    return pa.list_(pa.field("element", pa.from_numpy_dtype(dtype), nullable=False))


def write_lists(arrays, dtype, encoding, page=PAGE):
    return [write_page(pieces, dtype, encoding) for pieces in in_pages(arrays, dtype, page)]


def joined(pages):
    return pa.py_buffer(b"".join(page.header + bytes(page.packed) for page in pages))


def pages_of(pages):
    """The fields of each header, and the compressed body."""
    found = []
    for page in pages:
        fields, end = read_struct(page.header)
        assert end == len(page.header)
        found.append((fields, bytes(page.packed)))
    return found


def rebuilt(pages):
    return pa.py_buffer(b"".join(written(fields) + body for fields, body in pages))


def numbers(fields):
    return [fields[5].value[id_].value for id_ in (1, 2, 3, 4)]


@pytest.mark.parametrize("encoding", [PLAIN, BYTE_STREAM_SPLIT])
@pytest.mark.parametrize("dtype", ["int32", "int64", "uint64", "float64"])
@given(lengths=LENGTHS, page=st.sampled_from([8, 16, 56, 64, 520, 1 << 20]), seed=st.integers(0, 9))
def test_what_is_written_is_read_back(dtype, encoding, lengths, page, seed):
    dtype = np.dtype(dtype)
    draw = np.random.default_rng(seed)
    arrays = [draw.integers(0, 256, length * dtype.itemsize, np.uint8).view(dtype) for length in lengths]
    chunk = write_lists(arrays, dtype, encoding, page)
    lists = read_lists(joined(chunk), len(arrays), list_type(dtype))
    lists.validate(full=True)
    assert lists.type == list_type(dtype)
    assert lists.offsets.to_pylist() == np.cumsum([0, *lengths]).tolist()
    together = np.concatenate([np.empty(0, dtype), *arrays])
    assert lists.values.to_numpy(zero_copy_only=True).tobytes() == together.tobytes()
    assert sum(each.levels for each in chunk) == sum(length or 1 for length in lengths)


def test_the_bytes_of_a_page():
    arrays = [np.array([1, 2, 3], np.int32), np.array([], np.int32), np.array([4], np.int32)]
    ((fields, body),) = pages_of(write_lists(arrays, np.dtype("int32"), PLAIN))
    page = pa.Codec("zstd").decompress(body, fields[2].value).to_pybytes()
    levels = bytes.fromhex("0200 0401 0200 0200")  # one 0, two 1, one 0, one 0
    there = bytes.fromhex("0601 0200 0201")  # three 1, one 0, one 1
    assert page == b"\x08\0\0\0" + levels + b"\x06\0\0\0" + there + np.array([1, 2, 3, 4], "<i4").tobytes()
    assert numbers(fields) == [5, PLAIN, 3, 3]
    assert fields[3].value == len(body)
    assert fields[4].value & 0xFFFFFFFF == zlib.crc32(body)


def test_the_streams_of_a_page():
    arrays = [np.array([1.5, -2.0]), np.array([0.1])]
    ((fields, body),) = pages_of(write_lists(arrays, np.dtype("float64"), BYTE_STREAM_SPLIT))
    page = pa.Codec("zstd").decompress(body, fields[2].value).to_pybytes()
    raw = np.array([1.5, -2.0, 0.1], "<f8").tobytes()
    assert page[-24:] == b"".join(raw[place::8] for place in range(8))
    assert numbers(fields)[1] == BYTE_STREAM_SPLIT


def test_lists_stay_whole_where_a_page_has_room_and_go_on_where_not():
    arrays = [np.arange(length, dtype=np.int32) for length in (1, 3, 3, 2, 6, 9, 0)]
    found = pages_of(write_lists(arrays, np.dtype("int32"), PLAIN, 4 * 4))
    assert [numbers(fields)[0] for fields, _ in found] == [4, 3, 2, 4, 2, 4, 4, 2]
    sizes = [fields[2].value + len(written(fields)) for fields, _ in found]
    assert sizes == [page.size for page in write_lists(arrays, np.dtype("int32"), PLAIN, 4 * 4)]


def test_no_lists():
    chunk = write_lists([], np.dtype("int32"), PLAIN)
    assert chunk == []
    assert read_lists(joined(chunk), 0, list_type("int32")).to_pylist() == []


def damaged(change, arrays=((1, 2), (), (3,)), page=1 << 20, repack=False):
    """The pages of the lists, the fields and the body of the first one changed by a function."""
    pages = pages_of(write_lists([np.array(a, np.int32) for a in arrays], np.dtype("int32"), PLAIN, page))
    fields, body = pages[0]
    if repack:
        codec = pa.Codec("zstd")
        plain = change(codec.decompress(body, fields[2].value).to_pybytes())
        body = codec.compress(plain, asbytes=True)
        fields |= {2: Field(I32, len(plain)), 3: Field(I32, len(body))}
        del fields[4]
    else:
        fields, body = change(fields, body)
    return rebuilt([(fields, body), *pages[1:]])


def with_field(id_, field, inner=None):
    def change(fields, body):
        if inner is None:
            return {**fields, id_: field}, body
        return {**fields, id_: Field(STRUCT, {**fields[id_].value, inner: field})}, body

    return change


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (with_field(1, Field(I32, 2)), "a page of kind 2, its levels of the encodings [3, 3]"),
        (with_field(1, Field(BINARY, b"")), "there is no field 1 of type 5"),
        (with_field(5, Field(I32, 0)), "there is no field 5 of type 12"),
        (with_field(2, Field(I32, -1)), "a page of "),
        (with_field(3, Field(I32, 10_000)), "a page of 10,000 bytes and 4 levels at byte "),
        (with_field(3, Field(I32, -1)), "a page of -1 bytes"),
        (with_field(4, Field(I32, 7)), "the checksum of a page is another one"),
        (with_field(4, Field(BINARY, b"")), "there is no field 4 of type 5"),
        (with_field(5, Field(I32, 0), 1), "a page of "),
        (with_field(5, Field(I32, 5), 1), "4 levels, the page says 5"),
        (with_field(5, Field(I32, 3), 1), "more than 3 levels"),
        (with_field(5, Field(I32, 8), 2), "numbers of encoding 8"),
        (with_field(5, Field(I32, 4), 3), "its levels of the encodings [4, 3]"),
        (with_field(5, Field(I32, 4), 4), "its levels of the encodings [3, 4]"),
    ],
)
def test_a_header_that_is_wrong(change, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        read_lists(damaged(change), 3, list_type("int32"))


def test_more_numbers_than_an_array_can_have():
    ((fields, body),) = pages_of(write_lists([np.array([1], np.int32)], np.dtype("int32"), PLAIN))
    most = Field(I32, 2**31 - 1)
    lying = {**fields, 2: most, 5: Field(STRUCT, {**fields[5].value, 1: most})}
    with pytest.raises(ValueError, match="2,684,354,555 numbers may be there: they are too many for one array"):
        read_lists(rebuilt([(lying, body)] * 5), 1, list_type("int32"))


def body_of(repetition, definition, ids):
    parts = [bytes.fromhex(runs) for runs in (repetition, definition)]
    return b"".join(len(part).to_bytes(4, "little") + part for part in parts) + np.array(ids, "<i4").tobytes()


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (body_of("0200 0201 0200 0200", "0401 0200 0201", [1, 2]), "8 bytes of numbers: 3 of 4 bytes are needed"),
        (body_of("0200 0201 0200 0200", "0401 0200 0201", [1, 2, 3, 4]), "16 bytes of numbers: 3 of 4 bytes"),
        (body_of("0300 0201 0200 0200", "0401 0200 0201", [1, 2, 3]), "levels that are no runs of 0 and 1"),
        (body_of("0202 0201 0200 0200", "0401 0200 0201", [1, 2, 3]), "levels that are no runs of 0 and 1"),
        (body_of("0200 0200 0200 0200", "0401 0200 0201", [1, 2, 3]), "more than 3 lists"),
        (body_of("feffffff0f00", "0401 0200 0201", [1, 2, 3]), "more than 4 levels"),
        (body_of("0200 0401 0200", "0401 0200 0201", [1, 2, 3]), "an empty list goes on"),
        (body_of("0200 0201 0200 0201", "0401 0200 0201", [1, 2, 3]), "an empty list goes on"),
        (body_of("0201 0201 0200 0200", "0401 0200 0201", [1, 2, 3]), "goes on with a list that did not begin"),
        (body_of("0200 0201 0400", "0401 0200 0201", [1, 2, 3])[:9], "the levels end after the page"),
    ],
)
def test_a_body_that_is_wrong(body, message):
    pages = damaged(lambda _: body, repack=True)
    with pytest.raises(ValueError, match=re.escape(message)):
        read_lists(pages, 3, list_type("int32"))


def test_other_runs_of_the_same_lists():
    pages = damaged(lambda _: body_of("0200 0201 0400", "0201 0201 0200 0201", [1, 2, 3]), repack=True)
    assert read_lists(pages, 3, list_type("int32")).to_pylist() == [[1, 2], [], [3]]


@pytest.mark.parametrize("rows", [2, 4])
def test_another_number_of_lists(rows):
    pages = joined(write_lists([np.array(a, np.int32) for a in ([1, 2], [], [3])], np.dtype("int32"), PLAIN))
    with pytest.raises(ValueError, match=r"more than 2 lists|3 lists are in the pages, the footer says 4"):
        read_lists(pages, rows, list_type("int32"))


@pytest.mark.parametrize("arrays", [[[], [1]], [[1, 2, 3]]], ids=str)
def test_a_page_that_goes_on_needs_a_list_to_go_on_with(arrays):
    fields, body = pages_of(
        write_lists([np.array(a, np.int32) for a in [*arrays, [5] * 9]], np.dtype("int32"), PLAIN, 16)
    )[-1]
    empty = pages_of(write_lists([np.array([], np.int32)], np.dtype("int32"), PLAIN))
    with pytest.raises(ValueError, match="a page goes on with a list that did not begin"):
        read_lists(rebuilt([*empty, (fields, body)]), 2, list_type("int32"))


def test_every_flipped_bit_is_refused_or_changes_nothing():
    draw = random.Random(1)
    lists = [[draw.randrange(2**31) for _ in range(length)] for length in (5, 0, 12, 1)]
    sound = bytes(joined(write_lists([np.array(a, np.int32) for a in lists], np.dtype("int32"), PLAIN, 40)))
    refused = 0
    for place in range(len(sound) * 8):
        flipped = bytearray(sound)
        flipped[place // 8] ^= 1 << place % 8
        try:
            found = read_lists(pa.py_buffer(bytes(flipped)), len(lists), list_type("int32"))
        except (ValueError, IndexError, OSError):
            refused += 1
        else:
            assert found.to_pylist() == lists, place
    assert refused > len(sound) * 7
