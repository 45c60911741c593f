"""The paths from the first calls of a rollout to its last ones."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tokenrecords.lineage.calls import Links, linking
from tokenrecords.lineage.hashing import hashed
from tokenrecords.lineage.retries import quarantine_retries

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tokenrecords.entry.model import TokenEntry
    from tokenrecords.lineage.call import Call
    from tokenrecords.lineage.hashing import Hashing


@dataclass(frozen=True)
class Paths:
    """What becomes of the calls of a rollout.

    Attributes:
        links: The calls.
        undecided: The ids of the retries among which nothing decides, sorted.
        outcome: What became of the terminal call: `delivered`, `broken`, `not_captured`, or empty where none was given.
        paths: By prompt length, then call id, of their last calls; but first the one that ends with the terminal call.
        main: One of them; empty where there is none.
    """

    links: Links
    undecided: list[str]
    outcome: str
    paths: list[list[Call]]
    main: list[Call]


def find_paths(entries: Iterable[TokenEntry], terminal_call_id: str | None, *, threads: int | None = None) -> Paths:
    """Link the calls of a rollout and choose the paths through them.

    Raises:
        ValueError: The entries belong to two rollouts.
    """
    return hashed(finding_paths(entries, terminal_call_id, threads=threads), threads=threads)


def finding_paths(
    entries: Iterable[TokenEntry], terminal_call_id: str | None, *, threads: int | None = None
) -> Hashing[Paths]:
    """The same as work that asks for the digests of the parents."""
    links = yield from linking(entries, threads=threads)
    terminal = next((call for call in links.calls if call.id == terminal_call_id), None)
    undecided = quarantine_retries(links.calls, terminal, threads=threads)
    if not terminal_call_id:
        outcome = ""
    elif terminal is None:
        outcome = "not_captured"
    else:
        outcome = "broken" if terminal.path()[0].starts_fragment else "delivered"
    if terminal is not None and outcome == "delivered":
        main = terminal.path()
        paths = [main, *_paths(links.calls, terminal)]
    else:
        paths = _paths(links.calls, None)
        main = min(paths, key=_begin, default=[])
    return Paths(links, undecided, outcome, paths, main)


def _begin(path: list[Call]) -> tuple[float, str]:
    """What orders paths by when they began; a time that is NaN is later than all others."""
    first = path[0]
    return math.inf if math.isnan(first.entry.created_at) else first.entry.created_at, first.id


def _paths(calls: list[Call], without: Call | None) -> list[list[Call]]:
    """The path to each call that nothing continues, but for those through a quarantined call or through `without`."""
    closed: set[Call] = set()
    paths = []
    for call in calls:
        if call.quarantined or call is without or call.parent in closed:
            closed.add(call)
        elif not call.children:
            paths.append(call.path())
    return paths
