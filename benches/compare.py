"""Times several ways to the same result, in turn, and gives ratios: absolute times of a shared machine mean little."""

from __future__ import annotations

import os
import platform
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

Way = Callable[[], Any]


@dataclass(frozen=True)
class Effort:
    """How long to measure."""

    rounds: int
    seconds: float  # a round of one way takes about this long

    def times(self, ways: list[Way]) -> list[float]:
        """Median seconds a call of each way; all of them take their turn in each round."""
        counts = [self._count(way) for way in ways]
        rounds = [[_seconds(way, count) for way, count in zip(ways, counts, strict=True)] for _ in range(self.rounds)]
        return [statistics.median(column) for column in zip(*rounds, strict=True)]

    def _count(self, way: Way) -> int:
        return max(1, int(self.seconds / max(_seconds(way, 1), 1e-7)))


FULL = Effort(rounds=11, seconds=0.02)
SMOKE = Effort(rounds=1, seconds=0.0)


def _seconds(way: Way, count: int) -> float:
    start = time.perf_counter()
    for _ in range(count):
        way()
    return (time.perf_counter() - start) / count


@dataclass
class Table:
    """A table in Markdown, printed row by row."""

    title: str
    columns: list[str]
    _rows: list[list[str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        print(f"\n### {self.title}\n")
        self._print(self.columns)
        self._print(["---", *["---:"] * (len(self.columns) - 1)])

    def row(self, *cells: str) -> None:
        self._print(list(cells))

    @staticmethod
    def _print(cells: list[str]) -> None:
        print("|", " | ".join(cells), "|", flush=True)


def ratio(other: float | None, ours: float | None) -> str:
    """How many times faster ours is than the other."""
    return "-" if other is None or ours is None else f"{other / ours:.2f}x"


def measure(
    effort: Effort, ways: dict[str, Way | None], same: Callable[[Any, Any], bool] = lambda a, b: a == b
) -> dict[str, float | None]:
    """Seconds a call of each way that there is, after their results were found equal."""
    there = {name: way for name, way in ways.items() if way is not None}
    results = {name: way() for name, way in there.items()}
    first, *others = results
    for name in others:
        if not same(results[first], results[name]):
            sys.exit(f"{name} and {first} differ")
    times = dict(zip(there, effort.times(list(there.values())), strict=True))
    return {name: times.get(name) for name in ways}


def machine() -> str:
    """What the numbers were measured on."""
    cpuinfo = Path("/proc/cpuinfo")
    text = cpuinfo.read_text(encoding="utf-8") if cpuinfo.exists() else ""
    cpu = next((line.split(":")[1].strip() for line in text.splitlines() if line.startswith("model name")), "?")
    flags = " with SHA instructions" if "sha_ni" in text else ""
    return (
        f"{cpu}{flags}, {len(os.sched_getaffinity(0))} CPUs; CPython {platform.python_version()}, "
        f"numpy {np.__version__}, {platform.system()} {platform.machine()}"
    )
