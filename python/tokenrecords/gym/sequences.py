"""The ids of the records of many rollouts in bounded memory: what two records of a rollout share is held once."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from tokenrecords.tokens.arrays import same_ids

if TYPE_CHECKING:
    from tokenrecords.tokens.arrays import IdArray


@dataclass(frozen=True)
class _End:
    """The ids of a record from some place on.

    Attributes:
        ids: Of shape `(n,)`.
        after: The place of the record whose ids come before them; None where none do.
    """

    ids: IdArray
    after: int | None


_Rollout: TypeAlias = dict[int, _End]


class Sequences:
    """The ids of records, by rollout and place in its file; the rollout that was not asked for the longest goes first.

    Args:
        max_ids: How many ids all of them together may hold.
    """

    def __init__(self, max_ids: int) -> None:
        self._max_ids = max_ids
        self._ids = 0
        self._held: dict[str, _Rollout] = {}
        self._lock = threading.Lock()

    def get(self, rollout_id: str, place: int) -> list[IdArray] | None:
        """The ids of the record, in parts; None where they are not held. The rollout counts as asked for now."""
        with self._lock:
            rollout = self._held.get(rollout_id, {})
            if place not in rollout:
                return None
            self._held[rollout_id] = self._held.pop(rollout_id)
            return [rollout[at].ids for at in _places(rollout, place)]

    def put(self, rollout_id: str, place: int, ids: IdArray) -> None:
        """Hold the ids of a record: those that follow what the newest record of its rollout shares with it."""
        with self._lock:
            rollout = self._held.pop(rollout_id, {})
            self._held[rollout_id] = rollout
            if place not in rollout:
                rollout[place] = end = _end(rollout, ids)
                self._ids += len(end.ids)
            while self._ids > self._max_ids:
                self._forget(next(iter(self._held)))

    def drop(self, rollout_id: str) -> None:
        """Hold nothing of the rollout any more."""
        with self._lock:
            self._forget(rollout_id)

    def clear(self) -> None:
        """Hold nothing any more."""
        with self._lock:
            self._held.clear()
            self._ids = 0

    def __len__(self) -> int:
        """The number of ids that are held."""
        return self._ids

    def _forget(self, rollout_id: str) -> None:
        self._ids -= sum(len(end.ids) for end in self._held.pop(rollout_id, {}).values())


def _places(rollout: _Rollout, last: int | None) -> list[int]:
    """The places of the ends that make up the record at `last`, in order."""
    places = []
    while last is not None:
        places.append(last)
        last = rollout[last].after
    return places[::-1]


def _end(rollout: _Rollout, ids: IdArray) -> _End:
    """What of the ids is to be held, beside what the newest record holds already."""
    shared, after = 0, None
    for place in _places(rollout, next(reversed(rollout), None)):
        part = rollout[place].ids
        if not same_ids(ids[shared : shared + len(part)], part):
            break
        shared, after = shared + len(part), place
    return _End(ids[shared:].copy() if shared else ids, after)  # a view would hold all of them
