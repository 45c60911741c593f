"""Requests of agents: refused, passed on, or recorded."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiohttp import web

from tokenrecords.gateway.calls import Call
from tokenrecords.gateway.recording import record
from tokenrecords.gateway.requests import read_request
from tokenrecords.gateway.routes import Route, route_of
from tokenrecords.gateway.sending import error, pass_on

if TYPE_CHECKING:
    from tokenrecords.gateway.requests import Request
    from tokenrecords.gateway.state import State


async def relay(state: State, request: web.Request) -> web.StreamResponse:
    """What an agent gets for its request."""
    try:
        route = route_of(request.raw_path, request.headers)
    except ValueError:
        return error(400, "the session id is not UTF-8")
    if not state.may_call(route.key):
        return error(401, "the API key is not the gateway's")
    try:
        body = await request.read()
    except web.HTTPRequestEntityTooLarge:
        return error(413, f"the body is longer than {state.settings.max_body:,} bytes")
    if route.endpoint is None or request.method != "POST":
        return await pass_on(state, request, route, body)
    refused = _refusal(state, route)
    if refused is not None:
        return refused
    if route.session is None:
        with state.metrics.passing():
            return await pass_on(state, request, route, body)
    try:  # without a wait from the refusal to the note: what is asked of the gateway meanwhile finds neither or both
        asked = _read(state, body, route.endpoint, route)
        call = Call(state.store.session(route.session), asked, route.kept, state)
    except ValueError as problem:
        return error(400, f"the call can't be recorded: {problem}")
    except OSError as problem:
        return error(503, f"the call can't be noted, so it was not sent: {problem.strerror}", retry_after="1")
    return await record(state, request, route, asked, call)


def _refusal(state: State, route: Route) -> web.Response | None:
    if state.is_draining:
        return error(503, "the gateway is being stopped", retry_after="1")
    if state.is_paused:
        return error(429, "calls are paused while weights change", retry_after="1")
    if route.session is None and state.settings.require_session:
        return error(400, "the call names no session: the path /sessions/<id>/v1/... does, or a header")
    return None


def _read(state: State, body: bytes, endpoint: str, route: Route) -> Request:
    settings = state.settings
    return read_request(body, endpoint, route.path, engine=settings.engine, enforced=settings.enforced)
