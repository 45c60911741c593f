"""Appending records: what a crash left is mended, a failure changes nothing, and processes do not mix their lines."""

from __future__ import annotations

import errno
import fcntl
import os
import resource
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from support.factories import call_ids, make_entry
from tokenrecords import append_jsonl, read_jsonl, write_jsonl

BOM = b"\xef\xbb\xbf"


def text(*names: str) -> bytes:
    return b"".join(make_entry(model_call_id=name).to_json() + b"\n" for name in names)


def named(*names: str) -> list[Any]:
    return [make_entry(model_call_id=name) for name in names]


def test_records_come_after_those_that_are_there(path: Path) -> None:
    append_jsonl(path, named("a"))
    append_jsonl(str(path), iter(named("b", "c")))
    append_jsonl(path, [], fsync=False)
    append_jsonl(path, named("d"), fsync=False)
    assert path.read_bytes() == text("a", "b", "c", "d")
    assert [file.name for file in path.parent.iterdir()] == [path.name]


def test_a_new_file_has_the_usual_mode(path: Path, tmp_path: Path) -> None:
    (tmp_path / "usual").touch()
    append_jsonl(path, named("a"))
    assert path.stat().st_mode == (tmp_path / "usual").stat().st_mode
    path.chmod(0o600)
    append_jsonl(path, named("b"))
    assert path.stat().st_mode & 0o777 == 0o600


def test_where_no_file_can_be(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        append_jsonl(tmp_path / "missing" / "x.jsonl", named("a"))
    with pytest.raises(IsADirectoryError):
        append_jsonl(tmp_path, named("a"))


def test_through_a_link(tmp_path: Path, synced: list[tuple[Path, bytes]]) -> None:
    (tmp_path / "store").mkdir()
    link = tmp_path / "link.jsonl"
    link.symlink_to("store/x.jsonl")
    append_jsonl(link, named("a"))
    assert ((tmp_path / "store"), b"") in synced
    append_jsonl(link, named("b"))
    assert link.is_symlink()
    assert (tmp_path / "store" / "x.jsonl").read_bytes() == text("a", "b")


# What a crash left


def tails() -> dict[str, bytes]:
    line = text("torn" * 30_000)  # longer than what is looked at in one piece
    return {
        "a byte": b"{",
        "a start": line[:40],
        "within a long line": line[:100_000],
        "all but the end": line[:-2],
        "zeros": b"\0" * 5000,
        "cut UTF-8": b'{"model":"\xc3',
        "spaces": b"   ",
        "a blank line and a start": b" \n{",
    }


@pytest.mark.parametrize("tail", tails().values(), ids=tails())
@pytest.mark.parametrize("before", [b"", text("a"), text("a", "b" * 200_000)], ids=["nothing", "one", "long"])
def test_a_torn_tail_is_cut_off(path: Path, before: bytes, tail: bytes) -> None:
    path.write_bytes(before + tail)
    append_jsonl(path, named("new"))
    kept = before + tail[: tail.rfind(b"\n") + 1]
    assert path.read_bytes() == kept + text("new")


@pytest.mark.parametrize("before", [b"", text("a"), BOM], ids=["nothing", "one", "mark"])
@pytest.mark.parametrize("last", ["b", "b" * 200_000], ids=["short", "long"])
@pytest.mark.parametrize("space", [b"", b" ", b"\r"])
def test_a_whole_last_record_gets_its_line_break(path: Path, before: bytes, last: str, space: bytes) -> None:
    path.write_bytes(before + text(last)[:-1] + space)
    append_jsonl(path, named("new"))
    assert path.read_bytes() == before + text(last)[:-1] + space + b"\n" + text("new")
    assert call_ids(read_jsonl(path))[-2:] == [last, "new"]


def test_the_tail_is_mended_without_a_record_too(path: Path) -> None:
    path.write_bytes(text("a") + b"{")
    append_jsonl(path, [])
    assert path.read_bytes() == text("a")


# Failures


class Disk:
    """Stands in for `os.write`: it takes `room` bytes, `piece` of them at a time, and fails then."""

    def __init__(self, room: int, piece: int = 1 << 30, error: BaseException | None = None) -> None:
        self.room, self.piece = room, piece
        self.error = error or OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self.write = os.write
        self.writes: list[bytes] = []

    def __call__(self, descriptor: int, data: Any) -> int:
        if self.room == 0:
            raise self.error
        taken = self.write(descriptor, bytes(data[: min(self.room, self.piece)]))
        self.writes.append(bytes(data))
        self.room -= taken
        return taken


@pytest.mark.parametrize("room", [0, 1, 100, len(text("b")) - 1, len(text("b")), len(text("b")) + 7])
@pytest.mark.parametrize("piece", [50, 1 << 30])
@pytest.mark.parametrize("before", [text("a"), b"", None], ids=["one", "empty", "new"])
@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "full"), KeyboardInterrupt()], ids=["full", "interrupt"])
def test_a_failed_write_leaves_the_file_as_it_was(
    path: Path, room: int, piece: int, before: bytes | None, error: BaseException
) -> None:
    if before is not None:
        path.write_bytes(before)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "write", Disk(room, piece, error))
        with pytest.raises(type(error)):
            append_jsonl(path, named("b", "c"))
    # A file that was new may stay, empty.
    assert (path.read_bytes() if path.exists() else b"") == (before or b"")
    append_jsonl(path, named("d"))
    assert path.read_bytes() == (before or b"") + text("d")


@pytest.mark.parametrize("room", [0, 1, 2, 100])
@pytest.mark.parametrize("tail", [b"", b"{", text("b")[:-1]], ids=["none", "torn", "whole"])
def test_a_failure_costs_no_record_whatever_the_tail(
    path: Path, monkeypatch: pytest.MonkeyPatch, room: int, tail: bytes
) -> None:
    before = text("a") + tail
    path.write_bytes(before)
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", Disk(room))
        with pytest.raises(OSError, match="space"):
            append_jsonl(path, named("c"))
    # The torn tail was no record; it may be cut off.
    assert path.read_bytes() in ({before, text("a")} if tail == b"{" else {before})


def test_a_failed_fsync_leaves_the_file_as_it_was(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path.write_bytes(text("a"))

    def fsync(_: int) -> None:
        raise OSError(errno.EIO, "broken")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fsync)
        with pytest.raises(OSError, match="broken"):
            append_jsonl(path, named("b", "c"))
    assert path.read_bytes() == text("a")


def test_a_real_limit_in_the_middle_of_a_line(path: Path) -> None:
    path.write_bytes(text("a"))
    old = resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size + len(text("b")) + 100, old[1]))
        with pytest.raises(OSError, match="large"):
            append_jsonl(path, named("b", "c"))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, old)
    assert path.read_bytes() == text("a")


def test_short_writes_are_gone_on_with(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", Disk(1 << 30, 37))
        append_jsonl(path, named("a", "b"))
    assert path.read_bytes() == text("a", "b")


def test_each_line_is_one_write(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    disk = Disk(1 << 30)
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", disk)
        append_jsonl(path, named("a", "b" * 1_000_000))
    assert disk.writes == [text("a"), text("b" * 1_000_000)]


def test_no_descriptor_is_left_open(path: Path) -> None:
    before = len(list(Path("/proc/self/fd").iterdir()))
    append_jsonl(path, named("a"))
    with pytest.raises(ValueError, match="compressed"):
        append_jsonl(path.with_name("x.gz"), named("a"))
    assert len(list(Path("/proc/self/fd").iterdir())) == before


# The disk


@pytest.fixture
def synced(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Path, bytes]]:
    """What was brought to the disk so far: each file with its content, each directory with nothing."""
    real, found = os.fsync, []

    def fsync(descriptor: int) -> None:
        file = Path(f"/proc/self/fd/{descriptor}").readlink()
        found.append((file, b"" if file.is_dir() else file.read_bytes()))
        real(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(os, "fdatasync", fsync)
    return found


def test_a_new_file_and_its_directory_are_on_the_disk(path: Path, synced: list[tuple[Path, bytes]]) -> None:
    append_jsonl(path, named("a", "b"))
    assert sorted(synced) == sorted([(path, text("a", "b")), (path.parent, b"")])


def test_an_old_file_is_on_the_disk(path: Path, synced: list[tuple[Path, bytes]]) -> None:
    path.write_bytes(text("a"))
    append_jsonl(path, named("b"))
    assert synced == [(path, text("a", "b"))]


def test_a_mended_tail_is_on_the_disk(path: Path, synced: list[tuple[Path, bytes]]) -> None:
    path.write_bytes(text("a", "b")[:-1])
    append_jsonl(path, [])
    assert synced[-1] == (path, text("a", "b"))


def test_the_directory_of_a_file_that_another_just_made(
    path: Path, monkeypatch: pytest.MonkeyPatch, synced: list[tuple[Path, bytes]]
) -> None:
    """The other may be killed before it brings the name to the disk; ours is acknowledged."""
    real = os.open

    def made_meanwhile(name: Any, *arguments: Any, **options: Any) -> int:
        if os.fspath(name) == str(path) and not path.exists():
            os.close(real(path, os.O_CREAT | os.O_WRONLY))
        return real(name, *arguments, **options)

    monkeypatch.setattr(os, "open", made_meanwhile)
    append_jsonl(path, named("a"))
    assert (path.parent, b"") in synced
    synced.clear()
    path.write_bytes(b"")  # made, locked and left by another that was killed
    append_jsonl(path, named("a"))
    assert (path.parent, b"") in synced


def test_without_fsync(path: Path, synced: list[tuple[Path, bytes]]) -> None:
    append_jsonl(path, named("a"), fsync=False)
    assert synced == []


# Several writers


@pytest.mark.parametrize("what", ["replaced", "removed", "appended to"])
def test_the_file_changes_while_its_lock_is_waited_for(path: Path, monkeypatch: pytest.MonkeyPatch, what: str) -> None:
    write_jsonl(path, named("old"))
    waiting, real = threading.Event(), fcntl.flock

    def flock(descriptor: int, operation: int) -> None:
        waiting.set()
        real(descriptor, operation)

    with path.open("ab") as holder:
        real(holder, fcntl.LOCK_EX)
        monkeypatch.setattr(fcntl, "flock", flock)
        appending = threading.Thread(target=append_jsonl, args=(path, named("new")))
        appending.start()
        assert waiting.wait(60)
        if what == "replaced":
            write_jsonl(path, named("other"))
        elif what == "removed":
            path.unlink()
        else:
            holder.write(text("other"))
    appending.join(60)
    assert not appending.is_alive()
    expected = {"replaced": ["other", "new"], "removed": ["new"], "appended to": ["old", "other", "new"]}
    assert call_ids(read_jsonl(path)) == expected[what]


WRITER = """
import sys
from tokenrecords import TokenEntry, append_jsonl
path, me, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
fields = dict(rollout_id=me, prompt_token_ids=[1], generation_token_ids=[], generation_log_probs=[])
records = [TokenEntry(model_call_id=str(i), model=me * (i * 997 % 20_000), **fields) for i in range(count)]
print("ready", flush=True)
sys.stdin.readline()
for i in range(0, count, 2):
    append_jsonl(path, records[i : i + 2], fsync=i % 20 == 0)
"""


@pytest.mark.parametrize("writers", [2, 4])
def test_processes_lose_and_mix_nothing(path: Path, writers: int) -> None:
    count = 200
    command = [sys.executable, "-c", WRITER, str(path)]
    names = "abcd"[:writers]
    processes = [
        subprocess.Popen([*command, name, str(count)], stdin=subprocess.PIPE, stdout=subprocess.PIPE) for name in names
    ]
    try:
        for process in processes:
            assert process.stdout is not None
            assert process.stdout.readline() == b"ready\n"
        for process in processes:
            assert process.stdin is not None
            process.stdin.write(b"\n")
            process.stdin.flush()
        assert [process.wait(60) for process in processes] == [0] * writers
    finally:
        for process in processes:
            process.kill()
            process.communicate()
    found = read_jsonl(path)
    for name in names:
        mine = [one for one in found if one.rollout_id == name]
        assert call_ids(mine) == [str(i) for i in range(count)]
        assert [one.model for one in mine] == [name * (i * 997 % 20_000) for i in range(count)]
    assert len(found) == writers * count
    # The records of one call stand together.
    pairs = [(one.rollout_id, int(one.model_call_id) // 2) for one in found]
    assert pairs[::2] == pairs[1::2]
