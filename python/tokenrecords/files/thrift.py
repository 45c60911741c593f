"""Thrift's compact protocol, in which Parquet writes its footers and page headers: structs as trees of their fields.

The format: thrift-compact-protocol.md of Apache Thrift. Sets, maps and UUIDs, which Parquet has not, are refused.
"""

from __future__ import annotations

import struct
from typing import Any, Final, NamedTuple, TypeAlias

TRUE, FALSE, BYTE, I16, I32, I64, DOUBLE, BINARY, LIST = range(1, 10)
STRUCT: Final = 12
_INTS: Final = (I16, I32, I64)
_DEEPEST: Final = 16  # Parquet's own structs go six deep


class Field(NamedTuple):
    """A field, or the elements of a list.

    Attributes:
        type: One of the types above; of a list, that of its elements.
        value: An int, float, bytes, a `Struct`, for `LIST` a `Field` that holds a list, for `TRUE` and `FALSE` None.
    """

    type: int
    value: Any


Struct: TypeAlias = dict[int, Field]


def read_struct(data: bytes | memoryview, at: int = 0) -> tuple[Struct, int]:
    """The struct that begins at a byte, and where it ends.

    Raises:
        ValueError: There is no such struct.

    >>> read_struct(bytes([0x15, 3, 0x18, 1, 65, 0, 7]))
    ({1: Field(type=5, value=-2), 2: Field(type=8, value=b'A')}, 6)
    """
    reader = _Reader(data, at)
    try:
        return reader.struct(), reader.at
    except (IndexError, struct.error):
        raise ValueError(f"the struct at byte {at} is cut off") from None


def value_of(fields: Struct, id_: int, type_: int) -> Any:
    """The value of a field of this type.

    Raises:
        ValueError: There is none.
    """
    field = fields.get(id_)
    if field is None or field.type != type_:
        raise ValueError(f"there is no field {id_} of type {type_}")
    return field.value


def elements_of(fields: Struct, id_: int, type_: int) -> list[Any]:
    """The elements of a list of this type; raises as `value_of`."""
    of, elements = value_of(fields, id_, LIST)
    if of != type_:
        raise ValueError(f"field {id_} is a list of type {of}: type {type_} is needed")
    return list(elements)


class _Reader:
    def __init__(self, data: bytes | memoryview, at: int) -> None:
        self.data = data
        self.at = at
        self._depth = 0

    def _byte(self) -> int:
        byte = self.data[self.at]
        self.at += 1
        return byte

    def _varint(self) -> int:
        value, self.at = read_varint(self.data, self.at)
        return value

    def _int(self) -> int:
        coded = self.data[self.at]
        if coded < 0x80:  # as most are
            self.at += 1
        else:
            coded = self._varint()
        return coded >> 1 ^ -(coded & 1)

    def struct(self) -> Struct:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise ValueError(f"structs nest more than {_DEEPEST} deep")
        fields: Struct = {}
        last = 0
        while head := self._byte():
            last = last + (head >> 4) if head >> 4 else self._int()
            fields[last] = Field(head & 0x0F, self._value(head & 0x0F))
        self._depth -= 1
        return fields

    def _value(self, type_: int) -> Any:
        if type_ in _INTS:
            return self._int()
        if type_ in (TRUE, FALSE):
            return None
        if type_ == BYTE:
            return self._byte()
        if type_ == DOUBLE:
            (number,) = struct.unpack_from("<d", self.data, self.at)
            self.at += 8
            return number
        if type_ == BINARY:
            length = self._varint()
            if length > len(self.data) - self.at:
                raise ValueError(f"{length:,} bytes are said to follow byte {self.at}: there are fewer")
            self.at += length
            return bytes(self.data[self.at - length : self.at])
        if type_ == LIST:
            return self._list()
        if type_ == STRUCT:
            return self.struct()
        raise ValueError(f"the type before byte {self.at} is {type_}: Parquet has no such fields")

    def _list(self) -> Field:
        head = self._byte()
        type_, length = head & 0x0F, head >> 4
        if length == 0x0F:
            length = self._varint()
        if length > len(self.data) - self.at:  # each takes a byte at least
            raise ValueError(f"{length:,} elements are said to follow byte {self.at}: there are fewer bytes")
        if type_ in (TRUE, FALSE):  # in lists they are bytes
            return Field(type_, [self._byte() for _ in range(length)])
        return Field(type_, [self._value(type_) for _ in range(length)])


def read_varint(data: bytes | memoryview, at: int) -> tuple[int, int]:
    """The number that `varint` wrote at a byte, and where it ends.

    Raises:
        IndexError: The bytes end before it does.
        ValueError: It has more than 64 bits.
    """
    value = shift = 0
    while (byte := data[at]) > 0x7F:
        if shift == 63:
            raise ValueError(f"the number at byte {at - 9} does not end")
        value |= (byte & 0x7F) << shift
        shift += 7
        at += 1
    return value | byte << shift, at + 1


def written(fields: Struct) -> bytes:
    """The bytes of a struct.

    >>> read_struct(written({4: Field(I64, -1), 30: Field(TRUE, None)}))
    ({4: Field(type=6, value=-1), 30: Field(type=1, value=None)}, 5)
    """
    out = bytearray()
    _write_struct(out, fields)
    return bytes(out)


def _write_struct(out: bytearray, fields: Struct) -> None:
    last = 0
    for id_, field in sorted(fields.items()):
        if 0 < id_ - last <= 0x0F:
            out.append(id_ - last << 4 | field.type)
        else:
            out.append(field.type)
            _write_int(out, id_)
        _write(out, field)
        last = id_
    out.append(0)


def _write(out: bytearray, field: Field) -> None:
    type_, value = field
    if type_ in _INTS:
        _write_int(out, value)
    elif type_ == BYTE:
        out.append(value)
    elif type_ == DOUBLE:
        out += struct.pack("<d", value)
    elif type_ == BINARY:
        out += varint(len(value)) + value
    elif type_ == LIST:
        _write_list(out, value)
    elif type_ == STRUCT:
        _write_struct(out, value)


def _write_list(out: bytearray, elements: Field) -> None:
    type_, values = elements
    if len(values) < 0x0F:
        out.append(len(values) << 4 | type_)
    else:
        out.append(0xF0 | type_)
        out += varint(len(values))
    if type_ in (TRUE, FALSE):
        out += bytes(values)
        return
    for value in values:
        _write(out, Field(type_, value))


def _write_int(out: bytearray, value: int) -> None:
    coded = value << 1 ^ value >> 63
    if coded < 0x80:
        out.append(coded)
    else:
        out += varint(coded)


def varint(value: int) -> bytes:
    """A number from 0 on in as many bytes as it needs, seven bits in each, the lowest first.

    >>> varint(300).hex()
    'ac02'
    """
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)
