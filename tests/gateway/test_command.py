"""The command `tokenrecords gateway` as a process of its own: started, stopped and killed."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import aiohttp
import pytest
from aiohttp import web
from support.command import run as command
from support.gateways import ASK, Answer, chat, chunks, engine, says, sse, streams
from tokenrecords import read_jsonl
from tokenrecords.files.side_files import read_side_files
from tokenrecords.gateway import Client, Settings
from yarl import URL

# How often it is killed while it streams, and while it does not: `nox -s kills` says more.
KILLS = int(os.environ.get("TOKENRECORDS_KILLS", "1"))

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path


@asynccontextmanager
async def gateway(url: str, out: Path, *options: str) -> AsyncIterator[tuple[asyncio.subprocess.Process, str]]:
    """The command, and its URL."""
    command = [sys.executable, "-m", "tokenrecords", "gateway", "--engine", url, "--out", str(out), "--port", "0"]
    process = await asyncio.create_subprocess_exec(*command, *options, stdout=subprocess.PIPE)
    assert process.stdout is not None
    try:
        line = (await process.stdout.readline()).decode()
        assert line.startswith("tokenrecords gateway: http://127.0.0.1:"), line
        yield process, line.split()[2].partition("/sessions")[0]
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


def run(answer: Answer, out: Path, test: Any, *options: str) -> None:
    async def body() -> None:
        async with (
            engine(answer) as (url, _),
            gateway(url + "/v1", out, *options) as (process, at),
            aiohttp.ClientSession() as client,
        ):
            await test(process, at, client)

    asyncio.run(body())


def test_sigterm_answers_what_is_open_and_refuses_the_rest(tmp_path: Path) -> None:
    begun, may_end = asyncio.Event(), asyncio.Event()

    async def answer(_: web.Request, __: Any) -> web.Response:
        begun.set()
        await may_end.wait()
        return web.json_response(chat([1], [2]))

    async def test(process: Any, at: str, client: aiohttp.ClientSession) -> None:
        url = f"{at}/sessions/s/v1/chat/completions"
        call = asyncio.ensure_future(client.post(url, json=ASK))
        await begun.wait()
        process.send_signal(signal.SIGTERM)
        while (await client.get(at + "/health")).status != 200 or (await (await client.get(at + "/health")).json())[
            "ok"
        ]:
            await asyncio.sleep(0.01)
        for refusing in (url, f"{at}/v1/chat/completions"):
            async with client.post(refusing, json=ASK) as refused:
                assert (refused.status, refused.headers["retry-after"]) == (503, "1")
        may_end.set()
        async with await call as answered:
            assert answered.status == 200
        assert await process.wait() == 0
        assert len(read_jsonl(tmp_path / "s.tokens.jsonl")) == 1

    run(answer, tmp_path, test)


def test_calls_that_outlive_the_grace_are_lost(tmp_path: Path) -> None:
    begun = asyncio.Event()

    async def answer(_: web.Request, __: Any) -> web.Response:
        begun.set()
        await asyncio.sleep(120)
        raise AssertionError

    async def test(process: Any, at: str, client: aiohttp.ClientSession) -> None:
        call = asyncio.ensure_future(client.post(f"{at}/sessions/s/v1/chat/completions", json=ASK))
        await begun.wait()
        process.send_signal(signal.SIGTERM)
        with pytest.raises(aiohttp.ClientError):
            await call
        assert await process.wait() == 0
        assert len((tmp_path / "s.lost").read_text().splitlines()) == 1

    run(answer, tmp_path, test, "--grace", "0.1")


@pytest.mark.parametrize("kill", range(KILLS))
@pytest.mark.parametrize("streamed", [False, True])
def test_what_an_agent_saw_survives_a_kill(tmp_path: Path, streamed: bool, kill: int) -> None:
    answers = 40 - 7 * kill % 40  # after which it is killed
    whole = sse(chunks([1, 2], [41, 7]))
    answer = streams(*whole.splitlines(keepends=True)) if streamed else says(chat([1, 2], [41, 7]))

    async def test(process: Any, at: str, client: aiohttp.ClientSession) -> None:
        seen: dict[str, list[str]] = {}

        async def agent(name: str) -> None:
            while True:
                url = f"{at}/sessions/{name}/v1/chat/completions"
                async with client.post(url, json={**ASK, "stream": streamed}) as got:
                    body = await got.read()
                    assert got.status == 200
                    if not streamed or body.endswith(b"data: [DONE]\n\n"):
                        seen.setdefault(name, []).append(got.headers["x-tokenrecords-call"])
                if sum(map(len, seen.values())) == answers:
                    os.kill(process.pid, signal.SIGKILL)

        agents = [agent(f"a{k}") for k in range(8)]
        await asyncio.gather(*agents, return_exceptions=True)
        assert await process.wait() == -signal.SIGKILL
        assert sum(map(len, seen.values())) >= answers
        sides = read_side_files([tmp_path])
        for name, calls in seen.items():
            entries = read_jsonl(tmp_path / f"{name}.tokens.jsonl")
            recorded = [entry.model_call_id for entry in entries]
            assert set(calls) <= set(recorded)
            assert len(set(recorded)) == len(recorded)
            assert {tuple(entry.generation_token_ids) for entry in entries} == {(41, 7)}
            side = sides[str(tmp_path / name)]
            assert set(side.begun) == {*recorded, *side.lost(recorded)}
            assert len(side.lost(recorded)) <= 1  # an agent has one call at a time

    run(answer, tmp_path, test, "--durable", "write" if kill % 2 else "fsync")


def test_the_next_gateway_says_what_the_killed_one_lost(tmp_path: Path) -> None:
    begun = asyncio.Event()

    async def answer(_: web.Request, __: Any) -> web.Response:
        begun.set()
        await asyncio.sleep(120)
        raise AssertionError

    async def killed(process: Any, at: str, client: aiohttp.ClientSession) -> None:
        call = asyncio.ensure_future(client.post(f"{at}/sessions/s/v1/chat/completions", json=ASK))
        await begun.wait()
        process.kill()
        with pytest.raises(aiohttp.ClientError):
            await call

    async def next_one(_: Any, at: str, __: aiohttp.ClientSession) -> None:
        counts = await asyncio.to_thread(Client(at).session, "s")
        assert (counts["calls"], counts["lost"], counts["open"]) == (0, 1, 0)

    run(answer, tmp_path, killed)
    run(answer, tmp_path, next_one)


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (["--host", "0.0.0.0"], "a key and an admin key are needed"),
        (["--host", "0.0.0.0", "--key", "k"], "a key and an admin key are needed"),
        (["--engine", "localhost:8000"], "is not a URL"),
        (["--dialect", "x"], "one of vllm, sglang"),
        (["--set", "temperature"], "is not KEY=JSON"),
        (["--set", "temperature=warm"], "is not KEY=JSON"),
        (["--durable", "x"], "'fsync' or 'write' is needed"),
        (["--on-loss", "x"], "'fail' or 'pass' is needed"),
    ],
)
def test_what_is_not_understood_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: list[str], why: str
) -> None:
    monkeypatch.setattr("tokenrecords.gateway.server.serve", lambda *_, **__: pytest.fail("it is understood"))
    monkeypatch.setenv("COLUMNS", "500")
    said = command("gateway", "--engine", "http://localhost:1/v1", "--out", tmp_path, *options)
    assert said.exit_code == 2
    assert why in said.stderr.replace("\n", " ")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("options", "changed"),
    [
        ([], {}),
        (["--engine", "http://f"], {"engines": ("http://e", "http://f")}),
        (["--host", "::1"], {"host": "::1"}),
        (["--port", "0"], {"port": 0}),
        (["--key", "k"], {"key": "k"}),
        (["--admin-key", "k"], {"admin_key": "k"}),
        (["--engine-key", "k"], {"engine_key": "k"}),
        (["--dialect", "sglang"], {"engine": "sglang"}),
        (["--set", 'a="b=c"', "--set", "n=2"], {"enforced": {"a": "b=c", "n": 2}}),
        (["--require-session"], {"require_session": True}),
        (["--hash-ids"], {"hash_ids": True}),
        (["--keep-messages"], {"keep_messages": True}),
        (["--whole-prompts"], {"delta": False}),
        (["--durable", "write"], {"durable": "write"}),
        (["--on-loss", "pass"], {"on_loss": "pass"}),
        (["--keep-partial"], {"keep_partial": True}),
        (["--max-body", "7"], {"max_body": 7}),
        (["--grace", "7"], {"grace": 7.0}),
        (["--timeout", "7"], {"timeout": 7.0}),
        (["--retries", "7"], {"retries": 7}),
    ],
)
def test_each_option_is_a_setting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: list[str], changed: dict[str, Any]
) -> None:
    served: list[Settings] = []

    async def serve(settings: Settings, **_: Any) -> None:
        served.append(settings)

    monkeypatch.setattr("tokenrecords.gateway.server.serve", serve)
    assert command("gateway", "--engine", "http://e", "--out", tmp_path, *options).exit_code == 0
    assert served == [Settings(**{"engines": ("http://e",), "out": tmp_path, **changed})]


def test_keys_may_be_in_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    served: list[Settings] = []

    async def serve(settings: Settings, **_: Any) -> None:
        served.append(settings)

    monkeypatch.setattr("tokenrecords.gateway.server.serve", serve)
    for name in ("KEY", "ADMIN_KEY", "ENGINE_KEY"):
        monkeypatch.setenv(f"TOKENRECORDS_{name}", name)
    assert command("gateway", "--engine", "http://e", "--out", tmp_path).exit_code == 0
    assert [(each.key, each.admin_key, each.engine_key) for each in served] == [("KEY", "ADMIN_KEY", "ENGINE_KEY")]


def test_a_port_that_is_taken_is_said(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        refused = command("gateway", "--engine", "http://e", "--out", tmp_path, "--port", port)
    assert refused.exit_code == 2
    assert "address already in use" in refused.stderr


@pytest.mark.parametrize(("host", "shown"), [("127.0.0.1", "127.0.0.1"), ("::1", "[::1]")])
def test_it_says_where_it_listens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, host: str, shown: str) -> None:
    async def serve(settings: Settings, *, ready: Any) -> None:
        ready(SimpleNamespace(settings=settings), 7)

    monkeypatch.setattr("tokenrecords.gateway.server.serve", serve)
    said = command("gateway", "--engine", "http://e", "--engine", "http://f", "--out", tmp_path, "--host", host)
    assert said.stdout == f"tokenrecords gateway: http://{shown}:7/sessions/<session>/v1 -> http://e, http://f\n"


def test_no_keys_and_no_bodies_are_logged(tmp_path: Path) -> None:
    async def fails(_: web.Request, __: Any) -> web.Response:
        return web.json_response({"secret answer": 1})

    async def body() -> None:
        options = ["--key", "secret-key", "--admin-key", "secret-admin", "--engine-key", "secret-engine"]
        async with engine(fails) as (url, _):
            command = [sys.executable, "-m", "tokenrecords", "gateway", "--engine", url, "--out", str(tmp_path)]
            process = await asyncio.create_subprocess_exec(
                *command, "--port", "0", *options, stdout=subprocess.PIPE, stderr=subprocess.PIPE
            )
            assert process.stdout is not None
            first = (await process.stdout.readline()).decode()
            at = first.split()[2].partition("/sessions")[0]
            async with aiohttp.ClientSession(headers={"authorization": "Bearer secret-key"}) as client:
                said = {**ASK, "messages": [{"role": "user", "content": "secret words"}]}
                async with client.post(f"{at}/sessions/s/v1/chat/completions", json=said) as got:
                    assert got.status == 502
            process.send_signal(signal.SIGTERM)
            out, err = await process.communicate()
            assert process.returncode == 0
            assert b"secret" not in out + err + first.encode()
            assert json.dumps(said)[:20].encode() not in err

    asyncio.run(body())


def test_headers_may_be_long(tmp_path: Path) -> None:
    async def answer(_: web.Request, __: Any) -> web.Response:
        return web.json_response(chat([1], [2]), headers={"x-long": "b" * 20_000})

    async def test(_: Any, url: str, __: Any) -> None:
        reader, writer = await asyncio.open_connection(URL(url).host, URL(url).port)
        head = (b"Host: x", b"Connection: close", b"Proxy-Authorization: " + b"a" * 20_000, b"Content-Length: 2")
        writer.write(b"\r\n".join([b"POST /sessions/s/v1/chat/completions HTTP/1.1", *head, b"", b"{}"]))
        said = await reader.read()
        writer.close()
        assert said.startswith(b"HTTP/1.1 200"), said[:300]
        assert b"x-long: " + b"b" * 20_000 in said

    run(answer, tmp_path, test)
