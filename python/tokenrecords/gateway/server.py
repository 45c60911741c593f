"""The gateway as an aiohttp application, and as a server of its own."""

from __future__ import annotations

import asyncio
import signal
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from aiohttp import web

from tokenrecords.gateway.admin import add_routes
from tokenrecords.gateway.engines import Pool
from tokenrecords.gateway.relay import relay
from tokenrecords.gateway.state import State
from tokenrecords.gateway.store import Store
from tokenrecords.gateway.upstream import Upstream

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from tokenrecords.gateway.settings import Settings

STATE: web.AppKey[State] = web.AppKey("state", State)
_MAX_HEADER: Final = 1 << 16


def create_app(settings: Settings) -> web.Application:
    """A gateway, to be served by `serve`, or as part of another application.

    Raises:
        ValueError: Another gateway writes to the directory.
    """
    store = Store(settings.out, hash_ids=settings.hash_ids)
    app = web.Application(client_max_size=settings.max_body)

    async def running(app: web.Application) -> AsyncIterator[None]:
        upstream = Upstream(settings.timeout)
        state = State(settings, store, Pool(settings.roots()), upstream)
        app[STATE] = state
        state.background.append(asyncio.create_task(state.pool.watch(upstream, settings.health_interval)))
        yield
        for task in state.background:
            task.cancel()
        await asyncio.gather(*state.background, return_exceptions=True)
        state.commits.close()
        upstream.close()
        store.close()

    async def handle(request: web.Request) -> web.StreamResponse:
        return await relay(app[STATE], request)

    app.cleanup_ctx.append(running)
    add_routes(app, lambda: app[STATE])
    app.router.add_route("*", r"/{path:(?s:.*)}", handle)
    return app


async def serve(settings: Settings, *, ready: Callable[[State, int], object] | None = None) -> None:
    """Run a gateway until SIGTERM or SIGINT: then open calls are answered, within `grace`, and new ones refused.

    Args:
        settings: The settings.
        ready: Called with the state and the port once it listens.

    Raises:
        ValueError: As `create_app`.
        OSError: The port is taken.
    """
    app = create_app(settings)
    runner = web.AppRunner(
        app,
        access_log=None,
        handler_cancellation=True,
        shutdown_timeout=1.0,
        max_line_size=_MAX_HEADER,
        max_field_size=_MAX_HEADER,
    )
    await runner.setup()
    try:
        site = web.TCPSite(runner, settings.host, settings.port, backlog=1024)
        await site.start()
        stop = asyncio.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, stop.set)
        state = app[STATE]
        if ready is not None:
            ready(state, runner.addresses[0][1])
        await stop.wait()
        state.is_draining = True
        with suppress(TimeoutError):
            await asyncio.wait_for(state.metrics.idle.wait(), settings.grace)
    finally:
        await runner.cleanup()
