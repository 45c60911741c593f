"""Streamed answers: each event passes at once, but the last one only when the call is recorded."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from aiohttp import web
from pydantic_core import to_json

from tokenrecords.engines.event_stream import EventStream
from tokenrecords.entry.errors import one_line
from tokenrecords.gateway.calls import EngineError, LostCallError
from tokenrecords.gateway.headers import Decoder
from tokenrecords.gateway.sending import BROKEN, Outlet, error

if TYPE_CHECKING:
    from multidict import CIMultiDict

    from tokenrecords.engines.body import Served
    from tokenrecords.gateway.answers import Answer
    from tokenrecords.gateway.calls import Call
    from tokenrecords.gateway.requests import Request
    from tokenrecords.gateway.state import State

# What a payload or a choice says when it has ended.
_REASONS: Final = ("finish_reason", "stop_reason", "generated_text", "stop")


class Passing:
    """A stream on its way: what may go on to the agent, and what waits for the record.

    Attributes:
        stream: All events so far.
    """

    def __init__(self, request: Request) -> None:
        self.stream = EventStream()
        self._hidden = request.hidden
        self._is_finished = False

    @property
    def is_cut(self) -> bool:
        """True where the stream ended without its last event, and without saying why."""
        return not self.stream.is_ended and self.stream.error is None and not self._is_finished

    def feed(self, part: bytes) -> bytes:
        """Take what came; what of it may go on."""
        self.stream.feed(part)
        return self.stream.before_end(self._hidden)

    def rest(self) -> bytes:
        """What waited."""
        return self.stream.rest(self._hidden)

    def payload(self) -> Served:
        """What the whole stream joins to.

        Raises:
            ValueError: It was cut off, or is what `merge_stream` refuses.
        """
        payload = self.stream.payload()
        self._is_finished = _is_finished(payload.payload)
        if self.is_cut:
            raise ValueError("the stream was cut off: it has no last event, and no reason why it ended")
        return payload


def _is_finished(payload: Any) -> bool:
    """True where each of the choices says why it ended."""
    if isinstance(payload, list):
        return all(map(_is_finished, payload))
    parts = payload.get("choices") or [payload.get("meta_info") or payload]
    return all(any(part.get(name) for name in _REASONS) for part in parts)


class Exchange(NamedTuple):
    """A call that is answered: what the agent sent, what comes back, and with which headers it goes on."""

    request: web.Request
    answer: Answer
    asked: Request
    call: Call
    headers: CIMultiDict[str]


async def relay_stream(state: State, exchange: Exchange) -> web.StreamResponse:
    """Pass a stream on, and record what it joins to before its last event."""
    request, answer, asked, call, headers = exchange
    try:
        decoder = Decoder(headers.pop("content-encoding", ""))
    except ValueError as problem:
        call.lose(str(problem))
        return error(502, f"the call could not be recorded: {problem}")
    response = web.StreamResponse(status=answer.status, headers=headers)
    passing = Passing(asked)
    try:
        outlet = await Outlet.of(response, request)
        await outlet.pass_on(answer, lambda part: passing.feed(decoder.feed(part)))
        decoder.end()
    except asyncio.CancelledError:
        await _record_partly(state, passing, call)
        raise
    except ConnectionResetError:
        await _record_partly(state, passing, call)
        return response
    except BROKEN as problem:
        call.lose(f"the stream was cut off: {problem}")
        return _cut(request, response)
    except ValueError as problem:
        call.lose(str(problem))
        return _cut(request, response)
    lost = await _recorded(passing, call)
    if lost is not None and passing.is_cut:
        return _cut(request, response)
    if lost is not None and state.settings.on_loss == "fail" and passing.stream.error is None:
        await response.write(_error_event(f"the call could not be recorded: {lost}"))
    else:
        await response.write(passing.rest())
    await response.write_eof()
    return response


async def _recorded(passing: Passing, call: Call) -> str | None:
    """Record the whole stream; why that failed, None where it did not."""
    try:
        payload = passing.payload()
    except (ValueError, TypeError, ArithmeticError, AttributeError, LookupError) as problem:
        why = one_line(problem)
        call.lose(why)
        return why
    try:
        await call.record(payload)
    except (LostCallError, EngineError) as failed:
        return str(failed)
    return None


async def _record_partly(state: State, passing: Passing, call: Call) -> None:
    """What an agent that left had been sent is lost, or recorded as far as it goes."""
    if not call.is_open:
        return
    if state.settings.keep_partial:
        try:
            payload = passing.stream.payload(is_cut=True)
            await asyncio.shield(call.record(payload, partial=True))
        except (ValueError, LostCallError, EngineError):
            pass
        else:
            return
    if call.is_open:
        call.lose("the agent left")


def _cut(request: web.Request, response: web.StreamResponse) -> web.StreamResponse:
    """End the agent's connection, so that it can't take the stream for a whole one."""
    if request.transport is not None:
        request.transport.abort()
    return response


def _error_event(message: str) -> bytes:
    said = {"message": message, "type": "tokenrecords_gateway", "param": None, "code": 502}
    return b"event: error\ndata: " + to_json({"type": "error", "error": said}) + b"\n\n"
