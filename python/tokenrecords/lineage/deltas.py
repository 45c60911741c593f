"""Full prompts for delta records, and batches split by rollout."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tokenrecords import _core
from tokenrecords.entry.assigned import first_negative, id_array
from tokenrecords.entry.model import as_entries
from tokenrecords.lineage.parents import join_arrays

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tokenrecords.entry.assigned import Ids
    from tokenrecords.entry.model import TokenEntry

__all__ = ["Expansion", "expand_deltas", "group_by_rollout"]


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


@dataclass(frozen=True)
class Expansion:
    """What `expand_deltas` gives.

    Attributes:
        entries: The entries with full prompts, in the order of the input and without those that failed. An entry that
            was full already is the same object; another is a copy whose `prompt_token_ids` is a read-only array of
            shape `(prompt,)`. Calls that continue each other share the memory of their common ids.
        failed: Why an entry could not be expanded, by `(rollout_id, model_call_id)`.
    """

    entries: list[TokenEntry]
    failed: dict[tuple[str, str], str]


def expand_deltas(entries: Iterable[TokenEntry], *, threads: int | None = None) -> Expansion:
    """Give delta records their full prompts, by walking their parents.

    A parent is the first entry of its rollout with that call id. Each full sequence is checked against the entry's own
    `digest`, where it has one. The inputs are not changed, and what is full already is not copied.

    Args:
        entries: Records of any number of rollouts, in any order.
        threads: The most threads that hash; by default the CPUs that this process may use.

    Raises:
        ValueError: `threads` is below 1.

    >>> from tokenrecords import TokenEntry
    >>> first = TokenEntry(rollout_id="r", model_call_id="a", prompt_token_ids=[1, 2], generation_token_ids=[3],
    ...                    generation_log_probs=[-0.5])
    >>> second = TokenEntry(rollout_id="r", model_call_id="b", prompt_token_ids=[4], generation_token_ids=[5],
    ...                     generation_log_probs=[-0.5], prompt_is_delta=True, parent_call_id="a",
    ...                     parent_resolution="resolved")
    >>> expand_deltas([second, first]).entries[0].prompt_token_ids
    array([1, 2, 3, 4], dtype=int32)
    >>> expand_deltas([second]).failed
    {('r', 'b'): "parent call 'a' is not there"}
    """
    entries = as_entries(entries)
    prompts, reasons = expand(entries, threads=threads)
    return Expansion(
        [
            with_full_prompt(entry, prompts[position]) if position in prompts else entry
            for position, entry in enumerate(entries)
            if position not in reasons
        ],
        {(entries[position].rollout_id, entries[position].model_call_id): why for position, why in reasons.items()},
    )


def with_full_prompt(entry: TokenEntry, prompt: Ids) -> TokenEntry:
    """A copy of a delta entry that holds its full prompt; all else is shared."""
    return entry.model_copy(update={"prompt_token_ids": prompt, "prompt_is_delta": False})


def expand(entries: Sequence[TokenEntry], *, threads: int | None = None) -> tuple[dict[int, Ids], dict[int, str]]:
    """The full prompts of the delta entries, and why others have none; both by position."""
    tree = _Tree(entries)
    wholes = tree.wholes()
    reasons = {**tree.reasons, **_mismatches(entries, wholes, threads)}
    prompts = {
        position: whole[: len(whole) - len(entries[position].generation_token_ids)]
        for position, whole in wholes.items()
        if position not in reasons
    }
    return prompts, reasons


class _Tree:
    """The delta entries below the full ones that they lead to; entries are named by position.

    Attributes:
        reasons: Why a delta entry leads to none.
    """

    def __init__(self, entries: Sequence[TokenEntry]) -> None:
        self.reasons: dict[int, str] = {}
        self._entries = entries
        self._ids: dict[int, tuple[Ids, Ids]] = {}
        self._parents = self._parents_first()
        self._heirs = self._find_heirs()

    def wholes(self) -> dict[int, Ids]:
        """The whole sequences of delta entries: prompt and generation.

        An entry and its heir, the heir's heir and so on stand in one array, so that a chain of calls takes the memory
        of its last one.
        """
        wholes: dict[int, Ids] = {}
        for head, parent in self._parents.items():
            if self._heirs.get(parent) == head:
                continue
            path = [head]
            while path[-1] in self._heirs:
                path.append(self._heirs[path[-1]])
            if parent in self.reasons:
                self.reasons.update(dict.fromkeys(path, self.reasons[parent]))
                continue
            start = (wholes[parent],) if parent in wholes else self._ids[parent]
            joined = self._joined(start, path)
            while joined is None and len(path) > 1:  # what one call spoils must not cost those before it
                del path[len(path) // 2 :]
                del self._heirs[path[-1]]
                joined = self._joined(start, path)
            if joined is None:
                self.reasons[head] = "no integer dtype holds all ids of its sequence"
                continue
            joined.flags.writeable = False
            end = sum(map(len, start))
            for position in path:
                end += self._length(position)
                wholes[position] = joined[:end]
        return wholes

    def _joined(self, start: Sequence[Ids], path: list[int]) -> Ids | None:
        return join_arrays([*start, *(ids for position in path for ids in self._ids[position])])

    def _length(self, position: int) -> int:
        return sum(map(len, self._ids[position]))

    def _parents_first(self) -> dict[int, int]:
        """The parent of each delta entry that leads to a full one; its own parent stands before it."""
        named = self._named_parents()
        parents: dict[int, int] = {}
        seen: set[int] = set()
        for start in named:
            path: dict[int, None] = {}  # an ordered set
            at: int | None = start
            while at in named and at not in seen:
                seen.add(at)
                path[at] = None
                at = named[at]
            reason = self._dead_end(list(path), at)
            for position in reversed(path):
                reason = reason or self._unreadable(position)
                if reason:
                    self.reasons[position] = reason
                else:
                    parents[position] = named[position]  # type: ignore[assignment]  # a path to None has a reason
        return parents

    def _named_parents(self) -> dict[int, int | None]:
        """The parent that each delta entry names, None where it is not there."""
        first: dict[tuple[str, str | None], int] = {}
        for position, entry in enumerate(self._entries):
            first.setdefault((entry.rollout_id, entry.model_call_id), position)
        return {
            position: first.get((entry.rollout_id, entry.parent_call_id))
            for position, entry in enumerate(self._entries)
            if entry.prompt_is_delta
        }

    def _dead_end(self, path: list[int], at: int | None) -> str:
        """Why the last parent on a path leads no further, or nothing where it does."""
        calls = [self._entries[position] for position in path]
        if at is None:
            return f"parent call {calls[-1].parent_call_id!r} is not there"
        if at in path:
            ids = [call.model_call_id for call in calls[path.index(at) :]]
            shown = ids if len(ids) <= 4 else [*ids[:3], "..."]
            return "its parents form a cycle: " + " -> ".join([*shown, ids[0]])
        return self.reasons.get(at) or ("" if at in self._ids else self._unreadable(at))

    def _unreadable(self, position: int) -> str:
        """Why the ids of an entry can't be used, or nothing; notes them as arrays."""
        entry = self._entries[position]
        prompt, generation = id_array(entry.prompt_token_ids), id_array(entry.generation_token_ids)
        if prompt is None or generation is None:
            name = "prompt_token_ids" if prompt is None else "generation_token_ids"
            return f"{name} of call {entry.model_call_id!r} are no token ids that an integer dtype holds"
        self._ids[position] = prompt, generation
        return ""

    def _find_heirs(self) -> dict[int, int]:
        """For each delta entry that others continue, the one that leads to the longest sequence."""
        heirs: dict[int, int] = {}
        ahead: dict[int, int] = {}  # ids after the entry on its longest way on
        for position, parent in reversed(self._parents.items()):
            length = self._length(position) + ahead.get(position, 0)
            if parent in self._parents and length >= ahead.get(parent, 0):
                ahead[parent] = length
                heirs[parent] = position
        return heirs


def _mismatches(entries: Sequence[TokenEntry], wholes: dict[int, Ids], threads: int | None) -> dict[int, str]:
    """A reason for each sequence that is not the one that was stamped."""
    reasons = {}
    hashed = []
    for position, whole in wholes.items():
        if entries[position].digest is not None:
            negative = first_negative(whole)
            if negative is None:
                hashed.append(position)
            else:
                reasons[position] = f"id {negative} of its sequence is negative: {whole[negative]}"
    digests = _core.compute_digests((wholes[position] for position in hashed), threads=threads)
    for position, digest in zip(hashed, digests, strict=True):
        if digest != entries[position].digest:
            reasons[position] = f"its sequence has the digest {digest}, recorded is {entries[position].digest!r}"
    return reasons
