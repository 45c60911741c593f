"""Which of many calls have the longest sequence that starts a prompt."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from tokenrecords._core import PrefixIndex, compute_digests
from tokenrecords.lineage.call import starts_prompt
from tokenrecords.tokens.arrays import first_negative

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tokenrecords.lineage.call import Call


class Prefixes:
    """Calls by their whole sequences. One that generated nothing is never found, nor is one with a negative id.

    Attributes:
        digests: The digest of each whole sequence, but for those with a negative id.
    """

    def __init__(self, calls: Iterable[Call], *, threads: int | None = None) -> None:
        known = [
            call for call in calls if first_negative(call.prompt) is None and first_negative(call.generation) is None
        ]
        digests = compute_digests((call.whole() for call in known), threads=threads)
        self.digests: dict[Call, str] = dict(zip(known, digests, strict=True))
        alike: dict[str, list[Call]] = defaultdict(list)
        for call, digest in self.digests.items():
            if len(call.generation):
                alike[digest].append(call)
        # Each sequence once, so that a thousand equal calls are one answer.
        self._alike = list(alike.values())
        self._index = PrefixIndex((calls[0].prompt, calls[0].generation) for calls in self._alike)

    def longest(self, child: Call) -> list[Call]:
        """The calls that have the longest sequence that starts the prompt of `child`, which all of them share."""
        limit = len(child.prompt)
        while found := [self._alike[place] for place in self._index.longest(child.prompt, limit)]:
            for calls in found:
                if starts_prompt(calls[0], child):
                    return calls
            limit = found[0][0].length - 1  # other sequences with the same fingerprint
        return []
