"""Columns of lists of numbers as Parquet's data pages, without a level for each number.

Where neither a list nor a number in it can be missing, the repetition and definition levels are a run or two for each
list. pyarrow makes and reads a level for each number, which takes more time than all else (`benches/arrow.py`). The
formats: parquet.thrift, Encodings.md (RLE, PLAIN, BYTE_STREAM_SPLIT) and Compression.md of parquet-format 2.11.
"""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from tokenrecords.files.thrift import I32, STRUCT, Field, read_struct, read_varint, value_of, varint, written

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tokenrecords.files.thrift import Struct

PLAIN, RLE, BYTE_STREAM_SPLIT = 0, 3, 9
LEVEL: Final = 1  # of zstd: 3 saves 7 % of the bytes, and takes 1.7 times as long
PAGE: Final = 8 << 20  # bytes of numbers: zstd finds a prompt again that an earlier turn in the same page had
_DATA_PAGE: Final = 0


class Piece(NamedTuple):
    """Numbers of one list that stand in one page.

    Attributes:
        numbers: An array of shape `(n,)`.
        begins: Whether the list begins with them, rather than goes on from the page before.
    """

    numbers: Any
    begins: bool


class Page(NamedTuple):
    """A page as it is written.

    Attributes:
        header: Its header, as bytes.
        packed: Its body, compressed.
        levels: The number of its levels, which Parquet calls values: an empty list has one.
        size: Its bytes before compression, with the header.
    """

    header: bytes
    packed: pa.Buffer
    levels: int
    size: int


def write_page(pieces: list[Piece], dtype: np.dtype[Any], encoding: int) -> Page:
    """A page, compressed by zstd and with a checksum.

    Args:
        pieces: Of at least one list.
        dtype: A number's.
        encoding: `PLAIN` or `BYTE_STREAM_SPLIT`.
    """
    body = _body(pieces, dtype.newbyteorder("<"), encoding)
    packed = pa.Codec("zstd", compression_level=LEVEL).compress(body)
    levels = sum(len(piece.numbers) or 1 for piece in pieces)
    header = written(_header(body.size, packed, levels, encoding))
    return Page(header, packed, levels, len(header) + body.size)


def in_pages(arrays: Iterable[Any], dtype: np.dtype[Any], page: int = PAGE) -> Iterator[list[Piece]]:
    """A list for each array, in pages of no more than so many bytes of numbers; one that has more goes on in the next.

    Args:
        arrays: Arrays of the dtype, of shape `(n,)`.
        dtype: A number's.
        page: The most bytes.
    """
    most = page // dtype.itemsize
    held: list[Piece] = []
    room = most
    for array in arrays:
        if held and len(array) > room:
            yield held
            held, room = [], most
        start = 0
        while len(array) - start > room:  # nothing is held then
            yield [Piece(array[start : start + room], start == 0)]
            start += room
        held.append(Piece(array[start:], start == 0))
        room -= len(array) - start
    if held:
        yield held


def _body(pieces: list[Piece], dtype: np.dtype[Any], encoding: int) -> pa.Buffer:
    """The levels, each kind behind its length, and the numbers."""
    head = b"".join(len(runs).to_bytes(4, "little") + runs for runs in _levels(pieces))
    count = sum(len(piece.numbers) for piece in pieces)
    body = pa.allocate_buffer(len(head) + count * dtype.itemsize)
    out = np.frombuffer(body, np.uint8)
    out[: len(head)] = np.frombuffer(head, np.uint8)
    split = encoding == BYTE_STREAM_SPLIT
    numbers = np.empty(count, dtype) if split else out[len(head) :].view(dtype)
    np.concatenate([np.empty(0, dtype), *(piece.numbers for piece in pieces)], out=numbers)
    if split:
        out[len(head) :].reshape(dtype.itemsize, count)[:] = numbers.view(np.uint8).reshape(count, dtype.itemsize).T
    return body


def _levels(pieces: list[Piece]) -> tuple[bytes, bytes]:
    """The repetition levels, 0 where a list begins and else 1, and the definition levels, 0 for an empty list."""
    repetition, definition = bytearray(), bytearray()
    there = 0
    for numbers, begins in pieces:
        count = len(numbers)
        if begins:
            repetition += _run(1, 0)
        if count:
            repetition += _run(count - begins, 1)
        there += count
        if not count:
            definition += _run(there, 1) + _run(1, 0)
            there = 0
    return bytes(repetition), bytes(definition + _run(there, 1))


def _run(count: int, level: int) -> bytes:
    return varint(count << 1) + bytes([level]) if count else b""


def _header(size: int, packed: pa.Buffer, levels: int, encoding: int) -> Struct:
    page = {1: levels, 2: encoding, 3: RLE, 4: RLE}
    checksum = zlib.crc32(packed)
    fields: Struct = {
        1: Field(I32, _DATA_PAGE),
        2: Field(I32, size),
        3: Field(I32, packed.size),
        4: Field(I32, checksum - (checksum >> 31 << 32)),
        5: Field(STRUCT, {id_: Field(I32, value) for id_, value in page.items()}),
    }
    return fields


def read_lists(pages: pa.Buffer, rows: int, type_: pa.ListType) -> pa.ListArray:
    """The lists of a column of one row group, from its pages.

    Args:
        pages: Their bytes, compressed by zstd.
        rows: The number of lists.
        type_: Lists of numbers of fixed width, where nothing can be missing.

    Raises:
        ValueError: The pages are damaged, or of a kind that `write_page` does not write.
        OSError: They can't be decompressed.
    """
    width = type_.value_type.bit_width // 8
    found = _pages(pages)
    most = sum(min(page.levels, page.size // width) for page in found)
    if most > np.iinfo(np.int32).max:
        raise ValueError(f"{most:,} numbers may be there: they are too many for one array")
    memory = pa.allocate_buffer(most * width)
    numbers = np.frombuffer(memory, np.uint8).reshape(most, width)
    starts = []
    begun = count = 0
    ended_empty = True  # nothing that a page could go on with
    for page in found:
        body = page.unpacked()
        begins, is_empty, head = _read_levels(body, page.levels, rows - begun)
        if ended_empty and begins[:1].tolist() != [0]:
            raise ValueError("a page goes on with a list that did not begin")
        ended_empty = is_empty[-1:].tolist() == [page.levels - 1]
        starts.append(begins - np.searchsorted(is_empty, begins) + count)
        end = count + page.levels - len(is_empty)
        _read_numbers(body.slice(head), page.encoding, numbers[count:end])
        begun += len(begins)
        count = end
    if begun != rows:
        raise ValueError(f"{begun:,} lists are in the pages, the footer says {rows:,}")
    offsets = np.concatenate([*starts, [count]]).astype(np.int32)
    values = pa.Array.from_buffers(type_.value_type, count, [None, memory])
    return pa.ListArray.from_arrays(pa.array(offsets), values, type=type_)


class _Packed(NamedTuple):
    packed: pa.Buffer
    size: int
    levels: int
    encoding: int
    checksum: int | None

    def unpacked(self) -> pa.Buffer:
        """The body."""
        if self.checksum is not None and zlib.crc32(self.packed) != self.checksum & 0xFFFF_FFFF:
            raise ValueError("the checksum of a page is another one")
        return pa.Codec("zstd").decompress(self.packed, self.size)


def _pages(pages: pa.Buffer) -> list[_Packed]:
    data = memoryview(pages).cast("B")
    found = []
    at = 0
    while at < len(data):
        header, at = read_struct(data, at)
        kind, size, length = (value_of(header, id_, I32) for id_ in (1, 2, 3))
        described = value_of(header, 5, STRUCT)
        levels, encoding, *of_levels = (value_of(described, id_, I32) for id_ in (1, 2, 3, 4))
        if kind != _DATA_PAGE or of_levels != [RLE, RLE]:
            raise ValueError(f"a page of kind {kind}, its levels of the encodings {of_levels}")
        if not 0 <= length <= len(data) - at or size < 0 or levels < 1:
            raise ValueError(f"a page of {length:,} bytes and {levels:,} levels at byte {at:,} of {len(data):,}")
        checksum = value_of(header, 4, I32) if 4 in header else None
        found.append(_Packed(pages.slice(at, length), size, levels, encoding, checksum))
        at += length
    return found


def _read_levels(body: pa.Buffer, levels: int, rows: int) -> tuple[Any, Any, int]:
    """At which levels lists begin, at which ones there is an empty list, and the bytes that levels take."""
    data = memoryview(body).cast("B")
    zeros = []
    head = 0
    for _ in range(2):
        end = head + 4 + int.from_bytes(data[head : head + 4], "little")
        if end > len(data):
            raise ValueError("the levels end after the page")
        zeros.append(_zeros(data[head + 4 : end], levels, rows))
        head = end
    begins, is_empty = zeros
    # An empty list begins, and what follows it begins another one.
    ends = np.append(begins, levels)
    if not (np.isin(is_empty, begins).all() and np.isin(is_empty + 1, ends).all()):
        raise ValueError("an empty list goes on")
    return begins, is_empty, head


def _zeros(data: memoryview, levels: int, most: int) -> Any:
    """The positions of the levels that are 0, of which there are no more than `most`, in runs of 0 and 1."""
    zeros: list[int] = []
    at = position = 0
    while at < len(data):
        head, at = read_varint(data, at)
        level = data[at]
        at += 1
        count = head >> 1
        if head & 1 or level > 1:
            raise ValueError("levels that are no runs of 0 and 1")
        if count > levels - position:
            raise ValueError(f"more than {levels:,} levels")
        if not level:
            if count > most - len(zeros):
                raise ValueError(f"more than {most:,} lists")
            zeros.extend(range(position, position + count))
        position += count
    if position < levels:
        raise ValueError(f"{position:,} levels, the page says {levels:,}")
    return np.array(zeros, np.int64)


def _read_numbers(body: pa.Buffer, encoding: int, out: Any) -> None:
    """Write the bytes of each number to a row of `out`."""
    count, width = out.shape
    if body.size != count * width:
        raise ValueError(f"{body.size:,} bytes of numbers: {count:,} of {width} bytes are needed")
    raw = np.frombuffer(body, np.uint8)
    if encoding == PLAIN:
        out.reshape(-1)[:] = raw
    elif encoding == BYTE_STREAM_SPLIT:
        for place, part in enumerate(raw.reshape(width, count)):
            out[:, place] = part
    else:
        raise ValueError(f"numbers of encoding {encoding}")
