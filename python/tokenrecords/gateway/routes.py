"""Where a request goes: its session, its endpoint, and what its headers say of it."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote

from tokenrecords.capture.rollouts import check_rollout_id
from tokenrecords.engines.requests import ENDPOINTS
from tokenrecords.files.names import SUFFIX

if TYPE_CHECKING:
    from collections.abc import Mapping

_REST: Final = r"(?P<rest>/+(?:v1|inference|generate|generate_stream|completion)(?:[/?%].*)?)"
_SLASHES: Final = re.compile("/+")
_PREFIXES: Final = (
    re.compile(r"/sessions/(?P<session>[^/?]+)" + _REST),
    re.compile(r"/rollout/(?P<rollout>[^/?]+)/attempt/(?P<attempt>[^/?]+)" + _REST),
    re.compile(r"/ng-rollout/(?P<session>[^/?]+)(?:/training-token-capture)?" + _REST),
)
_SESSION_HEADERS: Final = (
    "x-tokenrecords-session",
    "x-session-id",
    "x-claude-code-session-id",
    "x-dynamo-session-id",
    "proxy_x_session_id",
)
# What a record keeps of the agent, by header.
_KEPT: Final = {
    "x-parent-session-id": "parent_session",
    "x-dynamo-parent-session-id": "parent_session",
    "x-agent-id": "agent",
    "x-claude-code-agent-id": "agent",
}
# An API key that names a session, behind the gateway's own key if there is one.
_KEY: Final = re.compile(r"(?:(?P<key>.*):)?session:(?P<session>.+)")
_TOKENS: Final = SUFFIX.removesuffix(".jsonl")
_MAX_KEPT: Final = 1_024
_MAX_ID: Final = 200  # characters of an id that names files: their suffixes need the others of 255


@dataclass(frozen=True)
class Route:
    """What a request says of itself outside its body.

    Attributes:
        session: The session's id, None where it has none.
        path: The path and query at the engine, as they were written.
        endpoint: What generates there, as `engines.requests` calls it; None where nothing does.
        key: The API key, without the session that it may name; None where there is none.
        names_session: True where the API key named the session: it is no key of the engine's.
        kept: Fields of the record.
    """

    session: str | None
    path: str
    endpoint: str | None
    key: str | None
    names_session: bool = False
    kept: dict[str, str] = field(default_factory=dict)


def route_of(path: str, headers: Mapping[str, str]) -> Route:
    """The route of a request, from its target and its headers.

    >>> route = route_of("/sessions/math-7/v1/chat/completions", {})
    >>> route.session, route.path, route.endpoint
    ('math-7', '/v1/chat/completions', 'chat')
    """
    if not path.startswith("/"):  # a whole URL, as a proxy gets it
        path = "/" + path.partition("://")[2].partition("/")[2]
    key = _api_key(headers)
    named = _KEY.fullmatch(key) if key else None
    session, rest = _of_path(path)
    if session is None:
        session = next((headers[name] for name in _SESSION_HEADERS if headers.get(name)), None)
    if session is None and named:
        session = named["session"]
    kept = {name: headers[header][:_MAX_KEPT] for header, name in reversed(_KEPT.items()) if headers.get(header)}
    return Route(session, rest, _endpoint(rest), named["key"] if named else key, named is not None, kept)


def _of_path(path: str) -> tuple[str | None, str]:
    for prefix in _PREFIXES:
        found = prefix.fullmatch(path)
        if found:
            parts = {name: unquote(part, errors="strict") for name, part in found.groupdict().items() if name != "rest"}
            session = parts.get("session") or f"{parts['rollout']}.attempt-{parts['attempt']}"
            return session, found["rest"]
    return None, path


def _endpoint(path: str) -> str | None:
    """What generates there; engines take a path with a slash too many, or with its letters in percent."""
    return ENDPOINTS.get(_SLASHES.sub("/", unquote(path.partition("?")[0])).rstrip("/"))


def _api_key(headers: Mapping[str, str]) -> str | None:
    scheme, _, key = headers.get("authorization", "").partition(" ")
    return key.strip() if scheme.lower() == "bearer" and key.strip() else headers.get("x-api-key")


def file_name(session: str, *, hashed: bool) -> str:
    """What the files of a session are named after.

    Raises:
        ValueError: The id can't name a file, or names one of another session, and is not hashed; or it is empty or too
            long.
    """
    if not hashed:
        if session.endswith(_TOKENS):
            raise ValueError(f"session id {session!r} ends with {_TOKENS}, as files of another session may do")
        if len(session) > _MAX_ID:
            raise ValueError(f"a session id has {len(session)} characters: {_MAX_ID} at most are needed to name files")
        return check_rollout_id(session)
    if not session or len(session) > _MAX_KEPT:
        raise ValueError(f"a session id has {len(session)} characters: 1 to {_MAX_KEPT:,} are needed")
    return hashlib.sha256(session.encode("utf-8", "surrogatepass")).hexdigest()[:32]
