"""Retries: of several calls with the same parent and prompt, which to keep. Samples of one response are none."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from tokenrecords._core import compute_digests
from tokenrecords.tokens.arrays import first_negative

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tokenrecords.lineage.call import Call


def quarantine_retries(calls: list[Call], terminal: Call | None, *, threads: int | None = None) -> list[str]:
    """Mark the retries that are not kept.

    Args:
        calls: All calls.
        terminal: The call that the rollout ended with, where it was captured.
        threads: The most threads that hash.

    Returns:
        The ids of the calls among which nothing decides.
    """
    delivered = set() if terminal is None else set(terminal.path())
    undecided: list[str] = []
    for requests in _retried(calls, threads):
        # Of the calls that continue a retry one is kept, so that it need not be asked which.
        kept = [request for request in requests if not delivered.isdisjoint(request)] or [
            request for request in requests if any(call.children for call in request)
        ]
        if not kept:
            kept = [min(requests, key=lambda request: min(call.id for call in request))]
            if terminal is None:
                undecided += [call.id for request in requests for call in request]
        kept_ids = set(map(id, kept))
        for request in requests:
            for call in request:
                call.is_retry, call.quarantined = True, id(request) not in kept_ids
    return sorted(undecided)


def _retried(calls: list[Call], threads: int | None) -> Iterator[list[list[Call]]]:
    """The requests that were made several times: for each its calls, which are samples of one response."""
    for group in _groups(calls, threads):
        requests: dict[str | Call, list[Call]] = defaultdict(list)
        for call in group:
            response_id = call.entry.response_id
            requests[response_id if isinstance(response_id, str) and response_id else call].append(call)
        if len(requests) > 1:
            yield list(requests.values())


def _groups(calls: list[Call], threads: int | None) -> list[list[Call]]:
    """The calls that have the same parent and prompt as another."""
    alike: dict[tuple[Call | None, int], list[Call]] = defaultdict(list)
    for call in calls:
        alike[call.parent, len(call.prompt)].append(call)
    candidates = [group for group in alike.values() if len(group) > 1]
    keys = _prompt_keys([call for group in candidates for call in group], threads)
    groups: list[list[Call]] = []
    for candidate in candidates:
        same: dict[str | bytes, list[Call]] = defaultdict(list)
        for call in candidate:
            same[next(keys)].append(call)
        groups += [group for group in same.values() if len(group) > 1]
    return groups


def _prompt_keys(calls: list[Call], threads: int | None) -> Iterator[str | bytes]:
    """For each call what tells its prompt from others: its digest, or its bytes where a negative id has none."""
    negative = [first_negative(call.prompt) is not None for call in calls]
    digests = iter(
        compute_digests(
            (call.prompt for call, has_none in zip(calls, negative, strict=True) if not has_none), threads=threads
        )
    )
    for call, has_none in zip(calls, negative, strict=True):
        yield call.prompt.astype("int64").tobytes() if has_none else next(digests)
