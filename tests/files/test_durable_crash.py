"""A writer is killed at random moments, and no acknowledged record is lost.

TOKENRECORDS_KILLS sets how often.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
import warnings
from typing import IO, TYPE_CHECKING

import numpy as np
import pytest
from support.factories import make_entry
from tokenrecords import TokenEntry, append_jsonl, read_jsonl, scan_jsonl

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

KILLS = int(os.environ.get("TOKENRECORDS_KILLS", "60"))
KILLS_OF_A_FILE = 20  # so that it does not grow without end

# For each number on its input it forks a writer that starts with that record. The writer says its process id first, and
# then the number of each record that a call has acknowledged.
WRITER = """
import os, random, sys
import numpy as np
from tokenrecords import TokenEntry, append_jsonl, write_jsonl

def record(number, version=0):
    size = number * 7919 % 3_000 if number % 2 else number * 7919 % 400_000
    arrays = dict(prompt_token_ids=np.arange(size), generation_token_ids=[], generation_log_probs=[])
    return TokenEntry(rollout_id=str(version), model_call_id=str(number), **arrays)

def say(word):
    os.write(1, f"{word}\\n".encode())

def append(path, number):
    while True:
        count = 1 + number % 3
        append_jsonl(path, [record(number + i) for i in range(count)], fsync=number % 8 == 0)
        number += count
        say(number - 1)

def replace(path, version):
    while True:
        write_jsonl(path, (record(number, version) for number in range(version % 7 + 1)))
        say(version)
        version += 1

write = {"append": append, "replace": replace}[sys.argv[1]]
for line in sys.stdin:
    path, number = line.split()
    child = os.fork()
    if child == 0:
        say(os.getpid())
        write(path, int(number))
    os.waitpid(child, 0)
    say("dead")
"""


class Writer:
    """A process that writes until it is killed."""

    def __init__(self, way: str, seed: int) -> None:
        self.rng = random.Random(seed)
        command = [sys.executable, "-W", "ignore", "-c", WRITER, way]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.child: int | None = None

    def close(self) -> None:
        if self.child is not None:
            os.kill(self.child, signal.SIGKILL)
        self.process.kill()
        self.process.communicate()

    def _pipes(self) -> tuple[IO[bytes], IO[bytes]]:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        return self.process.stdin, self.process.stdout

    def run(self, path: Path, first: int) -> int:
        """Let it write from `first` on and kill it at some moment; the last number that it acknowledged."""
        orders, answers = self._pipes()
        orders.write(f"{path} {first}\n".encode())
        orders.flush()
        self.child = int(answers.readline())
        acknowledged = first - 1
        for _ in range(self.rng.randrange(4)):
            acknowledged = int(answers.readline())
        time.sleep(self.rng.random() ** 3 * 0.01)
        os.kill(self.child, signal.SIGKILL)
        self.child = None
        while (answer := answers.readline()) != b"dead\n":
            acknowledged = int(answer)
        return acknowledged


@pytest.fixture
def writer(request: pytest.FixtureRequest) -> Iterator[Writer]:
    seed = random.SystemRandom().randrange(2**32)
    print(f"seed {seed}")  # noqa: T201
    writer = Writer(request.param, seed)
    yield writer
    writer.close()


def size_of(number: int) -> int:
    return number * 7919 % 3_000 if number % 2 else number * 7919 % 400_000


def is_whole(found: TokenEntry, number: int) -> bool:
    ids = found.prompt_token_ids
    size = size_of(number)
    return found.model_call_id == str(number) and len(ids) == size and (size == 0 or ids[-1] == size - 1)


class File:
    """A file of records 0, 1, 2, ...; the lines that were looked at once are not looked at again."""

    def __init__(self, path: Path) -> None:
        self.path, self.lines, self.offset, self.torn = path, 0, 0, 0

    def check(self, acknowledged: int) -> int:
        """Every acknowledged record is there, in order, perhaps with some more and a torn line; how many there are."""
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            count = self._check()
        assert count > acknowledged
        assert len(caught) <= 1
        assert all("torn" in str(warning.message) for warning in caught)
        self.torn += len(caught)
        return count

    def check_after_an_append(self, count: int) -> int:
        """As `check`, and there is no torn line any more."""
        append_jsonl(self.path, [make_entry(model_call_id=str(count), prompt_token_ids=np.arange(size_of(count)))])
        assert self._check() == count + 1  # a warning would be an error
        assert self.offset == self.path.stat().st_size
        return count + 1

    def _check(self) -> int:
        if not self.path.exists():
            return 0
        number = self.lines
        with self.path.open("rb") as file:
            file.seek(self.offset)
            for found in scan_jsonl(file):
                assert is_whole(found, number), number
                number += 1
            file.seek(self.offset)
            new = file.read()
        self.lines += new.count(b"\n")
        self.offset += new.rfind(b"\n") + 1
        return number


@pytest.mark.parametrize("writer", ["append"], indirect=True)
def test_no_acknowledged_record_is_lost(writer: Writer, tmp_path: Path) -> None:
    torn = 0
    for start in range(0, KILLS, KILLS_OF_A_FILE):
        file = File(tmp_path / f"{start}.tokens.jsonl")
        count = 0
        for _ in range(min(KILLS_OF_A_FILE, KILLS - start)):
            count = file.check(writer.run(file.path, count))
            if writer.rng.random() < 0.5:  # otherwise the next writer finds the torn line
                count = file.check_after_an_append(count)
        count = file.check_after_an_append(count)
        found = [int(one.model_call_id) for one in scan_jsonl(file.path)]
        assert found == list(range(count))
        assert list(tmp_path.iterdir()) == [file.path]
        torn += file.torn
        file.path.unlink()
    print(f"{KILLS} kills, {torn} torn lines")  # noqa: T201


@pytest.mark.parametrize("writer", ["replace"], indirect=True)
def test_a_replaced_file_is_the_old_or_the_new_one(writer: Writer, tmp_path: Path) -> None:
    path = tmp_path / "x.tokens.jsonl"
    version = 0
    for _ in range(KILLS // 4):
        acknowledged = writer.run(path, version)
        if not path.exists():
            assert acknowledged < 0
            continue
        found = read_jsonl(path)
        versions = {int(one.rollout_id) for one in found}
        assert versions <= {acknowledged, acknowledged + 1}
        (last,) = versions
        assert len(found) == last % 7 + 1
        assert all(is_whole(one, number) for number, one in enumerate(found))
        version = last + 1
