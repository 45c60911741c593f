"""Reading ahead, ending early, and the memory that reading takes."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
import warnings
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.factories import THREE, line, make_entry, raw
from support.twin import exact
from support.watch import open_files, threads_are
from tokenrecords import JsonlReader, RecordError, read_jsonl, scan_jsonl, write_jsonl
from tokenrecords.entry.model import origin

zstd = import_module("compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd")
INTERRUPTS = os.environ.get("TOKENRECORDS_INTERRUPTS", "40")
PROGRAM = Path(__file__).parent.parent / "support" / "interrupts.py"


def large(count: int = 600) -> bytes:
    """Lines of 2 kB, enough that threads are worth their start."""
    return b"".join(line(model_call_id=str(i), model="x" * 2_000) for i in range(count))


LARGE = large()


def test_any_number_of_threads_gives_the_same() -> None:
    data = b"".join(
        line(model_call_id=str(i), prompt_token_ids=list(range(i * 37 % 5000)), x=i if i % 3 else "7")
        for i in range(200)
    )
    data += raw(prompt_token_ids='["7"]')
    one, *others = ([exact(found) for found in read_jsonl(data, threads=threads)] for threads in (1, 2, 8, None))
    assert len(one) == 201
    assert others == [one] * 3


ENDINGS = ("", ".gz", ".zst")
SIZES = {"record": 2, "long": 9_000, "huge": 90_000}


def of_kind(kind: str, call: str) -> bytes:
    """A line of that kind."""
    if kind in SIZES:
        return line(model_call_id=call, prompt_token_ids=list(range(SIZES[kind])))
    return {"bad": b"{bad\n", "blank": b" \t\r\n", "odd": raw(model_call_id=f'"{call}"', prompt_token_ids='["7"]')}[
        kind
    ]


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_directories_are_read_alike_by_any_number_of_threads(tmp_path_factory: Any, data: st.DataObject) -> None:
    directory = tmp_path_factory.mktemp("rollouts")
    kinds = st.sampled_from([*SIZES, "bad", "blank", "odd"])
    for number, (ending, lines, cut) in enumerate(
        data.draw(
            st.lists(st.tuples(st.sampled_from(ENDINGS), st.lists(kinds, max_size=12), st.booleans()), max_size=8)
        )
    ):
        text = b"".join(of_kind(kind, f"{number}-{i}") for i, kind in enumerate(lines))
        packed = {"": bytes, ".gz": gzip.compress, ".zst": zstd.compress}[ending](text[:-1] if cut else text)
        # Half of a compressed file is damaged, half of a plain one ends within a line.
        (directory / f"{number}.tokens.jsonl{ending}").write_bytes(
            packed[: len(packed) // 2] if cut and lines else packed
        )
    if not any(directory.iterdir()):
        return
    read: list[Any] = []
    for threads in (1, 2, 5):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            reader = scan_jsonl(directory, on_error="skip", threads=threads)
            entries = [(exact(entry), origin(entry)) for entry in reader]
        errors = [(error.path, error.line, error.offset, error.reason) for error in reader.errors]
        read.append((entries, errors, [str(warning.message) for warning in caught]))
    assert read[1:] == read[:1] * 2
    assert threads_are(there=False)


@pytest.mark.parametrize("threads", [1, 2, 8])
@pytest.mark.parametrize("way", ["close", "with", "end", "break"])
def test_an_early_end_closes_the_file_and_ends_the_threads(path: Path, threads: int, way: str) -> None:
    path.write_bytes(LARGE * 10)
    reader: JsonlReader | None = scan_jsonl(path, threads=threads)
    assert reader is not None
    assert [next(reader).model_call_id for _ in range(300)] == list(map(str, range(300)))
    assert len(open_files(path)) == 1
    assert threads_are(there=threads > 1)
    if way == "close":
        reader.close()
        reader.close()
        assert list(reader) == []
    elif way == "with":
        with reader as same:
            assert same is reader
        assert list(reader) == []
    elif way == "end":
        assert len(list(reader)) == 5_700
    else:
        reader = None
    assert open_files(path) == []
    assert threads_are(there=False)


@pytest.mark.parametrize("threads", [1, 8])
def test_an_error_closes_the_file_and_ends_the_threads(path: Path, threads: int) -> None:
    path.write_bytes(LARGE + b"bad\n" + LARGE)
    with pytest.raises(RecordError) as info:
        read_jsonl(path, threads=threads)
    assert info.value.line == 601  # it is held while the file is looked for
    assert open_files(path) == []
    assert threads_are(there=False)


def test_a_function_that_raises_ends_the_threads(path: Path) -> None:
    path.write_bytes(LARGE + b"bad\n" + LARGE)

    def refuse(error: RecordError) -> None:
        assert threads_are(there=True)
        raise KeyError(error.line)

    reader = scan_jsonl(path, on_error=refuse, threads=2)
    with pytest.raises(KeyError, match="601"):
        list(reader)
    assert list(reader) == []
    assert threads_are(there=False)


def test_small_files_start_no_thread(tmp_path: Path) -> None:
    for i in range(40):
        (tmp_path / f"{i}.tokens.jsonl").write_bytes(THREE)
    with scan_jsonl(tmp_path, threads=8) as reader:
        for _ in reader:
            assert threads_are(there=False)


def test_an_open_file_is_read_by_one_thread_unless_more_are_asked_for(path: Path) -> None:
    path.write_bytes(LARGE)
    for threads, own in ((None, True), (1, True), (2, False)):
        with path.open("rb") as file, scan_jsonl(file, threads=threads) as reader:
            assert [next(reader).model_call_id for _ in range(500)] == list(map(str, range(500)))
            assert threads_are(there=not own)
            # Ahead may be a line for each thread, and one more.
            ahead = LARGE[: file.tell()].count(b"\n") - 500
            assert 0 <= ahead <= (0 if own else 3)


FORK = """
import os, sys, tokenrecords
path, start = sys.argv[1:]
reader = tokenrecords.scan_jsonl(path, threads=2)
other = tokenrecords.scan_jsonl(path, threads=2)
for _ in range(300 if start == "begun" else 0):
    next(reader)
child = os.fork()
if child == 0:
    try:
        left = len(list(reader))
    except RuntimeError as error:
        print(error, flush=True)
    else:
        print(left, flush=True)
    del reader
    print(len(list(other)), flush=True)
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
print(len(list(reader)))
"""


def test_a_forked_process_does_not_wait_for_threads_that_it_does_not_have(path: Path) -> None:
    path.write_bytes(LARGE)
    refused = "the reader's threads are in another process: open the files again after a fork"
    for start, child, parent in (("begun", refused, 300), ("new", "600", 600)):
        command = [sys.executable, "-c", FORK, str(path), start]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
        assert done.stdout.splitlines() == [child, "600", str(parent)]


EXIT = """
import sys, tokenrecords
reader = tokenrecords.scan_jsonl(sys.argv[1], threads=4)
builds = tokenrecords.build_rollouts(sys.argv[1], threads=2)
next(reader), next(builds)
print("end")
"""


def test_a_program_may_end_with_readers_at_work(path: Path) -> None:
    path.write_bytes(LARGE * 4)
    done = subprocess.run(
        [sys.executable, "-c", EXIT, str(path)], capture_output=True, text=True, timeout=60, check=True
    )
    assert (done.stdout, done.stderr) == ("end\n", "")


def test_interrupts_at_any_moment_neither_hang_nor_leave_a_thread(path: Path) -> None:
    path.write_bytes(LARGE * 2)
    command = [sys.executable, str(PROGRAM), str(path), INTERRUPTS]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # each has a deadline of its own
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"{INTERRUPTS} interrupts")
    print(done.stdout)  # noqa: T201


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
