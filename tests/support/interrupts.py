"""Interrupts reading and building at random moments: `python interrupts.py FILE COUNT [SEED]`; says what it saw."""

from __future__ import annotations

import faulthandler
import random
import signal
import sys
import time
from pathlib import Path

import tokenrecords

sys.path.insert(0, str(Path(__file__).parent.parent))
from support.watch import threads, threads_are

armed: list[bool] = []


def interrupt(*_: object) -> None:
    if armed:
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
        sent = time.perf_counter()
        try:
            armed.append(True)
            signal.setitimer(signal.ITIMER_REAL, rng.uniform(1e-5, durations[place]))
            try:
                ways[place]()
            finally:
                armed.clear()
        except KeyboardInterrupt:
            seen += 1
            longest = max(longest, time.perf_counter() - sent)
        armed.clear()
        signal.setitimer(signal.ITIMER_REAL, 0)
        faulthandler.cancel_dump_traceback_later()
        # The threads of a build are not waited for: they end within a block.
        if not threads_are(there=False):
            sys.exit(f"threads are left: {threads()}")
    sys.stdout.write(f"{seen} interrupts, the longest reading until one took {longest * 1e3:.0f} ms\n")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]) if len(sys.argv) > 3 else 0)
