"""A generating call, sent to an engine and recorded before its answer is whole for the agent."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from aiohttp import web

from tokenrecords.gateway.calls import EngineError, LostCallError
from tokenrecords.gateway.headers import Decoder, end_to_end
from tokenrecords.gateway.sending import BROKEN, error, send
from tokenrecords.gateway.streams import Exchange, relay_stream

if TYPE_CHECKING:
    from multidict import CIMultiDict

    from tokenrecords.gateway.answers import Answer
    from tokenrecords.gateway.calls import Call
    from tokenrecords.gateway.requests import Request
    from tokenrecords.gateway.routes import Route
    from tokenrecords.gateway.state import State

# How the agent is told its call's `model_call_id`.
_CALL_HEADER: Final = "x-tokenrecords-call"
_NO_CONTENT: Final = 204


async def record(state: State, request: web.Request, route: Route, asked: Request, call: Call) -> web.StreamResponse:
    """Send a call that was begun, and answer it; however that ends, the call is open no more."""
    with state.metrics.seconds.time():
        try:
            return await _sent(state, request, route, asked, call)
        except asyncio.CancelledError:
            if call.is_open:
                call.lose("the agent left")
            raise
        except BaseException as problem:
            if call.is_open:
                call.lose(f"the gateway failed: {problem!r}")
            raise


async def _sent(state: State, request: web.Request, route: Route, asked: Request, call: Call) -> web.StreamResponse:
    try:
        answer, engine = await send(state, request, route, asked.body, is_read=True)
    except BROKEN as problem:
        call.take_back(f"no engine answered: {problem}")
        status = 504 if isinstance(problem, TimeoutError) else 502
        return error(status, f"no engine answered: {problem}")
    call.engine = engine.root
    try:
        return await _answered(state, request, answer, asked, call)
    finally:
        engine.open -= 1


async def _answered(
    state: State, request: web.Request, answer: Answer, asked: Request, call: Call
) -> web.StreamResponse:
    with answer:
        exchange = Exchange(request, answer, asked, call, _headers(answer, call))
        has_generated = 200 <= answer.status < 300 and answer.status != _NO_CONTENT
        if not has_generated:
            call.take_back(f"the engine answered {answer.status}")
        elif answer.content_type == "text/event-stream":
            return await relay_stream(state, exchange)
        try:
            sent = await answer.read()
        except BROKEN as problem:
            if has_generated:
                call.lose(f"the answer was cut off: {problem}")
            return error(502, "the engine's answer was cut off")
        if has_generated:
            return await _whole(state, exchange, sent)
        return web.Response(body=sent, status=answer.status, headers=exchange.headers)


async def _whole(state: State, exchange: Exchange, sent: bytes) -> web.Response:
    _, answer, asked, call, headers = exchange
    try:
        decoder = Decoder(answer.headers.get("content-encoding", ""))
        body = decoder.feed(sent)
        decoder.end()
    except ValueError as problem:
        call.lose(str(problem))
        if state.settings.on_loss == "fail":
            return error(502, f"the call could not be recorded: {problem}")
        return web.Response(body=sent, status=answer.status, headers=headers)
    try:
        await call.record(body)
    except LostCallError as lost:
        if state.settings.on_loss == "fail":
            return error(502, f"the call could not be recorded: {lost}")
    except EngineError:
        pass
    if asked.hidden is not None:
        headers.popall("content-encoding", None)
        sent = asked.hidden.cut(body) or body
    return web.Response(body=sent, status=answer.status, headers=headers)


def _headers(answer: Answer, call: Call) -> CIMultiDict[str]:
    headers = end_to_end(answer.headers)
    headers[_CALL_HEADER] = call.id
    return headers
