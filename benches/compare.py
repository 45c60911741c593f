"""Times several ways to the same result, in turn, and gives ratios: absolute times of a shared machine mean little."""

from __future__ import annotations

import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pydantic
import tokenrecords

Way = Callable[[], Any]
Numbers = Mapping[str, float | None]


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
    """Numbers by row and column: printed in Markdown as they come, and kept.

    A column's key names its number; of a ratio it is the two ways that are compared, "reference/list": how many times
    the seconds of a list the reference takes.
    """

    name: str
    title: str
    label: str
    columns: dict[str, str]  # key to heading
    unit: str = "x"
    rows: dict[str, Numbers] = field(default_factory=dict)

    def __post_init__(self) -> None:
        print(f"\n### {self.title}\n")
        self._print([self.label, *self.columns.values()])
        self._print(["---", *["---:"] * len(self.columns)])

    def row(self, label: str, numbers: Numbers) -> None:
        """Add the numbers of one row, by the columns' keys; None where there is none."""
        self.rows[label] = {key: None if numbers[key] is None else float(f"{numbers[key]:.4g}") for key in self.columns}
        texts = ("-" if number is None else f"{number:.2f}{self.unit}" for number in self.rows[label].values())
        self._print([label, *texts])

    def ratios(self, label: str, seconds: Numbers) -> None:
        """Add a row of ratios, from the seconds of each way."""
        pairs = {key: [seconds[way] for way in key.split("/")] for key in self.columns}
        self.row(label, {key: None if None in pair else pair[0] / pair[1] for key, pair in pairs.items()})

    @staticmethod
    def _print(cells: list[str]) -> None:
        print("|", " | ".join(cells), "|", flush=True)


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


def environment() -> dict[str, str]:
    """What the numbers were measured on."""
    return {
        "machine": machine(),
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "numpy": np.__version__,
        "pydantic": pydantic.VERSION,
        "tokenrecords": tokenrecords.__version__,
        "commit": commit(),
    }


def machine() -> str:
    """The processor, its instructions that matter here, and how many of it there are."""
    cpuinfo = Path("/proc/cpuinfo")
    text = cpuinfo.read_text(encoding="utf-8") if cpuinfo.exists() else ""
    cpu = next((line.split(":")[1].strip() for line in text.splitlines() if line.startswith("model name")), "?")
    sets = [name for flag, name in (("sha_ni", "SHA"), ("avx2", "AVX2"), ("avx512f", "AVX-512")) if flag in text]
    cpus = len(os.sched_getaffinity(0))
    return f"{cpu} ({', '.join(sets) or 'no vector instructions'}), {cpus} CPUs, {platform.system()}"


def commit() -> str:
    """The commit of the checkout, and whether the sources were changed since."""
    git = ["git", "-C", str(Path(__file__).parent.parent)]
    asked = [[*git, "rev-parse", "--short=12", "HEAD"], [*git, "status", "--porcelain", "python", "rust", "Cargo.*"]]
    try:
        head, changes = (
            subprocess.run(ask, capture_output=True, text=True, check=True).stdout.strip() for ask in asked
        )
    except (OSError, subprocess.CalledProcessError):
        return "?"
    return f"{head}, changed" if changes else head
