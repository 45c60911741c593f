"""From what a model server sent to choices with their tokens, and to stamped records; nothing is repaired.

`read_response` finds the dialect, lets its reader gather every place that speaks of tokens, and settles
them: a field that is missing, null, too short, or said twice in two ways is a ValueError that names
dialect, choice, field and position. See `docs/dialects.md` for each engine's request flags and the shape that is
read.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from dataclasses import dataclass
from types import EllipsisType
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tokenrecords import _core
from tokenrecords.engines.dialects import (
    BATCHED,
    EXPERTS,
    GENERATION,
    LOG_PROBS,
    PROMPT,
    READERS,
    RawChoice,
    count,
    detect_plain,
    ids_from_words,
    mapping,
    plain_payload,
)
from tokenrecords.entry.model import TokenEntry
from tokenrecords.entry.resolution import ParentResolutionStatus
from tokenrecords.lineage.parents import cumulative_length, starts_prompt
from tokenrecords.lineage.stamp import stamp_lineage

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tokenrecords.tokens.arrays import LogProbs, TokenIds

# `usage` of these counts one call; a Responses or Messages payload may sum several.
_COUNTED_IN_USAGE: Final = frozenset(
    {"chat", "vllm-chat", "vllm-completions", "vllm-generate", "sglang-chat", "dynamo", "litellm"}
)
_MAX_FLOAT: Final = int(np.finfo(np.float64).max)
# The words that stand for non-finite log-probs in JSON.
_NON_FINITE: Final = {"NaN": float("nan"), "Infinity": float("inf"), "-Infinity": float("-inf")}
_CHOICE_FIELDS: Final = (
    *(PROMPT, GENERATION, LOG_PROBS, EXPERTS),
    *("output_items", "token_item_index", "finish_reason"),
)
# What a record says of its tokens and its lineage is read and computed here, never given.
_OWN_FIELDS: Final = frozenset(
    {
        *(PROMPT, GENERATION, LOG_PROBS),
        *(
            "parent_call_id",
            "parent_resolution",
            "parent_resolution_reason",
            "cum_len",
            "digest",
            "prompt_is_delta",
        ),
    }
)


@dataclass(frozen=True, slots=True, eq=False)  # arrays have no truth value for == to return
class ServedChoice:
    """One choice of a served response, with the exact tokens the engine ran on.

    Attributes:
        index: the engine's number of the choice, or its place where the engine numbers none.
        prompt_token_ids: [prompt] ids, as the list or integer array that the payload holds.
        generation_token_ids: [generation] ids, likewise.
        generation_log_probs: [generation] log-probs of the sampled tokens, a list or a float array.
        routed_experts: as it came, or None; `decode_routed_experts` reads it.
        output_items: what the model said, without token arrays.
        token_item_index: the item of `output_items` that the tokens belong to, or None where there is none.
        finish_reason: why the generation ended, in the engine's word ("stop", "length", ...), or None.
    """

    index: int
    prompt_token_ids: TokenIds
    generation_token_ids: TokenIds
    generation_log_probs: LogProbs
    routed_experts: Any
    output_items: list[dict[str, Any]]
    token_item_index: int | None
    finish_reason: str | None


def read_response(payload: Any, *, dialect: str | None = None, check_counts: bool = True) -> list[ServedChoice]:
    """The choices of one served response, in order of index.

    Lists and arrays are passed through as the same objects wherever they hold the field in its final form.
    The payload is never changed.

    Args:
        payload: one response, as a mapping or a pydantic model (of any client); `sglang-generate` and `tgi`
            also send lists of them. The chunks of a stream go through `merge_stream` first.
        dialect: one of the names that `detect_dialect` gives; None to detect it.
        check_counts: whether the tokens must be as many as the engine counted (`usage` of a chat or text
            completion, `meta_info`, `details.generated_tokens`).

    Returns:
        One `ServedChoice` for each choice; an empty list where the payload carries no token ids.

    Raises:
        ValueError: if a choice's tokens are incomplete or contradict each other; the message names dialect,
            choice, field and position. If the dialect is not known, or the payload is a chunk of a stream.
        TypeError: if the payload is neither a mapping nor a pydantic model nor a list of these.

    >>> [choice] = read_response({
    ...     "object": "chat.completion", "prompt_token_ids": [1, 7],
    ...     "choices": [{"index": 0, "finish_reason": "stop", "token_ids": [41, 2],
    ...                  "message": {"role": "assistant", "content": "ok"},
    ...                  "logprobs": {"content": [{"token": "ok", "logprob": -0.125},
    ...                                           {"token": "", "logprob": -0.5}]}}],
    ... })
    >>> choice.prompt_token_ids, choice.generation_token_ids, choice.generation_log_probs
    ([1, 7], [41, 2], [-0.125, -0.5])
    >>> choice.output_items
    [{'role': 'assistant', 'content': 'ok', 'type': 'message'}]
    """
    payload = plain_payload(payload)
    dialect = _known_dialect(payload, dialect)
    return [choice for choice, _ in _settled(payload, dialect, check_counts)]


def entries_from_response(
    payload: Any,
    *,
    rollout_id: str,
    model_call_id: str,
    dialect: str | None = None,
    parent: TokenEntry | EllipsisType | None = ...,
    delta: bool = False,
    check_counts: bool = True,
    **fields: Any,
) -> list[TokenEntry]:
    """One stamped record for each choice of a served response.

    `model`, `response_id` and `created_at` come from the payload; where it has no time, or 0, `created_at`
    is now. `finish_reason` is kept as an extra field: masking samples that were cut off needs it.

    Args:
        payload: as for `read_response`.
        dialect: as for `read_response`.
        check_counts: as for `read_response`.
        rollout_id: the training sample.
        model_call_id: the served call; with several choices each becomes `<model_call_id>#<index>`.
        parent: the earlier record that this call continues: RESOLVED if its cumulative ids are a prefix of
            the prompt, else UNRESOLVED with the reason in `parent_resolution_reason`. None: the call is a
            ROOT. Omitted: no decision is recorded.
        delta: whether to store only what the prompt adds to a RESOLVED parent. Other prompts stay whole.
        **fields: further fields of the record, or extra ones; they win over what the payload says.

    Returns:
        The records in order of index; an empty list where the payload carries no token ids.

    Raises:
        ValueError: as `read_response`, and for `delta` without `parent`; a pydantic ValidationError (a
            ValueError) where a field is of the wrong type.
        TypeError: as `read_response`, and for a field in `fields` that this function sets itself.

    >>> [entry] = entries_from_response({
    ...     "text": "ok", "output_ids": [41],
    ...     "meta_info": {"id": "g1", "finish_reason": {"type": "length"}, "prompt_token_ids": [1, 7],
    ...                   "output_token_logprobs": [[-0.125, 41, None]]},
    ... }, rollout_id="r", model_call_id="c", parent=None)
    >>> entry.response_id, entry.cum_len, str(entry.parent_resolution), entry.finish_reason
    ('g1', 3, 'root', 'length')
    """
    if delta and parent is ...:
        raise ValueError("delta=True requires parent: a delta is what a prompt adds to its parent")
    if isinstance(parent, TokenEntry):
        if parent.rollout_id != rollout_id:
            raise ValueError(f"parent is a call of rollout {parent.rollout_id!r}: one of {rollout_id!r} is needed")
    elif not (parent is None or parent is ...):
        raise TypeError(f"parent is {type(parent).__name__}: a TokenEntry, or None for a root, is needed")
    for name in ("parent_call_id", "parent_resolution"):
        if name in fields:
            raise TypeError(f"{name} can't be given: it is found by the tokens of parent=")
    if _OWN_FIELDS & fields.keys():
        raise TypeError(f"{min(_OWN_FIELDS & fields.keys())} is read from the response and can't be given")
    payload = plain_payload(payload)
    dialect = _known_dialect(payload, dialect)
    settled = _settled(payload, dialect, check_counts)
    about = _about(payload)
    entries = []
    for choice, response_id in settled:
        values = {
            **about,
            "rollout_id": rollout_id,
            "model_call_id": model_call_id if len(settled) == 1 else f"{model_call_id}#{choice.index}",
            "response_id": response_id or about["response_id"],
            **{name: getattr(choice, name) for name in _CHOICE_FIELDS},
            **fields,
        }
        entries.append(_stamped(TokenEntry(**values), parent, delta))
    return entries


# --- settling ---------------------------------------------------------------------------------------------


def _known_dialect(payload: Any, dialect: str | None) -> str:
    if dialect is None:
        dialect = detect_plain(payload)
    if dialect not in READERS:
        raise ValueError(f"dialect must be one of {', '.join(READERS)}, got {dialect!r}")
    if isinstance(payload, list) and payload and dialect not in BATCHED:
        chunks = any("delta" in mapping(choice) for part in payload for choice in part.get("choices") or ())
        advice = "merge_stream joins the chunks of a stream" if chunks else "read each one by itself"
        raise ValueError(f"{dialect}: a list of {len(payload)} payloads: {advice}")
    for part in payload if isinstance(payload, list) else [payload]:
        choices = part.get("choices")
        for i, choice in enumerate(choices if isinstance(choices, (list, tuple)) else ()):
            if "delta" in mapping(choice):
                raise ValueError(
                    f"{dialect} choice {i}: choices[{i}].delta belongs to a chunk of a stream; "
                    "merge_stream joins the chunks"
                )
    return dialect


def _settled(payload: Any, dialect: str, check_counts: bool) -> list[tuple[ServedChoice, str | None]]:
    """The choices in order of index, each with its own response id where the engine gives one to each."""
    raws = READERS[dialect](payload, dialect) if payload else []
    if not any(raw.carries_ids for raw in raws):
        return []
    settled = [(_settle(dialect, raw), raw) for raw in _by_index(dialect, raws)]
    if check_counts:
        for choice, raw in settled:
            _check_counts(dialect, choice, raw)
        if dialect in _COUNTED_IN_USAGE:
            _check_usage(dialect, [choice for choice, _ in settled], mapping(payload.get("usage")))
    return [(choice, raw.response_id) for choice, raw in settled]


def _by_index(dialect: str, raws: list[RawChoice]) -> list[RawChoice]:
    if all(raw.index is None for raw in raws):
        for place, raw in enumerate(raws):
            raw.index = place
    for place, raw in enumerate(raws):
        if raw.index is None:
            raise ValueError(f"{dialect} choice {place}: index is missing")
        if not isinstance(raw.index, int) or isinstance(raw.index, bool) or raw.index < 0:
            raise ValueError(f"{dialect} choice {place}: index must be a non-negative integer, got {raw.index!r}")
    [(index, times)] = Counter(raw.index for raw in raws).most_common(1)
    if times > 1:
        raise ValueError(f"{dialect} choice {index}: duplicate choice index {index}")
    return sorted(raws, key=lambda raw: int(raw.index))


def _settle(dialect: str, raw: RawChoice) -> ServedChoice:
    where = f"{dialect} choice {raw.index}"
    sources = {name: raw.values(name) for name in (GENERATION, LOG_PROBS, PROMPT, EXPERTS)}
    for name in (GENERATION, LOG_PROBS, PROMPT):
        if not sources[name]:
            raise ValueError(f"{where}: {name} is missing")
        sources[name] = [(place, _array_or_list(where, name, value)) for place, value in sources[name]]
        for place, value in sources[name]:
            if count(value) is None:
                at = "" if place == name else f" ({place})"
                kind = type(value).__name__
                raise ValueError(f"{where}: {name}{at} must be a list or an array of one dimension, got {kind}")
    generated, scored = len(sources[GENERATION][0][1]), len(sources[LOG_PROBS][0][1])
    if generated != scored:
        raise ValueError(f"{where}: {generated} {GENERATION} and {scored} {LOG_PROBS}")
    prompts = [(place, _ids(where, PROMPT, value)) for place, value in sources[PROMPT]]
    generations = [(place, _ids(where, GENERATION, value)) for place, value in sources[GENERATION]]
    log_probs = [(place, _numbers(where, value)) for place, value in sources[LOG_PROBS]]
    _check_ids(where, PROMPT, prompts[0][1])
    _check_ids(where, GENERATION, generations[0][1])
    _check_agreement(where, prompts, _first_unequal)
    _check_agreement(where, generations, _first_unequal)
    _check_agreement(where, log_probs, _first_unequal_log_prob)
    _check_agreement(where, sources[EXPERTS], _first_unequal_route)
    return ServedChoice(
        index=raw.index,
        prompt_token_ids=prompts[0][1],
        generation_token_ids=generations[0][1],
        generation_log_probs=log_probs[0][1],
        routed_experts=sources[EXPERTS][0][1] if sources[EXPERTS] else None,
        output_items=raw.output_items,
        token_item_index=raw.token_item_index,
        finish_reason=raw.finish_reason,
    )


def _array_or_list(where: str, name: str, value: Any) -> Any:
    """A tensor as the zero-copy array over it, an array of objects as a list; everything else as it is."""
    if isinstance(value, (list, tuple)):
        return value
    try:
        array = _core.array_over(value)
    except TypeError as error:
        raise ValueError(f"{where}: {name}: {error}") from error
    if array is None:
        return value
    return array.tolist() if array.dtype.kind == "O" else array


def _ids(where: str, name: str, ids: Any) -> Any:
    """Ids written as "token_id:41" as integers; all others as the same object, unread."""
    if not isinstance(ids, (list, tuple)) or not ids or not isinstance(ids[0], str):
        return ids
    numbers = ids_from_words(ids)
    # A string that is no id must not reach a record: pydantic's lax mode would make a number of "41".
    _check_ids(where, name, ids if numbers is None else numbers)
    return numbers


def _check_ids(where: str, name: str, ids: Any) -> None:
    """Refuse what is no token id, without a Python loop over those that are."""
    if not isinstance(ids, (list, tuple)):
        _check_id_array(where, name, ids)
        return
    if _core.are_small_ids(ids):
        return
    for k, value in enumerate(ids):
        if value is None:
            raise ValueError(f"{where}: {name}[{k}] is null")
        if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
            raise ValueError(f"{where}: {name}[{k}] is {value!r}, not a token id")
        if not 0 <= value < 2**64:
            rule = "non-negative" if value < 0 else "below 2**64"
            raise ValueError(f"{where}: {name}[{k}] is {value}: token ids must be {rule}, got {value}")


def _check_id_array(where: str, name: str, ids: Any) -> None:
    held = np.asarray(ids)
    if isinstance(ids, np.ma.MaskedArray) or (held.size and held.dtype.kind not in "iu"):
        raise ValueError(f"{where}: {name} must be integers, got {type(ids).__name__} of {held.dtype}")
    negative = np.flatnonzero(held < 0)
    if negative.size:
        k = int(negative[0])
        raise ValueError(f"{where}: {name}[{k}] is {held[k]}: token ids must be non-negative, got {held[k]}")


def _numbers(where: str, log_probs: Any) -> Any:
    """The log-probs, the same object if all are numbers; "NaN" and its like become the floats they name."""
    if not isinstance(log_probs, (list, tuple)):
        held = np.asarray(log_probs)
        if isinstance(log_probs, np.ma.MaskedArray) or (held.size and held.dtype.kind not in "fiu"):
            raise ValueError(f"{where}: {LOG_PROBS} must be numbers, got {type(log_probs).__name__} of {held.dtype}")
        return log_probs
    if _core.copy_float_list(log_probs) is not None or {*map(type, log_probs)} <= {float, int}:
        return log_probs
    return [_number(where, k, value) for k, value in enumerate(log_probs)]


def _number(where: str, k: int, value: Any) -> Any:
    if value is None:
        raise ValueError(f"{where}: {LOG_PROBS}[{k}] is null")
    if isinstance(value, str) and value in _NON_FINITE:
        return _NON_FINITE[value]
    if isinstance(value, bool) or not isinstance(value, (float, int, np.floating, np.integer)):
        raise ValueError(f"{where}: {LOG_PROBS}[{k}] is {value!r}, not a number")
    return value


# --- two places that speak of one field -------------------------------------------------------------------


def _check_agreement(
    where: str, sources: list[tuple[str, Any]], first_unequal: Callable[[Any, Any], int | None]
) -> None:
    for place, value in sources[1:]:
        position = first_unequal(sources[0][1], value)
        if position is not None:
            raise ValueError(f"{where}: {sources[0][0]} and {place} disagree at position {position}")


def _first_unequal(a: Any, b: Any) -> int | None:
    """The first position at which two sequences differ, which may be the end of the shorter one."""
    if isinstance(a, list) and isinstance(b, list):
        if a == b:
            return None
        return next((k for k, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
    return _first_true_or_end(np.asarray(a), np.asarray(b), lambda x, y: x != y)


def _first_unequal_log_prob(a: Any, b: Any) -> int | None:
    # Engines compute in float32 and servers print it in two ways (-0.1, -0.10000000149011612).
    if any(isinstance(v, int) and abs(v) > _MAX_FLOAT for values in (a, b) for v in values):
        return 0  # an integer that no float holds is no log-prob, and equals none
    with np.errstate(over="ignore"):
        x, y = (np.asarray(values, dtype=np.float64).astype(np.float32) for values in (a, b))
    return _first_true_or_end(x, y, lambda x, y: (x != y) & ~(np.isnan(x) & np.isnan(y)))


def _first_true_or_end(a: Any, b: Any, unequal: Callable[[Any, Any], Any]) -> int | None:
    shared = min(len(a), len(b))
    positions = np.flatnonzero(unequal(a[:shared], b[:shared]))
    if positions.size:
        return int(positions[0])
    return None if len(a) == len(b) else shared


def _first_unequal_route(a: Any, b: Any) -> int | None:
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return None if np.array_equal(a, b) else 0
    return None if a == b else 0


# --- the engine's own counts ------------------------------------------------------------------------------


def _check_counts(dialect: str, choice: ServedChoice, raw: RawChoice) -> None:
    lengths = {GENERATION: len(choice.generation_token_ids), PROMPT: len(choice.prompt_token_ids)}
    for name, counted in raw.counts.items():
        if counted is not None and counted != lengths[name]:
            raise ValueError(_miscounted(f"{dialect} choice {choice.index}", lengths[name], name, counted))


def _check_usage(dialect: str, choices: list[ServedChoice], usage: Mapping[str, Any]) -> None:
    several = f"choices {choices[0].index} to {choices[-1].index}"
    where = f"{dialect} {several if len(choices) > 1 else f'choice {choices[0].index}'}"
    generated = sum(len(choice.generation_token_ids) for choice in choices)
    counted = usage.get("completion_tokens")
    if counted is not None and counted != generated:
        raise ValueError(_miscounted(where, generated, GENERATION, counted))
    # A prompt is counted once for all its choices, and a payload may hold several prompts of n choices each.
    prompts = sum(len(choice.prompt_token_ids) for choice in choices)
    counted = usage.get("prompt_tokens")
    shares = [n for n in range(1, len(choices) + 1) if len(choices) % n == 0 == prompts % n]
    if counted is not None and counted not in [prompts // n for n in shares]:
        raise ValueError(_miscounted(where, prompts, PROMPT, counted))


def _miscounted(where: str, found: int, name: str, counted: Any) -> str:
    return f"{where}: {found} {name}, but the engine counted {counted}"


# --- records ----------------------------------------------------------------------------------------------


def _about(payload: Any) -> dict[str, Any]:
    """What a payload says of the call as a whole; a batch says it, if at all, in each sample."""
    head = mapping(payload)
    return {
        "model": head.get("model") or "",
        "response_id": head.get("id") or head.get("request_id"),
        "created_at": next(filter(_is_time, (head.get("created_at"), head.get("created"))), None) or time.time(),
    }


def _is_time(value: Any) -> bool:
    """False for none, 0 and what is no number of seconds."""
    return bool(value) and not (isinstance(value, float) and not math.isfinite(value))


def _stamped(entry: TokenEntry, parent: TokenEntry | EllipsisType | None, delta: bool) -> TokenEntry:
    if isinstance(parent, EllipsisType):
        return stamp_lineage(entry, None)
    if parent is None:
        return stamp_lineage(entry, None, ParentResolutionStatus.ROOT)
    if not starts_prompt(parent, entry):
        entry.parent_resolution_reason = "prefix_mismatch"
        return stamp_lineage(entry, None, ParentResolutionStatus.UNRESOLVED)
    stamp_lineage(entry, parent.model_call_id, ParentResolutionStatus.RESOLVED)
    if not delta:
        return entry
    added = entry.prompt_token_ids[cumulative_length(parent) :]
    # A copy: a view would keep the whole prompt in memory.
    added = added.copy() if isinstance(added, np.ndarray) else added
    return entry.model_copy(update={PROMPT: added, "prompt_is_delta": True})
