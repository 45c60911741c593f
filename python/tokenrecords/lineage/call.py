"""One call of a rollout while its links are looked for."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from tokenrecords._core import stands_at
from tokenrecords.entry.resolution import ParentResolutionStatus
from tokenrecords.tokens.arrays import Fault, id_array, shared_dtype
from tokenrecords.tokens.names import ID_FIELDS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tokenrecords.entry.model import TokenEntry
    from tokenrecords.tokens.arrays import IdArray, LogProbArray, MaskArray

_NO_IDS = np.empty(0, np.int32)
_NO_LOG_PROBS = np.empty(0)


@dataclass(eq=False, slots=True)
class Call:
    """A record and its place among those of its rollout.

    Attributes:
        entry: The record. Its ids are the next two fields, whatever it holds them in.
        prompt: Shape `(prompt,)`; of a delta record what it holds, until `expand` makes it full.
        generation: Shape `(generation,)`; one integer dtype holds both.
        own: Ids that the record holds; a delta record holds fewer than its sequence has.
        fault: Why its full sequence is not known, empty where it is.
        log_probs: Shape `(generation,)`, where they were asked for.
        loss_mask: False for the generated ids that the policy did not sample, shape `(generation,)`; None where all are
            its own.
        is_conflicting: True where another record of this call says something else of its tokens.
        named: The call that it says it continues, None where that is not there.
        parent: The call that it is proven to continue.
        children: The calls that are proven to continue it.
        following: A call whose prompt starts with all ids of this one.
        failure: The name of what is wrong with its link, empty for a root or a proven link.
        is_retry: True where another call has the same parent and prompt.
        quarantined: True for a retry that was not kept.
    """

    entry: TokenEntry
    prompt: IdArray
    generation: IdArray
    own: int = field(init=False)
    fault: str = ""
    log_probs: LogProbArray = field(default_factory=lambda: _NO_LOG_PROBS)
    loss_mask: MaskArray | None = None
    is_conflicting: bool = False
    named: Call | None = None
    parent: Call | None = None
    children: list[Call] = field(default_factory=list)
    following: Call | None = None
    failure: str = ""
    is_retry: bool = False
    quarantined: bool = False

    def __post_init__(self) -> None:
        self.own = self.length

    @classmethod
    def of(cls, entry: TokenEntry) -> Call:
        """The call of a record; `fault` says where its fields hold no ids."""
        ids: list[IdArray] = []
        for name in ID_FIELDS:
            try:
                array = id_array(getattr(entry, name, None))
            except Fault as fault:
                return cls(entry, _NO_IDS, _NO_IDS, f"call {entry.model_call_id!r}: {fault.of(name)}")
            if isinstance(array, list):
                why = f"{name} of call {entry.model_call_id!r} holds ids that no integer dtype holds together"
                return cls(entry, _NO_IDS, _NO_IDS, why)
            ids.append(array)
        prompt, generation = ids
        if shared_dtype(ids) is None:
            return cls(entry, _NO_IDS, _NO_IDS, "no integer dtype holds all ids of its sequence")
        return cls(entry, prompt, generation)

    @property
    def id(self) -> str:
        """The record's `model_call_id`."""
        return self.entry.model_call_id

    @property
    def key(self) -> tuple[str, str]:
        """Rollout and call."""
        return self.entry.rollout_id, self.entry.model_call_id

    @property
    def named_id(self) -> str | None:
        """The call that it says it continues: a root names none, an unresolved call does not know it."""
        status = getattr(self.entry, "parent_resolution", None)
        is_resolved = isinstance(status, str) and status == ParentResolutionStatus.RESOLVED
        return self.entry.parent_call_id if self.entry.prompt_is_delta or status is None or is_resolved else None

    @property
    def length(self) -> int:
        """Ids of the whole sequence."""
        return len(self.prompt) + len(self.generation)

    @property
    def starts_fragment(self) -> bool:
        """True where it continues a call that is not known."""
        return bool(self.failure) and self.parent is None

    def whole(self) -> IdArray:
        """The whole sequence, shape `(length,)`: where another prompt starts with it that piece of it, not a copy."""
        return self.joined() if self.following is None else self.following.prompt[: self.length]

    def joined(self) -> IdArray:
        """The whole sequence as a new array of native byte order, shape `(length,)`."""
        parts = (self.prompt, self.generation)
        whole = np.concatenate(parts, dtype=shared_dtype(parts), casting="unsafe")
        return whole.astype(whole.dtype.newbyteorder("="), copy=False)

    def path(self) -> list[Call]:
        """The calls from the first one to this one."""
        path: list[Call] = []
        at: Call | None = self
        while at is not None:
            path.append(at)
            at = at.parent
        return path[::-1]


def starts_prompt(parent: Call, child: Call) -> bool:
    """True if the whole sequence of `parent` starts the prompt of `child`."""
    try:
        return stands_at(0, prompt=child.prompt, parent_prompt=parent.prompt, parent_generation=parent.generation)
    except ValueError:  # a negative id proves nothing
        return False


def name_parents(calls: Iterable[Call]) -> None:
    """Set `named` of each call: the first one of its rollout with the id that it names."""
    first: dict[tuple[str, str | None], Call] = {}
    for call in calls:
        first.setdefault(call.key, call)
    for call in calls:
        named = call.named_id
        call.named = None if named is None else first.get((call.entry.rollout_id, named))


def cycles(calls: Iterable[Call]) -> Iterator[list[Call]]:
    """The calls of each cycle of named parents; a call that names itself is one."""
    seen: set[Call] = set()
    for start in calls:
        path: dict[Call, int] = {}
        at: Call | None = start
        while at is not None and at not in seen:
            seen.add(at)
            path[at] = len(path)
            at = at.named
        if at in path:
            yield list(path)[path[at] :]
