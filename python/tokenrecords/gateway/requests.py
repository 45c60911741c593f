"""The body of a generating request: what the gateway adds so that the tokens come, and what it hides again."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from pydantic_core import from_json, to_json

from tokenrecords._core import MemberCutter
from tokenrecords.capture.rows import prompts_of
from tokenrecords.engines.requests import ASKS, asking, is_true, merged

if TYPE_CHECKING:
    from collections.abc import Mapping

# Endpoints whose path alone says that they stream.
_STREAMING: Final = "/generate_stream"


class Request(NamedTuple):
    """A generating request, as it goes to the engine.

    Attributes:
        body: Its body.
        streamed: True where the answer comes in events.
        prompt: The ids that were sent, if they were.
        hidden: Cuts out of answers what the agent did not ask for; None where that is nothing.
        said: The body as the agent sent it, parsed.
    """

    body: bytes
    streamed: bool
    prompt: Any
    hidden: MemberCutter | None
    said: Mapping[str, Any]


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
def _hidden(engine: str, endpoint: str, paths: tuple[tuple[str, ...], ...]) -> MemberCutter:
    return MemberCutter(merged(ask.shown for ask in ASKS[engine][endpoint] if ask.path in paths))


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
