"""Streamed answers: events pass at once, and the last one when the call is recorded."""

import asyncio
import json
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from support.gateways import ASK, CHAT, Rig, chunks, rig, sse, streams
from tokenrecords import merge_stream

PROMPT, GENERATION = [1, 2, 3], [41, 2, 7]
ASKED = {**ASK, "stream": True}


def run(out: Path, answer: Any, test: Any, **settings: Any) -> None:
    async def body() -> None:
        async with rig(answer, out, **settings) as made:
            await asyncio.wait_for(test(made), 60)

    asyncio.run(body())


def bare(parts: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Chunks as an agent sees them that asked for nothing."""
    kept = []
    for part in parts:
        choices = [{k: v for k, v in each.items() if k not in ("token_ids", "logprobs")} for each in part["choices"]]
        kept.append({**{k: v for k, v in part.items() if k != "prompt_token_ids"}, "choices": choices})
    return kept


def check_record(rig: Rig) -> None:
    [entry] = rig.records()
    assert entry.prompt_token_ids.tolist() == PROMPT
    assert entry.generation_token_ids.tolist() == GENERATION
    assert entry.generation_log_probs.tolist() == [-0.25] * 3
    assert (entry.finish_reason, entry.cum_len) == ("stop", 6)
    assert rig.lines(".lost") == []


@pytest.mark.parametrize("size", [1, 2, 3, 7, 50, 10_000])
@pytest.mark.parametrize(
    "form",
    [
        {},
        {"end": b"\r\n\r\n"},
        {"data": b"data:"},
        {"data": b": ping\n\ndata: "},
        {"data": b"event: x\nid: 7\ndata: "},
    ],
    ids=["plain", "crlf", "no space", "comments", "other fields"],
)
def test_a_stream_is_recorded_and_its_tokens_are_hidden(tmp_path: Path, size: int, form: dict[str, bytes]) -> None:
    parts = chunks(PROMPT, GENERATION, text="é\u2028\u0085🎈")
    whole = sse(parts, **form)

    async def test(rig: Rig) -> None:
        status, headers, body = await rig.post(body=ASKED)
        assert (status, headers["content-type"]) == (200, "text/event-stream; charset=utf-8")
        want = sse(bare(parts), **form).replace(b", ", b",").replace(b": ", b":")
        assert body.replace(b", ", b",").replace(b": ", b":") == want
        check_record(rig)
        assert rig.records()[0].model_call_id == headers["x-tokenrecords-call"]

    run(tmp_path, streams(*(whole[at : at + size] for at in range(0, len(whole), size))), test)


def test_bytes_stay_as_they_are_where_nothing_is_hidden(tmp_path: Path) -> None:
    whole = b"\xef\xbb\xbf" + sse(chunks(PROMPT, GENERATION)) + b": bye\n\n"

    async def test(rig: Rig) -> None:
        asked = {**ASKED, "return_token_ids": True, "logprobs": True}
        assert (await rig.post(body=asked))[2] == whole
        check_record(rig)

    run(tmp_path, streams(whole), test)


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_data_of_several_lines(tmp_path: Path, end: str) -> None:
    parts = chunks(PROMPT, GENERATION)
    lines = [line for part in parts for line in [*json.dumps(part, indent=1).split("\n"), None]]
    whole = "".join(end if line is None else f"data: {line}{end}" for line in lines) + f"data: [DONE]{end}{end}"

    async def test(rig: Rig) -> None:
        _, _, body = await rig.post(body=ASKED)
        events = body.decode().split(end * 2)
        texts = ["\n".join(line.removeprefix("data: ") for line in event.split(end)) for event in events]
        assert [json.loads(text) for text in texts[:-2]] == bare(parts)
        assert texts[-2:] == ["[DONE]", ""]
        check_record(rig)

    run(tmp_path, streams(*whole.encode().splitlines(keepends=True)), test)


def test_events_pass_at_once_but_the_last_one_after_the_record(tmp_path: Path) -> None:
    parts = chunks(PROMPT, GENERATION)
    may_go_on = asyncio.Event()

    async def answer(request: web.Request, _: Any) -> web.StreamResponse:
        response = web.StreamResponse(headers={"content-type": "text/event-stream"})
        await response.prepare(request)
        for part in parts:
            may_go_on.clear()
            await response.write(sse([part], done=False))
            await may_go_on.wait()
        await response.write(b"data: [DONE]\n\n")
        return response

    async def test(rig: Rig) -> None:
        async with rig.client.post(rig.url + CHAT, json=ASKED) as got:
            for part in bare(parts):
                event = await got.content.readuntil(b"\n\n")
                assert json.loads(event[6:]) == part
                assert rig.records() == []
                may_go_on.set()
            assert await got.content.readuntil(b"\n\n") == b"data: [DONE]\n\n"
            check_record(rig)

    run(tmp_path, answer, test)


def test_a_last_event_that_comes_before_the_end_waits_with_what_follows(tmp_path: Path) -> None:
    may_end = asyncio.Event()

    async def answer(request: web.Request, _: Any) -> web.StreamResponse:
        response = web.StreamResponse(headers={"content-type": "text/event-stream"})
        await response.prepare(request)
        await response.write(sse(chunks(PROMPT, GENERATION)) + b": more\n\n")
        await may_end.wait()
        return response

    async def test(rig: Rig) -> None:
        async with rig.client.post(rig.url + CHAT, json=ASKED) as got:
            for _ in range(4):
                await got.content.readuntil(b"\n\n")
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(got.content.readany(), 0.1)
            assert rig.records() == []
            may_end.set()
            assert await got.read() == b"data: [DONE]\n\n: more\n\n"
            check_record(rig)

    run(tmp_path, answer, test)


def test_the_last_event_of_an_answer_waits_where_nothing_ends_the_stream(tmp_path: Path) -> None:
    body = {"prompt": [1, 7], "n_probs": 1, "return_tokens": True, "stream": True}
    first = {
        "content": "o",
        "tokens": [41],
        "stop": False,
        "index": 0,
        "completion_probabilities": [{"id": 41, "logprob": -0.5}],
    }
    last = {**first, "content": "", "tokens": [], "completion_probabilities": [], "stop": True, "stop_type": "limit"}
    may_end = asyncio.Event()

    async def answer(request: web.Request, _: Any) -> web.StreamResponse:
        response = web.StreamResponse(headers={"content-type": "text/event-stream"})
        await response.prepare(request)
        await response.write(sse([first, last], done=False))
        await may_end.wait()
        return response

    async def test(rig: Rig) -> None:
        async with rig.client.post(rig.url + "/sessions/s/completion", json=body) as got:
            assert await got.content.readuntil(b"\n\n") == sse([first], done=False)
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(got.content.readany(), 0.1)
            assert rig.records() == []
            may_end.set()
            assert await got.read() == sse([last], done=False)
            [record] = rig.records()
            assert [*record.prompt_token_ids, *record.generation_token_ids] == [1, 7, 41]

    run(tmp_path, answer, test, engine="llama-cpp")


def test_an_agent_that_reads_slowly_makes_the_engine_wait(tmp_path: Path) -> None:
    events = [b": " + b"x" * (1 << 20) + b"\n\n"] * 24
    said = 0

    async def answer(request: web.Request, _: Any) -> web.StreamResponse:
        nonlocal said
        response = web.StreamResponse(headers={"content-type": "text/event-stream"})
        await response.prepare(request)
        for event in events:
            await response.write(event)
            said += 1
        await response.write(sse(chunks(PROMPT, GENERATION)))
        return response

    async def test(rig: Rig) -> None:
        async with rig.client.post(rig.url + CHAT, json=ASKED) as got:
            await asyncio.sleep(0.3)
            assert said < len(events)
            whole = await got.read()
        assert whole == b"".join(events) + sse(bare(chunks(PROMPT, GENERATION)))
        check_record(rig)

    run(tmp_path, answer, test)


@pytest.mark.parametrize("ends", [True, False])
@pytest.mark.parametrize("count", [0, 1, 3])
def test_a_stream_that_is_cut_off_is_lost_and_never_looks_whole(tmp_path: Path, count: int, ends: bool) -> None:
    part = sse(chunks(PROMPT, GENERATION)[:count], done=False) + b'data: {"id": "torn'

    async def test(rig: Rig) -> None:
        with pytest.raises(aiohttp.ClientError):
            async with rig.client.post(rig.url + CHAT, json=ASKED) as got:
                await got.read()
        assert rig.records() == []
        assert len(rig.lines(".lost")) == 1

    run(tmp_path, streams(part, ends=ends), test)


def test_a_stream_without_a_last_event_is_whole_where_it_says_why_it_ended(tmp_path: Path) -> None:
    async def test(rig: Rig) -> None:
        _, _, body = await rig.post(body=ASKED)
        assert body.count(b"data: ") == 4
        check_record(rig)

    run(tmp_path, streams(sse(chunks(PROMPT, GENERATION), done=False)), test)


def test_an_error_of_the_engine_passes_and_the_call_is_lost(tmp_path: Path) -> None:
    error = b'data: {"error": {"message": "planted", "code": 500}}\n\n'
    whole = sse(chunks(PROMPT, GENERATION)[:2], done=False) + error + b"data: [DONE]\n\n"

    async def test(rig: Rig) -> None:
        _, _, body = await rig.post(body=ASKED)
        assert body.endswith(error + b"data: [DONE]\n\n")
        assert "planted" in rig.lines(".lost")[0][1]
        assert rig.records() == []

    run(tmp_path, streams(whole), test)


@pytest.mark.parametrize("on_loss", ["fail", "pass"])
def test_a_stream_that_cannot_be_recorded(tmp_path: Path, on_loss: str) -> None:
    parts = bare(chunks(PROMPT, GENERATION))

    async def test(rig: Rig) -> None:
        _, _, body = await rig.post(body=ASKED)
        if on_loss == "fail":
            *_, last, end = body.split(b"\n\n")
            assert end == b""
            name, data = last.split(b"\n")
            assert name == b"event: error"
            assert "token_ids is missing" in json.loads(data[6:])["error"]["message"] or "no token ids" in str(data)
            assert b"[DONE]" not in body
        else:
            assert body == sse(parts)
        assert len(rig.lines(".lost")) == 1
        assert rig.records() == []

    run(tmp_path, streams(sse(parts)), test, on_loss=on_loss)


def test_of_an_agent_that_left_one_choice_of_two_is_kept(tmp_path: Path) -> None:
    async def answer(request: web.Request, _: Any) -> web.StreamResponse:
        response = web.StreamResponse(headers={"content-type": "text/event-stream"})
        await response.prepare(request)
        await response.write(sse(chunks(PROMPT, GENERATION)[:2], done=False))
        await asyncio.sleep(60)
        return response

    async def test(rig: Rig) -> None:
        async with rig.client.post(rig.url + CHAT, json={**ASKED, "n": 2}) as got:
            await got.content.readuntil(b"\n\n")
            got.close()
        while not (rig.lines(".lost") or rig.records()):
            await asyncio.sleep(0.01)
        assert [entry.generation_token_ids.tolist() for entry in rig.records()] == [GENERATION[:1]]
        assert rig.lines(".lost") == []

    run(tmp_path, answer, test, keep_partial=True)


@pytest.mark.parametrize("keep", [False, True])
def test_an_agent_that_leaves_ends_the_engines_call(tmp_path: Path, keep: bool) -> None:
    parts = chunks(PROMPT, GENERATION)[:3]
    ended = asyncio.Event()

    async def answer(request: web.Request, _: Any) -> web.StreamResponse:
        response = web.StreamResponse(headers={"content-type": "text/event-stream"})
        await response.prepare(request)
        await response.write(sse(parts, done=False) + b'data: {"id"')
        try:
            await asyncio.sleep(60)
        finally:
            ended.set()
        return response

    async def test(rig: Rig) -> None:
        async with rig.client.post(rig.url + CHAT, json=ASKED) as got:
            await got.content.readuntil(b"\n\n")
            got.close()
        await ended.wait()
        while not (rig.lines(".lost") or rig.records()):
            await asyncio.sleep(0.01)
        if keep:
            [entry] = rig.records()
            assert entry.generation_token_ids.tolist() == GENERATION[:2]
            assert entry.finish_reason == "abort"
            assert rig.lines(".lost") == []
        else:
            assert rig.lines(".lost")[0][1] == "the agent left"
            assert rig.records() == []
        assert (await rig.get("/sessions/s"))[1]["open"] == 0

    run(tmp_path, answer, test, keep_partial=keep)


def test_the_text_of_a_stream_is_kept_whole(tmp_path: Path) -> None:
    parts = chunks(PROMPT, GENERATION)

    async def test(rig: Rig) -> None:
        await rig.post(body=ASKED)
        check_record(rig)
        [line] = (tmp_path / "s.messages.jsonl").read_text().splitlines()
        assert json.loads(line)["response"] == merge_stream(parts)

    run(tmp_path, streams(sse(parts)), test, keep_messages=True)


def test_a_stream_that_says_no_end_was_cut(tmp_path: Path) -> None:
    async def test(rig: Rig) -> None:
        with pytest.raises(aiohttp.ClientPayloadError):
            await rig.post(body=ASKED)
        assert rig.records() == []
        assert "was cut off: it has no last event" in rig.lines(".lost")[0][1]

    run(tmp_path, streams(sse(chunks(PROMPT, GENERATION)[:3], done=False)), test)


def test_each_choice_of_a_stream_has_a_record(tmp_path: Path) -> None:
    first, second = chunks(PROMPT, GENERATION), chunks(PROMPT, [9, 8, 7])
    for part in second:
        part["choices"][0]["index"] = 1
    mixed = [part for pair in zip(first, second, strict=True) for part in pair]

    async def test(rig: Rig) -> None:
        await rig.post(body={**ASKED, "n": 2})
        assert [entry.generation_token_ids.tolist() for entry in rig.records()] == [GENERATION, [9, 8, 7]]
        assert [entry.choice for entry in rig.records()] == [0, 1]

    run(tmp_path, streams(sse(mixed)), test)


def test_the_events_of_a_messages_stream(tmp_path: Path) -> None:
    ids = {"prompt_token_ids": PROMPT, "generation_token_ids": [41], "generation_log_probs": [-0.5]}
    message = {"id": "m", "type": "message", "role": "assistant", "model": "m", "content": [], "usage": {}}
    events = [
        {"type": "message_start", "message": message},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "hi"}},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn", **ids}, "usage": {"output_tokens": 1}},
        {"type": "message_stop"},
    ]
    whole = b"".join(b"event: %s\ndata: %s\n\n" % (e["type"].encode(), json.dumps(e).encode()) for e in events)  # type: ignore[attr-defined]

    async def test(rig: Rig) -> None:
        _, _, body = await rig.post("/sessions/s/v1/messages", ASKED)
        for name in ids:
            assert name.encode() not in body
        assert body.endswith(b'event: message_stop\ndata: {"type": "message_stop"}\n\n')
        [entry] = rig.records()
        assert entry.generation_token_ids.tolist() == [41]
        assert entry.finish_reason == "end_turn"

    run(tmp_path, streams(whole), test)


def test_the_events_of_a_responses_stream(tmp_path: Path) -> None:
    ids = {"prompt_token_ids": PROMPT, "generation_token_ids": [41], "generation_log_probs": [-0.5]}
    text = {"type": "output_text", "text": "hi", "annotations": []}
    item = {"type": "message", "role": "assistant", "status": "completed", "content": [text], **ids}
    response = {"id": "resp", "object": "response", "model": "m", "status": "completed", "output": [item]}
    events = [
        {"type": "response.created", "response": {**response, "status": "in_progress", "output": []}},
        {"type": "response.output_text.delta", "output_index": 0, "content_index": 0, "delta": "hi"},
        {"type": "response.completed", "response": response},
    ]

    async def test(rig: Rig) -> None:
        _, _, body = await rig.post("/sessions/s/v1/responses", ASKED)
        assert body == sse(events, done=False)
        [entry] = rig.records()
        assert (entry.response_id, entry.generation_token_ids.tolist()) == ("resp", [41])

    run(tmp_path, streams(sse(events, done=False)), test)


def test_a_stream_of_which_one_choice_has_not_ended_is_cut_off(tmp_path: Path) -> None:
    parts = []
    for chunk in chunks(PROMPT, GENERATION):
        parts.append(chunk)
        if chunk["choices"][0]["finish_reason"] is None:
            parts.append({**chunk, "choices": [{**chunk["choices"][0], "index": 1}]})

    async def test(rig: Rig) -> None:
        with pytest.raises(aiohttp.ClientPayloadError):
            await rig.post(body=ASKED)
        assert rig.records() == []
        assert len(rig.lines(".lost")) == 1

    run(tmp_path, streams(sse(parts, done=False)), test)
