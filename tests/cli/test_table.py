"""The table of records."""

from __future__ import annotations

from typing import TYPE_CHECKING

from support.command import Capture, row
from tokenrecords import compute_digest

if TYPE_CHECKING:
    from pathlib import Path


def test_the_table_shows_counts_parent_and_digest(tmp_path: Path) -> None:
    capture = Capture(tmp_path)
    lines = capture(row("a", [1, 2], [3]), row("b", [1, 2, 3, 4], []), row("c", [9, 9, 9], [8])).stdout.splitlines()
    digests = [compute_digest(ids)[:12] for ids in ([1, 2, 3], [1, 2, 3, 4], [9, 9, 9, 8])]
    assert [line.split() for line in lines] == [
        ["rollout", "call", "prompt", "generated", "parent", "digest"],
        ["r", "a", "2", "1", "root", digests[0]],
        ["r", "b", "4", "0", "resolved", "a", digests[1]],
        ["r", "c", "3", "1", "unresolved", "no_prefix_parent", digests[2]],
        f"3 calls of 1 rollout written to {capture.out}".split(),
    ]
