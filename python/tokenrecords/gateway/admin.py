"""What a gateway says of its sessions, and what it is told while it runs."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

from aiohttp import web

from tokenrecords.entry.errors import one_line
from tokenrecords.files.names import SUFFIX
from tokenrecords.gateway.routes import route_of
from tokenrecords.gateway.sending import error
from tokenrecords.gateway.store import CLOSED, INTENTS
from tokenrecords.training.rollouts import build_rollouts

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from tokenrecords.gateway.state import State
    from tokenrecords.gateway.store import Session

    Handler = Callable[[State, web.Request], Awaitable[web.StreamResponse]]


def add_routes(app: web.Application, state: Callable[[], State]) -> None:
    """Add the gateway's own paths to its application."""

    def guarded(handler: Handler) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
        async def handle(request: web.Request) -> web.StreamResponse:
            if not state().may_administer(route_of("/", request.headers).key):
                return error(401, "the admin key is needed")
            try:
                return await handler(state(), request)
            except _UnknownSessionError as unknown:
                return error(404, str(unknown))
            except ValueError as problem:
                return error(400, one_line(problem))

        return handle

    async def health(_: web.Request) -> web.Response:
        engines = {engine.root: engine.is_up for engine in state().pool.engines}
        return web.json_response({"ok": not state().is_draining, "engines": engines})

    app.router.add_get("/health", health)
    one = "/sessions/{session}"
    for method, path, handler in (
        ("GET", "/metrics", _metrics),
        ("GET", "/sessions", _sessions),
        ("GET", one, _session),
        ("DELETE", one, _delete),
        ("GET", one + "/records", _records),
        ("GET", one + "/chains", _chains),
        ("POST", one + "/close", _close),
        ("PUT", "/weight-version", _weights),
        ("POST", "/pause", _pause),
        ("POST", "/resume", _resume),
    ):
        app.router.add_route(method, path, guarded(handler))


class _UnknownSessionError(Exception):
    pass


def _known(state: State, request: web.Request) -> Session:
    session = state.store.session(request.match_info["session"])
    if not session.path(INTENTS).exists():
        raise _UnknownSessionError(f"session {session.id!r} is not there")
    return session


def _counts(session: Session) -> dict[str, Any]:
    closed = session.path(CLOSED)
    said = json.loads(closed.read_bytes()) if closed.exists() else None
    counts = {"calls": session.recorded, "lost": session.lost, "open": len(session.open)}
    return {"session": session.id, **counts, "complete": not (session.lost or session.open), "closed": said}


async def _metrics(state: State, _: web.Request) -> web.Response:
    return web.Response(body=state.metrics.text(), headers={"content-type": "text/plain; version=0.0.4"})


async def _sessions(state: State, _: web.Request) -> web.Response:
    """All sessions; of one whose files can't be read, why."""
    found = []
    for each in state.store.ids():
        try:
            found.append(_counts(state.store.session(each)))
        except (ValueError, OSError) as problem:
            found.append({"session": each, "error": one_line(problem)})
        await asyncio.sleep(0)  # calls go on meanwhile
    return web.json_response({"sessions": found})


async def _session(state: State, request: web.Request) -> web.Response:
    return web.json_response(_counts(_known(state, request)))


async def _delete(state: State, request: web.Request) -> web.Response:
    session = _known(state, request)
    if session.open:
        return error(409, f"session {session.id!r} has open calls")
    state.store.forget(session.id)
    return web.Response(status=204)


async def _records(state: State, request: web.Request) -> web.Response:
    """The lines of the records, from the one behind call `after` on."""
    path = _known(state, request).path(SUFFIX)
    lines = path.read_bytes().splitlines(keepends=True) if path.exists() else []
    after = request.query.get("after")
    if after is not None:
        calls = [str(json.loads(line)["model_call_id"]).partition("#")[0] for line in lines]
        if after not in calls:
            return error(404, f"call {after!r} is not there")
        lines = lines[len(calls) - calls[::-1].index(after) :]
    return web.Response(body=b"".join(lines), headers={"content-type": "application/x-ndjson"})


async def _chains(state: State, request: web.Request) -> web.Response:
    session = _known(state, request)
    path = session.path(SUFFIX)
    closed = _counts(session)["closed"] or {}
    terminal = request.query.get("terminal_call", closed.get("terminal_call"))

    def build() -> dict[str, Any]:
        if not path.exists():
            return {"session": session.id, "trainable": False, "reasons": ["nothing_recorded"], "chains": []}
        [built] = build_rollouts([path], terminal_call_ids={} if terminal is None else {session.id: terminal})
        chains = [
            {
                "calls": chain.call_ids,
                "token_ids": chain.token_ids.tolist(),
                "loss_mask": chain.loss_mask.tolist(),
                "log_probs": chain.log_probs.tolist(),
            }
            for chain in built.chains
        ]
        return {"session": session.id, "trainable": built.trainable, "reasons": built.reasons, "chains": chains}

    return web.json_response(await asyncio.to_thread(build))


async def _close(state: State, request: web.Request) -> web.Response:
    """Note how a session ended: its terminal call, its reward, and other fields."""
    session = _known(state, request)
    said = await request.json() if request.can_read_body else {}
    if not isinstance(said, dict):
        return error(400, "the body is no object")
    session.close(said)
    return web.json_response(_counts(session))


async def _weights(state: State, request: web.Request) -> web.Response:
    said = await request.json()
    version = said.get("weight_version") if isinstance(said, dict) else None
    if not isinstance(version, str | int) or isinstance(version, bool):
        return error(400, 'the body is not {"weight_version": a text or an integer}')
    state.weight_version = version
    return web.json_response({"weight_version": version})


async def _pause(state: State, _: web.Request) -> web.Response:
    state.is_paused = True
    return web.json_response({"paused": True, "open": state.metrics.open})


async def _resume(state: State, _: web.Request) -> web.Response:
    state.is_paused = False
    return web.json_response({"paused": False})
