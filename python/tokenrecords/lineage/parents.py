"""The parents of calls, found by the exact tokens: of one call, or of a whole set."""

from __future__ import annotations

import math
from collections import defaultdict
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import numpy as np

from tokenrecords._core import compute_digests, prefix_digest, stands_at
from tokenrecords.entry.assigned import wrong_types
from tokenrecords.entry.entries import as_entries
from tokenrecords.entry.resolution import ParentResolutionStatus
from tokenrecords.lineage.call import Call
from tokenrecords.lineage.calls import continues, link_named
from tokenrecords.lineage.prefixes import Prefixes
from tokenrecords.tokens.arrays import same_ids
from tokenrecords.tokens.names import PROMPT

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from tokenrecords.entry.model import TokenEntry


class Earlier(Protocol):
    """What a parent is found by; records have it."""

    @property
    def rollout_id(self) -> str:
        """The training sample."""

    @property
    def model_call_id(self) -> str:
        """The served call."""

    @property
    def prompt_token_ids(self) -> Any:
        """The ids of the prompt."""

    @property
    def generation_token_ids(self) -> Any:
        """The ids that were generated."""

    @property
    def prompt_is_delta(self) -> bool:
        """True where `cum_len` and `digest` stand for the ids."""

    @property
    def cum_len(self) -> int | None:
        """The number of ids."""

    @property
    def digest(self) -> str | None:
        """Their digest."""

    @property
    def parent_resolution(self) -> ParentResolutionStatus | None:
        """What is known of its own parent."""


Known = TypeVar("Known", bound=Earlier)

# Reasons that a call is unresolved for.
PREFIX_MISMATCH = "prefix_mismatch"
NO_PREFIX_PARENT = "no_prefix_parent"


def link_entries(entries: Iterable[TokenEntry], *, threads: int | None = None) -> list[TokenEntry]:
    """Find the parents of a whole set of calls, in whatever order they were captured, and stamp them.

    A named parent (`parent_call_id`) is kept where it is proven; where it is not, the call is UNRESOLVED with the
    reason `prefix_mismatch`, and stays it when it is linked again. For a call that names none the parent is the call of
    its rollout with the longest cumulative sequence that starts its prompt; of several with the same sequence the one
    with the latest `created_at`, then the greatest call id. An entry that is stamped ROOT stays one. Of the calls of a
    rollout that have no parent the one with the earliest `created_at`, then the shortest prompt, then the least call
    id, is the ROOT, with those of the same prompt; the others are UNRESOLVED with the reason `no_prefix_parent`. A call
    that generated nothing is nobody's parent, and the ROOT only where no other can be.

    Args:
        entries: Records of any number of rollouts, full or delta. They are stamped in place: `parent_call_id`,
            `parent_resolution`, `parent_resolution_reason`, and `cum_len` and `digest` where they are not there yet. A
            delta entry keeps what it says; so does one whose fields make no sequence of token ids, which `verify`
            reports.
        threads: The most threads that hash; by default the CPUs that this process may use.

    Returns:
        The same entries, in the order of the input.

    Raises:
        ValueError: `threads` is below 1.
        TypeError: `entries` is one entry, a path or a mapping.

    >>> from tokenrecords import TokenEntry
    >>> second, first = (TokenEntry(rollout_id="r", model_call_id=call_id, prompt_token_ids=prompt,
    ...                             generation_token_ids=[9], generation_log_probs=[-0.5])
    ...                  for call_id, prompt in (("b", [1, 2, 9, 4]), ("a", [1, 2])))
    >>> [(call.model_call_id, str(call.parent_resolution)) for call in link_entries([second, first])]
    [('b', 'resolved'), ('a', 'root')]
    """
    compute_digests((), threads=threads)  # refuses what is no number of threads
    entries = as_entries(entries)
    rollouts: dict[str, list[Call]] = {}
    for entry in entries:
        call = Call.of(entry) if not wrong_types(entry) else None
        if call is not None and not call.fault:
            rollouts.setdefault(entry.rollout_id, []).append(call)
    for calls in rollouts.values():
        _link(calls, threads)
    return entries


def _link(calls: Sequence[Call], threads: int | None) -> None:
    """Find and stamp the parents of the calls of one rollout."""
    link_named(calls, threads=threads)
    known = [call for call in calls if not call.fault]
    prefixes = Prefixes(known, threads=threads)
    named: dict[str, list[Call]] = defaultdict(list)  # a call may be there twice
    for call in known:
        named[call.id].append(call)
    parentless = []
    for call in known:
        entry = call.entry
        if entry.prompt_is_delta:
            continue
        if entry.parent_call_id is not None:
            fitting = (other for other in named[entry.parent_call_id] if continues(call, other))
            call.parent = call.parent or next(fitting, None)
        elif entry.parent_resolution != ParentResolutionStatus.ROOT and not _lost_its_parent(entry):
            call.parent = _latest(other for other in prefixes.longest(call) if other.id != call.id)
        if call.parent is not None and _is_as_recorded(call.parent, prefixes.digests):
            _stamp(call, prefixes.digests, ParentResolutionStatus.RESOLVED, call.parent.id)
        elif entry.parent_call_id is not None or _lost_its_parent(entry):
            _stamp(call, prefixes.digests, ParentResolutionStatus.UNRESOLVED, reason=PREFIX_MISMATCH)
        else:
            parentless.append(call)
    first = min(parentless, key=_age, default=None)
    for call in parentless:
        is_root = call.entry.parent_resolution == ParentResolutionStatus.ROOT
        if is_root or (first is not None and same_ids(first.prompt, call.prompt)):
            _stamp(call, prefixes.digests, ParentResolutionStatus.ROOT)
        else:
            known_reason = call.entry.parent_resolution_reason
            reason = known_reason if isinstance(known_reason, str) and known_reason else NO_PREFIX_PARENT
            _stamp(call, prefixes.digests, ParentResolutionStatus.UNRESOLVED, reason=reason)


def _lost_its_parent(entry: TokenEntry) -> bool:
    """True where it named a parent that was not proven, when it was stamped before."""
    reason = entry.parent_resolution_reason
    is_unresolved = entry.parent_resolution == ParentResolutionStatus.UNRESOLVED
    return is_unresolved and isinstance(reason, str) and reason == PREFIX_MISMATCH


def _is_as_recorded(call: Call, digests: Mapping[Call, str]) -> bool:
    """True if the call's ids are those that its record was stamped with, as far as it was."""
    entry = call.entry
    return entry.cum_len in (None, call.length) and entry.digest in (None, digests.get(call))


def _stamp(
    call: Call,
    digests: Mapping[Call, str],
    status: ParentResolutionStatus,
    parent_call_id: str | None = None,
    reason: str = "",
) -> None:
    entry = call.entry
    entry.parent_call_id, entry.parent_resolution, entry.parent_resolution_reason = parent_call_id, status, reason
    # What was recorded before stays: it is the proof of these ids, or of a change that `verify` reports.
    if entry.cum_len is None and entry.digest is None and call in digests:
        entry.cum_len, entry.digest = call.length, digests[call]


def _latest(calls: Iterable[Call]) -> Call | None:
    return max(calls, key=lambda call: (_time(call, -math.inf), call.id), default=None)


def _age(call: Call) -> tuple[bool, float, int, str]:
    return not len(call.generation), _time(call, math.inf), len(call.prompt), call.id


def _time(call: Call, unknown: float) -> float:
    time = call.entry.created_at
    return unknown if isinstance(time, float) and math.isnan(time) else time


def resolve_parent(entry: TokenEntry, earlier: Iterable[TokenEntry]) -> tuple[str | None, ParentResolutionStatus, str]:
    """Find the call that `entry` continues, by the exact tokens.

    Where `entry` names a parent (`parent_call_id`), that call is checked. Where it names none, the parent is the call
    with the longest cumulative sequence that starts the prompt; of several with the same sequence, the latest.

    Args:
        entry: A call with its full prompt.
        earlier: Calls captured before it, in that order; those of other rollouts, and the call itself, are passed
            over. A delta entry among them is compared by its `cum_len` and `digest`.

    Returns:
        `(parent_call_id, status, reason)`: the parent and RESOLVED; None and ROOT for the first call of its rollout
        and for one with the prompt of an earlier root; else None and UNRESOLVED, with the reason `prefix_mismatch`
        (the named call is not there, or its sequence does not start the prompt) or `no_prefix_parent`.

    Raises:
        ValueError: `entry` stores a delta prompt.

    >>> first = TokenEntry(rollout_id="r", model_call_id="a", prompt_token_ids=[1, 2], generation_token_ids=[3],
    ...                    generation_log_probs=[-0.5])
    >>> second = TokenEntry(rollout_id="r", model_call_id="b", prompt_token_ids=[1, 2, 3, 4],
    ...                     generation_token_ids=[5], generation_log_probs=[-0.5])
    >>> resolve_parent(second, [first])
    ('a', <ParentResolutionStatus.RESOLVED: 'resolved'>, '')
    """
    parent, status, reason = find_parent(entry, earlier)
    return None if parent is None else parent.model_call_id, status, reason


def find_parent(entry: TokenEntry, earlier: Iterable[Known]) -> tuple[Known | None, ParentResolutionStatus, str]:
    """What `resolve_parent` gives, and raises, with the parent itself."""
    if entry.prompt_is_delta:
        raise ValueError(
            f"model call {entry.model_call_id!r} of rollout {entry.rollout_id!r} stores a delta prompt: "
            "a parent can only be found for a full one"
        )
    calls = [
        call for call in earlier if call.rollout_id == entry.rollout_id and call.model_call_id != entry.model_call_id
    ]
    if entry.parent_call_id is not None:
        named = [call for call in calls if call.model_call_id == entry.parent_call_id]
        for call in named:
            if starts_prompt(call, entry):
                return call, ParentResolutionStatus.RESOLVED, ""
        return None, ParentResolutionStatus.UNRESOLVED, PREFIX_MISMATCH
    # The longest first and of equal ones the latest, so that the first that fits is the parent.
    for call in sorted(calls, key=cumulative_length)[::-1]:
        if starts_prompt(call, entry):
            return call, ParentResolutionStatus.RESOLVED, ""
    if not calls or any(_is_root(call) and _same_prompt(call, entry) for call in calls):
        return None, ParentResolutionStatus.ROOT, ""
    return None, ParentResolutionStatus.UNRESOLVED, NO_PREFIX_PARENT


def starts_prompt(call: Earlier, entry: TokenEntry) -> bool:
    """True if the cumulative sequence of `call` is not empty and starts the prompt of `entry`."""
    length = cumulative_length(call)
    if not 0 < length <= len(entry.prompt_token_ids):
        return False
    if call.prompt_is_delta:
        return prefix_digest(length, prompt_token_ids=entry.prompt_token_ids) == call.digest
    return stands_at(
        0,
        prompt_token_ids=entry.prompt_token_ids,
        parent_prompt_token_ids=call.prompt_token_ids,
        parent_generation_token_ids=call.generation_token_ids,
    )


def cumulative_length(call: Earlier) -> int:
    """The number of ids in prompt and generation of the full sequence; 0 for a delta entry that does not say it."""
    if call.prompt_is_delta:
        return call.cum_len or 0
    return len(call.prompt_token_ids) + len(call.generation_token_ids)


def as_delta(entry: TokenEntry, parent: Earlier) -> TokenEntry:
    """The entry with what its full prompt adds to the parent that was found for it."""
    added = entry.prompt_token_ids[cumulative_length(parent) :]
    # A copy: a view would keep the whole prompt in memory.
    added = added.copy() if isinstance(added, np.ndarray) else added
    return entry.model_copy(update={PROMPT: added, "prompt_is_delta": True})


def _is_root(call: Earlier) -> bool:
    return call.parent_resolution == ParentResolutionStatus.ROOT


def _same_prompt(a: Earlier, b: TokenEntry) -> bool:
    return len(a.prompt_token_ids) == len(b.prompt_token_ids) and stands_at(
        0, prompt_token_ids=b.prompt_token_ids, parent_prompt_token_ids=a.prompt_token_ids
    )
