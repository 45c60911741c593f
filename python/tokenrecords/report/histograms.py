"""Histograms: bars of equal width, counted while values come."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

_LOWEST = -10.0  # log-probs below it are in the first bar
_STEPS = 40
_BARS = 20


@dataclass(frozen=True)
class Histogram:
    """Counts between edges.

    Attributes:
        title: What is counted.
        unit: Of the edges.
        edges: One more than there are bars, in order.
        counts: Of each bar: its lower edge is in it, the last one's upper edge too.
        is_open: True where all that lies below the first edge is in the first bar.
        is_log: True where the bars' heights are to show the log of the counts.
        note: What is not counted.
    """

    title: str
    unit: str
    edges: Sequence[float]
    counts: list[int]
    is_open: bool = False
    is_log: bool = False
    note: str = ""

    @property
    def heights(self) -> list[float]:
        """The height of each bar, from 0 to 1; one with a count can be seen."""
        scaled = [math.log1p(count) if self.is_log else count for count in self.counts]
        most = max(scaled, default=0) or 1
        return [max(value / most, 0.015) if value else 0.0 for value in scaled]


class LogProbs:
    """Log-probs as they come."""

    def __init__(self) -> None:
        self._edges = np.linspace(_LOWEST, 0, _STEPS + 1)
        self._counts = np.zeros(_STEPS, np.int64)
        self._others = 0

    def add(self, log_probs: npt.NDArray[Any]) -> None:
        """Count log-probs, an array of shape `(generation,)`."""
        are_some = np.isfinite(log_probs) & (log_probs <= 0)
        self._others += int(len(log_probs) - are_some.sum())
        self._counts += np.histogram(np.maximum(log_probs[are_some], _LOWEST), self._edges)[0]

    def histogram(self) -> Histogram:
        """What was counted so far."""
        note = f"{self._others:,} not finite or above 0" if self._others else ""
        counts = self._counts.tolist()
        return Histogram("Log-probs of generated ids", "", self._edges.tolist(), counts, True, True, note)


def of_lengths(lengths: Sequence[int]) -> Histogram:
    """The lengths of chains."""
    width = _round(max(lengths, default=0) / _BARS)
    edges = np.arange(_BARS + 1) * width
    return Histogram("Ids of a chain", "", edges.tolist(), np.histogram(lengths, edges)[0].tolist())


def of_shares(shares: Sequence[float]) -> Histogram:
    """The generated shares of chains."""
    edges = np.arange(_BARS + 1) * (100 // _BARS)
    counts = np.histogram(np.array(shares) * 100, edges)[0]
    return Histogram("Generated share of a chain", "%", edges.tolist(), counts.tolist())


def _round(least: float) -> int:
    """The least of 1, 2, 5, 10, 20, 50 and so on that is not below."""
    power = 1
    while True:
        for step in (1, 2, 5):
            if step * power >= least:
                return step * power
        power *= 10
