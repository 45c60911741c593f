"""OpenAI's own client as the agent: what it sees, and what is recorded of it."""

import asyncio
import json
from collections.abc import AsyncIterable
from pathlib import Path
from typing import Any

import pytest
from openai import APIConnectionError, APIError, APIStatusError, AsyncOpenAI, OpenAI
from support.gateways import ASK, Answer, Rig, chat, chunks, engine, rig, says, sse, streams
from tokenrecords.gateway import Client
from tokenrecords.gateway.client import GatewayError

PROMPT, GENERATION = [1, 2, 3], [41, 2]
TOOL = {"type": "function", "function": {"name": "read", "parameters": {"type": "object"}}}
CALL = {"id": "call_1", "type": "function", "function": {"name": "read", "arguments": '{"path": "a"}'}}


def run(out: Path, answer: Answer, test: Any, **settings: Any) -> None:
    async def body() -> None:
        async with (
            rig(answer, out, **settings) as made,
            AsyncOpenAI(base_url=f"{made.url}/sessions/s/v1", api_key="none", max_retries=0) as agent,
        ):
            await asyncio.wait_for(test(made, agent), 60)

    asyncio.run(body())


async def text(stream: AsyncIterable[Any]) -> str:
    return "".join([chunk.choices[0].delta.content or "" async for chunk in stream])


def recorded(rig: Rig) -> list[tuple[list[int], list[int], Any]]:
    return [(e.prompt_token_ids.tolist(), e.generation_token_ids.tolist(), e.choice) for e in rig.records()]


def test_in_a_thread(tmp_path: Path) -> None:
    async def test(rig: Rig, _: AsyncOpenAI) -> None:
        with OpenAI(base_url=f"{rig.url}/sessions/s/v1", api_key="none", max_retries=0) as agent:
            said = await asyncio.to_thread(lambda: agent.chat.completions.create(**ASK))
        assert said.choices[0].message.content == "said 0"
        assert said.choices[0].logprobs is None
        assert said.model_extra == {}
        assert recorded(rig) == [(PROMPT, GENERATION, 0)]

    run(tmp_path, says(chat(PROMPT, GENERATION)), test)


def test_several_choices(tmp_path: Path) -> None:
    async def test(rig: Rig, agent: AsyncOpenAI) -> None:
        said = await agent.chat.completions.create(**ASK, n=3, logprobs=True)
        assert [choice.message.content for choice in said.choices] == ["said 0", "said 1", "said 2"]
        assert [choice.logprobs.content[0].logprob for choice in said.choices if choice.logprobs] == [-0.5, -1.5, -2.5]
        assert recorded(rig) == [(PROMPT, [41 + k, 2 + k], k) for k in range(3)]
        assert [entry.generation_log_probs[0] for entry in rig.records()] == [-0.5, -1.5, -2.5]

    run(tmp_path, says(chat(PROMPT, GENERATION, n=3)), test)


def test_a_stream_of_several_choices(tmp_path: Path) -> None:
    parts = []
    for chunk in chunks(PROMPT, GENERATION):
        second = json.loads(json.dumps(chunk))
        second["choices"][0]["index"] = 1
        if "token_ids" in second["choices"][0]:
            second["choices"][0]["token_ids"][0] += 1
            second["choices"][0]["delta"]["content"] = "c"
        parts += [chunk, second]

    async def test(rig: Rig, agent: AsyncOpenAI) -> None:
        said = {0: "", 1: ""}
        async for chunk in await agent.chat.completions.create(**ASK, n=2, stream=True):
            assert chunk.choices[0].logprobs is None
            assert chunk.choices[0].model_extra == {}
            said[chunk.choices[0].index] += chunk.choices[0].delta.content or ""
        assert said == {0: "abab", 1: "cc"}
        assert recorded(rig) == [(PROMPT, GENERATION, 0), (PROMPT, [42, 3], 1)]

    run(tmp_path, streams(sse(parts)), test)


def test_tools(tmp_path: Path) -> None:
    body = chat(PROMPT, GENERATION)
    body["choices"][0] |= {"message": {"role": "assistant", "content": None, "tool_calls": [CALL]}}

    async def test(rig: Rig, agent: AsyncOpenAI) -> None:
        said = await agent.chat.completions.create(**ASK, tools=[TOOL])  # type: ignore[list-item]
        [call] = said.choices[0].message.tool_calls or ()
        assert call.model_dump() == CALL
        assert rig.seen[0].body["tools"] == [TOOL]
        assert recorded(rig) == [(PROMPT, GENERATION, 0)]

    run(tmp_path, says(body), test)


def test_tools_in_a_stream(tmp_path: Path) -> None:
    parts = chunks(PROMPT, GENERATION)
    pieces = (
        {**CALL, "index": 0, "function": {"name": "read", "arguments": ""}},
        {"index": 0, "function": {"arguments": "{}"}},
    )
    for part, piece in zip(parts[1:], pieces, strict=True):
        part["choices"][0]["delta"] = {"tool_calls": [piece]}

    async def test(rig: Rig, agent: AsyncOpenAI) -> None:
        said = ""
        async with agent.chat.completions.stream(**ASK, tools=[TOOL]) as stream:  # type: ignore[list-item]
            async for event in stream:
                if event.type == "tool_calls.function.arguments.delta":
                    said += event.arguments_delta
        assert said == "{}"
        assert recorded(rig) == [(PROMPT, GENERATION, 0)]

    run(tmp_path, streams(sse(parts)), test)


def test_what_the_agent_asks_for_beside_the_api(tmp_path: Path) -> None:
    async def test(_: Rig, agent: AsyncOpenAI) -> None:
        said = await agent.chat.completions.create(**ASK, extra_body={"return_token_ids": True})
        assert said.model_extra == {"prompt_token_ids": PROMPT}
        assert said.choices[0].model_extra == {"token_ids": GENERATION}
        assert said.choices[0].logprobs is None

    run(tmp_path, says(chat(PROMPT, GENERATION)), test)


@pytest.mark.parametrize("streamed", [False, True])
def test_errors_are_the_engines_own(tmp_path: Path, streamed: bool) -> None:
    async def test(rig: Rig, agent: AsyncOpenAI) -> None:
        with pytest.raises(APIStatusError, match="too long") as refused:
            await agent.chat.completions.create(**ASK, stream=streamed)
        assert refused.value.status_code == 400
        assert refused.value.request_id == "r-1"
        assert rig.lines(".lost") == []

    run(tmp_path, says({"object": "error", "message": "too long", "code": 400}, 400, x_request_id="r-1"), test)


def test_an_error_beside_the_ids_of_the_prompt_is_one_too(tmp_path: Path) -> None:
    async def test(rig: Rig, agent: AsyncOpenAI) -> None:
        said = await agent.chat.completions.create(**ASK)
        assert said.choices is None
        assert said.model_extra == {"error": {"message": "planted"}}
        assert rig.lines(".lost") == []
        assert rig.lines(".intents")[1][1] == "the engine answered with an error: planted"

    run(tmp_path, says({**chat(PROMPT, GENERATION), "choices": None, "error": {"message": "planted"}}), test)


def test_an_error_within_a_stream(tmp_path: Path) -> None:
    async def test(rig: Rig, agent: AsyncOpenAI) -> None:
        with pytest.raises(APIError, match="planted"):
            await text(await agent.chat.completions.create(**ASK, stream=True))
        assert rig.lines(".lost")[0][1] == "chunk 2: the server sent an error: planted"

    parts = [*chunks(PROMPT, GENERATION)[:2], {"error": {"message": "planted"}}]
    run(tmp_path, streams(sse(parts)), test)


def test_a_stream_that_is_cut_off(tmp_path: Path) -> None:
    async def test(rig: Rig, agent: AsyncOpenAI) -> None:
        with pytest.raises(Exception, match=r"peer closed|incomplete|Connection") as cut:
            await text(await agent.chat.completions.create(**ASK, stream=True))
        assert isinstance(cut.value, APIConnectionError) or type(cut.value).__name__ == "RemoteProtocolError"
        assert len(rig.lines(".lost")) == 1

    run(tmp_path, streams(sse(chunks(PROMPT, GENERATION)[:2], done=False), ends=False), test)


@pytest.mark.parametrize("streamed", [False, True])
def test_a_loss_is_an_error(tmp_path: Path, streamed: bool) -> None:
    async def test(rig: Rig, agent: AsyncOpenAI) -> None:
        with pytest.raises(APIError, match="the call could not be recorded"):
            await text(await agent.chat.completions.create(**ASK, stream=streamed))
        assert len(rig.lines(".lost")) == 1

    bare: Any = [{**each, "prompt_token_ids": None} for each in chunks(PROMPT, [])]
    bare[0]["choices"][0]["finish_reason"] = "stop"
    run(tmp_path, streams(sse(bare)) if streamed else says({"choices": []}), test)


def test_an_error_that_is_no_json_is_said_as_far_as_it_helps() -> None:
    async def body() -> None:
        async with engine(says(b"bad " * 500, 502)) as (url, _):
            with pytest.raises(GatewayError) as refused:
                await asyncio.to_thread(Client(url).sessions)
            assert (refused.value.status, str(refused.value)) == (502, "bad " * 125)

    asyncio.run(body())
