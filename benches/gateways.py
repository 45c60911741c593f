"""The CPU time that a gateway takes for a call, beside a relay that records nothing and the published gateway.

rllm-model-gateway is measured where the variable RLLM_PYTHON names a Python that has it (0.1.0).
"""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import aiohttp
from compare import Effort, Table
from gateway_engine import GROW, ids_of
from tokenrecords import expand_deltas, read_jsonl

if TYPE_CHECKING:
    from collections.abc import Iterator

HERE = Path(__file__).parent
AGENTS, TURNS = 8, 8
SIZES = ((4_096, 512), (32_768, 1_024))


def gateways(effort: Effort) -> list[Table]:
    """CPU milliseconds a call, each with 8 agents of 8 turns; the smallest of several runs."""
    rounds = 3 if effort.seconds else 1
    sizes = SIZES if effort.seconds else ((64, 16),)
    table = Table(
        "gateways",
        f"CPU milliseconds that a call takes in a gateway, {AGENTS} agents of {TURNS} turns",
        "prompt + generation",
        {"relay": "a relay", "gateway": "tokenrecords gateway", "rllm": "rllm-model-gateway 0.1.0"},
        unit=" ms",
    )
    for prompt, generation in sizes:
        for streamed in (False, True):
            found = {kind: [_run(kind, prompt, generation, streamed=streamed) for _ in range(rounds)] for kind in KINDS}
            label = f"{prompt:,} + {generation:,}{', streamed' if streamed else ''}"
            least = {kind: min(times) if None not in times else None for kind, times in found.items()}
            table.row(label, least)
    return [table]


KINDS = ("relay", "gateway", "rllm")


def _command(kind: str, port: int, engine: str, out: str) -> list[str] | None:
    rllm = os.environ.get("RLLM_PYTHON")
    return {
        "relay": [sys.executable, str(HERE / "gateway_engine.py"), "relay", str(port), engine],
        "gateway": [
            *(sys.executable, "-m", "tokenrecords", "gateway", "--engine", engine, "--out", out),
            *("--port", str(port)),
        ],
        "rllm": rllm
        and [
            *(rllm, "-m", "rllm_model_gateway", "--host", "127.0.0.1", "--port", str(port)),
            *("--worker", f"{engine}/v1", "--log-level", "warning", "--db-path", f"{out}.db"),
        ],
    }[kind] or None


def _run(kind: str, prompt: int, generation: int, *, streamed: bool) -> float | None:
    with ExitStack() as stack:
        out = str(Path(stack.enter_context(tempfile.TemporaryDirectory())) / "store")
        ports = [_free_port() for _ in range(2)]
        command = _command(kind, ports[1], f"http://127.0.0.1:{ports[0]}", out)
        if command is None:
            return None
        sizes = map(str, (prompt, generation, TURNS))
        stack.enter_context(
            _process([sys.executable, str(HERE / "gateway_engine.py"), "engine", str(ports[0]), *sizes], ports[0])
        )
        process = stack.enter_context(_process(command, ports[1]))
        base = f"http://127.0.0.1:{ports[1]}/sessions"
        asyncio.run(_load(base, "warm", 1, streamed=streamed))
        before = _cpu(process.pid)
        asyncio.run(_load(base, "agent", AGENTS, streamed=streamed))
        after = _settled(process.pid)
        if kind == "gateway":
            _check(Path(out), prompt, generation)
    return 1_000 * (after - before) / (AGENTS * TURNS)


async def _load(base: str, name: str, agents: int, *, streamed: bool) -> None:
    async def agent(client: aiohttp.ClientSession, k: int) -> None:
        for turn in range(TURNS):
            said: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": f"call {k} {turn}"}]}
            said |= {"stream": True} if streamed else {}
            async with client.post(f"{base}/{name}-{k}/v1/chat/completions", json=said) as answer:
                body = await answer.read()
                if answer.status != 200 or (streamed and b"[DONE]" not in body[-32:]):
                    sys.exit(f"a call failed: {answer.status} {body[:200]!r}")

    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0), read_bufsize=1 << 20) as client:
        await asyncio.gather(*(agent(client, k) for k in range(agents)))


def _check(out: Path, prompt: int, generation: int) -> None:
    """Whether each record has the ids that were served."""
    for k in range(AGENTS):
        entries = expand_deltas(read_jsonl(out / f"agent-{k}.tokens.jsonl")).entries
        ids = ids_of(k, prompt + TURNS * (generation + GROW))
        for turn, entry in enumerate(entries):
            size = prompt + turn * (generation + GROW)
            served = ids[:size], ids[size : size + generation]
            if (entry.prompt_token_ids.tolist(), entry.generation_token_ids.tolist()) != served:
                sys.exit(f"call {turn} of agent {k} is not what was served")
        if len(entries) != TURNS:
            sys.exit(f"{len(entries)} calls of agent {k} are there: {TURNS} were made")


def _free_port() -> int:
    with socket.socket() as made:
        made.bind(("127.0.0.1", 0))
        return made.getsockname()[1]  # type: ignore[no-any-return]


@contextmanager
def _process(command: list[str], port: int) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        for _ in range(600):
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=2).close()
                break
            except OSError:
                time.sleep(0.05)
        else:
            sys.exit(f"{command} does not answer")
        yield process
    finally:
        process.terminate()
        process.wait()


def _cpu(pid: int) -> float:
    """CPU seconds of a process with all its threads: Linux's clock of another process."""
    return time.clock_gettime((~pid << 3) | 2)


def _settled(pid: int) -> float:
    """The same, once the process rests."""
    last = _cpu(pid)
    while True:
        time.sleep(0.2)
        now = _cpu(pid)
        if now - last < 0.002:
            return now
        last = now
