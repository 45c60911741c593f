"""Anthropic's client and litellm as the agent; `nox -s clients` has them."""

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import pytest
from support.gateways import ASK, Answer, Rig, chat, chunks, rig, says, sse, streams

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # it asks the network for prices otherwise
anthropic = pytest.importorskip("anthropic")
litellm = pytest.importorskip("litellm")

pytestmark = pytest.mark.filterwarnings("default")  # their own warnings are theirs
PROMPT, GENERATION = [1, 2, 3], [41, 2]
IDS = {"prompt_token_ids": PROMPT, "generation_token_ids": GENERATION, "generation_log_probs": [-0.5, -0.25]}
MESSAGE = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "stop_sequence": None}
USAGE = {"input_tokens": 3, "output_tokens": 2}
TOOL = {"name": "read", "input_schema": {"type": "object"}}
SAID = {"model": "m", "max_tokens": 8, "messages": [{"role": "user", "content": "hi"}]}


def run(out: Path, answer: Answer, test: Any) -> None:
    async def body() -> None:
        async with rig(answer, out) as made:
            await asyncio.wait_for(test(made), 60)

    asyncio.run(body())


def claude(rig: Rig) -> Any:
    return anthropic.AsyncAnthropic(base_url=f"{rig.url}/sessions/s", api_key="none", max_retries=0)


def check_record(rig: Rig, choices: int = 1) -> None:
    ids = [(entry.prompt_token_ids.tolist(), entry.generation_token_ids.tolist()) for entry in rig.records()]
    assert ids == [(PROMPT, [each + k for each in GENERATION]) for k in range(choices)]
    assert rig.lines(".lost") == []


def test_messages(tmp_path: Path) -> None:
    text, tool = {"type": "text", "text": "hi"}, {"type": "tool_use", "id": "t", "name": "read", "input": {"a": 1}}
    body = {**MESSAGE, "content": [text, tool], "stop_reason": "tool_use", "usage": USAGE, **IDS}

    async def test(rig: Rig) -> None:
        async with claude(rig) as agent:
            said = await agent.messages.create(**SAID, tools=[TOOL])
        assert [block.type for block in said.content] == ["text", "tool_use"]
        assert said.content[1].input == {"a": 1}
        assert not said.model_extra
        assert rig.seen[0].path == "/v1/messages"
        check_record(rig)

    run(tmp_path, says(body), test)


def events() -> bytes:
    parts = [
        {"type": "message_start", "message": {**MESSAGE, "content": [], "stop_reason": None, "usage": USAGE}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "ping"},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "hi"}},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn", **IDS}, "usage": {"output_tokens": 2}},
        {"type": "message_stop"},
    ]
    return b"".join(f"event: {part['type']}\ndata: {json.dumps(part)}\n\n".encode() for part in parts)


def test_a_stream_of_messages(tmp_path: Path) -> None:
    async def test(rig: Rig) -> None:
        async with claude(rig) as agent, agent.messages.stream(**SAID) as stream:
            said = await stream.get_final_message()
        assert (said.content[0].text, said.stop_reason) == ("hi", "end_turn")
        check_record(rig)

    run(tmp_path, streams(events()), test)


def test_errors_of_messages_are_the_engines_own(tmp_path: Path) -> None:
    async def test(rig: Rig) -> None:
        async with claude(rig) as agent:
            with pytest.raises(anthropic.APIStatusError, match="planted") as refused:
                await agent.messages.create(**SAID)
        assert refused.value.status_code == 529
        assert rig.lines(".lost") == []

    run(tmp_path, says({"type": "error", "error": {"type": "overloaded_error", "message": "planted"}}, 529), test)


@pytest.mark.parametrize("provider", ["openai", "hosted_vllm"])
def test_litellm(tmp_path: Path, provider: str) -> None:
    async def test(rig: Rig) -> None:
        url = f"{rig.url}/sessions/s/v1"
        said = await litellm.acompletion(**{**ASK, "model": f"{provider}/m"}, api_base=url, api_key="none", n=2)
        assert [choice.message.content for choice in said.choices] == ["said 0", "said 1"]
        assert rig.seen[0].body["n"] == 2
        check_record(rig, choices=2)

    run(tmp_path, says(chat(PROMPT, GENERATION, n=2)), test)


def test_litellm_streams(tmp_path: Path) -> None:
    async def test(rig: Rig) -> None:
        call = {**ASK, "model": "openai/m", "api_base": f"{rig.url}/sessions/s/v1", "api_key": "none", "stream": True}
        said = [chunk.choices[0].delta.content or "" async for chunk in await litellm.acompletion(**call)]
        assert "".join(said) == "abab"
        check_record(rig)

    run(tmp_path, streams(sse(chunks(PROMPT, GENERATION))), test)
