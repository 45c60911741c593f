"""Where the prompt of a fragment leaves the call that it was to continue."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tokenrecords.lineage.breaks import Breaks

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tokenrecords.lineage.call import Call


class BreakShown(NamedTuple):
    """Two sequences that part.

    Attributes:
        call: The place of the call among the calls.
        other: The place of the earlier call whose sequence its prompt leaves.
        position: The position of the first id that differs, or where the shorter one ends.
    """

    call: int
    other: int
    position: int


def breaks_of(places: Mapping[Call, int], *, threads: int | None = None) -> list[BreakShown]:
    """A break for each fragment that has one: from the call that it names, or else from the nearest one."""
    broken = [call for call in places if call.starts_fragment]
    if not broken:
        return []
    known: Breaks | None = None
    found: list[BreakShown] = []
    for call in broken:
        if call.named is not None and call.named in places:
            at = _left_at(call, call.named, places[call.named])
        else:
            known = known or Breaks(places, threads=threads)
            nearest = known.nearest(call)
            at = None if nearest is None else (places[nearest.call], nearest.index)
        if at is not None:
            found.append(BreakShown(places[call], *at))
    return found


def _left_at(call: Call, named: Call, other: int) -> tuple[int, int] | None:
    """Where the prompt leaves the named call; None where it holds all of it, and something else is wrong."""
    whole, prompt = named.joined(), call.prompt
    common = min(len(whole), len(prompt))
    different = whole[:common] != prompt[:common]
    if different.any():
        return other, int(np.argmax(different))
    return (other, common) if len(whole) > len(prompt) else None
