"""The chunks of a stream, from whatever form it comes in."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, TypeAlias

from tokenrecords._core import SseEvents
from tokenrecords.engines.payload import plain

Chunk: TypeAlias = Mapping[str, Any]

_TEXT: Final = (str, bytes, bytearray, memoryview)
DONE: Final = b"[DONE]"  # the data of the event that ends a stream
_SHOWN: Final = 80


def parts(chunks: Any) -> Iterator[SseEvents | Chunk]:
    """The chunks of dicts and models as mappings, lines of the SSE stream that follow each other as events.

    Raises:
        TypeError: A chunk is of another type.
    """
    events: SseEvents | None = None
    for item in [chunks] if isinstance(chunks, (*_TEXT, Mapping)) else chunks:
        if isinstance(item, _TEXT):
            events = SseEvents() if events is None else events
            events.feed(item.encode(errors="surrogatepass") if isinstance(item, str) else bytes(item))
            events.feed(b"\n")  # a line has its end or is one
            if events.is_done:
                break
            continue
        if events is not None:
            yield _ended(events)
            events = None
        chunk = plain(item)
        if not isinstance(chunk, Mapping):
            raise TypeError(f"a chunk must be a mapping, a model or a line, got {type(chunk).__name__}")
        yield chunk
    if events is not None:
        yield _ended(events)


def _ended(events: SseEvents) -> SseEvents:
    events.end()
    return events


def parsed(chunks: Iterable[SseEvents | Chunk]) -> Iterator[Chunk]:
    """The chunks of what `parts` gives, up to `data: [DONE]`.

    Raises:
        ValueError: A line is neither SSE nor JSON.
    """
    for part in chunks:
        if isinstance(part, Mapping):
            yield part
            continue
        for kind, _, data in map(part.__getitem__, range(len(part))):
            if data == DONE and kind == "data":
                return
            yield chunk_of(kind, data)


def chunk_of(kind: str, data: bytes) -> Chunk:
    """The chunk of an event; an error has the words of the server under `error`.

    Raises:
        ValueError: It holds none.
    """
    # Half a character that was cut costs no tokens.
    try:
        text = data.decode(errors="surrogatepass")
    except UnicodeDecodeError as error:
        raise ValueError(f"a line of the stream is not UTF-8 ({error}): {data[:_SHOWN]!r}") from None
    if kind == "unknown":
        raise ValueError(f"not a line of an SSE stream: {text[:_SHOWN]!r}")
    if kind == "error":
        return {"error": _words(text)}
    try:
        chunk = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"a line of the stream is not JSON ({error}): {text[:_SHOWN]!r}") from None
    if not isinstance(chunk, dict):
        raise ValueError(f"a line of the stream holds no chunk: {text[:_SHOWN]!r}")
    return chunk


def _words(data: str) -> Any:
    """What an error says: an object, or a text."""
    try:
        said = json.loads(data)
    except (ValueError, RecursionError):
        return data
    # An error that holds null, or is null, is one as well.
    if isinstance(said, dict):
        return said if said.get("error") is None else said["error"]
    return data if said is None else said
