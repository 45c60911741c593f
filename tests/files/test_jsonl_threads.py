"""Reading ahead, ending early, and the memory that reading takes."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import numpy as np
import pytest
from support.factories import THREE, line, make_entry, raw
from support.twin import exact
from support.watch import open_files, scanning_threads
from tokenrecords import JsonlReader, RecordError, read_jsonl, scan_jsonl, write_jsonl

if TYPE_CHECKING:
    from pathlib import Path


def test_any_number_of_threads_gives_the_same() -> None:
    data = b"".join(
        line(model_call_id=str(i), prompt_token_ids=list(range(i * 37 % 5000)), x=i if i % 3 else "7")
        for i in range(200)
    )
    data += raw(prompt_token_ids='["7"]')
    one, *others = ([exact(found) for found in read_jsonl(data, threads=threads)] for threads in (1, 2, 8))
    assert len(one) == 201
    assert others == [one, one]


@pytest.mark.parametrize("threads", [1, 2, 8])
@pytest.mark.parametrize("way", ["close", "with", "end", "break"])
def test_an_early_end_closes_the_file_and_ends_the_threads(path: Path, threads: int, way: str) -> None:
    path.write_bytes(THREE * 20)
    reader: JsonlReader | None = scan_jsonl(path, threads=threads)
    assert reader is not None
    assert next(reader).model_call_id == "a"
    assert len(open_files(path)) == 1
    if way == "close":
        reader.close()
        reader.close()
        assert list(reader) == []
    elif way == "with":
        with reader as same:
            assert same is reader
        assert list(reader) == []
    elif way == "end":
        assert len(list(reader)) == 59
    else:
        reader = None
    assert open_files(path) == []
    assert not scanning_threads()


@pytest.mark.parametrize("threads", [1, 8])
def test_an_error_closes_the_file_and_ends_the_threads(path: Path, threads: int) -> None:
    path.write_bytes(line() + b"bad\n" + THREE)
    with pytest.raises(RecordError) as info:
        read_jsonl(path, threads=threads)
    assert info.value.line == 2  # it is held while the file is looked for
    assert open_files(path) == []
    assert not scanning_threads()


def test_a_reader_that_was_never_read_opens_nothing(path: Path) -> None:
    path.write_bytes(THREE)
    reader = scan_jsonl(path, threads=4)
    assert open_files(path) == []
    reader.close()
    assert list(reader) == []


MEASURE = r"""
import re, sys, tokenrecords as tr
path, ids, threads = sys.argv[1], *map(int, sys.argv[2:])
fields = dict.fromkeys(("prompt_token_ids", "generation_token_ids", "generation_log_probs"), [])
tr.read_jsonl(tr.TokenEntry(rollout_id="r", model_call_id="c", **fields).to_json(), threads=threads)
# Not by getrusage: its peak is the parent's at first.
kilobytes = lambda: int(re.search(r"VmHWM:\s*(\d+)", open("/proc/self/status").read())[1])
before = kilobytes()
for entry in tr.scan_jsonl(path, threads=threads):
    assert len(entry.prompt_token_ids) + len(entry.generation_token_ids) == ids
    assert entry.prompt_token_ids.dtype == "int32"
    del entry
print((kilobytes() - before) * 1024)
"""


def bytes_per_id(path: Path, ids: int, threads: int = 1, lines: int = 1) -> float:
    """The peak of reading a file, above the text of `lines` of its lines."""
    command = [sys.executable, "-c", MEASURE, str(path), str(ids), str(threads)]
    peak = int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    with path.open("rb") as file:
        longest = max(map(len, file))
    return (peak - lines * longest) / ids


def long_lines(path: Path, ids: int, lines: int) -> None:
    """Lines of which a 33rd is generation, as 16,384 + 512 ids are."""
    rng = np.random.default_rng(4)
    some = lambda count: rng.integers(0, 150_000, count, np.int32)
    generated = ids // 33
    with path.open("wb") as file:
        for _ in range(lines):
            record = make_entry(
                prompt_token_ids=some(ids - generated),
                generation_token_ids=some(generated),
                generation_log_probs=-rng.random(generated),
            )
            write_jsonl(file, [record])


@pytest.mark.parametrize("lines", [1, 4])
def test_reading_takes_less_than_8_bytes_an_id_above_the_longest_line(path: Path, lines: int) -> None:
    ids = 2_000_000
    long_lines(path, ids, lines)
    assert bytes_per_id(path, ids) < 8


def test_memory_is_bounded_by_the_lines_in_flight(path: Path) -> None:
    ids = 500_000
    long_lines(path, ids, 12)
    # 3 lines in flight, each as text and as arrays (4 bytes an id), and as much again for gathering them
    assert bytes_per_id(path, ids, threads=2, lines=3) < 3 * 12


def test_no_python_object_for_an_id() -> None:
    import tracemalloc

    ids = 300_000
    data = make_entry(prompt_token_ids=np.arange(ids, dtype=np.int32)).to_json() + b"\n"
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        (found,) = read_jsonl(data)
        kept, peak = (traced - before for traced in tracemalloc.get_traced_memory())
    finally:
        tracemalloc.stop()
    assert len(found.prompt_token_ids) == ids
    assert peak - len(data) < 8 * ids
    assert kept < 5 * ids


def test_one_thread_is_the_own_one() -> None:
    for threads, own in ((1, True), (2, False)):
        with scan_jsonl(THREE, threads=threads) as reader:
            next(reader)
            assert (scanning_threads() == []) is own
