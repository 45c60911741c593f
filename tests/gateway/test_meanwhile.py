"""What happens to a gateway while a call is on its way into it, or out of it."""

import asyncio
import json
import os
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from support.factories import call, make_entry
from support.gateways import ASK, CHAT, Rig, chat, run
from tokenrecords import TokenEntry, read_jsonl, stamp_lineage
from tokenrecords.gateway.store import Held as HeldCall
from tokenrecords.gateway.store import Store
from tokenrecords.lineage.parents import find_parent
from yarl import URL

BODY = json.dumps(ASK).encode()


class Held:
    """An engine that answers when it is told to."""

    def __init__(self) -> None:
        self.begun, self.may_end = asyncio.Event(), asyncio.Event()

    async def __call__(self, _: web.Request, __: Any) -> web.Response:
        self.begun.set()
        await self.may_end.wait()
        return web.json_response(chat([1], [2]))


class Upload:
    """A call whose body comes in two parts."""

    def __init__(self, rig: Rig) -> None:
        self._url = URL(rig.url)

    async def begin(self) -> None:
        assert self._url.host
        assert self._url.port
        self._reader, self._writer = await asyncio.open_connection(self._url.host, self._url.port)
        head = f"POST {CHAT} HTTP/1.1\r\nHost: x\r\nContent-Length: {len(BODY)}\r\n\r\n"
        self._writer.write(head.encode() + BODY[:5])
        await self._writer.drain()
        await asyncio.sleep(0.1)

    async def end(self) -> None:
        self._writer.write(BODY[5:])
        await self._writer.drain()

    async def status(self) -> int:
        line = await self._reader.readline()
        self._writer.close()
        return int(line.split()[1])


def test_sessions_that_live_on_are_let_go_when_they_hold_much(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tokenrecords.gateway.store._HELD", 700)  # ids; a call counts as 128 and its own
    store = Store(tmp_path)

    def call(session: str, number: int) -> TokenEntry:
        prompt = list(range(3 + 2 * number))
        return TokenEntry(
            rollout_id=session,
            model_call_id=str(number),
            prompt_token_ids=prompt,
            generation_token_ids=[2 * number + 3],
            generation_log_probs=[-0.5],
        )

    for number in range(3):
        for name in ("a", "b"):
            session = store.session(name)
            assert [entry.model_call_id for entry in session.calls] == [str(k) for k in range(number)]
            entry = call(name, number)
            parent, status, _ = find_parent(entry, session.calls)
            stamp_lineage(entry, parent and parent.model_call_id, status)
            assert (parent is None) is (number == 0)
            session.keep(str(number), [entry], delta=True)
    held = store.session("b")
    assert store.session("b") is held, "the newest stays"
    before = store.session("a")
    assert store.session("b") is not held
    assert store.session("a") is not before
    entries = read_jsonl(tmp_path / "a.tokens.jsonl")
    assert [entry.prompt_token_ids.tolist() for entry in entries] == [[0, 1, 2], [4], [6]]
    store.forget("a")
    store.forget("b")
    assert store._held == 0
    store.close()


def test_a_session_that_is_let_go_meanwhile_has_no_double(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tokenrecords.gateway.store._SESSIONS", 1)
    engine = Held()

    async def test(rig: Rig) -> None:
        upload = Upload(rig)
        await upload.begin()
        await rig.get("/sessions/another")
        await upload.end()
        await engine.begun.wait()
        await rig.get("/sessions/another")
        await rig.get("/sessions/third")
        assert (await rig.get("/sessions/s"))[1]["open"] == 1
        engine.may_end.set()
        assert await upload.status() == 200
        _, counts = await rig.get("/sessions/s")
        assert (counts["calls"], counts["lost"], counts["complete"]) == (1, 0, True)
        assert rig.lines(".lost") == []

    run(tmp_path, engine, test)


def test_a_call_whose_body_comes_during_a_pause_is_refused(tmp_path: Path) -> None:
    async def test(rig: Rig) -> None:
        upload = Upload(rig)
        await upload.begin()
        assert (await rig.get("/pause", "POST"))[1]["open"] == 0
        await upload.end()
        assert await upload.status() == 429
        assert rig.seen == []

    run(tmp_path, Held(), test)


def test_a_call_that_passes_is_open_too(tmp_path: Path) -> None:
    engine = Held()

    async def test(rig: Rig) -> None:
        call = asyncio.ensure_future(rig.post("/v1/chat/completions"))
        await engine.begun.wait()
        assert (await rig.get("/pause", "POST"))[1]["open"] == 1
        engine.may_end.set()
        assert (await call)[0] == 200
        assert (await rig.get("/pause", "POST"))[1]["open"] == 0
        assert 'calls_total{end="passed"} 1.0' in (await rig.get("/metrics"))[1]

    run(tmp_path, engine, test)


def test_an_agent_that_leaves_while_the_disk_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    engine, syncing, may_sync = Held(), asyncio.Event(), asyncio.Event()
    engine.may_end.set()

    async def durable(*_: Any, **__: Any) -> None:
        syncing.set()
        await may_sync.wait()

    async def test(rig: Rig) -> None:
        monkeypatch.setattr("tokenrecords.gateway.commits.Commits.durable", durable)
        call = asyncio.ensure_future(rig.post())
        await syncing.wait()
        call.cancel()
        with suppress(asyncio.CancelledError):
            await call
        while (await rig.get("/pause", "POST"))[1]["open"]:
            await asyncio.sleep(0.01)
        assert len(rig.records()) == 1
        assert rig.lines(".lost") == []
        assert 'calls_total{end="recorded"} 1.0' in (await rig.get("/metrics"))[1]

    run(tmp_path, engine, test, durable="fsync")


def test_the_session_that_was_used_least_lately_is_let_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tokenrecords.gateway.store._SESSIONS", 2)
    store = Store(tmp_path)
    first = store.session("a")
    second = store.session("b")
    assert store.session("a") is first
    store.session("c")
    assert store.session("a") is first
    assert store.session("b") is not second
    store.close()


def test_a_directory_that_is_taken_leaves_no_file_open(tmp_path: Path) -> None:
    store = Store(tmp_path)
    before = os.dup(0)
    os.close(before)
    with pytest.raises(ValueError, match="is written by another gateway"):
        Store(tmp_path)
    after = os.dup(0)
    os.close(after)
    assert after == before
    store.close()


def test_a_hashed_session_without_a_readable_id_has_the_name_of_its_files(tmp_path: Path) -> None:
    for name, line in (("x", "{}"), ("y", "{"), ("z", '{"rollout_id": "é"}')):
        (tmp_path / f"{name}.intents").touch()
        (tmp_path / f"{name}.tokens.jsonl").write_text(line + "\n")
    store = Store(tmp_path, hash_ids=True)
    assert store.ids() == ["x", "y", "é"]
    store.close()


def test_a_session_is_listed_once_and_when_it_has_a_call(tmp_path: Path) -> None:
    """Its records, which say the id, come later."""
    store = Store(tmp_path, hash_ids=True)
    session = store.session("a/b")
    assert store.ids() == []
    session.begin("c")
    assert store.ids() == ["a/b"]
    session.keep("c", [make_entry(rollout_id="a/b", model_call_id="c")], delta=True)
    store.close()
    again = Store(tmp_path, hash_ids=True)
    assert again.ids() == ["a/b"]
    again.close()


def test_sessions_are_listed_in_their_order(tmp_path: Path) -> None:
    store = Store(tmp_path)
    for name in "cabd":
        store.session(name).begin("c")
    assert store.ids() == ["a", "b", "c", "d"]
    store.close()


def test_who_reads_how_a_session_ended_reads_all_of_it(tmp_path: Path) -> None:
    store = Store(tmp_path)
    session = store.session("s")
    session.close({"reward": 0.5})
    with (tmp_path / "s.closed.json").open() as reading:
        session.close({"reward": 1})
        assert json.load(reading) == {"reward": 0.5}
    assert json.loads((tmp_path / "s.closed.json").read_bytes()) == {"reward": 1}
    store.close()


def test_all_files_of_a_session_go_with_it(tmp_path: Path) -> None:
    store = Store(tmp_path)
    before = sorted(tmp_path.iterdir())
    for suffix in ("tokens.jsonl", "intents", "lost", "messages.jsonl", "closed.json"):
        (tmp_path / f"s.{suffix}").touch()
    store.forget("s")
    assert sorted(tmp_path.iterdir()) == before
    store.close()


def test_a_directory_may_be_below_one_that_is_not_there(tmp_path: Path) -> None:
    Store(tmp_path / "a" / "b").close()
    assert (tmp_path / "a" / "b").is_dir()


def test_what_is_held_of_a_record_has_the_sessions_own_id() -> None:
    session = "a session"
    named = str(session.encode(), "ascii")
    assert named is not session
    assert HeldCall.of(make_entry(rollout_id=named), session).rollout_id is session
    assert HeldCall.of(make_entry(rollout_id="another"), session).rollout_id == "another"


def test_a_digest_alone_is_no_prompt() -> None:
    held = HeldCall.of(call("b", [1, 2], [3], "a"), "s").as_digest()
    assert (len(held.prompt_token_ids), len(held.generation_token_ids), held.prompt_is_delta) == (0, 0, True)
    root = HeldCall.of(call("a", [1, 2], [3]), "s")
    assert root.as_digest() is root


def test_a_note_of_a_loss_is_one_line_that_ends(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.session("s").lose("c", "a\n\tb " + "x" * 1_000)
    assert (tmp_path / "s.lost").read_text() == "c\ta b " + "x" * 496 + "\n"
    store.close()
