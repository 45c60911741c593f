"""An engine's answer, handed on in the very turn of the loop in which it comes.

A stream of tokens has an HTTP chunk and a packet for each event. A client with a queue between its parser and whoever
reads it pays for each of them with a waiter and a turn of a task, which cost several times what there is to do.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final, Self, cast

from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser
from multidict import CIMultiDict

if TYPE_CHECKING:
    from collections.abc import Callable

    Sink = Callable[[bytes], bool]

_LONGEST_HEAD: Final = 1 << 18  # bytes of headers
_AHEAD: Final = 1 << 18  # bytes of a body that come before somebody takes them
_FINAL: Final = 200  # a lower status announces another one


class DroppedError(ConnectionError):
    """The engine closed the connection before it answered."""


class CutOffError(ConnectionError):
    """The answer broke off, or is not HTTP."""


class Answer:
    """An engine's answer, in a `with` statement: its connection is closed where that is left before the end.

    Attributes:
        status: Its status.
        headers: Its headers.
        has_begun: True when its headers are there.
        is_whole: True when its body is, too.
    """

    def __init__(self, transport: asyncio.Transport) -> None:
        self.status = 0
        self.headers: CIMultiDict[str] = CIMultiDict()
        self.has_begun = False
        self.is_whole = False
        self._transport = transport
        self._parts: list[bytes] = []
        self._wants_all = False
        self._sink: Sink | None = None
        self._is_full = False
        self._problem: Exception | None = None
        self._news = asyncio.Event()
        self._timer: asyncio.TimerHandle | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.leave()

    @property
    def content_type(self) -> str:
        """The type of the body, in lower case and without parameters."""
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()

    async def begin(self, limit: float | None) -> None:
        """Return when the headers are there.

        Args:
            limit: Seconds that the whole answer may take; None for any number.

        Raises:
            OSError: As `read`, or a DroppedError.
        """
        if limit is not None:
            self._timer = asyncio.get_running_loop().call_later(limit, self._expire)
        try:
            await self._until(lambda: self.has_begun)
        except BaseException:
            self.leave()
            raise

    async def read(self) -> bytes:
        """The body, as it is encoded.

        Raises:
            CutOffError: It broke off.
            TimeoutError: It took too long.
        """
        self._wants_all = True
        self._go_on()
        await self._until(lambda: self.is_whole)
        return b"".join(self._parts)

    async def flow(self, sink: Sink) -> bool:
        """Hand on the body as it comes, until it ends or the sink is full.

        Args:
            sink: Takes what came, and says whether it is full.

        Returns:
            True at the end; False where the sink is full: the engine waits until the next call.

        Raises:
            CutOffError: It broke off.
            TimeoutError: It took too long.
            Exception: What the sink raises.
        """
        self._sink, self._is_full = sink, False
        try:
            self._pour()
            if not self._is_full:
                self._go_on()
                await self._until(lambda: self.is_whole or self._is_full)
            return not self._is_full
        finally:
            self._sink = None

    def leave(self) -> None:
        """Want no more of it."""
        if self._timer is not None:
            self._timer.cancel()
        if not self.is_whole:
            self._transport.abort()

    def fail(self, problem: Exception) -> None:
        """Let whoever waits for it know what went wrong first."""
        if self._problem is None:
            self._problem = problem
            self._news.set()
            self.leave()

    def _expire(self) -> None:
        if not self.is_whole:
            self.fail(TimeoutError("no answer in time"))

    def announce(self, status: int) -> None:
        """Take the headers as whole."""
        self.status, self.has_begun = status, True
        self._news.set()

    def take(self, part: bytes) -> None:
        """Take a part of the body."""
        self._parts.append(part)

    def hand_on(self) -> None:
        """Hand on what a packet brought."""
        if self._sink is not None:
            try:
                self._pour()
            except Exception as problem:  # noqa: BLE001 - raised where `flow` is waited for
                self.fail(problem)
        is_ahead = self._sink is None and not self._wants_all and sum(map(len, self._parts)) > _AHEAD
        if (self._is_full or is_ahead) and not self.is_whole:  # of a whole one the connection may have another call
            self._transport.pause_reading()
        if self._is_full or self.is_whole:
            self._news.set()

    def _go_on(self) -> None:
        if not self.is_whole:
            self._transport.resume_reading()

    def _pour(self) -> None:
        parts, self._parts = self._parts, []
        if parts and self._sink is not None:
            self._is_full = self._sink(parts[0] if len(parts) == 1 else b"".join(parts))

    async def _until(self, is_reached: Callable[[], bool]) -> None:
        while self._problem is None and not is_reached():
            self._news.clear()
            await self._news.wait()
        if self._problem is not None:
            raise self._problem


class Connection(asyncio.Protocol):
    """A connection to an engine, which answers one call after the other.

    Args:
        idle: Where it puts itself when it is free for another call.

    Attributes:
        since: When it became free, in seconds of the loop's clock.
    """

    transport: asyncio.Transport

    def __init__(self, idle: list[Connection]) -> None:
        self.since = 0.0
        self._idle = idle
        self._parser = HttpResponseParser(self)
        self._answer: Answer | None = None
        self._has_body = True
        self._keeps = self._ends_with_it = False
        self._head = 0  # bytes that came before the headers were whole

    def send(self, head: bytes, body: bytes, *, has_body: bool) -> Answer:
        """Send a request; the answer, of which nothing has come.

        Args:
            head: The request's line and headers.
            body: Its body.
            has_body: False where the answer has none, whatever its headers say.
        """
        self._answer = Answer(self.transport)
        self._has_body, self._head = has_body, 0
        self.transport.writelines([head, body] if body else [head])
        return self._answer

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin."""
        self.transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        """Take a packet."""
        answer = self._answer
        if answer is None:  # said without a question
            self.transport.abort()
            return
        if not answer.has_begun:
            self._head += len(data)
        try:
            self._parser.feed_data(data)
        except (HttpParserError, HttpParserUpgrade) as problem:
            answer.fail(CutOffError(f"the answer is not HTTP: {problem}"))
            return
        if not answer.has_begun and self._head > _LONGEST_HEAD:
            answer.fail(CutOffError(f"the answer has headers of more than {_LONGEST_HEAD:,} bytes"))
        answer.hand_on()

    def connection_lost(self, problem: Exception | None) -> None:
        """End, and so does the answer."""
        if self in self._idle:
            self._idle.remove(self)
        answer = self._answer
        if answer is None or answer.is_whole:
            return
        if not answer.has_begun:
            answer.fail(DroppedError("the connection was closed before an answer came"))
        elif self._ends_with_it and problem is None:
            answer.is_whole = True
            answer.hand_on()
        else:
            answer.fail(CutOffError("the connection was closed within the answer"))

    def on_message_begin(self) -> None:
        """Have no more to do with an engine that says more than it was asked."""
        if self._answer is None:
            self.transport.abort()

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a header, or a trailer, which is passed over."""
        if self._answer is not None and not self._answer.has_begun:
            self._answer.headers.add(_text(name), _text(value))

    def on_headers_complete(self) -> None:
        """Take the headers as whole, unless they announce others."""
        answer = self._answer
        if answer is None:
            return
        status = self._parser.get_status_code()
        if status < _FINAL:
            answer.headers.clear()
            return
        self._keeps = self._has_body and self._parser.should_keep_alive()
        self._ends_with_it = not ("content-length" in answer.headers or "transfer-encoding" in answer.headers)
        answer.announce(status)
        if not self._has_body:
            self.on_message_complete()

    def on_body(self, part: bytes) -> None:
        """Take a part of the body."""
        if self._answer is not None:
            self._answer.take(part)

    def on_message_complete(self) -> None:
        """Be free for another call."""
        answer = self._answer
        if answer is None or not answer.has_begun:
            return
        answer.is_whole = True
        self._answer = None
        if self._keeps:
            self.since = asyncio.get_running_loop().time()
            self._idle.append(self)
        else:
            self.transport.close()


def _text(header: bytes) -> str:
    return header.decode("utf-8", "surrogateescape")
