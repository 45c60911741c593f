"""A lineage store that keeps parents as arrays and reads each line once."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tokenrecords._core import compute_digest
from tokenrecords.entry.model import TokenEntry
from tokenrecords.gym import reading
from tokenrecords.tokens.arrays import id_array, join_arrays

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tokenrecords.tokens.arrays import IdArray

_MAX_DEPTH = 10_000  # of a chain of delta records: a bound, as in the class that is extended


@dataclass(frozen=True)
class Sequence:
    """The ids that a record holds, or all that came before them, too.

    Attributes:
        ids: Of shape `(n,)`, in the first of int32, int64 and uint64 that holds them.
        whole: Whether nothing comes before them.
    """

    ids: IdArray
    whole: bool


class Sequences:
    """Sequences by rollout and place in its file; those that were not asked for the longest go first.

    Args:
        max_ids: How many ids all of them together may have.
    """

    def __init__(self, max_ids: int) -> None:
        self._max_ids = max_ids
        self._ids = 0
        self._held: dict[str, dict[int, Sequence]] = {}
        self._lock = threading.Lock()

    def get(self, rollout_id: str, place: int) -> Sequence | None:
        """The sequence, which counts as asked for now."""
        with self._lock:
            held = self._held.pop(rollout_id, None)
            if held is None:
                return None
            self._held[rollout_id] = held
            found = held.pop(place, None)
            if found is not None:
                held[place] = found
            return found

    def put(self, rollout_id: str, place: int, sequence: Sequence) -> None:
        """Hold the sequence, in place of what was held there."""
        with self._lock:
            held = self._held.pop(rollout_id, {})
            self._held[rollout_id] = held
            self._forget(held.pop(place, None))
            held[place] = sequence
            self._ids += len(sequence.ids)
            while self._ids > self._max_ids:
                oldest, held = next(iter(self._held.items()))
                self._forget(held.pop(next(iter(held))))
                if not held:
                    del self._held[oldest]

    def drop(self, rollout_id: str) -> None:
        """Hold no sequence of the rollout any more."""
        with self._lock:
            for sequence in self._held.pop(rollout_id, {}).values():
                self._forget(sequence)

    def clear(self) -> None:
        """Hold nothing any more."""
        with self._lock:
            self._held.clear()
            self._ids = 0

    def __len__(self) -> int:
        """The number of ids of all sequences."""
        return self._ids

    def _forget(self, sequence: Sequence | None) -> None:
        self._ids -= 0 if sequence is None else len(sequence.ids)


class ArrayParents:
    """What makes `nemo_gym`'s FileLineageStore keep arrays: put before that class.

    A call's ids are kept as they are read with the new lines of its rollout's file, so that resolving a parent reads no
    line again; a line whose ids had to go is read again.

    Args:
        root: The directory of the capture.
        max_cached_rollouts: How many rollouts are indexed at once.
        max_cached_tokens: How many ids are kept at once, at 4 bytes each (8 where an id needs it).
    """

    def __init__(self, root: Any, *, max_cached_rollouts: int = 65_536, max_cached_tokens: int = 8_000_000) -> None:
        limits = {"max_cached_rollouts": max_cached_rollouts, "max_cached_tokens": max_cached_tokens}
        super().__init__(root, **limits)  # type: ignore[call-arg]
        self._sequences = Sequences(max_cached_tokens)

    def _fetch_new_entries(self, rollout_id: str, cursor: reading.Cursor | None) -> Any:
        if cursor is None:
            self._sequences.drop(rollout_id)
        items, cursor = reading.fetch_new_entries(self, rollout_id, cursor)
        for entry, place in items:
            self._keep(rollout_id, place, entry)
        return items, cursor

    def _materialize(self, rollout_id: str, node: Any, refs: Mapping[str, int], lineage: Any) -> tuple[int, ...]:
        """The full sequence of a call, proven by its digest.

        Raises:
            ValueError: The file does not hold it as it was indexed.
        """
        parts: list[IdArray] = []
        call = node
        while True:
            place = refs.get(call.call_id)
            if place is None or len(parts) > _MAX_DEPTH:
                raise ValueError(f"call {call.call_id} is at no known place: a finite chain of read records is needed")
            sequence = self._sequences.get(rollout_id, place) or self._read_again(rollout_id, place, call)
            parts.append(sequence.ids)
            if sequence.whole:
                break
            parent = lineage.by_call_id.get(call.parent_call_id)
            if parent is None:
                raise ValueError(f"delta record {call.call_id} has the parent {call.parent_call_id!r}: it was not read")
            call = parent
        ids = parts[0] if len(parts) == 1 else _joined(parts[::-1])
        if node.digest and compute_digest(ids) != node.digest:
            raise ValueError(f"call {node.call_id} has other ids than its digest says")
        self._sequences.put(rollout_id, refs[node.call_id], Sequence(ids, whole=True))
        return tuple(ids.tolist())

    async def close(self) -> None:
        """Keep nothing any more."""
        await super().close()  # type: ignore[misc]
        self._sequences.clear()

    def _read_again(self, rollout_id: str, place: int, call: Any) -> Sequence:
        [line] = reading.lines_at(self, rollout_id, [place])
        entry = TokenEntry.from_json(line)
        if (entry.model_call_id, entry.prompt_is_delta) != (call.call_id, call.prompt_is_delta):
            raise ValueError(f"call {call.call_id} is not at its place any more: {entry.model_call_id} is")
        return self._keep(rollout_id, place, entry)

    def _keep(self, rollout_id: str, place: int, entry: TokenEntry) -> Sequence:
        ids = _joined([id_array(entry.prompt_token_ids), id_array(entry.generation_token_ids)])
        sequence = Sequence(ids, whole=not entry.prompt_is_delta)
        self._sequences.put(rollout_id, place, sequence)
        return sequence


def _joined(parts: list[Any]) -> IdArray:
    joined = join_arrays(parts) if all(isinstance(part, np.ndarray) for part in parts) else None
    if joined is None:
        raise ValueError("a record holds ids that no integer dtype holds together")
    return joined


def file_lineage_store(extended: type) -> type:
    """The class, as a subclass of the installed FileLineageStore."""
    return type(
        "FileLineageStore",
        (ArrayParents, extended),
        {"__module__": "tokenrecords.gym", "__doc__": ArrayParents.__doc__},
    )
