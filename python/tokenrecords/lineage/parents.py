"""Which call continues which: cumulative sequences, stamps and parents."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tokenrecords import _core
from tokenrecords.entry import fields
from tokenrecords.entry.model import ParentResolutionStatus, TokenEntry, TokenIds, check_parent

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import numpy.typing as npt

__all__ = ["cumulative_tokens", "resolve_parent", "stamp_lineage"]


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
    if isinstance(prompt, np.ndarray):
        return _join(prompt, generation)
    if type(prompt) is list and type(generation) is list:
        return prompt + generation  # one allocation of the right size
    return [*prompt, *fields.as_list(generation)]


def _join(prompt: npt.NDArray[Any], generation: TokenIds) -> TokenIds:
    if isinstance(generation, np.ndarray) and generation.dtype == prompt.dtype:
        return np.concatenate((prompt, generation), dtype=prompt.dtype)  # without it, in this machine's byte order
    tail = fields.as_id_array(generation, name="generation_token_ids")
    if isinstance(tail, list):
        return [*prompt.tolist(), *tail]
    joined = join_arrays((prompt, tail))
    return [*prompt.tolist(), *tail.tolist()] if joined is None else joined


def join_arrays(parts: Sequence[npt.NDArray[np.integer[Any]]]) -> npt.NDArray[np.integer[Any]] | None:
    """The parts as one new array, None where no dtype holds all ids."""
    dtype = shared_dtype(parts)
    return None if dtype is None else np.concatenate(parts, dtype=dtype, casting="unsafe")


def shared_dtype(parts: Sequence[npt.NDArray[np.integer[Any]]]) -> np.dtype[Any] | None:
    """The dtype of the first part, or int64 or uint64 where an id needs it; None where neither holds all ids."""
    if all(ids.dtype == parts[0].dtype for ids in parts):
        return parts[0].dtype
    dtypes = (parts[0].dtype, np.dtype(np.int64), np.dtype(np.uint64))
    return next((dtype for dtype in dtypes if all(_holds(dtype, ids) for ids in parts)), None)


def _holds(dtype: np.dtype[Any], ids: npt.NDArray[Any]) -> bool:
    if not len(ids) or np.can_cast(ids.dtype, dtype):
        return True
    limits = np.iinfo(dtype)
    return limits.min <= int(ids.min()) and int(ids.max()) <= limits.max


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
    >>> entry.digest == _core.compute_digest([1, 2, 3])
    True
    """
    status = _status(parent_resolution)
    if not isinstance(parent_call_id, str | None):
        raise TypeError(f"parent_call_id is {parent_call_id!r}: a call id or None is needed")
    check_parent(status, parent_call_id, is_delta=entry.prompt_is_delta)
    cum_len, digest = _measure(entry, cumulative)
    entry.cum_len = cum_len
    entry.digest = digest
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
        return _core.joint_digest(prompt_token_ids=prompt, generation_token_ids=generation)
    own = len(prompt) + len(generation)
    whole, digest = _core.joint_digest(cumulative=cumulative)
    if whole < own or (whole > own and not entry.prompt_is_delta):
        raise ValueError(
            f"cumulative and the ids of model call {entry.model_call_id!r} disagree: "
            f"it has {whole} ids, prompt and generation have {own}"
        )
    if not _core.stands_at(
        whole - own, cumulative=cumulative, prompt_token_ids=prompt, generation_token_ids=generation
    ):
        raise ValueError(
            f"cumulative and the ids of model call {entry.model_call_id!r} disagree: "
            "it must end with prompt_token_ids + generation_token_ids"
        )
    return whole, digest


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
        return _core.prefix_digest(length, prompt_token_ids=entry.prompt_token_ids) == call.digest
    return _core.stands_at(
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
    return len(a.prompt_token_ids) == len(b.prompt_token_ids) and _core.stands_at(
        0, prompt_token_ids=b.prompt_token_ids, parent_prompt_token_ids=a.prompt_token_ids
    )
