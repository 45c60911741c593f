"""A fast fake engine, and a relay that records nothing: what `gateways.py` measures a gateway between and beside.

python benches/gateway_engine.py engine PORT PROMPT GENERATION TURNS
python benches/gateway_engine.py relay PORT ENGINE
"""

from __future__ import annotations

import json
import re
import sys
from typing import Any

import aiohttp
import numpy as np
from aiohttp import web

CALL = re.compile(rb"call (\d+) (\d+)")
GROW = 64  # ids that each turn adds to what was generated
MODEL = {"id": "c", "created": 1_764_400_000, "model": "m"}


def ids_of(session: int, length: int) -> list[int]:
    """The ids of a session, of which each turn has the first ones."""
    return np.random.default_rng(session).integers(0, 151_936, length).tolist()  # type: ignore[no-any-return]


def entries(generated: list[int]) -> list[dict[str, Any]]:
    return [{"token": " so", "logprob": -(token % 997) / 256, "bytes": [32, 115, 111]} for token in generated]


def whole(prompt: list[int], generated: list[int]) -> bytes:
    message = {"role": "assistant", "content": " so" * len(generated)}
    logprobs = {"content": entries(generated)}
    choice = {"index": 0, "message": message, "logprobs": logprobs, "finish_reason": "stop", "token_ids": generated}
    usage = {"prompt_tokens": len(prompt), "completion_tokens": len(generated)}
    body = {**MODEL, "object": "chat.completion", "choices": [choice], "usage": usage, "prompt_token_ids": prompt}
    return json.dumps(body, separators=(",", ":")).encode()


def events(prompt: list[int], generated: list[int]) -> list[bytes]:
    head = {**MODEL, "object": "chat.completion.chunk"}
    first = {"index": 0, "delta": {"role": "assistant", "content": ""}, "logprobs": None, "finish_reason": None}
    chunks: list[dict[str, Any]] = [{**head, "choices": [first], "prompt_token_ids": prompt}]
    for place, (token, entry) in enumerate(zip(generated, entries(generated), strict=True)):
        reason = "stop" if place == len(generated) - 1 else None
        said = {"index": 0, "delta": {"content": " so"}, "logprobs": {"content": [entry]}, "finish_reason": reason}
        chunks.append({**head, "choices": [{**said, "token_ids": [token]}]})
    texts = [json.dumps(chunk, separators=(",", ":")).encode() for chunk in chunks]
    return [b"data: " + text + b"\n\n" for text in (*texts, b"[DONE]")]


def engine(prompt: int, generation: int, turns: int) -> web.Application:
    ready: dict[tuple[int, int, bool], Any] = {}

    def answer(session: int, turn: int, *, streamed: bool) -> Any:
        key = session, turn, streamed
        if key not in ready:
            ids = ids_of(session, prompt + turns * (generation + GROW))
            size = prompt + turn * (generation + GROW)
            ready[key] = (events if streamed else whole)(ids[:size], ids[size : size + generation])
        return ready[key]

    async def chat(request: web.Request) -> web.StreamResponse:
        raw = await request.read()
        call = CALL.search(raw)
        assert call is not None
        streamed = b'"stream": true' in raw
        said = answer(int(call[1]), int(call[2]), streamed=streamed)
        if not streamed:
            return web.Response(body=said, content_type="application/json")
        response = web.StreamResponse(headers={"content-type": "text/event-stream"})
        await response.prepare(request)
        for event in said:
            await response.write(event)
        return response

    return served(chat)


def relay(url: str) -> web.Application:
    async def pass_on(request: web.Request) -> web.StreamResponse:
        path = "/v1/" + request.path.partition("/v1/")[2]
        async with request.app[CLIENT].post(url + path, data=await request.read()) as answer:
            if answer.content_type != "text/event-stream":
                return web.Response(body=await answer.read(), content_type=answer.content_type)
            response = web.StreamResponse(headers={"content-type": "text/event-stream"})
            await response.prepare(request)
            async for part in answer.content.iter_any():
                await response.write(part)
            return response

    return served(pass_on)


CLIENT: web.AppKey[aiohttp.ClientSession] = web.AppKey("client", aiohttp.ClientSession)


def served(handle: Any) -> web.Application:
    async def client(app: web.Application) -> Any:
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as made:
            app[CLIENT] = made
            yield

    async def health(_: web.Request) -> web.Response:
        return web.Response()

    app = web.Application(client_max_size=1 << 30)
    app.cleanup_ctx.append(client)
    app.add_routes([web.get("/health", health), web.post("/{path:.*}", handle)])
    return app


if __name__ == "__main__":
    kind, port, *rest = sys.argv[1:]
    app = relay(rest[0]) if kind == "relay" else engine(*map(int, rest))
    web.run_app(app, host="127.0.0.1", port=int(port), access_log=None, print=None)
