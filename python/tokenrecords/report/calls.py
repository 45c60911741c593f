"""The calls of a rollout as the page shows them: what each is, and the ids that it adds."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from tokenrecords.lineage.calls import RECOVERED
from tokenrecords.report.items import text_of
from tokenrecords.text.printable import printable
from tokenrecords.tokens.arrays import same_ids

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tokenrecords.lineage.call import Call
    from tokenrecords.lineage.paths import Paths


@dataclass(frozen=True)
class CallShown:
    """One call; text is printable.

    Attributes:
        id: Its id.
        parent: The place of its parent among the calls, None where it continues none.
        depth: Forks above it.
        start: Where its own ids begin: the length of its parent's sequence.
        prompt: Ids of its prompt, the parent's included.
        length: Ids of its sequence.
        kind: What its link is.
        failure: What is wrong with the link, empty where nothing is.
        marks: Of `main`, `terminal`, `retry`, `quarantined`, `sample`.
        model: The model's name.
        version: The version of the weights, empty where nobody said.
        response: The id of the response, empty where there is none.
        created: Seconds since the epoch.
        digest: As recorded.
        text: What its output items say.
    """

    id: str
    parent: int | None
    depth: int
    start: int
    prompt: int
    length: int
    kind: Literal["root", "resolved", "fragment"]
    failure: str
    marks: list[str]
    model: str
    version: str
    response: str
    created: float | None
    digest: str
    text: str


def in_tree_order(calls: Iterable[Call]) -> list[tuple[Call, int]]:
    """The calls, each with its depth: below each call those that continue it, one that alone does at its own depth."""
    found: list[tuple[Call, int]] = []
    pending = [(call, 0) for call in calls if call.parent is None][::-1]
    while pending:
        call, depth = pending.pop()
        found.append((call, depth))
        below = depth + (len(call.children) > 1)
        pending += [(child, below) for child in reversed(call.children)]
    return found


def shown_calls(ordered: list[tuple[Call, int]], found: Paths) -> list[CallShown]:
    """The calls, in the same order."""
    places = {call: place for place, (call, _) in enumerate(ordered)}
    samples = _samples(places)
    main = set(found.main)
    return [
        _shown(
            call,
            depth,
            None if call.parent is None else places[call.parent],
            {
                "main": call in main,
                "terminal": call is found.terminal,
                "quarantined": call.quarantined,
                "retry": call.is_retry,
                "sample": call in samples,
            },
        )
        for call, depth in ordered
    ]


def _shown(call: Call, depth: int, parent: int | None, marks: dict[str, bool]) -> CallShown:
    entry = call.entry
    version = (entry.model_extra or {}).get("weight_version")
    return CallShown(
        id=printable(call.id),
        parent=parent,
        depth=depth,
        start=start_of(call),
        prompt=len(call.prompt),
        length=call.length,
        kind="fragment" if call.starts_fragment else "root" if call.parent is None else "resolved",
        failure="found by its ids" if call.failure == RECOVERED else call.failure,
        marks=[mark for mark, applies in marks.items() if applies],
        model=printable(str(entry.model)),
        version="" if version is None else printable(str(version)),
        response="" if entry.response_id is None else printable(str(entry.response_id)),
        created=entry.created_at if 0 < entry.created_at < _LATEST else None,
        digest=printable(entry.digest or ""),
        text=text_of(entry.output_items),
    )


_LATEST = 8.64e12  # what a browser's dates reach


def start_of(call: Call) -> int:
    """Where the ids begin that the call adds to its parent's."""
    return 0 if call.parent is None else call.parent.length


def _samples(calls: Iterable[Call]) -> set[Call]:
    """The calls that share parent, prompt and response with another one."""
    alike: dict[tuple[Call | None, int, str], list[Call]] = defaultdict(list)
    for call in calls:
        response_id = call.entry.response_id
        if isinstance(response_id, str) and response_id:
            alike[call.parent, len(call.prompt), response_id].append(call)
    return {
        call
        for group in alike.values()
        for call in group
        if any(other is not call and same_ids(other.prompt, call.prompt) for other in group)
    }
