"""Where records are written to: whole files, links, compressed files, open files."""

from __future__ import annotations

import gzip
import io
import itertools
import os
import stat
import sys
import time
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from support.factories import FIELDS, call_ids, make_entry
from tokenrecords import TokenEntry, append_jsonl, read_jsonl, write_jsonl

if TYPE_CHECKING:
    from collections.abc import Iterator

zstd = import_module("compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd")


def test_a_path_is_replaced_whole(tmp_path: Path) -> None:
    path = tmp_path / "x.tokens.jsonl"
    write_jsonl(str(path), [make_entry(model_call_id="a")])
    with path.open("rb") as old:
        write_jsonl(path, (make_entry(model_call_id=call) for call in "bc"))
        assert call_ids(read_jsonl(old)) == ["a"]
    assert path.read_bytes() == b"".join(make_entry(model_call_id=call).to_json() + b"\n" for call in "bc")
    assert [file.name for file in tmp_path.iterdir()] == [path.name]
    write_jsonl(path, [])
    assert path.read_bytes() == b""


def test_the_old_file_is_there_until_the_new_one_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "x.tokens.jsonl"
    write_jsonl(path, [make_entry(model_call_id="old")])

    def entries() -> Any:
        yield make_entry(model_call_id="new", model="x" * 3_000_000)
        assert call_ids(read_jsonl(path)) == ["old"]

    write_jsonl(path, entries())
    assert call_ids(read_jsonl(path)) == ["new"]


@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError])
def test_a_failing_generator_leaves_the_old_file(tmp_path: Path, error: type[BaseException]) -> None:
    path = tmp_path / "x.tokens.jsonl"
    write_jsonl(path, [make_entry()])
    old = path.read_bytes()

    def entries() -> Any:
        yield make_entry(model="x" * 3_000_000)
        raise error

    for write in (write_jsonl, append_jsonl):
        with pytest.raises(error):
            write(path, entries())
        assert path.read_bytes() == old
        assert list(tmp_path.iterdir()) == [path]


def test_the_new_file_is_on_the_disk_before_it_has_the_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x.tokens.jsonl"
    write_jsonl(path, [make_entry()])
    old, new = path.read_bytes(), (make_entry(model="new").to_json() + b"\n") * 3
    real, synced = os.fsync, []

    def fsync(descriptor: int) -> None:
        file = Path(f"/proc/self/fd/{descriptor}").readlink()
        synced.append((file.is_dir(), file if file.is_dir() else file.read_bytes(), path.read_bytes()))
        real(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    write_jsonl(path, [make_entry(model="new")] * 3)
    assert synced == [(False, new, old), (True, tmp_path, new)]


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "store").mkdir()
    link, target = tmp_path / "link.jsonl", tmp_path / "store" / "x.jsonl"
    link.symlink_to("store/x.jsonl")
    for call in "ab":  # to nothing at first
        write_jsonl(link, [make_entry(model_call_id=call)])
        assert link.is_symlink()
        assert not target.is_symlink()
        assert call_ids(read_jsonl(target)) == [call]
    assert list((tmp_path / "store").iterdir()) == [target]


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o664, 0o444])
def test_the_mode_of_the_file_stays(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "x.jsonl"
    write_jsonl(path, [make_entry()])
    path.chmod(mode)
    write_jsonl(path, [make_entry()])
    assert stat.S_IMODE(path.stat().st_mode) == mode


@pytest.mark.parametrize("mask", [0o022, 0o002, 0o077])
def test_a_new_file_has_the_usual_mode(tmp_path: Path, mask: int) -> None:
    before = os.umask(mask)
    try:
        write_jsonl(tmp_path / "x", [])
        append_jsonl(tmp_path / "y", [])
    finally:
        os.umask(before)
    assert {file.stat().st_mode & 0o777 for file in tmp_path.iterdir()} == {0o666 & ~mask}


def test_where_no_file_can_be(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        write_jsonl(tmp_path / "missing" / "x.jsonl", [make_entry()])
    with pytest.raises(OSError, match="directory"):
        write_jsonl(tmp_path, [make_entry()])
    assert list(tmp_path.iterdir()) == []
    assert list(tmp_path.parent.glob(f".*{tmp_path.name}*")) == []


def test_a_long_name(tmp_path: Path) -> None:
    path = tmp_path / ("n" * 255)
    write_jsonl(path, [make_entry()])
    assert call_ids(read_jsonl(path)) == ["c"]


@pytest.mark.parametrize(("ending", "decompress"), [(".gz", gzip.decompress), (".zst", zstd.decompress)])
def test_compressed_by_the_name(tmp_path: Path, ending: str, decompress: Any) -> None:
    path = tmp_path / f"x.tokens.jsonl{ending}"
    entries = [make_entry(model_call_id=str(i)) for i in range(50)]
    write_jsonl(path, entries)
    packed = path.read_bytes()
    assert decompress(packed) == b"".join(one.to_json() + b"\n" for one in entries)
    assert read_jsonl(path) == entries
    assert list(tmp_path.iterdir()) == [path]
    with pytest.raises(ValueError, match="compressed"):
        append_jsonl(path, [make_entry()])
    with pytest.raises(ValueError, match="compressed"):
        append_jsonl(tmp_path / f"new{ending}", [make_entry()])
    assert path.read_bytes() == packed
    assert list(tmp_path.iterdir()) == [path]


def test_nobody_may_read_the_new_file_of_a_private_one_meanwhile(tmp_path: Path) -> None:
    path = tmp_path / "x.tokens.jsonl"
    write_jsonl(path, [make_entry()])
    path.chmod(0o600)

    def entries() -> Iterator[TokenEntry]:
        modes = {file.stat().st_mode & 0o777 for file in tmp_path.iterdir()}
        assert (modes, len(list(tmp_path.iterdir()))) == ({0o600}, 2)
        yield make_entry()

    write_jsonl(path, entries())
    assert path.stat().st_mode & 0o777 == 0o600


def test_the_same_records_are_the_same_bytes_at_any_time_under_any_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = []
    for name, now in (("a.jsonl.gz", 1e9), ("b.jsonl.gz", 1.5e9)):
        monkeypatch.setattr(time, "time", lambda now=now: now)
        write_jsonl(tmp_path / name, [make_entry()])
        written.append((tmp_path / name).read_bytes())
    assert written[0] == written[1]


def test_an_open_file_gets_each_line_in_one_write() -> None:
    class File(io.BytesIO):
        written: list[bytes] = []  # noqa: RUF012

        def write(self, data: Any) -> int:
            self.written.append(bytes(data))
            return super().write(data)

    file = File(b"head\n")
    file.seek(0, io.SEEK_END)
    write_jsonl(file, (make_entry(model_call_id=call) for call in "ab"))
    assert file.written == [make_entry(model_call_id=call).to_json() + b"\n" for call in "ab"]
    assert file.getvalue() == b"head\n" + b"".join(file.written)
    assert not file.closed


def test_a_raw_file_that_takes_less_than_it_is_given() -> None:
    class Raw(io.RawIOBase):
        got = b""
        sizes = itertools.cycle([100, 0, 1])  # 0 is not the end

        def writable(self) -> bool:
            return True

        def write(self, data: Any) -> int:
            size = next(self.sizes)
            self.got += bytes(data[:size])
            return min(size, len(data))

    file = Raw()
    write_jsonl(file, [make_entry(), make_entry()])  # type: ignore[arg-type]
    assert file.got == (make_entry().to_json() + b"\n") * 2


def test_a_stream_that_takes_nothing_now() -> None:
    class Raw(io.RawIOBase):
        asked = 0

        def write(self, _data: Any) -> None:
            self.asked += 1
            assert self.asked == 1, "it was asked again"

    with pytest.raises(BlockingIOError, match="takes nothing now"):
        write_jsonl(Raw(), [make_entry()])  # type: ignore[arg-type]


def test_what_is_no_target(tmp_path: Path) -> None:
    with (tmp_path / "x").open("w", encoding="utf-8") as file, pytest.raises(TypeError):
        write_jsonl(file, [make_entry()])  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        write_jsonl(None, [])  # type: ignore[arg-type]


def test_what_is_no_record(tmp_path: Path) -> None:
    for write in (write_jsonl, append_jsonl):
        with pytest.raises(TypeError):
            write(tmp_path / "x", [FIELDS])  # type: ignore[list-item]
    assert list(tmp_path.iterdir()) == []
