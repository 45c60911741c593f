"""Files that are no ordinary ones: empty, unbuffered, devices, links that lead nowhere."""

import io
import os
import stat
from pathlib import Path

import numpy as np
import pytest
from support.factories import make_entry
from tokenrecords import RecordError, append_jsonl, read_jsonl, scan_jsonl, write_jsonl


@pytest.mark.parametrize("name", ["a.tokens.jsonl.gz", "a.tokens.jsonl.zst"])
@pytest.mark.parametrize("threads", [1, 2])
def test_an_empty_file_is_no_compressed_one(tmp_path: Path, name: str, threads: int) -> None:
    path = tmp_path / name
    path.touch()
    with pytest.raises(RecordError, match="the compressed data are damaged: the file is empty"):
        read_jsonl(path, threads=threads)
    write_jsonl(path, [])
    assert read_jsonl(path, threads=threads) == []


class Counted(io.FileIO):
    """A file that counts what is read of it."""

    reads = 0

    def read(self, size: int = -1) -> bytes:
        self.reads += 1
        return super().read(size)

    def readinto(self, buffer: object) -> int:
        self.reads += 1
        return super().readinto(buffer)  # type: ignore[arg-type]


def test_a_file_without_a_buffer_is_read_in_large_pieces(tmp_path: Path) -> None:
    path = tmp_path / "r.tokens.jsonl"
    entries = [make_entry(model_call_id=f"c{k}", prompt_token_ids=np.arange(500)) for k in range(50)]
    write_jsonl(path, entries)
    with Counted(path) as file:
        assert len(read_jsonl(file)) == 50
        assert file.reads < 20
        assert file.tell() == path.stat().st_size


def test_the_owner_of_a_file_without_a_buffer_reads_on_behind_what_was_read(tmp_path: Path) -> None:
    path = tmp_path / "r.tokens.jsonl"
    write_jsonl(path, [make_entry(model_call_id=f"c{k}") for k in range(5)])
    lines = path.read_bytes().splitlines(keepends=True)
    with path.open("rb", buffering=0) as file:
        with scan_jsonl(file) as reader:
            assert [next(reader).model_call_id for _ in range(2)] == ["c0", "c1"]
        assert file.readline() == lines[2]


@pytest.fixture
def full(tmp_path: Path) -> Path:
    """A device that is full: one of this test's own where that can be had, for root could put a file in its place."""
    device = tmp_path / "full"
    try:
        os.mknod(device, stat.S_IFCHR | 0o600, os.makedev(1, 7))
        device.open("wb").close()
    except OSError:
        return Path("/dev/full")
    return device


def test_a_device_that_is_full_says_so(full: Path) -> None:
    for write in (append_jsonl, write_jsonl):
        with pytest.raises(OSError, match="No space left on device"):
            write(full, [make_entry()])
        assert full.is_char_device()


def test_links_that_lead_round_in_a_circle(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    for write in (append_jsonl, write_jsonl):
        with pytest.raises(OSError, match="Too many levels of symbolic links"):
            write(tmp_path / "a", [make_entry()])
