"""A disk that is full, or that lies: each call is accounted for, and none that was refused looks open."""

import asyncio
import time
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from support.gateways import ASK, GENERATION, PROMPT, Rig, chat, chunks, run, says, sse, streams
from tokenrecords.files import durable
from tokenrecords.files.side_files import read_side_files
from tokenrecords.gateway.commits import Commits


class Disk:
    """Appends that fail for files with these suffixes, once that many were done."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *suffixes: str, room: int = 0) -> None:
        self._suffixes, self._room = suffixes, room
        monkeypatch.setattr("tokenrecords.gateway.store.append_lines", self)

    def __call__(self, path: Path, lines: list[bytes], **how: Any) -> None:
        if path.name.endswith(self._suffixes):
            self._room -= 1
            if self._room < 0:
                raise OSError(28, "No space left on device")
        durable.append_lines(path, lines, **how)


async def counts(rig: Rig) -> tuple[int, int, int, bool]:
    said = (await rig.get("/sessions/s"))[1]
    return said["calls"], said["lost"], said["open"], said["complete"]


async def is_idle(rig: Rig) -> bool:
    return "open_calls 0.0" in (await rig.get("/metrics"))[1]


def test_a_record_that_does_not_fit_is_a_loss(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def test(rig: Rig) -> None:
        Disk(monkeypatch, ".tokens.jsonl")
        status, _, answer = await rig.post()
        assert status == 502
        assert b"No space left on device" in answer
        monkeypatch.undo()
        assert (await rig.post())[0] == 200
        assert [len(rig.lines(suffix)) for suffix in (".intents", ".lost")] == [2, 1]

    run(tmp_path, says(chat(PROMPT, GENERATION)), test)


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("on_loss", ["fail", "pass"])
def test_a_loss_that_cannot_be_written_is_one_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, on_loss: str, streamed: bool
) -> None:
    async def test(rig: Rig) -> None:
        Disk(monkeypatch, ".tokens.jsonl", ".lost")
        status, _, answer = await rig.post(body={**ASK, "stream": streamed})
        assert status == (502 if on_loss == "fail" and not streamed else 200)
        assert (b"No space left on device" in answer) == (on_loss == "fail")
        assert (b"[DONE]" in answer) == (on_loss == "pass" and streamed)
        assert await counts(rig) == (0, 1, 0, False)
        assert await is_idle(rig)
        assert read_side_files([tmp_path])[str(tmp_path / "s")].is_incomplete([])

    answer = streams(sse(chunks(PROMPT, GENERATION))) if streamed else says(chat(PROMPT, GENERATION))
    run(tmp_path, answer, test, on_loss=on_loss)


def test_an_error_that_cannot_be_noted_counts_as_a_loss(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def test(rig: Rig) -> None:
        Disk(monkeypatch, ".intents", room=1)
        assert (await rig.post())[::2] == (500, b'{"error": "x"}')
        assert await counts(rig) == (0, 1, 0, False)
        assert await is_idle(rig)
        assert "the engine answered 500" in rig.lines(".lost")[0]

    run(tmp_path, says({"error": "x"}, 500), test)


def test_a_call_that_cannot_be_noted_is_not_sent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def test(rig: Rig) -> None:
        Disk(monkeypatch, ".intents")
        status, headers, _ = await rig.post()
        assert (status, headers["retry-after"]) == (503, "1")
        assert rig.seen == []
        assert await is_idle(rig)

    run(tmp_path, says(chat(PROMPT, GENERATION)), test)


def test_messages_that_do_not_fit_are_a_loss_without_a_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def test(rig: Rig) -> None:
        Disk(monkeypatch, ".messages.jsonl")
        assert (await rig.post())[0] == 502
        assert await counts(rig) == (0, 1, 0, False)
        assert rig.records() == []

    run(tmp_path, says(chat(PROMPT, GENERATION)), test, keep_messages=True)


def test_a_note_that_broke_off_does_not_spoil_the_next_one(tmp_path: Path) -> None:
    (tmp_path / "s.intents").write_text("whole\nbroke")

    async def test(rig: Rig) -> None:
        _, headers, _ = await rig.post()
        call = headers["x-tokenrecords-call"]
        assert rig.lines(".intents") == [["whole"], ["broke"], [call]]
        assert [line[0] for line in rig.lines(".lost")] == ["whole", "broke"]
        assert read_side_files([tmp_path])[str(tmp_path / "s")].lost([call]) == ["whole", "broke"]

    run(tmp_path, says(chat(PROMPT, GENERATION)), test)


def test_another_process_counts_alike(tmp_path: Path) -> None:
    given = iter([chat(PROMPT, GENERATION, n=2), {"choices": []}])

    async def answer(_: web.Request, __: Any) -> web.Response:
        return web.json_response(next(given))

    async def first(rig: Rig) -> None:
        assert [(await rig.post())[0] for _ in range(2)] == [200, 502]
        assert await counts(rig) == (1, 1, 0, False)

    async def second(rig: Rig) -> None:
        assert await counts(rig) == (1, 1, 0, False)
        assert len(rig.lines(".lost")) == 1

    run(tmp_path, answer, first)
    run(tmp_path, answer, second)


def test_a_loss_is_on_the_disk_and_a_note_of_a_call_is_with_the_kernel(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: dict[str, bool] = {}

    def append(path: Path, lines: list[bytes], *, fsync: bool, mode: int) -> None:
        synced[path.suffix] = fsync
        durable.append_lines(path, lines, fsync=fsync, mode=mode)

    async def test(rig: Rig) -> None:
        monkeypatch.setattr("tokenrecords.gateway.store.append_lines", append)
        assert (await rig.post())[0] == 502
        assert synced == {".intents": False, ".lost": True}

    run(tmp_path, says({"choices": []}), test)


def test_the_name_of_a_new_file_is_synced_whoever_waits_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[Path] = []
    monkeypatch.setattr("tokenrecords.gateway.commits.sync", synced.append)

    async def both() -> None:
        commits = Commits()
        path = tmp_path / "s"
        await asyncio.gather(commits.durable(path, is_new=True), commits.durable(path, is_new=False))
        commits.close()

    asyncio.run(both())
    assert synced == [tmp_path / "s", tmp_path]


def test_each_file_has_the_outcome_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    problems = {"a": OSError(5, "a"), "b": ValueError("b")}

    def sync(path: Path) -> None:
        if path.name in problems:
            raise problems[path.name]

    monkeypatch.setattr("tokenrecords.gateway.commits.sync", sync)

    async def all_of_them() -> list[BaseException | None]:
        commits = Commits()
        waiting = [asyncio.ensure_future(commits.durable(tmp_path / name, is_new=False)) for name in "abc"]
        outcomes = await asyncio.wait_for(asyncio.gather(*waiting, return_exceptions=True), 20)
        commits.close()
        return outcomes

    assert asyncio.run(all_of_them()) == [problems["a"], problems["b"], None]


def test_what_is_waited_for_is_done_before_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[Path] = []

    def slow(path: Path) -> None:
        time.sleep(0.1)
        synced.append(path)

    monkeypatch.setattr("tokenrecords.gateway.commits.sync", slow)

    async def ends() -> None:
        commits = Commits()
        waiting = asyncio.ensure_future(commits.durable(tmp_path / "s", is_new=False))
        await asyncio.sleep(0)
        commits.close()
        assert synced == [tmp_path / "s"]
        await waiting

    asyncio.run(ends())


def test_the_disk_is_not_waited_for_where_a_kill_is_all_that_is_feared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[Path] = []
    monkeypatch.setattr("tokenrecords.gateway.commits.sync", synced.append)

    async def test(rig: Rig) -> None:
        assert (await rig.post())[0] == 200
        assert synced == []

    run(tmp_path, says(chat(PROMPT, GENERATION)), test, durable="write")


def test_an_error_beside_choices_without_ids_is_a_loss(tmp_path: Path) -> None:
    """Something was generated, whatever went wrong then."""

    async def test(rig: Rig) -> None:
        assert (await rig.post())[0] == 502
        assert await counts(rig) == (0, 1, 0, False)

    body = {**chat(PROMPT, GENERATION), "error": {"message": "planted"}}
    body["choices"][0]["token_ids"] = None
    run(tmp_path, says(body), test)


def test_who_left_keeps_nobody_from_hearing_of_the_disk(tmp_path: Path) -> None:
    async def both() -> None:
        commits = Commits()
        path = tmp_path / "s"
        path.touch()
        waiting = [asyncio.ensure_future(commits.durable(path, is_new=False)) for _ in range(2)]
        await asyncio.sleep(0)
        waiting[0].cancel()
        await asyncio.wait_for(waiting[1], 20)
        commits.close()

    asyncio.run(both())
