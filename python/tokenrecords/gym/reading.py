"""NeMo Gym's files of records, read by the scanner: methods that take the place of its own."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import numpy as np

from tokenrecords.entry.model import TokenEntry
from tokenrecords.tokens.arrays import as_list, same_ids
from tokenrecords.tokens.names import ARRAY_FIELDS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tokenrecords.entry.model import TokenIds

Cursor = tuple[int, int]  # the file's inode, and the place behind the last line that was read


def read_entries(store: Any, rollout_id: str) -> list[TokenEntry]:
    """The records of a rollout, with lists: `TokenCaptureStore._read_entries_unlocked`."""
    try:
        with store.path_for(rollout_id).open("rb") as lines:
            return list(with_lists(TokenEntry.from_json(line) for line in lines if line.strip()))
    except FileNotFoundError:
        return []


def fetch_new_entries(
    store: Any, rollout_id: str, cursor: Cursor | None
) -> tuple[list[tuple[TokenEntry, int]], Cursor | None]:
    """The records behind the cursor, with arrays, each with its place: `FileLineageStore._fetch_new_entries`.

    Raises:
        CursorReset: The store's own exception; the file is not the one that was read before.
    """
    try:
        lines = store._store.path_for(rollout_id).open("rb")  # noqa: SLF001 - stands in for a method of that class
    except FileNotFoundError:
        if cursor is not None:
            raise store.CursorReset from None
        return [], None
    with lines:
        found = os.fstat(lines.fileno())
        inode, place = (found.st_ino, 0) if cursor is None else cursor
        if inode != found.st_ino or not 0 <= place <= found.st_size:
            raise store.CursorReset
        lines.seek(place)
        items = []
        for line in lines:
            if line.strip():
                items.append((TokenEntry.from_json(line), place))
            place += len(line)
    return items, (inode, place)


def load_entry(store: Any, rollout_id: str, place: int) -> TokenEntry:
    """The record at a place of the file, with lists: `FileLineageStore._load_entry`."""
    [entry] = load_entries(store, rollout_id, [place])
    return entry


def load_entries(store: Any, rollout_id: str, places: list[int]) -> list[TokenEntry]:
    """The records at these places of the file, with lists: `FileLineageStore._load_entries`."""
    return list(with_lists(map(TokenEntry.from_json, lines_at(store, rollout_id, places))))


def lines_at(store: Any, rollout_id: str, places: list[int]) -> list[bytes]:
    """The lines at these places of a rollout's file."""
    with store._store.path_for(rollout_id).open("rb") as lines:  # noqa: SLF001 - as above
        return [lines.readline() for place in places if lines.seek(place) == place]


def with_lists(entries: Iterable[TokenEntry]) -> Iterator[TokenEntry]:
    """The entries with lists, as NeMo Gym's own code, which adds and compares lists, needs them.

    Where a prompt starts with what was read before it, its list starts with the same objects: they are made once, and
    two lists of the same objects are compared in a tenth of the time.
    """
    before: TokenEntry | None = None
    lists: tuple[list[Any], ...] = ()
    for entry in entries:
        prompt = entry.prompt_token_ids
        if before is not None and (known := _continued(prompt, before)):
            ids = [*lists[0], *lists[1], *as_list(prompt[known:])]
        else:
            ids = as_list(prompt)
        lists = ids, as_list(entry.generation_token_ids), as_list(entry.generation_log_probs)
        yield entry.model_copy(update=dict(zip(ARRAY_FIELDS, lists, strict=True)))
        before = entry


def _continued(prompt: TokenIds, before: TokenEntry) -> int:
    """How many ids of the prompt are those of the entry before it: all of that entry's, or none."""
    start = 0
    for part in (before.prompt_token_ids, before.generation_token_ids):
        end = start + len(part)
        if not (isinstance(prompt, np.ndarray) and isinstance(part, np.ndarray) and same_ids(prompt[start:end], part)):
            return 0
        start = end
    return start
