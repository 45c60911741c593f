"""Requests to engines, and answers that pass as they are."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

import aiohttp
from aiohttp import web
from yarl import URL

from tokenrecords.gateway.headers import end_to_end, to_engine

if TYPE_CHECKING:
    from tokenrecords.gateway.engines import Engine
    from tokenrecords.gateway.routes import Route
    from tokenrecords.gateway.state import State

# What may go wrong with an engine, or between it and here.
BROKEN: Final = (aiohttp.ClientError, TimeoutError, OSError)
_DOWN: Final = (aiohttp.ClientConnectorError, aiohttp.ServerTimeoutError)
_UNREACHED: Final = (*_DOWN, aiohttp.ServerDisconnectedError, aiohttp.ClientOSError)
_FIRST_WAIT: Final = 0.05  # seconds before a request is sent again, doubled each time


def error(status: int, message: str, **headers: str) -> web.Response:
    """An error of the gateway's own, in the form that clients of OpenAI's API read."""
    body = {"error": {"message": message, "type": "tokenrecords_gateway", "param": None, "code": status}}
    return web.json_response(body, status=status, headers={name.replace("_", "-"): v for name, v in headers.items()})


async def send(
    state: State, request: web.Request, route: Route, body: bytes | None, *, is_read: bool
) -> tuple[aiohttp.ClientResponse, Engine]:
    """An engine's answer, as far as its headers, and the engine; of another one where the first can't be reached.

    The engine has one open call more, until the caller takes it from `open`.

    Raises:
        aiohttp.ClientError: No engine answered.
    """
    settings = state.settings
    keep_key = settings.key is None and not route.names_session
    headers = to_engine(request.headers, engine_key=settings.engine_key, keep_key=keep_key, is_read=is_read)
    tries = settings.retries
    while True:
        engine = state.pool.choose(route.session)
        engine.open += 1
        try:
            answer = await state.client.request(
                request.method,
                URL(engine.root + route.path, encoded=True),
                data=body,
                headers=headers,
                allow_redirects=False,
            )
        except BaseException as problem:
            engine.open -= 1
            if not isinstance(problem, _UNREACHED):
                raise
            engine.is_up = not isinstance(problem, _DOWN)
            if not tries:
                raise
        else:
            engine.is_up = True
            return answer, engine
        await asyncio.sleep(_FIRST_WAIT * 2 ** (settings.retries - tries))
        tries -= 1


async def pass_on(state: State, request: web.Request, route: Route, body: bytes) -> web.StreamResponse:
    """Pass on what is not recorded, as it comes."""
    try:
        answer, engine = await send(state, request, route, body or None, is_read=False)
    except BROKEN as problem:
        return error(502, f"no engine answered: {type(problem).__name__}")
    try:
        async with answer:
            response = web.StreamResponse(status=answer.status, headers=end_to_end(answer.headers))
            if "content-length" in answer.headers:
                response.content_length = int(answer.headers["content-length"])
            await response.prepare(request)
            async for part in answer.content.iter_any():
                await response.write(part)
            await response.write_eof()
            return response
    finally:
        engine.open -= 1
