"""Several records: as a list, and by rollout."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import PurePath

from tokenrecords.entry.model import TokenEntry


def several(entries: Iterable[TokenEntry]) -> Iterable[TokenEntry]:
    """The entries as they were given, if they are several; nothing is taken from an iterator.

    Raises:
        TypeError: One entry, a path or a mapping, which iterate over something else.
    """
    if isinstance(entries, TokenEntry | str | bytes | PurePath | Mapping):
        kind = type(entries).__name__
        hints = {"TokenEntry": "; put it in a list", "dict": "; its values may be", "bytes": ""}
        raise TypeError(f"entries is {kind}: several entries are needed{hints.get(kind, '; read_jsonl gives them')}")
    return entries


def as_entries(entries: Iterable[TokenEntry]) -> list[TokenEntry]:
    """The entries as a new list; refused is what `several` refuses."""
    return list(several(entries))


def group_by_rollout(entries: Iterable[TokenEntry]) -> dict[str, list[TokenEntry]]:
    """The entries of each rollout, in their order; rollouts in the order of their first entries.

    >>> from tokenrecords import TokenEntry
    >>> calls = [TokenEntry(rollout_id=rollout, model_call_id="c", prompt_token_ids=[1], generation_token_ids=[],
    ...                     generation_log_probs=[]) for rollout in ("r", "s", "r")]
    >>> {rollout_id: len(group) for rollout_id, group in group_by_rollout(calls).items()}
    {'r': 2, 's': 1}
    """
    groups: dict[str, list[TokenEntry]] = {}
    for entry in as_entries(entries):
        groups.setdefault(entry.rollout_id, []).append(entry)
    return groups
