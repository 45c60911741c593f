"""Served responses as stamped records."""

from __future__ import annotations

import math
import time
from datetime import UTC, datetime
from types import EllipsisType
from typing import TYPE_CHECKING, Any, Final, Literal

from tokenrecords.engines.reconcile import checked_mask
from tokenrecords.engines.response import read_payload
from tokenrecords.entry.model import TokenEntry
from tokenrecords.entry.resolution import ParentResolutionStatus
from tokenrecords.lineage.parents import PREFIX_MISMATCH, as_delta, find_parent, starts_prompt
from tokenrecords.lineage.stamp import stamp_lineage
from tokenrecords.tokens.names import ARRAY_FIELDS, LOSS_MASK, TOKEN_FIELDS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tokenrecords.engines.payload import Body
    from tokenrecords.lineage.parents import Earlier

_CHOICE_FIELDS: Final = (*TOKEN_FIELDS, "output_items", "token_item_index", "finish_reason")
CHOICES: Final = ("calls", "rollouts")
_LINEAGE_FIELDS: Final = ("parent_call_id", "parent_resolution")
# What a record says of its tokens and its lineage is read and computed here, never given.
_OWN_FIELDS: Final = frozenset({*ARRAY_FIELDS, "parent_resolution_reason", "cum_len", "digest", "prompt_is_delta"})


def entries_from_response(
    payload: Any,
    *,
    rollout_id: str,
    model_call_id: str,
    dialect: str | None = None,
    parent: TokenEntry | EllipsisType | None = ...,
    earlier: Iterable[Earlier] | None = None,
    delta: bool = False,
    check_counts: bool = True,
    prompt_token_ids: Any = None,
    choices: Literal["calls", "rollouts"] = "calls",
    **fields: Any,
) -> list[TokenEntry]:
    """One stamped record for each choice of a served response.

    `model`, `response_id` and `created_at` come from the payload; where it has no time, or 0, `created_at` is now.
    `finish_reason` is kept as an extra field: masking samples that were cut off needs it. So are, where the response
    says them, `generation_loss_mask`, `weight_version`, `weight_versions`, `sampling_mask`, `sampling_log_probs`,
    `indexer_topk`, and what begins with `ng_`.

    Args:
        payload: As for `read_response`.
        dialect: As for `read_response`.
        check_counts: As for `read_response`.
        prompt_token_ids: As for `read_response`.
        rollout_id: The training sample.
        model_call_id: The served call.
        choices: What several choices are: calls of one rollout, `<model_call_id>#<index>`; or rollouts of their own,
            `<rollout_id>.choice-<index>`, each with the call id as given.
        parent: The earlier record that this call continues: RESOLVED if its cumulative ids are a prefix of the prompt,
            else UNRESOLVED with the reason in `parent_resolution_reason`. None: the call is a ROOT. Omitted: no
            decision is recorded.
        earlier: The rollout's earlier calls, in place of `parent`: it is found among them, as by `resolve_parent`.
        delta: True to store only what the prompt adds to a RESOLVED parent. Other prompts stay whole.
        **fields: Further fields of the record, or extra ones; they win over what the payload says.

    Returns:
        The records in order of index; an empty list where the payload carries no token ids.

    Raises:
        ValueError: As `read_response`, for `delta` without `parent` or `earlier`, and for both of these, for a `parent`
            of several rollouts, and for a `generation_loss_mask` in `fields` that does not fit; a pydantic
            ValidationError (a ValueError) where a field is of the wrong type.
        TypeError: As `read_response`, and for a field in `fields` that this function sets itself.

    >>> [entry] = entries_from_response({
    ...     "text": "ok", "output_ids": [41],
    ...     "meta_info": {"id": "g1", "finish_reason": {"type": "length"}, "prompt_token_ids": [1, 7],
    ...                   "output_token_logprobs": [[-0.125, 41, None]]},
    ... }, rollout_id="r", model_call_id="c", parent=None)
    >>> entry.response_id, entry.cum_len, str(entry.parent_resolution), entry.finish_reason
    ('g1', 3, 'root', 'length')
    """
    _check_arguments(rollout_id, parent, choices, fields, delta=delta and earlier is None)
    calls = None if earlier is None else list(earlier)
    if calls is not None and parent is not ...:
        raise ValueError("parent and earlier exclude each other: the parent is found among the earlier calls")
    sent, served = read_payload(payload, dialect=dialect, check=check_counts, prompts=prompt_token_ids)
    apart = choices == "rollouts" and len(served) > 1
    if apart and isinstance(parent, TokenEntry):
        raise ValueError(f"parent is a call of rollout {rollout_id!r}: rollouts of their own have none")
    # A batch says what it says of the call, if at all, in each sample.
    about = _about({} if isinstance(sent, list) else sent.body)
    entries = []
    for choice in served:
        values = {
            **about,
            **choice.extras,
            "rollout_id": f"{rollout_id}.choice-{choice.index}" if apart else rollout_id,
            "model_call_id": model_call_id if apart or len(served) == 1 else f"{model_call_id}#{choice.index}",
            "response_id": choice.response_id or about["response_id"],
            **{name: getattr(choice, name) for name in _CHOICE_FIELDS},
            **fields,
        }
        mask = fields.get(LOSS_MASK, choice.generation_loss_mask)
        if mask is not None:
            values[LOSS_MASK] = checked_mask(mask, len(choice.generation_token_ids))
        entry = TokenEntry(**values)
        entries.append(_linked(entry, parent, delta=delta) if calls is None else _found(entry, calls, delta=delta))
    return entries


def _check_arguments(
    rollout_id: str, parent: TokenEntry | EllipsisType | None, choices: str, fields: dict[str, Any], *, delta: bool
) -> None:
    if choices not in CHOICES:
        raise ValueError(f"choices is {choices!r}: 'calls' or 'rollouts' is needed")
    if delta and parent is ...:
        raise ValueError("delta=True requires parent: a delta is what a prompt adds to its parent")
    if isinstance(parent, TokenEntry):
        if parent.rollout_id != rollout_id:
            raise ValueError(f"parent is a call of rollout {parent.rollout_id!r}: one of {rollout_id!r} is needed")
    elif not (parent is None or parent is ...):
        raise TypeError(f"parent is {type(parent).__name__}: a TokenEntry, or None for a root, is needed")
    for name in _LINEAGE_FIELDS:
        if name in fields:
            raise TypeError(f"{name} can't be given: it is found by the tokens of parent=")
    if _OWN_FIELDS & fields.keys():
        raise TypeError(f"{min(_OWN_FIELDS & fields.keys())} is read from the response and can't be given")


def _about(body: Body) -> dict[str, Any]:
    """What a payload says of the call as a whole."""
    # Some servers number their responses: what is beside the tokens costs none.
    response_id = body.get("id") or body.get("request_id")
    return {
        "model": str(body.get("model") or ""),
        "response_id": None if response_id is None else str(response_id),
        "created_at": said_time(body) or time.time(),
    }


def said_time(body: Body) -> float | None:
    """When a payload says that it was made, in seconds; None where it does not."""
    return next(filter(None, map(_seconds, (body.get("created_at"), body.get("created")))), None)


def _seconds(value: Any) -> float | None:
    """A number of seconds, or a date as ISO 8601 has it; None for what is no time."""
    try:
        seconds = float(value)
    except (TypeError, ValueError, OverflowError):
        seconds = _of_date(value) if isinstance(value, str) else 0.0
    return seconds if math.isfinite(seconds) else None


def _of_date(text: str) -> float:
    try:
        date = datetime.fromisoformat(text)
    except ValueError:
        return 0.0
    return (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp()


def _linked(entry: TokenEntry, parent: TokenEntry | EllipsisType | None, *, delta: bool) -> TokenEntry:
    """The record, stamped with the parent that it was given."""
    if isinstance(parent, EllipsisType):
        return stamp_lineage(entry, None)
    if parent is None:
        return stamp_lineage(entry, None, ParentResolutionStatus.ROOT)
    if not starts_prompt(parent, entry):
        entry.parent_resolution_reason = PREFIX_MISMATCH
        return stamp_lineage(entry, None, ParentResolutionStatus.UNRESOLVED)
    return _resolved(entry, parent, delta=delta)


def _found(entry: TokenEntry, earlier: list[Earlier], *, delta: bool) -> TokenEntry:
    """The record, stamped with the parent that is among the earlier calls."""
    parent, status, reason = find_parent(entry, earlier)
    if parent is None:
        entry.parent_resolution_reason = reason
        return stamp_lineage(entry, None, status)
    return _resolved(entry, parent, delta=delta)


def _resolved(entry: TokenEntry, parent: Earlier, *, delta: bool) -> TokenEntry:
    stamp_lineage(entry, parent.model_call_id, ParentResolutionStatus.RESOLVED)
    return as_delta(entry, parent) if delta else entry
