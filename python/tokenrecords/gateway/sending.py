"""Requests to engines, and answers that pass as they are."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final

from aiohttp import web

from tokenrecords.gateway.answers import CutOffError, DroppedError
from tokenrecords.gateway.headers import end_to_end, to_engine
from tokenrecords.gateway.upstream import DownError

if TYPE_CHECKING:
    from collections.abc import Callable

    from tokenrecords.gateway.answers import Answer
    from tokenrecords.gateway.engines import Engine
    from tokenrecords.gateway.routes import Route
    from tokenrecords.gateway.state import State

_LOG: Final = logging.getLogger(__name__)
# What may go wrong with an engine, or between it and here.
BROKEN: Final = (DownError, DroppedError, CutOffError, TimeoutError)
_FIRST_WAIT: Final = 0.05  # seconds before a request is sent again, doubled each time
_FULL: Final = 1 << 16  # bytes that an agent has not taken


def error(status: int, message: str, **headers: str) -> web.Response:
    """An error of the gateway's own, in the form that clients of OpenAI's API read."""
    body = {"error": {"message": message, "type": "tokenrecords_gateway", "param": None, "code": status}}
    return web.json_response(body, status=status, headers={name.replace("_", "-"): v for name, v in headers.items()})


async def send(
    state: State, request: web.Request, route: Route, body: bytes, *, is_read: bool
) -> tuple[Answer, Engine]:
    """An engine's answer, as far as its headers, and the engine; of another one where the first can't be reached.

    The engine has one open call more, until the caller takes it from `open`.

    Raises:
        OSError: No engine answered, one of `BROKEN`.
    """
    settings = state.settings
    keep_key = settings.key is None and not route.names_session
    headers = to_engine(request.headers, engine_key=settings.engine_key, keep_key=keep_key, is_read=is_read)
    tries = settings.retries
    while True:
        engine = state.pool.choose(route.session)
        engine.open += 1
        try:
            answer = await state.upstream.request(request.method, engine.root, route.path, headers=headers, body=body)
        except BaseException as problem:
            engine.open -= 1
            if not isinstance(problem, (DownError, DroppedError)):
                raise
            is_down = isinstance(problem, DownError)
            if is_down and engine.is_up:
                _LOG.warning("engine %s can't be reached: %s", engine.root, problem.__cause__)
            engine.is_up = not is_down
            if not tries:
                raise
        else:
            engine.is_up = True
            return answer, engine
        await asyncio.sleep(_FIRST_WAIT * 2 ** (settings.retries - tries))
        tries -= 1


class Outlet:
    """The body of a response that is written in the turn of the loop in which a part of it comes."""

    def __init__(self, request: web.Request, *, is_chunked: bool) -> None:
        self._request = request
        self._is_chunked = is_chunked

    @classmethod
    async def of(cls, response: web.StreamResponse, request: web.Request) -> Outlet:
        """Send the headers; the outlet of what follows them."""
        await response.prepare(request)
        return cls(request, is_chunked=response.headers.get("transfer-encoding") == "chunked")

    async def pass_on(self, answer: Answer, shown: Callable[[bytes], bytes]) -> None:
        """Pass on a body as it comes, and no faster than it is taken.

        Args:
            answer: Whose body.
            shown: What of a part goes on.

        Raises:
            ConnectionResetError: The agent has left.
            Exception: As `Answer.flow`.
        """
        while not await answer.flow(lambda part: self.write(shown(part))):
            await self._request.writer.drain()

    def write(self, part: bytes) -> bool:
        """Write a part; True where the agent is behind.

        Raises:
            ConnectionResetError: The agent has left.
        """
        transport = self._request.transport
        if transport is None or transport.is_closing():
            raise ConnectionResetError("the agent has left")
        if part:  # an empty chunk would be the last one
            transport.write(b"%x\r\n%b\r\n" % (len(part), part) if self._is_chunked else part)
        return transport.get_write_buffer_size() > _FULL


async def pass_on(state: State, request: web.Request, route: Route, body: bytes) -> web.StreamResponse:
    """Pass on what is not recorded, as it comes."""
    try:
        answer, engine = await send(state, request, route, body, is_read=False)
    except BROKEN as problem:
        return error(502, f"no engine answered: {problem}")
    try:
        with answer:
            response = web.StreamResponse(status=answer.status, headers=end_to_end(answer.headers))
            if "content-length" in answer.headers:
                response.content_length = int(answer.headers["content-length"])
            outlet = await Outlet.of(response, request)
            await outlet.pass_on(answer, bytes)
            await response.write_eof()
            return response
    finally:
        engine.open -= 1
