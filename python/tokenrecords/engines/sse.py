"""The chunks of a stream, from whatever form it comes in."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from tokenrecords.engines.payload import plain

_DONE: Final = object()
_SKIPPED: Final = ("event", "id", "retry")


def parsed(chunks: Iterable[Any]) -> Iterator[Mapping[str, Any]]:
    """The chunks of dicts, models, lines of the SSE stream or the stream's text, up to `data: [DONE]`.

    Raises:
        ValueError: A line is neither SSE nor JSON.
        TypeError: A chunk is of another type.
    """
    for item in [chunks] if isinstance(chunks, str | bytes | bytearray | Mapping) else chunks:
        if isinstance(item, str | bytes | bytearray):
            text = item if isinstance(item, str) else bytes(item).decode()
            # Not splitlines: JSON may hold U+2028 and its like unescaped, and SSE knows CR and LF alone.
            for line in text.replace("\r", "\n").split("\n"):
                chunk = _from_line(line)
                if chunk is _DONE:
                    return
                if chunk is not None:
                    yield chunk
        else:
            chunk = plain(item)
            if not isinstance(chunk, Mapping):
                raise TypeError(f"a chunk must be a mapping, a model or a line, got {type(chunk).__name__}")
            yield chunk


def _from_line(line: str) -> Any:
    name, colon, data = line.strip().partition(":")
    if name.startswith("{"):
        data = line
    elif not name or (colon and name in _SKIPPED):
        return None
    elif name != "data":
        raise ValueError(f"not a line of an SSE stream: {line[:80]!r}")
    if data.strip() == "[DONE]":
        return _DONE
    try:
        chunk = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"a line of the stream is not JSON ({error}): {line[:80]!r}") from None
    if not isinstance(chunk, dict):
        raise ValueError(f"a line of the stream holds no chunk: {line[:80]!r}")
    return chunk
