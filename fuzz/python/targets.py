"""What the Python layer makes of strangers' bytes: as the slow way reads them, and no error but those that it says."""

from __future__ import annotations

import io
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
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


TARGETS = {"read_response": of_response, "merge_stream": of_stream, "read_jsonl": of_line, "routed_experts": of_routes}
