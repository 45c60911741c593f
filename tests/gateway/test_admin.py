"""What a gateway says of its sessions, to whom, and what it can be told."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from support.gateways import ASK, Rig, chat, rig, says
from tokenrecords import read_jsonl
from tokenrecords.gateway import AsyncClient
from tokenrecords.gateway.client import GatewayError

ADMIN = [
    ("GET", "/metrics"),
    ("GET", "/sessions"),
    ("GET", "/sessions/s"),
    ("DELETE", "/sessions/s"),
    ("GET", "/sessions/s/records"),
    ("GET", "/sessions/s/chains"),
    ("POST", "/sessions/s/close"),
    ("PUT", "/weight-version"),
    ("POST", "/pause"),
    ("POST", "/resume"),
]


def turns(*prompts: list[int]) -> Any:
    given = iter(prompts)

    async def answer(_: web.Request, __: Any) -> web.Response:
        return web.json_response(chat(next(given), [41]))

    return answer


def run(out: Path, test: Any, answer: Any = None, **settings: Any) -> None:
    async def body() -> None:
        async with rig(answer or turns([1, 2], [1, 2, 41, 7]), out, **settings) as made:
            await test(made)

    asyncio.run(body())


def test_a_session_is_read_back(tmp_path: Path) -> None:
    async def test(rig: Rig) -> None:
        calls = [(await rig.post())[1]["x-tokenrecords-call"] for _ in range(2)]
        client = AsyncClient(rig.url)
        assert await client.session("s") == {
            "session": "s",
            "calls": 2,
            "lost": 0,
            "open": 0,
            "complete": True,
            "closed": None,
        }
        assert await client.sessions() == [await client.session("s")]
        assert [entry.model_call_id for entry in await client.records("s")] == calls
        assert [entry.model_call_id for entry in await client.records("s", after=calls[0])] == calls[1:]
        assert await client.records("s", after=calls[1]) == []
        chains = await client.chains("s")
        assert (chains["trainable"], chains["reasons"]) == (True, [])
        [chain] = chains["chains"]
        assert chain == {
            "calls": calls,
            "token_ids": [1, 2, 41, 7, 41],
            "loss_mask": [False, False, True, False, True],
            "log_probs": [0.0, 0.0, -0.5, 0.0, -0.5],
        }
        assert read_jsonl(tmp_path / "s.tokens.jsonl") == await client.records("s")
        assert client.base_url("a/b") == f"{rig.url}/sessions/a%2Fb/v1"

    run(tmp_path, test)


def test_a_session_is_closed_with_its_terminal_call(tmp_path: Path) -> None:
    async def test(rig: Rig) -> None:
        first, _ = [(await rig.post())[1]["x-tokenrecords-call"] for _ in range(2)]
        client = AsyncClient(rig.url)
        said = {"terminal_call": first, "reward": 0.5, "note": "x"}
        assert (await client.close("s", **said))["closed"] == said
        assert (await client.session("s"))["closed"] == said
        assert json.loads((tmp_path / "s.closed.json").read_bytes()) == said
        assert (await client.chains("s"))["trainable"] is True
        missing = await client.chains("s", terminal_call="nobody")
        assert (missing["trainable"], missing["reasons"]) == (False, ["terminal_not_captured"])
        assert (await rig.get("/sessions/s/close", "POST", [1]))[0] == 400

    run(tmp_path, test)


def test_a_session_that_lost_a_call_is_not_trainable(tmp_path: Path) -> None:
    given = iter([chat([1], [41]), {"choices": []}])

    async def answer(_: web.Request, __: Any) -> web.Response:
        return web.json_response(next(given))

    async def test(rig: Rig) -> None:
        assert [(await rig.post())[0] for _ in range(2)] == [200, 502]
        chains = await AsyncClient(rig.url).chains("s")
        assert (chains["trainable"], chains["reasons"]) == (False, ["incomplete"])

    run(tmp_path, test, answer)


def test_a_session_is_deleted(tmp_path: Path) -> None:
    async def test(rig: Rig) -> None:
        await rig.post()
        client = AsyncClient(rig.url)
        await client.close("s")
        await client.delete("s")
        assert [path.name for path in tmp_path.iterdir()] == [".gateway.lock"]
        with pytest.raises(GatewayError, match="session 's' is not there") as caught:
            await client.session("s")
        assert caught.value.status == 404
        await rig.post()
        assert (await client.session("s"))["calls"] == 1
        assert rig.records()[0].parent_resolution == "root"

    run(tmp_path, test)


def test_a_session_with_open_calls_is_not_deleted(tmp_path: Path) -> None:
    may_end = asyncio.Event()

    async def answer(_: web.Request, __: Any) -> web.Response:
        await may_end.wait()
        return web.json_response(chat([1], [2]))

    async def test(rig: Rig) -> None:
        call = asyncio.ensure_future(rig.post())
        while not rig.seen:
            await asyncio.sleep(0.01)
        assert (await rig.get("/sessions/s"))[1]["open"] == 1
        assert (await rig.get("/sessions/s", "DELETE"))[0] == 409
        may_end.set()
        assert (await call)[0] == 200

    run(tmp_path, test, answer)


@pytest.mark.parametrize("path", ["/sessions/x", "/sessions/x/records", "/sessions/x/chains"])
def test_a_session_that_is_not_there(tmp_path: Path, path: str) -> None:
    async def test(rig: Rig) -> None:
        status, said = await rig.get(path)
        assert (status, said["error"]["message"]) == (404, "session 'x' is not there")
        assert (await rig.get("/sessions"))[1] == {"sessions": []}
        assert [each.name for each in tmp_path.iterdir()] == [".gateway.lock"]

    run(tmp_path, test)


def test_a_record_that_is_not_there(tmp_path: Path) -> None:
    async def test(rig: Rig) -> None:
        await rig.post()
        assert (await rig.get("/sessions/s/records?after=x"))[0] == 404

    run(tmp_path, test)


def test_names_are_checked_here_too(tmp_path: Path) -> None:
    async def test(rig: Rig) -> None:
        status, said = await rig.get("/sessions/a%00b")
        assert status == 400
        assert "can't name a file" in said["error"]["message"]

    run(tmp_path, test)


@pytest.mark.parametrize(("method", "path"), ADMIN)
def test_the_admin_key_guards_all_of_it(tmp_path: Path, method: str, path: str) -> None:
    async def test(rig: Rig) -> None:
        assert (await rig.post(authorization="Bearer agent"))[0] == 200
        for headers in ({}, {"authorization": "Bearer agent"}, {"authorization": "Bearer admi"}):
            assert (await rig.get(path, method, {"weight_version": 1}, **headers))[0] == 401
        allowed, _ = await rig.get(path, method, {"weight_version": 1}, authorization="Bearer admin")
        assert allowed in {200, 204}

    run(tmp_path, test, key="agent", admin_key="admin")


def test_agents_need_their_key_and_engines_do_not_see_it(tmp_path: Path) -> None:
    async def test(rig: Rig) -> None:
        for headers in ({}, {"authorization": "Bearer other"}, {"authorization": "Bearer session:s"}):
            assert (await rig.post(**headers))[0] == 401
        assert (await rig.post(authorization="Bearer agent"))[0] == 200
        assert (await rig.post("/v1/chat/completions", x_api_key="agent:session:t"))[0] == 200
        assert len(rig.records("t")) == 1
        for seen in rig.seen:
            assert not {"authorization", "x-api-key"} & seen.headers.keys()

    run(tmp_path, test, says(chat([1], [2])), key="agent", admin_key="admin")


def test_the_engines_key(tmp_path: Path) -> None:
    async def test(rig: Rig) -> None:
        await rig.post(authorization="Bearer agents own", x_api_key="and this")
        assert rig.seen[0].headers["authorization"] == "Bearer for the engine"
        assert "x-api-key" not in rig.seen[0].headers

    run(tmp_path, test, engine_key="for the engine")


def test_the_agents_key_is_the_engines_where_nobody_says_another(tmp_path: Path) -> None:
    async def test(rig: Rig) -> None:
        await rig.post(authorization="Bearer own")
        await rig.post("/v1/chat/completions", authorization="Bearer session:s")
        assert rig.seen[0].headers["authorization"] == "Bearer own"
        assert "authorization" not in rig.seen[1].headers

    run(tmp_path, test)


def test_calls_are_paused_while_weights_change(tmp_path: Path) -> None:
    async def test(rig: Rig) -> None:
        client = AsyncClient(rig.url)
        assert await client.pause() == 0
        for path in ("/sessions/s/v1/chat/completions", "/v1/chat/completions"):
            status, headers, _ = await rig.post(path)
            assert (status, headers["retry-after"]) == (429, "1")
        assert rig.seen == []
        await client.set_weight_version("w2")
        await client.resume()
        assert (await rig.post())[0] == 200
        assert rig.records()[0].weight_version == "w2"

    run(tmp_path, test)


@pytest.mark.parametrize("said", [[], {}, {"weight_version": None}, {"weight_version": 1.5}, {"weight_version": True}])
def test_weights_are_a_text_or_an_integer(tmp_path: Path, said: Any) -> None:
    async def test(rig: Rig) -> None:
        assert (await rig.get("/weight-version", "PUT", said))[0] == 400

    run(tmp_path, test)


def test_metrics(tmp_path: Path) -> None:
    given = iter([chat([1], [41, 42]), {"choices": []}, None])

    async def answer(_: web.Request, __: Any) -> web.Response:
        said = next(given)
        return web.json_response(said, status=200 if said else 500)

    async def test(rig: Rig) -> None:
        for _ in range(3):
            await rig.post()
        text = (await rig.get("/metrics"))[1]
        for line in (
            'tokenrecords_gateway_calls_total{end="recorded"} 1.0',
            'tokenrecords_gateway_calls_total{end="lost"} 1.0',
            'tokenrecords_gateway_calls_total{end="failed"} 1.0',
            "tokenrecords_gateway_open_calls 0.0",
            "tokenrecords_gateway_generated_ids_total 2.0",
            "tokenrecords_gateway_call_seconds_count 3.0",
        ):
            assert line in text.splitlines()
        assert str(ASK) not in text

    run(tmp_path, test, answer)


def test_the_records_behind_a_call_of_several_choices(tmp_path: Path) -> None:
    async def test(rig: Rig) -> None:
        calls = [(await rig.post())[1]["x-tokenrecords-call"] for _ in range(2)]
        behind = await asyncio.to_thread(rig.admin().records, "s", after=calls[0])
        assert [entry.model_call_id for entry in behind] == [f"{calls[1]}#0", f"{calls[1]}#1"]

    run(tmp_path, test, says(chat([1], [2], n=2)))


def test_a_session_that_cannot_be_read_hides_no_other(tmp_path: Path) -> None:
    (tmp_path / "bad.tokens.jsonl").write_text("{}\n")
    (tmp_path / "bad.intents").write_text("x\n")

    async def test(rig: Rig) -> None:
        await rig.post()
        status, said = await rig.get("/sessions")
        bad, good = said["sessions"]
        assert (status, bad["session"], good["session"], good["calls"]) == (200, "bad", "s", 1)
        assert "bad.tokens.jsonl:1: rollout_id: Field required" in bad["error"]

    run(tmp_path, test)
