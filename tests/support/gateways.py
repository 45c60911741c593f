"""A gateway between a test and an engine that answers what the test says."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import aiohttp
from aiohttp import web
from aiohttp.test_utils import TestServer
from tokenrecords import TokenEntry, read_jsonl
from tokenrecords.gateway import Client, Settings, create_app

if TYPE_CHECKING:
    from pathlib import Path

CHAT = "/sessions/s/v1/chat/completions"
PROMPT, GENERATION = [1, 2, 3], [41, 2]
ASK = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
Answer = Callable[[web.Request, Any], Awaitable[web.StreamResponse]]


@dataclass
class Seen:
    """A request as the engine got it."""

    path: str
    headers: dict[str, str]
    body: Any
    raw: bytes


@dataclass
class Rig:
    """A gateway, its engine, and a client of it."""

    url: str
    client: aiohttp.ClientSession
    seen: list[Seen]
    out: Path
    left: list[str] = field(default_factory=list)

    async def post(self, path: str = CHAT, body: Any = ASK, **headers: str) -> tuple[int, dict[str, str], bytes]:
        """Status, headers (in lower case) and body of what comes back."""
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        async with self.client.post(self.url + path, data=data, headers=named) as answer:
            return answer.status, {k.lower(): v for k, v in answer.headers.items()}, await answer.read()

    async def get(self, path: str, method: str = "GET", body: Any = None, **headers: str) -> tuple[int, Any]:
        """Status and JSON of what the gateway says of itself."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        async with self.client.request(method, self.url + path, json=body, headers=named) as answer:
            text = await answer.text()
        return answer.status, json.loads(text) if text.startswith(("{", "[")) else text

    def records(self, session: str = "s") -> list[TokenEntry]:
        path = self.out / f"{session}.tokens.jsonl"
        return read_jsonl(path) if path.exists() else []

    def lines(self, suffix: str, session: str = "s") -> list[list[str]]:
        """The lines of a side file, split at tabs."""
        path = self.out / f"{session}{suffix}"
        return [line.split("\t") for line in path.read_text().splitlines()] if path.exists() else []

    def admin(self, key: str | None = None) -> Client:
        return Client(self.url, admin_key=key)


@asynccontextmanager
async def engine(answer: Answer) -> AsyncIterator[tuple[str, list[Seen]]]:
    """An engine's URL, and the requests that it got."""
    seen: list[Seen] = []

    async def handle(request: web.Request) -> web.StreamResponse:
        raw = await request.read()
        try:
            body = json.loads(raw)
        except ValueError:
            body = None
        seen.append(Seen(request.path_qs, {k.lower(): v for k, v in request.headers.items()}, body, raw))
        return await answer(request, body)

    app = web.Application(client_max_size=1 << 30)
    app.router.add_route("*", r"/{path:(?s:.*)}", handle)
    async with TestServer(app, handler_cancellation=True) as server:
        yield str(server.make_url("")).rstrip("/"), seen


@asynccontextmanager
async def rig(answer: Answer, out: Path, **settings: Any) -> AsyncIterator[Rig]:
    """A gateway in front of an engine that answers so."""
    async with engine(answer) as (url, seen):
        made = Settings(**{"engines": (url + "/v1",), "out": out, "durable": "write", **settings})
        async with (
            TestServer(create_app(made), handler_cancellation=True) as server,
            aiohttp.ClientSession(auto_decompress=False) as client,
        ):
            yield Rig(str(server.make_url("")).rstrip("/"), client, seen, out)


def run(out: Path, answer: Answer, test: Callable[[Rig], Awaitable[None]], **settings: Any) -> None:
    """A test of such a gateway, which has a minute."""

    async def body() -> None:
        async with rig(answer, out, **settings) as made:
            await asyncio.wait_for(test(made), 60)

    asyncio.run(body())


def says(body: Any, status: int = 200, **headers: str) -> Answer:
    """An engine that always answers this."""
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    named = {"content-type": "application/json"} | {k.replace("_", "-"): v for k, v in headers.items()}

    async def answer(_: web.Request, __: Any) -> web.Response:
        return web.Response(body=raw, status=status, headers=named)

    return answer


def streams(*parts: bytes, ends: bool = True) -> Answer:
    """An engine that streams these bytes, and then ends or breaks off."""

    async def answer(request: web.Request, _: Any) -> web.StreamResponse:
        response = web.StreamResponse(headers={"content-type": "text/event-stream; charset=utf-8"})
        await response.prepare(request)
        for part in parts:
            await response.write(part)
        if not ends:
            assert request.transport is not None
            request.transport.abort()
        return response

    return answer


def chat(prompt: list[int], generation: list[int], n: int = 1, **more: Any) -> dict[str, Any]:
    """A vLLM chat completion; choice k has the ids raised by k."""
    choices = [
        {
            "index": k,
            "message": {"role": "assistant", "content": f"said {k}"},
            "logprobs": {"content": [{"token": "x", "logprob": -0.5 - k} for _ in generation]},
            "finish_reason": "stop",
            "token_ids": [each + k for each in generation],
        }
        for k in range(n)
    ]
    usage = {"prompt_tokens": len(prompt), "completion_tokens": n * len(generation)}
    body = {"id": "chatcmpl-1", "object": "chat.completion", "created": 1_764_400_000, "model": "m"}
    return {**body, "choices": choices, "usage": usage, "prompt_token_ids": prompt, **more}


def chunks(prompt: list[int], generation: list[int], text: str = "ab") -> list[dict[str, Any]]:
    """The chunks of a vLLM chat completion, one for each id."""
    head = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1_764_400_000, "model": "m"}
    first = {"index": 0, "delta": {"role": "assistant", "content": ""}, "logprobs": None, "finish_reason": None}
    made: list[dict[str, Any]] = [{**head, "choices": [first], "prompt_token_ids": prompt}]
    for place, token in enumerate(generation):
        choice = {
            "index": 0,
            "delta": {"content": text},
            "logprobs": {"content": [{"token": text, "logprob": -0.25}]},
            "finish_reason": "stop" if place == len(generation) - 1 else None,
            "token_ids": [token],
        }
        made.append({**head, "choices": [choice]})
    return made


def sse(parts: list[dict[str, Any]], *, done: bool = True, end: bytes = b"\n\n", data: bytes = b"data: ") -> bytes:
    """Chunks as the bytes of a stream."""
    texts = [json.dumps(part, ensure_ascii=False).encode() for part in parts] + ([b"[DONE]"] if done else [])
    return b"".join(data + text + end for text in texts)
