"""The command `tokenrecords gateway`: its options, and the line that says what it does."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from pathlib import Path  # noqa: TC003 - typer reads the annotations
from typing import TYPE_CHECKING, Annotated, Any

import typer
from pydantic_core import from_json
from rich.console import Console
from rich.live import Live

from tokenrecords.cli.paths import local_directory
from tokenrecords.engines.requests import ASKS

if TYPE_CHECKING:
    from tokenrecords.gateway.state import State

_TICK = 0.5  # seconds between two status lines


def gateway(
    engine: Annotated[
        list[str], typer.Option(metavar="URL", help="An engine, with or without /v1; repeat it for several.")
    ],
    out: Annotated[Path, typer.Option(metavar="DIR", parser=local_directory, help="Where the sessions' files go.")],
    *,
    host: Annotated[str, typer.Option(help="Where it listens; others than this host need both keys.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes any that is free.")] = 9090,
    key: Annotated[
        str | None, typer.Option(envvar="TOKENRECORDS_KEY", help="The API key that agents must have.")
    ] = None,
    admin_key: Annotated[
        str | None, typer.Option(envvar="TOKENRECORDS_ADMIN_KEY", help="The key of whoever reads sessions.")
    ] = None,
    engine_key: Annotated[
        str | None, typer.Option(envvar="TOKENRECORDS_ENGINE_KEY", help="What engines get as the API key.")
    ] = None,
    dialect: Annotated[str, typer.Option(metavar="NAME", help=f"The kind of the engines: {', '.join(ASKS)}.")] = "vllm",
    enforced: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=JSON", help="What each generating request says.")
    ] = None,
    require_session: Annotated[
        bool, typer.Option("--require-session", help="Refuse calls that name no session.")
    ] = False,
    hash_ids: Annotated[
        bool, typer.Option("--hash-ids", help="Take any session id, and name files after its hash.")
    ] = False,
    keep_messages: Annotated[
        bool, typer.Option("--keep-messages", help="Write requests and answers beside the records.")
    ] = False,
    whole_prompts: Annotated[
        bool, typer.Option("--whole-prompts", help="Write each prompt whole, not what it adds to its parent.")
    ] = False,
    durable: Annotated[
        str, typer.Option(metavar="fsync|write", help="What a record survives before its answer is sent.")
    ] = "fsync",
    on_loss: Annotated[
        str, typer.Option(metavar="fail|pass", help="What an agent gets whose call could not be recorded.")
    ] = "fail",
    keep_partial: Annotated[
        bool, typer.Option("--keep-partial", help="Record what an agent that left had been sent.")
    ] = False,
    max_body: Annotated[int, typer.Option(metavar="BYTES", min=1, help="The longest request.")] = 1 << 28,
    grace: Annotated[float, typer.Option(metavar="SECONDS", min=0, help="For open calls when it is stopped.")] = 30.0,
    timeout: Annotated[
        float | None, typer.Option(metavar="SECONDS", min=0, help="For a whole call; none by default.")
    ] = None,
    retries: Annotated[
        int, typer.Option(metavar="N", min=0, help="How often a call is sent again that no engine answered.")
    ] = 2,
) -> None:
    """Record every generating call between agents and engines: DIR/<session>.tokens.jsonl.

    An agent's base URL is http://localhost:9090/sessions/<session>/v1.

    Exit status: 0 when it was stopped, once open calls were answered; 2 if it can't start.
    """
    from tokenrecords.gateway.server import serve  # noqa: PLC0415 - an extra that the other commands do without
    from tokenrecords.gateway.settings import Settings  # noqa: PLC0415

    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    try:
        settings = Settings(
            engines=tuple(engine),
            out=out,
            host=host,
            port=port,
            key=key,
            admin_key=admin_key,
            engine_key=engine_key,
            engine=dialect,
            enforced=dict(map(_setting, enforced or ())),
            require_session=require_session,
            hash_ids=hash_ids,
            keep_messages=keep_messages,
            delta=not whole_prompts,
            durable=durable,  # type: ignore[arg-type]
            on_loss=on_loss,  # type: ignore[arg-type]
            keep_partial=keep_partial,
            max_body=max_body,
            grace=grace,
            timeout=timeout,
            retries=retries,
        )
        loop = None
        with suppress(ModuleNotFoundError):  # quicker, where it is there
            import uvloop  # noqa: PLC0415

            loop = uvloop.new_event_loop
        with asyncio.Runner(loop_factory=loop) as runner:
            runner.run(serve(settings, ready=lambda state, port: _started(settings.host, port, state)))
    except (ValueError, OSError) as problem:
        raise typer.BadParameter(str(problem)) from problem


def _setting(text: str) -> tuple[str, Any]:
    name, _, value = text.partition("=")
    try:
        return name, from_json(value)
    except ValueError as problem:
        raise ValueError(f"--set {text} is not KEY=JSON: {problem}") from None


def _started(host: str, port: int, state: State) -> None:
    """Say where it listens; in a terminal a line that says what it has done follows."""
    shown = f"[{host}]" if ":" in host else host
    typer.echo(
        f"tokenrecords gateway: http://{shown}:{port}/sessions/<session>/v1 -> {', '.join(state.settings.engines)}"
    )
    console = Console(stderr=True)
    if console.is_terminal:
        state.background.append(asyncio.ensure_future(_status(console, state)))


async def _status(console: Console, state: State) -> None:
    before = 0
    with Live(console=console, transient=True, auto_refresh=False) as live:
        while True:
            counts = state.metrics.counts
            done = sum(counts.values())
            speed = (done - before) / _TICK
            before = done
            ends = ", ".join(f"{number:,} {end}" for end, number in counts.items())
            live.update(f"{ends}, {state.metrics.open:,} open, {speed:,.0f} calls a second", refresh=True)
            await asyncio.sleep(_TICK)
