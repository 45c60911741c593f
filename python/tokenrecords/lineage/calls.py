"""The calls of one rollout, each linked to the call that it is proven to continue."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from tokenrecords import _core
from tokenrecords.entry import fields
from tokenrecords.entry.assigned import id_array, log_prob_array, wrong_types
from tokenrecords.entry.model import ParentResolutionStatus, TokenEntry
from tokenrecords.lineage.deltas import expand, with_full_prompt
from tokenrecords.lineage.parents import shared_dtype

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tokenrecords.entry.assigned import Ids, LogProbs

# Names in `parent_link_failures`.
CONFLICT = "duplicate_call_id_conflict"
DIGEST_MISMATCH = "parent_digest_mismatch"
MISSING_ID = "resolved_parent_missing_id"
NO_RESOLUTION = "missing_resolution"
PARENT_MISSING = "parent_call_id_missing"
RECOVERED = "parent_call_id_missing_recovered"
UNREADABLE = "record_unreadable"
UNRECONSTRUCTABLE = "delta_chain_unreconstructable"
UNRESOLVED = "parent_unresolved"


@dataclass(eq=False, slots=True)
class Call:
    """A call of the rollout, with its full prompt.

    Attributes:
        entry: The record. Its arrays are the next three fields, whatever it holds them in.
        prompt: Shape `(prompt,)`.
        generation: Shape `(generation,)`; one integer dtype holds both.
        log_probs: Shape `(generation,)`.
        parent: The call that it continues.
        children: The calls that continue it.
        failure: The name of what is wrong with its link, empty for a root or a proven link.
        is_retry: True where another call has the same parent and prompt.
        quarantined: True for a retry that was not kept.
    """

    entry: TokenEntry
    prompt: Ids
    generation: Ids
    log_probs: LogProbs
    parent: Call | None = None
    children: list[Call] = field(default_factory=list)
    failure: str = ""
    is_retry: bool = False
    quarantined: bool = False

    @property
    def id(self) -> str:
        return self.entry.model_call_id

    @property
    def length(self) -> int:
        """Ids of the whole sequence."""
        return len(self.prompt) + len(self.generation)

    @property
    def starts_fragment(self) -> bool:
        """True where it continues a call that is not known."""
        return bool(self.failure) and self.failure != RECOVERED

    def whole(self) -> Ids:
        """The whole sequence, as a new array."""
        parts = (self.prompt, self.generation)
        return np.concatenate(parts, dtype=shared_dtype(parts), casting="unsafe")

    def path(self) -> list[Call]:
        """The calls from the first one to this one."""
        path: list[Call] = []
        at: Call | None = self
        while at is not None:
            path.append(at)
            at = at.parent
        return path[::-1]


@dataclass(frozen=True)
class Links:
    """The calls of a rollout.

    Attributes:
        calls: By prompt length, then call id: a parent stands before its children.
        left_out: For each record that is no call, its call id and what is wrong with it.
        empty: The ids of the calls that generated nothing, which are not among `calls` either.
    """

    calls: list[Call]
    left_out: list[tuple[str, str]]
    empty: list[str]


def link_calls(entries: Iterable[TokenEntry], *, threads: int | None = None) -> Links:
    """Link the calls of one rollout.

    Raises:
        ValueError: The entries belong to two rollouts.
    """
    left_out: list[tuple[str, str]] = []
    calls = _full(_distinct(_of_one_rollout(entries), left_out), left_out, threads)
    generated = sorted((call for call in calls if len(call.generation)), key=lambda call: (len(call.prompt), call.id))
    _name_parents(generated)
    _prove(generated, threads)
    for call in generated:
        if call.parent is not None:
            call.parent.children.append(call)
    return Links(generated, sorted(left_out), sorted(call.id for call in calls if not len(call.generation)))


def same_ids(a: Ids, b: Ids) -> bool:
    """True for equal ids, whatever their dtypes."""
    if len(a) != len(b):
        return False
    try:
        return a is b or _core.stands_at(0, token_ids=a, others=b)
    except ValueError:  # a negative one
        return fields.same(a, b)


def starts_prompt(parent: Call, child: Call) -> bool:
    """True if the whole sequence of `parent` starts the prompt of `child`."""
    try:
        return _core.stands_at(0, prompt=child.prompt, parent_prompt=parent.prompt, parent_generation=parent.generation)
    except ValueError:  # a negative id proves nothing
        return False


def _of_one_rollout(entries: Iterable[TokenEntry]) -> Iterator[TokenEntry]:
    first: TokenEntry | None = None
    for position, entry in enumerate(entries):
        first = entry if first is None else first
        if entry.rollout_id != first.rollout_id:
            raise ValueError(
                f"entries[{position}] is of rollout {entry.rollout_id!r}, entries[0] of {first.rollout_id!r}: "
                "chains are built for one rollout at a time, see group_by_rollout"
            )
        yield entry


def _distinct(entries: Iterable[TokenEntry], left_out: list[tuple[str, str]]) -> list[Call]:
    """The first call of each id."""
    calls: dict[str, Call] = {}
    for entry in entries:
        call = _read(entry)
        if call is None:
            left_out.append((str(getattr(entry, "model_call_id", None)), UNREADABLE))
            continue
        known = calls.setdefault(call.id, call)
        if not (same_ids(known.prompt, call.prompt) and same_ids(known.generation, call.generation)):
            left_out.append((call.id, CONFLICT))
    return list(calls.values())


def _read(entry: TokenEntry) -> Call | None:
    """The entry as a call, None where what was assigned to its fields makes no sequence."""
    prompt, generation = (id_array(getattr(entry, name, None)) for name in ("prompt_token_ids", "generation_token_ids"))
    log_probs = log_prob_array(getattr(entry, "generation_log_probs", None))
    if (
        prompt is None
        or generation is None
        or shared_dtype((prompt, generation)) is None
        or log_probs is None
        or len(log_probs) != len(generation)
        or wrong_types(entry)
    ):
        return None
    return Call(entry, prompt, generation, log_probs)


def _full(calls: list[Call], left_out: list[tuple[str, str]], threads: int | None) -> list[Call]:
    """The calls with full prompts."""
    prompts, reasons = expand([call.entry for call in calls], threads=threads)
    for position, prompt in prompts.items():
        call = calls[position]
        call.entry, call.prompt = with_full_prompt(call.entry, prompt), prompt
    left_out.extend((calls[position].id, UNRECONSTRUCTABLE) for position in reasons)
    return [call for position, call in enumerate(calls) if position not in reasons]


def _name_parents(calls: list[Call]) -> None:
    """Set the parent that each call names, before any proof, or the name of what is wrong."""
    places = {call.id: place for place, call in enumerate(calls)}
    index: _core.PrefixIndex | None = None
    for place, call in enumerate(calls):
        status, parent_id = call.entry.parent_resolution, call.entry.parent_call_id
        if status == ParentResolutionStatus.ROOT:
            continue
        if status == ParentResolutionStatus.UNRESOLVED:
            call.failure = UNRESOLVED
        elif parent_id is None:
            call.failure = NO_RESOLUTION if status is None else MISSING_ID
        elif parent_id not in places:
            index = index or _core.PrefixIndex((other.prompt, other.generation) for other in calls)
            call.parent = _only_longest_prefix(call, calls, index)
            call.failure = PARENT_MISSING if call.parent is None else RECOVERED
        elif places[parent_id] >= place:
            call.failure = PARENT_MISSING
        else:
            call.parent = calls[places[parent_id]]


def _only_longest_prefix(call: Call, calls: list[Call], index: _core.PrefixIndex) -> Call | None:
    """The call with the longest sequence that starts the prompt, None where several have it.

    Its prompt is shorter, so that it stands before `call`.
    """
    limit = len(call.prompt)
    while found := [calls[place] for place in index.longest(call.prompt, limit)]:
        fitting = [other for other in found if starts_prompt(other, call)]
        if fitting:
            return fitting[0] if len(fitting) == 1 else None
        limit = found[0].length - 1  # another sequence with the same fingerprint
    return None


def _prove(calls: list[Call], threads: int | None) -> None:
    """Take away each named parent whose recorded sequence is not what starts the prompt."""
    proofs: dict[Call, list[Call]] = defaultdict(list)  # children by parent
    for call in calls:
        parent = call.parent
        if parent is None or call.failure == RECOVERED:
            continue
        if parent.entry.cum_len in (None, parent.length) and starts_prompt(parent, call):
            proofs[parent].append(call)
        else:
            call.parent, call.failure = None, DIGEST_MISMATCH
    # The parent's ids were found to be those of the prompt, where they stand in one piece.
    recorded = [parent for parent in proofs if parent.entry.digest is not None]
    digests = _core.compute_digests((proofs[parent][0].prompt[: parent.length] for parent in recorded), threads=threads)
    for parent, digest in zip(recorded, digests, strict=True):
        if digest != parent.entry.digest:
            for call in proofs[parent]:
                call.parent, call.failure = None, DIGEST_MISMATCH
