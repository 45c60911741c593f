"""Thrift's compact protocol: what pyarrow writes is read and written again byte for byte, a cut is refused."""

import io
import re

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenrecords.files.thrift import (
    BINARY,
    BYTE,
    DOUBLE,
    FALSE,
    I16,
    I32,
    I64,
    LIST,
    STRUCT,
    TRUE,
    Field,
    elements_of,
    read_struct,
    read_varint,
    value_of,
    varint,
    written,
)


def footer(**options):
    table = pa.table({"n": [1, None, 3], "t": ["a", "b", "a"], "l": [[1.5], [], None], "s": [{"x": True}] * 3})
    file = io.BytesIO()
    pq.write_table(table, file, **options)
    data = file.getvalue()
    return data[-8 - int.from_bytes(data[-8:-4], "little") : -8]


@pytest.mark.parametrize(
    "options", [{}, {"use_dictionary": False}, {"write_statistics": False, "version": "1.0"}], ids=str
)
def test_a_footer_is_written_as_it_was_read(options):
    data = footer(**options)
    fields, end = read_struct(data)
    assert end == len(data)
    assert written(fields) == data
    assert fields[3] == Field(I64, 3)  # num_rows
    assert {field.type for field in fields.values()} >= {I32, I64, LIST, BINARY}


def test_known_bytes():
    fields = {
        1: Field(TRUE, None),
        2: Field(FALSE, None),
        3: Field(BYTE, 200),
        4: Field(I16, -1),
        5: Field(I32, 2**31 - 1),
        6: Field(I64, -(2**63)),
        7: Field(DOUBLE, 1.5),
        8: Field(BINARY, b"ab"),
        9: Field(LIST, Field(I32, [0, -64, 64])),
        10: Field(STRUCT, {1: Field(BINARY, b"")}),
        11: Field(LIST, Field(TRUE, [1, 2])),
        40: Field(LIST, Field(BYTE, list(range(15)))),
        -5: Field(I32, 0),
    }
    data = bytes.fromhex(
        "05 09 00"  # below zero: the id itself
        "61 12 13c8 1401 15feffffff0f 16ffffffffffffffffff01 17000000000000f83f 18026162"
        "1935007f8001 1c180000 19210102"
        "0950f30f000102030405060708090a0b0c0d0e 00"
    )
    assert written(fields) == data
    assert read_struct(data) == (fields, len(data))
    assert read_struct(b"xx" + data + b"yy", 2) == (fields, len(data) + 2)


@pytest.mark.parametrize(("step", "head"), [(15, "f6"), (16, "0620")])
def test_ids_that_lie_far_apart(step, head):
    fields = {step: Field(I64, 0), 2 * step: Field(I64, 0)}
    assert written(fields).hex().startswith(head + "00")
    assert read_struct(written(fields))[0] == fields


def test_structs_within_structs():
    assert read_struct(b"\x1c" * 15 + b"\x00" * 16)[1] == 31
    with pytest.raises(ValueError, match="structs nest more than 16 deep"):
        read_struct(b"\x1c" * 16 + b"\x00" * 17)


def test_a_field_of_another_type_is_refused():
    fields = {1: Field(I32, 5), 2: Field(LIST, Field(BINARY, [b"a"]))}
    assert (value_of(fields, 1, I32), elements_of(fields, 2, BINARY)) == (5, [b"a"])
    for id_, type_ in ((1, I64), (3, I32)):
        with pytest.raises(ValueError, match=f"there is no field {id_} of type {type_}"):
            value_of(fields, id_, type_)
    with pytest.raises(ValueError, match="there is no field 1 of type 9"):
        elements_of(fields, 1, I32)
    with pytest.raises(ValueError, match="field 2 is a list of type 8: type 12 is needed"):
        elements_of(fields, 2, STRUCT)


@given(st.integers(0, 2**64 - 1))
def test_numbers(number):
    data = varint(number)
    assert read_varint(b"\xff" + data + b"\xff", 1) == (number, len(data) + 1)
    assert len(data) == max(1, -(-number.bit_length() // 7))


def test_every_cut_is_refused():
    data = footer()
    for end in range(len(data)):
        with pytest.raises(ValueError, match=r"is cut off|there are fewer"):
            read_struct(data[:end])


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"\x15" + b"\x80" * 10 + b"\x00\x00", "the number at byte 1 does not end"),
        (b"\x1a\x00", "the type before byte 1 is 10: Parquet has no such fields"),
        (b"\x18\x7fab", "127 bytes are said to follow byte 2: there are fewer"),
        (b"\x19\xf5\xff\x7f\x00", "16,383 elements are said to follow byte 4: there are fewer bytes"),
        (b"\x17\x00\x00", "the struct at byte 0 is cut off"),
    ],
)
def test_what_is_not_of_parquet_is_refused(data, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        read_struct(data)
