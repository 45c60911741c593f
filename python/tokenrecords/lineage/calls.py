"""The calls of a rollout, each linked to the call that it is proven to continue."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tokenrecords.entry.assigned import loss_mask_of, wrong_types
from tokenrecords.entry.resolution import ParentResolutionStatus
from tokenrecords.lineage.call import Call, name_parents, starts_prompt
from tokenrecords.lineage.deltas import expand, with_full_prompt
from tokenrecords.lineage.prefixes import Prefixes
from tokenrecords.tokens.arrays import Fault, log_prob_array, mask_array, same, same_ids
from tokenrecords.tokens.names import GENERATION, LOG_PROBS, LOSS_MASK, PROMPT

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from tokenrecords.entry.model import TokenEntry
    from tokenrecords.lineage.hashing import Hashing

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


@dataclass(frozen=True)
class Links:
    """The calls of a rollout.

    Attributes:
        calls: By prompt length, then call id: a parent stands before its children.
        left_out: For each record that is not a call, its call id and what is wrong with it.
        empty: The ids of the calls that generated nothing, which are not among `calls` either.
    """

    calls: list[Call]
    left_out: list[tuple[str, str]]
    empty: list[str]


def linking(entries: Iterable[TokenEntry], *, threads: int | None = None) -> Hashing[Links]:
    """Link the calls of one rollout.

    Raises:
        ValueError: The entries belong to two rollouts.
    """
    left_out: list[tuple[str, str]] = []
    readable: list[Call] = []
    unreadable: set[str] = set()
    for entry in _of_one_rollout(entries):
        call = Call.of(entry)
        if not call.fault and _read_scores(call):
            readable.append(call)
        else:
            unreadable.add(str(getattr(entry, "model_call_id", None)))
            left_out.append((str(getattr(entry, "model_call_id", None)), UNREADABLE))
    calls, conflicts = distinct(readable)
    for call in calls:
        call.is_conflicting = call.id in unreadable  # another record of it says what nobody can read
    for call, first, _ in conflicts:
        first.is_conflicting = True
        left_out.append((call.id, CONFLICT))
    link_named(calls, threads=threads)
    left_out += [(call.id, UNRECONSTRUCTABLE) for call in calls if call.fault]
    calls = [call for call in calls if not call.fault]
    for call in calls:
        call.entry = with_full_prompt(call)
    generated = sorted((call for call in calls if len(call.generation)), key=lambda call: (len(call.prompt), call.id))
    _choose_parents(generated, threads)
    yield from _check_recorded(generated)
    for call in generated:
        if call.parent is not None:
            call.parent.children.append(call)
    return Links(generated, sorted(left_out), sorted(call.id for call in calls if not len(call.generation)))


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


def _read_scores(call: Call) -> bool:
    """Read log-probs and loss mask; False where what was assigned to its fields makes no sequences of one length."""
    try:
        call.log_probs = log_prob_array(getattr(call.entry, LOG_PROBS, None))
        mask = loss_mask_of(call.entry)
        call.loss_mask = None if mask is None else mask_array(mask)
    except Fault:
        return False
    lengths = {len(call.log_probs), len(call.generation if call.loss_mask is None else call.loss_mask)}
    return lengths == {len(call.generation)} and not wrong_types(call.entry)


def distinct(calls: Iterable[Call]) -> tuple[list[Call], list[tuple[Call, Call, str]]]:
    """The first call of each id, and the others that say something else of its tokens.

    The others come as `(that call, the first, the field that differs)`.
    """
    firsts: dict[tuple[str, str], Call] = {}
    conflicts: list[tuple[Call, Call, str]] = []
    for call in calls:
        first = firsts.setdefault(call.key, call)
        field = "" if first is call else _difference(first, call)
        if field:
            conflicts.append((call, first, field))
    return list(firsts.values()), conflicts


def _difference(a: Call, b: Call) -> str:
    if not same_ids(a.prompt, b.prompt):
        return PROMPT
    if not same_ids(a.generation, b.generation):
        return GENERATION
    if not _same_log_probs(*(getattr(call.entry, LOG_PROBS, None) for call in (a, b))):
        return LOG_PROBS
    return "" if _same_masks(a, b) else LOSS_MASK


def _same_masks(a: Call, b: Call) -> bool:
    """True for the same values, whatever holds them; no mask is one of all."""
    masks = [loss_mask_of(call.entry) for call in (a, b)]
    try:
        x, y = (np.ones(len(a.generation), np.bool_) if mask is None else mask_array(mask) for mask in masks)
    except Fault:
        return same(*masks)
    return np.array_equal(x, y)


def _same_log_probs(a: Any, b: Any) -> bool:
    """True for values that are equal at float32 precision: engines compute in it, and servers print it in two ways."""
    try:
        with np.errstate(over="ignore"):
            x, y = (log_prob_array(value).astype(np.float32) for value in (a, b))
    except Fault:
        return True  # that one can't be read is said of it
    return np.array_equal(x, y, equal_nan=True)


def link_named(calls: Sequence[Call], *, threads: int | None = None) -> None:
    """Set `named` of each call, make delta prompts full, and set `parent` where the named call's ids start the prompt.

    Calls of any number of rollouts, one a call id.
    """
    name_parents(calls)
    expand(calls, threads=threads)
    for call in calls:
        parent = call.named
        if parent is None or call.fault or parent.fault:
            continue
        if continues(call, parent):
            call.parent, parent.following = parent, call


def continues(call: Call, parent: Call) -> bool:
    """True if the ids of `parent` start the prompt; of two equal calls that generated nothing neither continues."""
    return bool(len(parent.generation) or parent.length < call.length) and starts_prompt(parent, call)


def _choose_parents(calls: Sequence[Call], threads: int | None) -> None:
    """Keep the parent that may be one, and name what is wrong with a call that has none."""
    places = {call: place for place, call in enumerate(calls)}
    prefixes: Prefixes | None = None
    for place, call in enumerate(calls):
        status, named = call.entry.parent_resolution, call.named
        if status == ParentResolutionStatus.ROOT:
            call.parent = None
        elif status == ParentResolutionStatus.UNRESOLVED:
            call.parent, call.failure = None, UNRESOLVED
        elif call.named_id is None:
            call.failure = NO_RESOLUTION if status is None else MISSING_ID
        elif named not in places:
            prefixes = prefixes or Prefixes(calls, threads=threads)
            # A shorter prompt, so that it stands before `call`; several with the same sequence decide nothing.
            found = prefixes.longest(call)
            call.parent = found[0] if len(found) == 1 else None
            call.failure = PARENT_MISSING if call.parent is None else RECOVERED
        elif places[named] >= place:
            call.parent, call.failure = None, PARENT_MISSING
        elif call.parent is None or named.entry.cum_len not in (None, named.length):
            call.parent, call.failure = None, DIGEST_MISMATCH


def _check_recorded(calls: Sequence[Call]) -> Hashing[None]:
    """Take away each parent whose recorded digest is not that of its ids."""
    proofs: dict[Call, list[Call]] = defaultdict(list)  # children by parent
    for call in calls:
        if call.parent is not None and call.failure != RECOVERED and call.parent.entry.digest is not None:
            proofs[call.parent].append(call)
    digests = yield [parent.whole() for parent in proofs]
    for (parent, children), digest in zip(proofs.items(), digests, strict=True):
        if digest != parent.entry.digest:
            for call in children:
                call.parent, call.failure = None, DIGEST_MISMATCH
