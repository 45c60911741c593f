"""The chunks of a stream, from whatever form it comes in."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from tokenrecords.engines.payload import plain

_SKIPPED: Final = ("id", "retry")


def parsed(chunks: Iterable[Any]) -> Iterator[Mapping[str, Any]]:
    """The chunks of dicts, models, lines of the SSE stream or the stream's text, up to `data: [DONE]`.

    Raises:
        ValueError: A line is neither SSE nor JSON.
        TypeError: A chunk is of another type.
    """
    failed = False  # the event that a line belongs to is an error
    for item in [chunks] if isinstance(chunks, str | bytes | bytearray | Mapping) else chunks:
        if isinstance(item, str | bytes | bytearray):
            text = item if isinstance(item, str) else bytes(item).decode()
            # Not splitlines: JSON may hold U+2028 and its like unescaped, and SSE knows CR and LF alone.
            for line in text.replace("\r", "\n").split("\n"):
                name, data = _field(line)
                if name == "event":
                    failed = data == "error"
                elif name == "error" or (failed and data):  # a comment of such an event says it as well
                    yield {"error": _words(data)}
                elif name == "data" and data == "[DONE]":
                    return
                elif name == "data":
                    yield _chunk(data, line)
                elif name and name not in _SKIPPED:
                    raise ValueError(f"not a line of an SSE stream: {line[:80]!r}")
        else:
            chunk = plain(item)
            if not isinstance(chunk, Mapping):
                raise TypeError(f"a chunk must be a mapping, a model or a line, got {type(chunk).__name__}")
            yield chunk


def _field(line: str) -> tuple[str, str]:
    """The name and the value of a line's field; a line of JSON alone is data, a comment has no name."""
    line = line.removeprefix("\ufeff").strip()
    if line.startswith("{"):
        return "data", line
    name, colon, data = line.partition(":")
    return name, data.strip() if colon else ""


def _words(data: str) -> Any:
    """What an error says: an object, or a text."""
    try:
        said = json.loads(data)
    except (ValueError, RecursionError):
        return data
    return said.get("error", said) if isinstance(said, dict) else said


def _chunk(data: str, line: str) -> dict[str, Any]:
    try:
        chunk = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"a line of the stream is not JSON ({error}): {line[:80]!r}") from None
    if not isinstance(chunk, dict):
        raise ValueError(f"a line of the stream holds no chunk: {line[:80]!r}")
    return chunk
