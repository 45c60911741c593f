"""Cumulative sequences, and what a record says of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tokenrecords._core import joined_ids, joint_digest, stands_at
from tokenrecords.entry.resolution import ParentResolutionStatus, check_parent
from tokenrecords.tokens.arrays import Fault, as_list, id_array, join_arrays
from tokenrecords.tokens.names import GENERATION

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from tokenrecords.entry.model import TokenEntry, TokenIds


def cumulative_tokens(entry: TokenEntry) -> TokenIds:
    """Prompt and generation as one new sequence: what the prompt of a call that continues this one starts with.

    Returns:
        An array of shape `(prompt + generation,)` where the prompt is an array: of its dtype, or of int64 or uint64
        where an id needs it. Otherwise, or where no dtype holds all ids, a list.

    Raises:
        ValueError: The entry stores a delta prompt.

    >>> cumulative_tokens(TokenEntry(rollout_id="r", model_call_id="c", prompt_token_ids=[1, 2],
    ...                              generation_token_ids=[3], generation_log_probs=[-0.5]))
    [1, 2, 3]
    """
    if entry.prompt_is_delta:
        raise ValueError(
            f"model call {entry.model_call_id!r} of rollout {entry.rollout_id!r} stores a delta prompt: "
            "its full sequence starts with its parent's"
        )
    prompt, generation = entry.prompt_token_ids, entry.generation_token_ids
    joined = joined_ids(prompt, generation)
    if joined is not None:
        return joined
    return _join(prompt, generation) if isinstance(prompt, np.ndarray) else [*prompt, *as_list(generation)]


def _join(prompt: npt.NDArray[Any], generation: TokenIds) -> TokenIds:
    try:
        tail = id_array(generation)
    except Fault as fault:
        raise fault.error(GENERATION) from None
    if isinstance(tail, list):
        return [*prompt.tolist(), *tail]
    joined = join_arrays((prompt, tail))
    return [*prompt.tolist(), *tail.tolist()] if joined is None else joined


def stamp_lineage(
    entry: TokenEntry,
    parent_call_id: str | None,
    parent_resolution: ParentResolutionStatus | str | None = None,
    cumulative: Sequence[int] | npt.NDArray[np.integer[Any]] | None = None,
) -> TokenEntry:
    """Set `cum_len`, `digest`, `parent_call_id` and `parent_resolution` of an entry, and return it.

    Everything is checked before anything is set: a call that fails leaves the entry as it was.

    Args:
        entry: The call.
        parent_call_id: The call that it continues, or None.
        parent_resolution: What is known about that; None where nobody decided.
        cumulative: The full sequence, prompt and generation: needed for a delta entry, whose own ids it must end
            with, and checked against the ids of any other.

    Raises:
        ValueError: RESOLVED without a parent, ROOT or UNRESOLVED with one, a delta entry that would not be RESOLVED
            or has no `cumulative`, a `cumulative` that disagrees with the entry's ids, an id below 0 or above
            2**64 - 1, an unknown `parent_resolution`.
        TypeError: `cumulative`, or an element of it, is of the wrong type.

    >>> entry = TokenEntry(rollout_id="r", model_call_id="c", prompt_token_ids=[1, 2], generation_token_ids=[3],
    ...                    generation_log_probs=[-0.5])
    >>> stamp_lineage(entry, None, ParentResolutionStatus.ROOT).cum_len
    3
    >>> entry.digest == compute_digest([1, 2, 3])
    True
    """
    status = _status(parent_resolution)
    if not isinstance(parent_call_id, str | None):
        raise TypeError(f"parent_call_id is {parent_call_id!r}: a call id or None is needed")
    check_parent(status, parent_call_id, is_delta=entry.prompt_is_delta)
    entry.cum_len, entry.digest = _measure(entry, cumulative)
    entry.parent_call_id = parent_call_id
    entry.parent_resolution = status
    return entry


def _status(given: ParentResolutionStatus | str | None) -> ParentResolutionStatus | None:
    if given is None:
        return None
    if not isinstance(given, str):
        raise TypeError(f"parent_resolution is {given!r}: a ParentResolutionStatus or its text is needed")
    try:
        return ParentResolutionStatus(given)
    except ValueError:
        known = ", ".join(ParentResolutionStatus)
        raise ValueError(f"parent_resolution is {given!r}: one of {known} is needed") from None


def _measure(entry: TokenEntry, cumulative: Any) -> tuple[int, str]:
    """Length and digest of the full sequence."""
    prompt, generation = entry.prompt_token_ids, entry.generation_token_ids
    if cumulative is None:
        if entry.prompt_is_delta:
            raise ValueError(
                f"model call {entry.model_call_id!r} of rollout {entry.rollout_id!r} stores a delta prompt: "
                "stamp it with its full sequence as cumulative"
            )
        return joint_digest(prompt_token_ids=prompt, generation_token_ids=generation)
    own = len(prompt) + len(generation)
    whole, digest = joint_digest(cumulative=cumulative)
    if whole < own or (whole > own and not entry.prompt_is_delta):
        raise ValueError(
            f"cumulative and the ids of model call {entry.model_call_id!r} disagree: "
            f"it has {whole} ids, prompt and generation have {own}"
        )
    if not stands_at(whole - own, cumulative=cumulative, prompt_token_ids=prompt, generation_token_ids=generation):
        raise ValueError(
            f"cumulative and the ids of model call {entry.model_call_id!r} disagree: "
            "it must end with prompt_token_ids + generation_token_ids"
        )
    return whole, digest
