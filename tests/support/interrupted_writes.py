"""Interrupts writing at random moments: `python interrupted_writes.py FOLDER COUNT [SEED]`; says what it saw."""

from __future__ import annotations

import faulthandler
import random
import signal
import sys
from pathlib import Path

import numpy as np
import tokenrecords

armed: list[bool] = []


def interrupt(*_: object) -> None:
    if armed:
        raise KeyboardInterrupt


def record(number: int) -> tokenrecords.TokenEntry:
    """A record of its number; some are small, and some hold lists, which are read one int after the other."""
    ids = np.arange(number * 7919 % 50_000)
    return tokenrecords.TokenEntry(
        rollout_id="r",
        model_call_id=str(number),
        prompt_token_ids=ids if number % 2 else ids.tolist(),
        generation_token_ids=[number],
        generation_log_probs=[-0.5],
    )


class Writes:
    """A file that grows, and one that is replaced; what calls have acknowledged of each."""

    def __init__(self, folder: Path) -> None:
        self.grown, self.replaced = folder / "grown.tokens.jsonl", folder / "replaced.tokens.jsonl"
        self.appended: list[int] = []
        self.tried: set[int] = set()
        self.version = self.next = 0
        tokenrecords.write_jsonl(self.replaced, [record(0)])

    def append(self) -> None:
        number = self.next = self.next + 1
        entries = [record(number)] * 3
        self.tried.add(number)
        tokenrecords.append_jsonl(self.grown, entries, fsync=False)
        self.appended.append(number)

    def replace(self) -> None:
        tokenrecords.write_jsonl(self.replaced, map(record, range(self.version + 1, self.version + 4)))
        self.version += 1

    def to_line(self) -> None:
        number = self.next = self.next + 1
        line = record(number).to_json()
        assert tokenrecords.TokenEntry.from_json(line).generation_token_ids.tolist() == [number]

    def check(self) -> None:
        """What was acknowledged is there, nothing is torn or there in part, and nothing that nobody wrote is."""
        lines = [int(entry.model_call_id) for entry in tokenrecords.read_jsonl(self.grown)]
        found = lines[::3]
        assert lines == [number for number in found for _ in range(3)]
        acknowledged = set(self.appended)
        assert [number for number in found if number in acknowledged] == self.appended
        assert set(found) <= self.tried
        versions = [int(entry.model_call_id) for entry in tokenrecords.read_jsonl(self.replaced)]
        old = list(range(self.version, self.version + 3)) if self.version else [0]
        assert versions in (old, list(range(self.version + 1, self.version + 4)))
        assert set(self.grown.parent.iterdir()) <= {self.grown, self.replaced}


def main(folder: str, count: int, seed: int) -> None:
    rng = random.Random(seed)
    signal.signal(signal.SIGALRM, interrupt)
    writes = Writes(Path(folder))
    writes.append()
    seen = done = 0
    while seen < count:
        way = rng.choice((writes.append, writes.replace, writes.to_line))
        faulthandler.dump_traceback_later(30, exit=True)
        try:
            armed.append(True)
            signal.setitimer(signal.ITIMER_REAL, 10 ** rng.uniform(-5, -2))
            try:
                way()
                done += 1
            finally:
                armed.clear()
        except KeyboardInterrupt:
            seen += 1
        signal.setitimer(signal.ITIMER_REAL, 0)
        faulthandler.cancel_dump_traceback_later()
        writes.check()
        if len(writes.appended) > 50:  # so that the file does not grow without end
            writes.grown.unlink()
            writes.appended.clear()
            writes.tried.clear()
            writes.append()
    sys.stdout.write(f"{seen} interrupts, {done} calls ended before theirs\n")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]) if len(sys.argv) > 3 else 0)
