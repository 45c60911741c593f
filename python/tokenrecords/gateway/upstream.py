"""Connections to engines over HTTP/1.1, kept for the next call."""

from __future__ import annotations

import asyncio
import ssl
from collections import defaultdict
from functools import cache
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import urlsplit

from tokenrecords.gateway.answers import Connection

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tokenrecords.gateway.answers import Answer

_CONNECT: Final = 10.0  # seconds that a connection may take
_IDLE: Final = 15.0  # seconds that one is kept without a call
_WITH_BODY: Final = frozenset({"PATCH", "POST", "PUT"})  # an empty one is said to be empty


class DownError(ConnectionError):
    """No connection to the engine could be made."""


class Upstream:
    """Connections to engines.

    Args:
        timeout: Seconds that a call may take in all; None for any number.
    """

    def __init__(self, timeout: float | None = None) -> None:
        self._timeout = timeout
        self._idle: defaultdict[_Origin, list[Connection]] = defaultdict(list)

    async def request(
        self, method: str, root: str, path: str, *, headers: Mapping[str, str], body: bytes = b""
    ) -> Answer:
        """An answer, as far as its headers.

        Args:
            method: The method.
            root: The URL of the engine.
            path: What of the URL follows it, encoded.
            headers: Those that go from end to end.
            body: The body.

        Raises:
            DownError: No connection could be made.
            DroppedError: The connection was closed before an answer came.
            CutOffError: What came is not HTTP.
            TimeoutError: It took too long.
            ValueError: A header breaks its line.
        """
        origin = _origin(root)
        head = _head(method, origin, path, headers, body)
        connection = self._kept(origin) or await self._connected(origin)
        answer = connection.send(head, body, has_body=method != "HEAD")
        await answer.begin(self._timeout)
        return answer

    def close(self) -> None:
        """Close the connections that are kept."""
        for idle in self._idle.values():
            while idle:
                idle.pop().transport.abort()

    def _kept(self, origin: _Origin) -> Connection | None:
        idle = self._idle[origin]
        now = asyncio.get_running_loop().time()
        while idle:
            connection = idle.pop()
            if now - connection.since < _IDLE and not connection.transport.is_closing():
                return connection
            connection.transport.abort()
        return None

    async def _connected(self, origin: _Origin) -> Connection:
        idle = self._idle[origin]
        limit = _CONNECT if self._timeout is None else min(_CONNECT, self._timeout)
        try:
            async with asyncio.timeout(limit):
                _, connection = await asyncio.get_running_loop().create_connection(
                    lambda: Connection(idle), origin.host, origin.port, ssl=_tls() if origin.is_tls else None
                )
        except OSError as problem:
            raise DownError("no connection could be made") from problem
        return connection


class _Origin(NamedTuple):
    """Where an engine is."""

    host: str
    port: int
    is_tls: bool
    name: str
    path: str


@cache
def _origin(root: str) -> _Origin:
    parts = urlsplit(root)
    is_tls = parts.scheme == "https"
    return _Origin(parts.hostname or "", parts.port or (443 if is_tls else 80), is_tls, parts.netloc, parts.path)


@cache
def _tls() -> ssl.SSLContext:
    return ssl.create_default_context()


def _head(method: str, origin: _Origin, path: str, headers: Mapping[str, str], body: bytes) -> bytes:
    lines = [f"{method} {origin.path}{path} HTTP/1.1", f"host: {origin.name}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    if body or method in _WITH_BODY:
        lines.append(f"content-length: {len(body)}")
    head = "\r\n".join(lines)
    if not head.count("\r") == head.count("\n") == len(lines) - 1:
        raise ValueError("a header breaks its line")
    return head.encode("utf-8", "surrogateescape") + b"\r\n\r\n"
