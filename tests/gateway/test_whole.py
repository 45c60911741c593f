"""Answers that come whole: recorded, linked, and given to the agent without what it did not ask for."""

import asyncio
import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from support.gateways import ASK, CHAT, Rig, chat, engine, rig, says
from tokenrecords import expand_deltas, verify
from tokenrecords.files import durable
from yarl import URL

PROMPT, GENERATION = [1, 2, 3], [41, 2]


def run(out: Path, answer: Any, test: Any, **settings: Any) -> None:
    async def body() -> None:
        async with rig(answer, out, **settings) as made:
            await test(made)

    asyncio.run(body())


def test_a_call_is_recorded_and_its_tokens_are_hidden(tmp_path: Path) -> None:
    async def test(rig: Rig) -> None:
        status, headers, body = await rig.post(x_agent_id="solver")
        assert status == 200
        want = chat(PROMPT, GENERATION)
        del want["prompt_token_ids"]
        for name in ("token_ids", "logprobs"):
            del want["choices"][0][name]
        assert json.loads(body) == want
        assert int(headers["content-length"]) == len(body)
        [seen] = rig.seen
        assert (seen.path, seen.body) == ("/v1/chat/completions", {**ASK, "return_token_ids": True, "logprobs": True})
        [entry] = rig.records()
        assert (entry.rollout_id, entry.model_call_id) == ("s", headers["x-tokenrecords-call"])
        assert entry.prompt_token_ids.tolist() == PROMPT
        assert entry.generation_token_ids.tolist() == GENERATION
        assert entry.generation_log_probs.tolist() == [-0.5, -0.5]
        assert (entry.parent_resolution, entry.cum_len, entry.finish_reason) == ("root", 5, "stop")
        assert entry.engine.startswith("http://127.0.0.1:")
        assert (entry.agent, entry.choice) == ("solver", 0)
        assert entry.latency > 0
        assert entry.started_at > 1_700_000_000
        assert rig.lines(".intents") == [[entry.model_call_id]]
        assert rig.lines(".lost") == []
        for path in tmp_path.iterdir():
            assert path.stat().st_mode & 0o777 == 0o600

    run(tmp_path, says(chat(PROMPT, GENERATION)), test)


def test_what_the_agent_asked_for_comes_as_the_engine_wrote_it(tmp_path: Path) -> None:
    body = b" " + json.dumps(chat(PROMPT, GENERATION), indent=1).encode() + b"\n"

    async def test(rig: Rig) -> None:
        asked = {**ASK, "return_token_ids": True, "logprobs": True, "top_logprobs": 2}
        raw = json.dumps(asked).encode()
        assert (await rig.post(body=raw))[2] == body
        assert rig.seen[0].raw == raw
        _, _, partly = await rig.post(body={**ASK, "logprobs": True})
        choice = json.loads(partly)["choices"][0]
        assert "logprobs" in choice
        assert "token_ids" not in choice
        assert len(rig.records()) == 2

    run(tmp_path, says(body), test)


def test_the_turns_of_a_session_are_linked_as_deltas(tmp_path: Path) -> None:
    prompts = [[1, 2], [1, 2, 41, 7], [1, 2, 41, 7, 41, 8], [9], [1, 2]]
    given = iter(prompts)

    async def answer(_: web.Request, __: Any) -> web.Response:
        return web.json_response(chat(next(given), [41]))

    async def test(rig: Rig) -> None:
        for _ in prompts:
            assert (await rig.post())[0] == 200
        entries = rig.records()
        assert [entry.prompt_token_ids.tolist() for entry in entries] == [[1, 2], [7], [8], [9], [1, 2]]
        said = [str(entry.parent_resolution) for entry in entries]
        assert said == ["root", "resolved", "resolved", "unresolved", "root"]
        assert [entry.parent_call_id for entry in entries[1:3]] == [entry.model_call_id for entry in entries[:2]]
        expanded = expand_deltas(entries).entries
        assert [list(entry.prompt_token_ids) for entry in expanded] == prompts
        assert verify(entries).ok

    run(tmp_path, answer, test)


def test_whole_prompts_where_they_are_wanted(tmp_path: Path) -> None:
    given = iter([[1, 2], [1, 2, 41, 7]])

    async def answer(_: web.Request, __: Any) -> web.Response:
        return web.json_response(chat(next(given), [41]))

    async def test(rig: Rig) -> None:
        await rig.post()
        await rig.post()
        assert [entry.prompt_token_ids.tolist() for entry in rig.records()] == [[1, 2], [1, 2, 41, 7]]
        assert rig.records()[1].parent_resolution == "resolved"

    run(tmp_path, answer, test, delta=False)


def test_each_choice_has_a_record(tmp_path: Path) -> None:
    async def test(rig: Rig) -> None:
        _, headers, _ = await rig.post(body={**ASK, "n": 3})
        call = headers["x-tokenrecords-call"]
        entries = rig.records()
        assert [entry.model_call_id for entry in entries] == [f"{call}#{k}" for k in range(3)]
        assert [entry.generation_token_ids.tolist() for entry in entries] == [[41, 2], [42, 3], [43, 4]]
        assert [entry.choice for entry in entries] == [0, 1, 2]
        assert await rig.get("/sessions/s") == (
            200,
            {"session": "s", "calls": 1, "lost": 0, "open": 0, "complete": True, "closed": None},
        )

    run(tmp_path, says(chat(PROMPT, GENERATION, n=3)), test)


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


def test_ids_that_were_sent_are_the_prompt(tmp_path: Path) -> None:
    body = {
        "request_id": "g",
        "choices": [{"index": 0, "token_ids": [5], "logprobs": {"content": [{"logprob": -1.0}]}}],
    }

    async def test(rig: Rig) -> None:
        sent = {"token_ids": [7, 8], "sampling_params": {"temperature": 1.0}}
        status, _, answer = await rig.post("/sessions/s/inference/v1/generate", sent)
        assert status == 200
        assert rig.seen[0].body["sampling_params"] == {"temperature": 1.0, "logprobs": 0}
        assert "logprobs" not in json.loads(answer)["choices"][0]
        [entry] = rig.records()
        assert (entry.prompt_token_ids.tolist(), entry.generation_token_ids.tolist()) == ([7, 8], [5])

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


def test_a_new_file_and_its_name_are_on_the_disk_before_the_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[Path] = []
    monkeypatch.setattr("tokenrecords.gateway.commits.sync", synced.append)

    async def test(rig: Rig) -> None:
        await rig.post()
        assert synced == [tmp_path / "s.tokens.jsonl", tmp_path]
        await rig.post()
        assert synced[2:] == [tmp_path / "s.tokens.jsonl"]

    run(tmp_path, says(chat(PROMPT, GENERATION)), test, durable="fsync")


def test_an_answer_that_is_compressed_all_the_same(tmp_path: Path) -> None:
    body = json.dumps(chat(PROMPT, GENERATION)).encode()

    async def test(rig: Rig) -> None:
        _, headers, answer = await rig.post(accept_encoding="gzip")
        assert rig.seen[0].headers["accept-encoding"] == "identity"
        assert "content-encoding" not in headers
        assert "token_ids" not in json.loads(answer)["choices"][0]
        _, headers, answer = await rig.post(body={**ASK, "return_token_ids": True, "logprobs": True})
        assert headers["content-encoding"] == "gzip"
        assert gzip.decompress(answer) == body
        assert len(rig.records()) == 2

    run(tmp_path, says(gzip.compress(body), content_encoding="gzip"), test)


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
        assert (await rig.post(body={**ASK, "x": "y" * 2000}))[0] == 413
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


def test_values_that_are_enforced(tmp_path: Path) -> None:
    async def test(rig: Rig) -> None:
        await rig.post(body={**ASK, "temperature": 0.0, "logprobs": False})
        assert rig.seen[0].body == {
            **ASK,
            "temperature": 1.0,
            "top_k": None,
            "logprobs": True,
            "return_token_ids": True,
        }

    run(tmp_path, says(chat(PROMPT, GENERATION)), test, enforced={"temperature": 1.0, "top_k": None})


def test_what_does_not_generate_passes_untouched(tmp_path: Path) -> None:
    async def test(rig: Rig) -> None:
        async with rig.client.get(
            URL(rig.url + "/sessions/s/v1/models?a=%2F", encoded=True), headers={"x-custom": "1"}
        ) as answer:
            assert (answer.status, await answer.read()) == (418, b"\x00raw")
            assert answer.headers["x-more"] == "2"
        assert rig.seen[0].path == "/v1/models?a=%2F"
        assert rig.seen[0].headers["x-custom"] == "1"
        status, _, body = await rig.post("/sessions/s/v1/embeddings", b"\xff not json")
        assert (status, body, rig.seen[1].raw) == (418, b"\x00raw", b"\xff not json")
        async with rig.client.get(rig.url + "/sessions/s/v1/responses") as answer:
            assert (answer.status, await answer.read()) == (418, b"\x00raw")
        assert [path.name for path in tmp_path.iterdir()] == [".gateway.lock"]

    run(tmp_path, says(b"\x00raw", 418, x_more="2"), test)


def test_a_call_without_a_session_passes_and_is_counted(tmp_path: Path) -> None:
    body = chat(PROMPT, GENERATION)

    async def test(rig: Rig) -> None:
        _, _, answer = await rig.post("/v1/chat/completions")
        assert json.loads(answer) == body
        assert rig.seen[0].body == ASK
        assert 'calls_total{end="passed"} 1.0' in (await rig.get("/metrics"))[1]

    run(tmp_path, says(body), test)


def test_a_session_may_be_required(tmp_path: Path) -> None:
    async def test(rig: Rig) -> None:
        status, _, answer = await rig.post("/v1/chat/completions")
        assert status == 400
        assert b"/sessions/<id>/v1/" in answer
        assert rig.seen == []

    run(tmp_path, says(chat(PROMPT, GENERATION)), test, require_session=True)


@pytest.mark.parametrize("session", ["..", "a%2Fb", "a%00b", "%ff", "a" * 300, "%E2%80%AE"])
def test_a_session_that_cannot_name_a_file_is_refused(tmp_path: Path, session: str) -> None:
    async def test(rig: Rig) -> None:
        path = f"/sessions/{session}/v1/chat/completions"
        if session == "..":
            status, _, _ = await rig.post("/v1/chat/completions", x_session_id="..")
        else:
            async with rig.client.post(URL(rig.url + path, encoded=True), data=json.dumps(ASK)) as answer:
                status = answer.status
        assert status == 400
        assert rig.seen == []
        assert [each.name for each in tmp_path.iterdir()] == [".gateway.lock"]

    run(tmp_path, says(chat(PROMPT, GENERATION)), test)


def test_any_session_where_ids_are_hashed(tmp_path: Path) -> None:
    async def test(rig: Rig) -> None:
        assert (await rig.post("/v1/chat/completions", x_session_id="a/../b"))[0] == 200
        [path] = tmp_path.glob("*.tokens.jsonl")
        assert len(path.name.partition(".")[0]) == 32
        [entry] = rig.records(path.name.removesuffix(".tokens.jsonl"))
        assert entry.rollout_id == "a/../b"
        assert [each["session"] for each in (await rig.get("/sessions"))[1]["sessions"]] == ["a/../b"]

    run(tmp_path, says(chat(PROMPT, GENERATION)), test, hash_ids=True)


def test_messages_are_kept_beside_the_records(tmp_path: Path) -> None:
    async def test(rig: Rig) -> None:
        _, headers, _ = await rig.post()
        [line] = (tmp_path / "s.messages.jsonl").read_text().splitlines()
        want = {"model_call_id": headers["x-tokenrecords-call"], "request": ASK, "response": chat(PROMPT, GENERATION)}
        assert json.loads(line) == want

    run(tmp_path, says(chat(PROMPT, GENERATION)), test, keep_messages=True)


def test_messages_may_have_half_a_character(tmp_path: Path) -> None:
    body = json.dumps(chat(PROMPT, GENERATION)).replace("said 0", "\\ud83d").encode()

    async def test(rig: Rig) -> None:
        with pytest.warns(UserWarning, match="lone surrogates in output_items"):
            assert (await rig.post(body={**ASK, "user": "\ud83d \u00e9"}))[0] == 200
        [line] = (tmp_path / "s.messages.jsonl").read_text().splitlines()
        assert "\u00e9" in line
        assert json.loads(line)["request"]["user"] == "\ud83d \u00e9"
        assert json.loads(line)["response"]["choices"][0]["message"]["content"] == "\ud83d"
        assert rig.lines(".lost") == []

    run(tmp_path, says(body), test, keep_messages=True)


def test_the_engines_own_weights_win_over_what_was_said(tmp_path: Path) -> None:
    given = iter([chat(PROMPT, GENERATION), chat(PROMPT, GENERATION, weight_version="e")])

    async def answer(_: web.Request, __: Any) -> web.Response:
        return web.json_response(next(given))

    async def test(rig: Rig) -> None:
        assert (await rig.get("/weight-version", "PUT", {"weight_version": "w-2"}))[0] == 200
        await rig.post()
        await rig.post()
        assert [entry.weight_version for entry in rig.records()] == ["w-2", "e"]

    run(tmp_path, answer, test)


def test_weights_are_those_of_the_dispatch(tmp_path: Path) -> None:
    going, may_end = asyncio.Event(), asyncio.Event()

    async def answer(_: web.Request, __: Any) -> web.Response:
        going.set()
        await may_end.wait()
        return web.json_response(chat(PROMPT, GENERATION))

    async def test(rig: Rig) -> None:
        await rig.get("/weight-version", "PUT", {"weight_version": 1})
        call = asyncio.ensure_future(rig.post())
        await going.wait()
        await rig.get("/weight-version", "PUT", {"weight_version": 2})
        may_end.set()
        await call
        assert rig.records()[0].weight_version == 1

    run(tmp_path, answer, test)


def test_another_gateway_may_not_write_there(tmp_path: Path) -> None:
    async def test(_: Rig) -> None:
        async with engine(says({})) as (url, _seen):
            with pytest.raises(ValueError, match="is written by another gateway"):
                async with rig(says({}), tmp_path, engines=(url,)):
                    pass

    run(tmp_path, says({}), test)


def test_a_session_goes_on_where_another_process_left_it(tmp_path: Path) -> None:
    given = iter([[1, 2], [1, 2, 41, 7]])

    async def answer(_: web.Request, __: Any) -> web.Response:
        return web.json_response(chat(next(given), [41]))

    async def one(rig: Rig) -> None:
        assert (await rig.post(CHAT))[0] == 200

    async def two(rig: Rig) -> None:
        await one(rig)
        entries = rig.records()
        assert [entry.prompt_token_ids.tolist() for entry in entries] == [[1, 2], [7]]
        assert [line[0] for line in rig.lines(".lost")] == ["killed"]
        counts = (await rig.get("/sessions/s"))[1]
        assert (counts["calls"], counts["lost"], counts["open"]) == (2, 1, 0)

    run(tmp_path, answer, one)
    with (tmp_path / "s.intents").open("a") as intents:
        intents.write("killed\nfailed\nfailed\tthe engine answered 500\n")
    with (tmp_path / "s.tokens.jsonl").open("ab") as records:
        records.write(b'{"rollout_id": "s", "torn')
    run(tmp_path, answer, two)


def test_a_directory_of_records_is_its_owners_alone(tmp_path: Path) -> None:
    made = tmp_path / "records"

    async def test(_: Rig) -> None:
        assert made.stat().st_mode & 0o777 == 0o700

    run(made, says(chat([1], [2])), test)
