"""The parent of a call, found by the exact tokens."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tokenrecords._core import prefix_digest, stands_at
from tokenrecords.entry.resolution import ParentResolutionStatus

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tokenrecords.entry.model import TokenEntry


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
        if any(starts_prompt(call, entry) for call in named):
            return entry.parent_call_id, ParentResolutionStatus.RESOLVED, ""
        return None, ParentResolutionStatus.UNRESOLVED, "prefix_mismatch"
    # The longest first and of equal ones the latest, so that the first that fits is the parent.
    for call in sorted(calls, key=cumulative_length)[::-1]:
        if starts_prompt(call, entry):
            return call.model_call_id, ParentResolutionStatus.RESOLVED, ""
    if not calls or any(_is_root(call) and _same_prompt(call, entry) for call in calls):
        return None, ParentResolutionStatus.ROOT, ""
    return None, ParentResolutionStatus.UNRESOLVED, "no_prefix_parent"


def starts_prompt(call: TokenEntry, entry: TokenEntry) -> bool:
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


def cumulative_length(call: TokenEntry) -> int:
    """The number of ids in prompt and generation of the full sequence; 0 for a delta entry that does not say it."""
    if call.prompt_is_delta:
        return call.cum_len or 0
    return len(call.prompt_token_ids) + len(call.generation_token_ids)


def _is_root(call: TokenEntry) -> bool:
    return call.parent_resolution == ParentResolutionStatus.ROOT


def _same_prompt(a: TokenEntry, b: TokenEntry) -> bool:
    return len(a.prompt_token_ids) == len(b.prompt_token_ids) and stands_at(
        0, prompt_token_ids=b.prompt_token_ids, parent_prompt_token_ids=a.prompt_token_ids
    )
