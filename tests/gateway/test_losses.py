"""Calls that fail: refused, answered with an error, or lost, and the agent is told so."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from support.gateways import ASK, GENERATION, PROMPT, Rig, chat, run, says
from tokenrecords.files import durable


def test_a_choice_that_was_not_served_is_a_loss(tmp_path: Path) -> None:
    body = chat(PROMPT, GENERATION, n=2)
    del body["usage"]

    async def test(rig: Rig) -> None:
        status, _, answer = await rig.post(body={**ASK, "n": 3})
        assert status == 502
        assert b"2 of 3 choices were served" in answer
        assert rig.lines(".lost")[0][1] == "2 of 3 choices were served"
        assert (await rig.post(body={**ASK, "n": 2}))[0] == 200
        assert len(rig.records()) == 2

    run(tmp_path, says(body), test)


@pytest.mark.parametrize("status", [400, 429, 500, 503])
def test_errors_of_the_engine_pass_and_are_no_calls(tmp_path: Path, status: int) -> None:
    async def test(rig: Rig) -> None:
        found, headers, body = await rig.post()
        assert (found, body) == (status, b'{"error": {"message": "planted"}}')
        assert (headers["retry-after"], headers["x-request-id"]) == ("7", "e-1")
        [[call], [again, why]] = rig.lines(".intents")
        assert (call, why) == (again, f"the engine answered {status}")
        assert rig.lines(".lost") == rig.records() == []
        assert (await rig.get("/sessions/s"))[1]["complete"] is True

    body = {"error": {"message": "planted"}}
    run(tmp_path, says(body, status, retry_after="7", x_request_id="e-1"), test)


def test_an_error_may_have_any_status(tmp_path: Path) -> None:
    body = b'{"choices": null, "error": {"message": "planted"}}'

    async def test(rig: Rig) -> None:
        assert (await rig.post())[::2] == (200, body)
        assert [len(line) for line in rig.lines(".intents")] == [1, 2]
        assert "planted" in rig.lines(".intents")[1][1]
        assert rig.lines(".lost") == rig.records() == []

    run(tmp_path, says(body), test)


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ({"id": "x", "choices": [{"index": 0, "message": {"content": "no ids"}}]}, "the response carries no token ids"),
        ({**chat(PROMPT, GENERATION), "usage": {"prompt_tokens": 3, "completion_tokens": 9}}, "the engine counted 9"),
        ({**chat(PROMPT, [41, -2])}, "-2"),
        (b"<html>", "the body is not JSON"),
    ],
)
@pytest.mark.parametrize("on_loss", ["fail", "pass"])
def test_what_cannot_be_recorded_is_lost_and_said(tmp_path: Path, body: Any, why: str, on_loss: str) -> None:
    async def test(rig: Rig) -> None:
        status, _, answer = await rig.post()
        if on_loss == "fail":
            assert status == 502
            assert why in json.loads(answer)["error"]["message"]
        else:
            assert status == 200
            assert b"token_ids" not in answer
        [[call]] = rig.lines(".intents")
        [[lost, said]] = rig.lines(".lost")
        assert call == lost
        assert why in said
        assert rig.records() == []
        counts = (await rig.get("/sessions/s"))[1]
        assert (counts["calls"], counts["lost"], counts["open"], counts["complete"]) == (0, 1, 0, False)

    run(tmp_path, says(body), test, on_loss=on_loss)


def test_a_fault_of_the_gateways_own_leaves_no_call_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def broken(*_: Any, **__: Any) -> None:
        raise RuntimeError("planted")

    monkeypatch.setattr("tokenrecords.gateway.recording.send", broken)

    async def test(rig: Rig) -> None:
        assert (await rig.post())[0] == 500
        assert rig.lines(".lost")[0][1] == "the gateway failed: RuntimeError('planted')"
        assert (await rig.get("/sessions/s"))[1]["open"] == 0

    run(tmp_path, says({}), test)


def test_a_disk_that_loses_what_was_written_is_a_loss(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[Path] = []

    def sync(path: Path) -> None:
        synced.append(path)
        if len(synced) == 1:
            raise OSError(5, "Input/output error")
        durable.sync(path)

    async def test(rig: Rig) -> None:
        monkeypatch.setattr("tokenrecords.gateway.commits.sync", sync)
        assert (await rig.post())[0] == 502
        assert (await rig.post())[0] == 200
        records = tmp_path / "s.tokens.jsonl"
        assert synced == [records, records]

    run(tmp_path, says(chat(PROMPT, GENERATION)), test, durable="fsync")


@pytest.mark.parametrize(("body", "encoding"), [(b"not gzip", "gzip"), (b"x", "br")])
def test_an_answer_that_cannot_be_decompressed_is_lost(tmp_path: Path, body: bytes, encoding: str) -> None:
    async def test(rig: Rig) -> None:
        assert (await rig.post())[0] == 502
        assert encoding in rig.lines(".lost")[0][1]

    run(tmp_path, says(body, content_encoding=encoding), test)


@pytest.mark.parametrize("body", [b"{", b"[1]", b"", b"\xff"])
def test_a_request_that_is_no_object_is_refused(tmp_path: Path, body: bytes) -> None:
    async def test(rig: Rig) -> None:
        status, _, answer = await rig.post(body=body)
        assert status == 400
        assert json.loads(answer)["error"]["type"] == "tokenrecords_gateway"
        assert rig.seen == rig.lines(".intents") == []

    run(tmp_path, says(chat(PROMPT, GENERATION)), test)


def test_a_request_that_is_too_long_is_refused(tmp_path: Path) -> None:
    async def test(rig: Rig) -> None:
        status, _, answer = await rig.post(body={**ASK, "x": "y" * 2000})
        said = {"message": "the body is longer than 1,000 bytes", "type": "tokenrecords_gateway"}
        assert (status, json.loads(answer)) == (413, {"error": {**said, "param": None, "code": 413}})
        assert (await rig.post())[0] == 200

    run(tmp_path, says(chat(PROMPT, GENERATION)), test, max_body=1000)


def test_an_answer_that_breaks_off_is_lost(tmp_path: Path) -> None:
    async def answer(request: web.Request, _: Any) -> web.StreamResponse:
        response = web.StreamResponse(headers={"content-type": "application/json", "content-length": "1000"})
        await response.prepare(request)
        await response.write(b'{"choices": [')
        assert request.transport is not None
        request.transport.abort()
        return response

    async def test(rig: Rig) -> None:
        assert (await rig.post())[0] == 502
        assert "cut off" in rig.lines(".lost")[0][1]

    run(tmp_path, answer, test)


def test_an_agent_that_leaves_ends_the_engines_call(tmp_path: Path) -> None:
    ended = asyncio.Event()

    async def answer(_: web.Request, __: Any) -> web.Response:
        try:
            await asyncio.sleep(60)
        finally:
            ended.set()
        raise AssertionError

    async def test(rig: Rig) -> None:
        call = asyncio.ensure_future(rig.post())
        while not rig.seen:
            await asyncio.sleep(0.01)
        call.cancel()
        await asyncio.wait_for(ended.wait(), 30)
        while not rig.lines(".lost"):
            await asyncio.sleep(0.01)
        assert rig.lines(".lost")[0][1] == "the agent left"

    run(tmp_path, answer, test)
