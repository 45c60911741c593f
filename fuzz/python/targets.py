"""What the Python layer makes of strangers' bytes: as the slow way reads them, and no error but those that it says."""

from __future__ import annotations

import io
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from pydantic import BaseModel, ValidationError
from support.streams import choices_of
from support.twin import Twin, exact
from tokenrecords import (
    RecordError,
    TokenEntry,
    decode_routed_experts,
    detect_dialect,
    encode_routed_experts,
    merge_stream,
    read_jsonl,
)
from tokenrecords.engines import body, sse, stream
from tokenrecords.files.list_pages import BYTE_STREAM_SPLIT, PLAIN, RLE, read_lists
from tokenrecords.files.thrift import I32, STRUCT, Field, read_varint, written

if TYPE_CHECKING:
    from collections.abc import Callable

warnings.simplefilter("ignore")  # a torn last line is told by one


def outcome(read: Callable[[], Any]) -> str:
    """What a reader gives, or how it refuses; any other error is a fault of ours."""
    try:
        return repr(read())
    except (ValueError, TypeError) as refused:
        return repr(refused)


def of_response(data: bytes) -> None:
    """A body is read as its parsed payload is."""
    assert outcome(lambda: choices_of(data)) == outcome(lambda: choices_of(body.parsed(data)))
    assert outcome(lambda: detect_dialect(data)) == outcome(lambda: detect_dialect(body.parsed(data)))


def of_stream(data: bytes) -> None:
    """The bytes of a stream are merged as its chunks are, one by one."""

    def chunk_by_chunk() -> Any:
        return stream._merge(sse.parsed(sse.parts(data)), None, check_ids=True)  # noqa: SLF001

    assert outcome(lambda: merge_stream(data)) == outcome(chunk_by_chunk)


def of_line(data: bytes) -> None:
    """A line is read as pydantic reads it."""
    if b"\n" in data or not data.strip() or data.startswith(b"\xef\xbb\xbf"):
        outcome(lambda: read_jsonl(io.BytesIO(data)))
        return
    wanted = _by(Twin, data)
    assert _by(TokenEntry, data) == wanted
    for options in ({}, {"arrays": False}):
        try:
            [found] = map(exact, read_jsonl(data + b"\n", **options))
        except RecordError:
            found = None
        assert found == wanted


def _by(model: type[BaseModel], line: bytes) -> str | None:
    try:
        return exact(model.model_validate_json(line))
    except ValidationError:
        return None


def of_routes(data: bytes) -> None:
    """Routes are refused, or have the shape that was asked for and come back from their encoding."""
    if len(data) < 2:
        return
    tokens, rows = data[0] % 8, ("tokens", "tokens-1")[data[1] % 2]
    shape = (2, data[1] % 4 + 1) if data[1] & 16 else None
    try:
        routes = decode_routed_experts(data[2:].decode("latin-1"), tokens=tokens, rows=rows, shape=shape)
    except ValueError:
        return
    assert len(routes) == tokens - (rows == "tokens-1")
    assert shape is None or routes.shape[1:] == shape
    if routes.dtype in (np.int8, np.int16, np.int32):
        again = decode_routed_experts(encode_routed_experts(routes, "nrlre1"), tokens=len(routes))
        assert again.dtype == routes.dtype
        assert np.array_equal(again, routes)


def of_pages(data: bytes) -> None:
    """The body of a page of lists is refused, or read as its levels say one by one."""
    if len(data) < 3:
        return
    rows, levels, encoding, body = data[0] % 8, data[1] % 64, (PLAIN, BYTE_STREAM_SPLIT)[data[2] % 2], data[3:]
    packed = pa.Codec("zstd").compress(body, asbytes=True)
    page = {1: Field(I32, levels), 2: Field(I32, encoding), 3: Field(I32, RLE), 4: Field(I32, RLE)}
    sizes = {1: Field(I32, 0), 2: Field(I32, len(body)), 3: Field(I32, len(packed))}
    header = written({**sizes, 5: Field(STRUCT, page)})
    type_ = pa.list_(pa.field("element", pa.int32(), nullable=False))
    try:
        found = read_lists(pa.py_buffer(header + packed), rows, type_)
    except (ValueError, IndexError):
        return
    at, by_level = 0, []
    for _ in range(2):
        end = at + 4 + int.from_bytes(body[at : at + 4], "little")
        at, level = at + 4, []
        while at < end:
            head, at = read_varint(body, at)
            level += [body[at]] * (head >> 1)
            at += 1
        by_level.append(level)
    numbers = np.frombuffer(body[end:], np.uint8)
    if encoding == BYTE_STREAM_SPLIT:
        numbers = numbers.reshape(4, -1).T
    left = iter(np.ascontiguousarray(numbers).reshape(-1).view("<i4").tolist())
    lists: list[list[int]] = []
    for begins, there in zip(*by_level, strict=True):
        if begins == 0:
            lists.append([])
        if there:
            lists[-1].append(next(left))
    assert (found.to_pylist(), next(left, None)) == (lists, None)
    assert (len(lists), len(by_level[0])) == (rows, levels)


TARGETS = {
    "read_response": of_response,
    "merge_stream": of_stream,
    "read_jsonl": of_line,
    "routed_experts": of_routes,
    "list_pages": of_pages,
}
