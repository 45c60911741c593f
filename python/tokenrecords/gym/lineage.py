"""A lineage store that keeps parents as arrays and reads each line once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tokenrecords._core import compute_digest
from tokenrecords.entry.model import TokenEntry
from tokenrecords.gym import reading
from tokenrecords.gym.sequences import Sequences
from tokenrecords.tokens.arrays import id_array, join_arrays

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tokenrecords.tokens.arrays import IdArray

_MAX_DEPTH = 10_000  # of a chain of delta records: a bound, as in the class that is extended


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
            self._sequences.put(rollout_id, place, _ids(entry))
        return items, cursor

    def _materialize(self, rollout_id: str, node: Any, refs: Mapping[str, int], lineage: Any) -> tuple[int, ...]:
        """The full sequence of a call, proven by its digest.

        Raises:
            ValueError: The file does not hold it as it was indexed.
        """
        parts: list[IdArray] = []
        call = node
        for _ in range(_MAX_DEPTH):
            place = refs.get(call.call_id)
            if place is None:
                raise ValueError(f"call {call.call_id} is at no known place: a record that was read is needed")
            parts[:0] = self._sequences.get(rollout_id, place) or [self._read_again(rollout_id, place, call)]
            if not call.prompt_is_delta:
                break
            parent = lineage.by_call_id.get(call.parent_call_id)
            if parent is None:
                raise ValueError(f"delta record {call.call_id} has the parent {call.parent_call_id!r}: it was not read")
            call = parent
        else:
            raise ValueError(
                f"call {node.call_id} has more than {_MAX_DEPTH:,} delta records before it: a root is needed"
            )
        ids = _joined(parts)
        if node.digest and compute_digest(ids) != node.digest:
            raise ValueError(f"call {node.call_id} has other ids than its digest says")
        return tuple(ids.tolist())

    async def close(self) -> None:
        """Keep nothing any more."""
        await super().close()  # type: ignore[misc]
        self._sequences.clear()

    def _read_again(self, rollout_id: str, place: int, call: Any) -> IdArray:
        [line] = reading.lines_at(self, rollout_id, [place])
        entry = TokenEntry.from_json(line)
        if (entry.model_call_id, entry.prompt_is_delta) != (call.call_id, call.prompt_is_delta):
            raise ValueError(f"call {call.call_id} is not at its place any more: {entry.model_call_id} is")
        ids = _ids(entry)
        self._sequences.put(rollout_id, place, ids)
        return ids


def _ids(entry: TokenEntry) -> IdArray:
    """Of prompt and generation, in the first of int32, int64 and uint64 that holds them."""
    return _joined([id_array(entry.prompt_token_ids), id_array(entry.generation_token_ids)])


def _joined(parts: list[Any]) -> IdArray:
    joined = join_arrays(parts) if all(isinstance(part, np.ndarray) for part in parts) else None
    if joined is None:
        raise ValueError("a record holds ids that no integer dtype holds together")
    return joined


def file_lineage_store(extended: type) -> type:
    """The class, as a subclass of the installed FileLineageStore; that itself where it is one."""
    if issubclass(extended, ArrayParents):
        return extended
    return type(
        "FileLineageStore",
        (ArrayParents, extended),
        {"__module__": "tokenrecords.gym", "__doc__": ArrayParents.__doc__},
    )
