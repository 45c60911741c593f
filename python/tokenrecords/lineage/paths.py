"""The paths from the first calls of a rollout to its last ones."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tokenrecords.lineage.calls import Links, linking
from tokenrecords.lineage.hashing import hashed
from tokenrecords.lineage.retries import quarantine_retries
from tokenrecords.tokens.arrays import same_ids

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
        terminal: The terminal call, None where it is not known or not there.
        outcome: What became of the terminal call: `delivered`, `broken`, `not_captured`, `ambiguous`, or empty where
            none was given.
        paths: By prompt length, then call id, of their last calls; but first the one that ends with the terminal call.
        main: One of them; empty where there is none.
    """

    links: Links
    undecided: list[str]
    terminal: Call | None
    outcome: str
    paths: list[list[Call]]
    main: list[Call]


@dataclass(frozen=True)
class Terminal:
    """What is known of the call that a rollout ended with; nothing is known where both are empty.

    Attributes:
        call_id: Its id.
        response_id: The id of its response, which was scored.
    """

    call_id: str | None = None
    response_id: str | None = None

    def of(self, calls: Iterable[Call]) -> tuple[Call | None, str]:
        """The call, if it is known and there, and what became of it."""
        if not self.call_id and not self.response_id:
            return None, ""
        found = [call for call in calls if self._is(call)]
        if not found:
            return None, "not_captured"
        first = min(found, key=lambda call: call.id)
        # Several calls of one response are samples of it, but for a call that was captured twice.
        if any(
            not (same_ids(first.prompt, call.prompt) and same_ids(first.generation, call.generation)) for call in found
        ):
            return None, "ambiguous"
        return first, "broken" if first.path()[0].starts_fragment else "delivered"

    def _is(self, call: Call) -> bool:
        response_id = call.entry.response_id
        has_response = isinstance(response_id, str) and response_id == self.response_id
        return (not self.call_id or call.id == self.call_id) and (not self.response_id or has_response)


def find_paths(entries: Iterable[TokenEntry], terminal: Terminal, *, threads: int | None = None) -> Paths:
    """Link the calls of a rollout and choose the paths through them.

    Raises:
        ValueError: The entries belong to two rollouts.
    """
    return hashed(finding_paths(entries, terminal, threads=threads), threads=threads)


def finding_paths(entries: Iterable[TokenEntry], terminal: Terminal, *, threads: int | None = None) -> Hashing[Paths]:
    """The same as work that asks for the digests of the parents."""
    links = yield from linking(entries, threads=threads)
    last, outcome = terminal.of(links.calls)
    undecided = quarantine_retries(links.calls, last, threads=threads)
    if last is not None and outcome == "delivered":
        main = last.path()
        paths = [main, *_paths(links.calls, last)]
    else:
        paths = _paths(links.calls, None)
        main = min(paths, key=_begin, default=[])
    return Paths(links, undecided, last, outcome, paths, main)


def _begin(path: list[Call]) -> tuple[float, str]:
    """What orders paths by when they began; a time that is NaN is later than all others."""
    first = path[0]
    return min(math.inf, first.entry.created_at), first.id  # in this order NaN gives the first


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
