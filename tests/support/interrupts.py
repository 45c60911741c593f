"""Interrupts reading and building at random moments: `python interrupts.py FILE COUNT [SEED]`; says what it saw."""

from __future__ import annotations

import faulthandler
import random
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path

import tokenrecords


def tasks() -> int:
    names = ((task / "comm").read_text().strip() for task in Path("/proc/self/task").iterdir())
    return sum(name == "tokenrecords" for name in names)


def interrupt(*_: object) -> None:
    raise KeyboardInterrupt


def read_open(path: str) -> list[tokenrecords.TokenEntry]:
    with Path(path).open("rb") as file:
        return tokenrecords.read_jsonl(file, threads=3)


def main(path: str, count: int, seed: int) -> None:
    rng = random.Random(seed)
    signal.signal(signal.SIGALRM, interrupt)
    ways = [
        lambda: tokenrecords.read_jsonl(path, threads=2),
        lambda: tokenrecords.read_jsonl([path] * 3, threads=5),
        lambda: read_open(path),
        lambda: list(tokenrecords.build_rollouts(path, threads=2)),
    ]
    durations = []
    for way in ways:
        start = time.perf_counter()
        way()
        durations.append(time.perf_counter() - start)
    seen = longest = 0
    while seen < count:
        place = rng.randrange(len(ways))
        faulthandler.dump_traceback_later(30, exit=True)
        try:
            signal.setitimer(signal.ITIMER_REAL, rng.uniform(1e-5, durations[place]))
            sent = time.perf_counter()
            ways[place]()
        except KeyboardInterrupt:
            seen += 1
            longest = max(longest, time.perf_counter() - sent)
        finally:
            with suppress(KeyboardInterrupt):
                signal.setitimer(signal.ITIMER_REAL, 0)
        faulthandler.cancel_dump_traceback_later()
        # The threads of a build are not waited for: they end within a block.
        deadline = time.monotonic() + 5
        while tasks() and time.monotonic() < deadline:
            time.sleep(0.001)
        if tasks():
            sys.exit(f"{tasks()} threads are left")
    sys.stdout.write(f"{seen} interrupts, the longest reading until one took {longest * 1e3:.0f} ms\n")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]) if len(sys.argv) > 3 else 0)
