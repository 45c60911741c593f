"""Sessions, and the directory that their records are in."""

import json
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from support.gateways import ASK, CHAT, GENERATION, PROMPT, Rig, chat, engine, rig, run, says
from yarl import URL


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
