"""Histograms."""

from __future__ import annotations

import numpy as np
import pytest
from tokenrecords.report.histograms import Histogram, LogProbs, of_lengths, of_shares


def test_log_probs_are_counted_as_they_come() -> None:
    counted = LogProbs()
    counted.add(np.array([-0.1, 0.0, -0.25, -9.9, -10.0]))
    counted.add(np.array([-50.0, np.nan, np.inf, -np.inf, 0.5], np.float32))
    found = counted.histogram()
    assert (found.edges[0], found.edges[1], found.edges[-1]) == (-10.0, -9.75, 0.0)
    assert {at: count for at, count in enumerate(found.counts) if count} == {0: 3, 39: 3}
    assert found.note == "4 not finite or above 0"
    assert found.is_open
    assert found.is_log


def test_without_odd_log_probs_there_is_no_note() -> None:
    assert LogProbs().histogram().note == ""


@pytest.mark.parametrize(
    ("lengths", "edges", "counts"),
    [
        ([], (0, 1, 20), {}),
        ([1, 1, 20], (0, 1, 20), {1: 2, 19: 1}),
        ([0, 21], (0, 2, 40), {0: 1, 10: 1}),
        ([90, 100, 1_000], (0, 50, 1_000), {1: 1, 2: 1, 19: 1}),
        ([16_001], (0, 1_000, 20_000), {16: 1}),
    ],
)
def test_lengths_stand_between_round_edges(lengths, edges, counts) -> None:
    found = of_lengths(lengths)
    assert (found.edges[0], found.edges[1], found.edges[-1]) == edges
    assert {at: count for at, count in enumerate(found.counts) if count} == counts


def test_shares_are_percent() -> None:
    found = of_shares([0.0, 0.049, 0.05, 1.0])
    assert (found.edges[0], found.edges[1], found.edges[-1], found.unit) == (0, 5, 100, "%")
    assert {at: count for at, count in enumerate(found.counts) if count} == {0: 2, 1: 1, 19: 1}


def test_heights_are_shares_of_the_highest_and_one_with_a_count_is_seen() -> None:
    assert Histogram("", "", [0, 1, 2, 3, 4], [100, 50, 1, 0]).heights == [1.0, 0.5, 0.015, 0.0]
    assert Histogram("", "", [0, 1, 2], [99, 9], is_log=True).heights == pytest.approx([1.0, 0.5])
    assert Histogram("", "", [0, 1], [0]).heights == [0.0]
