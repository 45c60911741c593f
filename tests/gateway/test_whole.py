"""Answers that come whole: recorded, linked, and given to the agent without what it did not ask for."""

import asyncio
import gzip
import json
import time
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from support.gateways import ASK, GENERATION, PROMPT, Rig, chat, run, says
from tokenrecords import expand_deltas, verify
from yarl import URL


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


def test_weights_of_version_0_are_a_version(tmp_path: Path) -> None:
    async def test(rig: Rig) -> None:
        assert (await rig.get("/weight-version", "PUT", {"weight_version": 7}))[0] == 200
        await rig.post()
        assert rig.records()[0].weight_version == 0

    run(tmp_path, says(chat(PROMPT, GENERATION, weight_version=0)), test)


def test_a_call_begins_when_it_is_sent_and_lasts_until_its_answer(tmp_path: Path) -> None:
    arrived: list[float] = []

    async def answer(_: web.Request, __: Any) -> web.Response:
        arrived.append(time.time())
        await asyncio.sleep(0.2)
        return web.json_response(chat(PROMPT, GENERATION))

    async def test(rig: Rig) -> None:
        began = time.time()
        await rig.post()
        [entry] = rig.records()
        assert began <= entry.started_at <= arrived[0]
        assert 0.2 <= entry.latency <= time.time() - began

    run(tmp_path, answer, test)


def test_more_choices_than_were_asked_for_are_no_loss(tmp_path: Path) -> None:
    async def test(rig: Rig) -> None:
        assert (await rig.post(body={**ASK, "n": 1}))[0] == 200
        assert [entry.choice for entry in rig.records()] == [0, 1]

    run(tmp_path, says(chat(PROMPT, GENERATION, n=2)), test)


def test_what_cannot_be_cut_passes_as_it_was_packed_for(tmp_path: Path) -> None:
    """Its header said that it is compressed; it does no more."""

    async def test(rig: Rig) -> None:
        status, headers, answer = await rig.post()
        assert (status, answer) == (200, b'{"choices"')
        assert "content-encoding" not in headers

    run(tmp_path, says(gzip.compress(b'{"choices"'), content_encoding="gzip"), test, on_loss="pass")


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
