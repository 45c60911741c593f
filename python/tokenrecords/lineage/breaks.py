"""Where a prompt leaves the sequence of the earlier call that it was to continue."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING

import numpy as np

from tokenrecords._core import PrefixIndex, compute_digests
from tokenrecords.tokens.arrays import first_negative, same_ids

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tokenrecords.lineage.call import Call
    from tokenrecords.tokens.arrays import IdArray


@dataclass(frozen=True, slots=True)
class Break:
    """An earlier call all of whose prompt another prompt holds, before it has another id than the call generated.

    Attributes:
        call: The earlier call.
        index: The position of that id in the prompt.
        found: The id.
        generated: What the call has there.
    """

    call: Call
    index: int
    found: int
    generated: int


class Breaks:
    """The calls of one rollout as those that a prompt may break off from; one with a negative id is never found.

    To ask for each call in turn is near linear in their number: calls of one prompt are looked at together, in the
    order of what they generated, and shorter prompts only while their calls may reach as far.
    """

    def __init__(self, calls: Iterable[Call], *, threads: int | None = None) -> None:
        known = [
            call
            for call in calls
            if len(call.generation) and first_negative(call.prompt) is None and first_negative(call.generation) is None
        ]
        alike: dict[str, list[Call]] = defaultdict(list)
        digests = compute_digests((call.prompt for call in known), threads=threads)
        for call, digest in zip(known, digests, strict=True):
            alike[digest].append(call)
        groups = (_Alike(group) for group in alike.values())
        self._groups = sorted(groups, key=lambda group: len(group.prompt))
        self._index = PrefixIndex([group.prompt] for group in self._groups)
        self._lengths = [len(group.prompt) for group in self._groups]
        # How far a call whose prompt is at most as long may reach.
        self._reach = [0, *accumulate((group.reach for group in self._groups), max)]

    def nearest(self, call: Call) -> Break | None:
        """The break that shares the most ids with the prompt of `call`; of several that of the least call id."""
        prompt = call.prompt
        nearest: Break | None = None
        limit = len(prompt) - 1  # at least one id follows
        while limit >= 0 and (nearest is None or self._reach[bisect_right(self._lengths, limit)] > nearest.index):
            found = [self._groups[place] for place in self._index.longest(prompt, limit)]
            if not found:
                break
            for group in found:
                if same_ids(group.prompt, prompt[: len(group.prompt)]):
                    broken = group.nearest(prompt)
                    if broken and (nearest is None or _order(broken) < _order(nearest)):
                        nearest = broken
            limit = len(found[0].prompt) - 1
        return nearest


def _order(broken: Break) -> tuple[int, str]:
    return -broken.index, broken.call.id


class _Alike:
    """The calls of one prompt, by what they generated."""

    def __init__(self, calls: Iterable[Call]) -> None:
        by_key: dict[bytes, Call] = {}
        for call in sorted(calls, key=lambda call: call.id):
            by_key.setdefault(_key(call.generation), call)
        # In the order of their ids, so that those that start alike stand side by side.
        self._calls = sorted(by_key.items(), key=lambda item: item[0])
        self._least: dict[bytes, Call] = {}
        self.prompt = self._calls[0][1].prompt
        self.reach = max(call.length for _, call in self._calls)

    def nearest(self, prompt: IdArray) -> Break | None:
        """The break that shares the most ids with the prompt; of several that of the least call id."""
        start = len(self.prompt)
        rest = prompt[start : self.reach]
        key = _key(rest)
        after = bisect_right(self._calls, key, key=lambda item: item[0][: len(key)])
        before = bisect_left(self._calls, key, key=lambda item: item[0])
        sides = (range(before - 1, -1, -1), range(after, len(self._calls)))
        # A generation that the prompt holds whole, or that it ends inside of, is not left.
        left = ((_left_at(self._calls[at][1], rest) for at in side) for side in sides)
        shared = max(next((n for n in side if n is not None), -1) for side in left)
        if shared < 0:
            return None
        call = self._least_id(key[: 8 * shared], rest)
        return Break(call, start + shared, int(rest[shared]), int(call.generation[shared]))

    def _least_id(self, key: bytes, rest: IdArray) -> Call:
        """The call of the least id among those that `rest` leaves after the ids of `key`."""
        shared = len(key) // 8
        least = self._least.get(key)  # where many prompts leave the same calls, these are looked through once
        if least is None or _left_at(least, rest) != shared:
            start = bisect_left(self._calls, key, key=lambda item: item[0])
            end = bisect_right(self._calls, key, key=lambda item: item[0][: len(key)])
            calls = (call for _, call in self._calls[start:end] if _left_at(call, rest) == shared)
            least = self._least[key] = min(calls, key=lambda call: call.id)
        return least


def _left_at(call: Call, rest: IdArray) -> int | None:
    """How many generated ids `rest` starts with before it has another one; None where it has no other."""
    length = min(len(call.generation), len(rest))
    different = call.generation[:length] != rest[:length]
    return int(np.argmax(different)) if different.any() else None


def _key(ids: IdArray) -> bytes:
    return ids.astype(">u8").tobytes()
