"""The body of a generating request: what the gateway adds so that the tokens come, and what it hides again."""

from __future__ import annotations

import json
import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from pydantic_core import from_json, to_json

from tokenrecords._core import MemberCutter
from tokenrecords.capture.rows import prompts_of
from tokenrecords.engines.requests import ASKS, Ask, asking, is_true, merged

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_BLANK_LINE: Final = re.compile(rb"(\r?\n\r?\n)")
# Endpoints whose path alone says that they stream.
_STREAMING: Final = "/generate_stream"


class Request(NamedTuple):
    """A generating request, as it goes to the engine.

    Attributes:
        body: Its body.
        streamed: True where the answer comes in events.
        prompt: The ids that were sent, if they were.
        hidden: What the agent did not ask for; None where that is nothing.
        said: The body as the agent sent it, parsed.
    """

    body: bytes
    streamed: bool
    prompt: Any
    hidden: Hidden | None
    said: Mapping[str, Any]


class Hidden:
    """Members of a response that its agent did not ask for."""

    def __init__(self, asks: Iterable[Ask]) -> None:
        self._names = merged(ask.shown for ask in asks)
        self._cutter = MemberCutter(self._names)

    def cut(self, body: bytes) -> bytes:
        """A JSON body without them; all else byte for byte, where that can be done."""
        rest = self._cutter.cut(body)
        return self._again(body) if rest is None else rest

    def cut_events(self, events: bytes) -> bytes:
        """Whole events without them."""
        rest = self._cutter.cut_events(events)
        if rest is not None:
            return rest
        return b"".join(map(self._cut_event, _BLANK_LINE.split(events)))

    def _cut_event(self, event: bytes) -> bytes:
        """An event, or the blank line between two, without them."""
        rest = self._cutter.cut_events(event)
        if rest is not None:
            return rest
        lines = event.splitlines()
        data = b"\n".join(line[5:].removeprefix(b" ") for line in lines if line.startswith(b"data:"))
        others = [line for line in lines if not line.startswith(b"data:")]
        end = b"\r\n" if b"\r\n" in event else b"\n"
        return end.join([*others, *(b"data: " + line for line in self._again(data).split(b"\n"))])

    def _again(self, body: bytes) -> bytes:
        """The body written again, where it is unusual."""
        try:
            value = json.loads(body)
        except ValueError:
            return body
        return json.dumps(_without(value, self._names), ensure_ascii=False, separators=(",", ":")).encode(
            "utf-8", "backslashreplace"
        )


def read_request(body: bytes, endpoint: str, path: str, *, engine: str, enforced: Mapping[str, Any]) -> Request:
    """The request that goes to the engine.

    Raises:
        ValueError: The body is not a JSON object.
    """
    said = _parsed(body)
    if not isinstance(said, dict):
        raise ValueError(f"the body is {type(said).__name__}: an object is needed")
    meant = {**said, **enforced}
    streamed = is_true(meant.get("stream")) or path.startswith(_STREAMING)
    changed, added = asking(ASKS[engine].get(endpoint, ()), meant, streamed=streamed)
    changed = {**enforced, **changed}
    return Request(
        _with(body, said, changed),
        streamed,
        prompts_of({"request": said}),
        _hidden(engine, endpoint, tuple(ask.path for ask in added)) if added else None,
        said,
    )


@lru_cache(maxsize=256)
def _hidden(engine: str, endpoint: str, paths: tuple[tuple[str, ...], ...]) -> Hidden:
    return Hidden(ask for ask in ASKS[engine][endpoint] if ask.path in paths)


def _parsed(body: bytes) -> Any:
    """A body, also with what engines take and pydantic does not: lone surrogates."""
    try:
        return from_json(body)
    except ValueError as problem:
        try:
            return json.loads(body)
        except RecursionError:
            raise problem from None


def _with(body: bytes, said: Mapping[str, Any], changed: Mapping[str, Any]) -> bytes:
    """The body with these members, in place of others of their names."""
    if not changed:
        return body
    rest = MemberCutter(dict.fromkeys(changed)).cut(body)
    if rest is None:
        return json.dumps({**said, **changed}).encode()
    head = rest.rstrip()[:-1].rstrip()
    members = to_json(dict(changed))[1:]
    return head + (b"" if head.endswith(b"{") else b",") + members


def _without(value: Any, names: Mapping[str, Any]) -> Any:
    if isinstance(value, list):
        return [_without(each, names) for each in value]
    if not isinstance(value, dict):
        return value
    return {
        name: _without(each, names[name]) if name in names else each
        for name, each in value.items()
        if name not in names or names[name] is not None
    }
