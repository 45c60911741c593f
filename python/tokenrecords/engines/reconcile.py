"""What several places say of one choice, settled: nothing is repaired, and two that disagree are an error."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np

from tokenrecords._core import copy_float_list
from tokenrecords.engines.choice import MissingField, RawChoice, ResponseFault
from tokenrecords.engines.openai import ids_from_words
from tokenrecords.engines.payload import count, first_row
from tokenrecords.tokens.arrays import Fault, array_over, check_ids, id_array, log_prob_array, mask_array, same
from tokenrecords.tokens.envelopes import opened
from tokenrecords.tokens.names import (
    GENERATION,
    ID_FIELDS,
    LOG_PROBS,
    LOSS_MASK,
    PROMPT,
    ROUTED_EXPERTS,
    TOKEN_FIELDS,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tokenrecords.tokens.arrays import LogProbs, TokenIds

Place: TypeAlias = tuple[str, Any, bool]  # its name, its value, whether ids are clipped there

_TOKENS: Final = frozenset({*TOKEN_FIELDS, LOSS_MASK})
# The words that stand for non-finite log-probs in JSON.
_NON_FINITE: Final = {"NaN": float("nan"), "Infinity": float("inf"), "-Infinity": float("-inf")}


@dataclass(frozen=True, slots=True, eq=False)  # arrays have no truth value for == to return
class ServedChoice:
    """One choice of a served response, with the exact tokens that the engine ran on.

    Attributes:
        index: The engine's number of the choice, or its place where the engine numbers none.
        prompt_token_ids: Shape `(prompt,)`: the list or integer array that the payload holds.
        generation_token_ids: Shape `(generation,)`, likewise.
        generation_log_probs: Shape `(generation,)`: natural logs of the sampled tokens, a list or a float array.
        routed_experts: As it came, or None; `decode_routed_experts` reads it.
        output_items: What the model said, without token arrays.
        token_item_index: The item of `output_items` that the tokens belong to, or None where there is none.
        finish_reason: Why the generation ended, in the engine's word ("stop", "length", ...), or None.
        response_id: The engine's id of this choice, where it gives one to each.
        generation_loss_mask: Shape `(generation,)`: 1 for a token that the model sampled, 0 for one that a tool or the
            environment wrote; a list or an array as it came, None where nobody said.
        extras: What the response says of its making (`weight_version`, `weight_versions`, `sampling_mask`,
            `sampling_log_probs`, `indexer_topk`, `ng_*`).
    """

    index: int
    prompt_token_ids: TokenIds
    generation_token_ids: TokenIds
    generation_log_probs: LogProbs
    routed_experts: Any
    output_items: list[dict[str, Any]]
    token_item_index: int | None
    finish_reason: str | None
    response_id: str | None = None
    generation_loss_mask: Any = None
    extras: dict[str, Any] = field(default_factory=dict)


def by_index(raws: list[RawChoice]) -> list[RawChoice]:
    """The choices in order of their index, which is their place where none has one.

    Raises:
        ResponseFault: An index is missing, said twice, or not a number of a choice.
    """
    if all(raw.index is None for raw in raws):
        for place, raw in enumerate(raws):
            raw.index = place
    for place, raw in enumerate(raws):
        if raw.index is None:
            raise ResponseFault("index is missing", place)
        if not isinstance(raw.index, int) or isinstance(raw.index, bool) or raw.index < 0:
            raise ResponseFault(f"index is {raw.index!r}: it must be a non-negative integer", place)
    if len({raw.index for raw in raws}) < len(raws):
        [(index, _)] = Counter(raw.index for raw in raws).most_common(1)
        raise ResponseFault(f"duplicate choice index {index}", index)
    return sorted(raws, key=lambda raw: int(raw.index))


def settle(raw: RawChoice) -> ServedChoice:
    """The choice that all places agree on.

    Raises:
        ResponseFault: A field is missing, holds what it can't, or is said twice in two ways.
    """
    generations, log_probs = (_places(raw, name) for name in (GENERATION, LOG_PROBS))
    nothing = not any(len(value) for _, value, _ in (*generations, *log_probs))
    # The list of ids is there and empty, the model said nothing, the engine gave the call up: where two of these hold,
    # nothing was generated, and nothing is missing.
    if nothing and sum((bool(generations), raw.silent, raw.aborted)) > 1:
        generations, log_probs = generations or [("", [], False)], log_probs or [("", [], False)]
    for name, places in ((GENERATION, generations), (LOG_PROBS, log_probs)):
        if not places:
            raise MissingField(f"{name} is missing", raw.index)
    generated, scored = len(generations[0][1]), len(log_probs[0][1])
    if generated != scored:
        raise ResponseFault(f"{generated} {GENERATION} and {scored} {LOG_PROBS}", raw.index)
    # What holds no number is said before two places are compared.
    agreed_log_probs = _agreed(raw, LOG_PROBS, log_probs, _log_probs, _first_unequal_log_prob)
    return ServedChoice(
        index=raw.index,
        prompt_token_ids=_prompt(raw),
        generation_token_ids=_agreed(raw, GENERATION, generations, _ids, _first_unequal),
        generation_log_probs=agreed_log_probs,
        routed_experts=_said_once(raw, ROUTED_EXPERTS),
        output_items=raw.output_items,
        token_item_index=raw.token_item_index,
        finish_reason=raw.finish_reason,
        response_id=None if raw.response_id is None else str(raw.response_id),  # TensorRT-LLM numbers its requests
        generation_loss_mask=_mask(raw, generated),
        extras={name: _said_once(raw, name) for name in _extras(raw)},
    )


def _prompt(raw: RawChoice) -> Any:
    """The prompt's ids: of the places that say them exactly, if there are any."""
    places = _places(raw, PROMPT)
    if not places:
        raise MissingField(f"{PROMPT} is missing", raw.index)
    exact = [place for place in places if not place[2]]
    clipped = [place for place in places if place[2]]
    if exact and clipped:
        _agreed(raw, PROMPT, [exact[0], *clipped], _ids, _first_unequal_but_clipped)
    return _agreed(raw, PROMPT, exact or clipped, _ids, _first_unequal)


def _mask(raw: RawChoice, generated: int) -> Any:
    places = _places(raw, LOSS_MASK)
    try:
        for _, value, _ in places:
            checked_mask(value, generated)
    except ValueError as error:
        raise ResponseFault(str(error), raw.index) from error
    return _agreed(raw, LOSS_MASK, places, _as_it_is, _first_unequal_flag) if places else None


def checked_mask(mask: Any, generated: int) -> Any:
    """The mask, if it is one of so many generated tokens.

    Raises:
        ValueError: It is not.
    """
    try:
        flags = mask_array(mask)
    except Fault as fault:
        raise ValueError(fault.of(LOSS_MASK)) from None
    if len(flags) != generated:
        raise ValueError(f"{generated} {GENERATION} and {len(flags)} {LOSS_MASK}")
    return mask


def _extras(raw: RawChoice) -> list[str]:
    return list(dict.fromkeys(source.field for source in raw.sources if source.field not in _TOKENS))


def _said_once(raw: RawChoice, name: str) -> Any:
    """A value that is kept as it is, None where nobody said it."""
    places = [(source.place, source.value, False) for source in raw.of(name)]
    return _agreed(raw, name, places, _as_it_is, _first_unequal_value) if places else None


def _places(raw: RawChoice, name: str) -> list[Place]:
    """The places of a field, an envelope or a tensor as an array."""
    return [(s.place, _sequence(raw, name, s.place, s.value), s.clipped) for s in raw.sources if s.field == name]


def _sequence(raw: RawChoice, name: str, place: str, value: Any) -> Any:
    """A list as it is, a tensor as the zero-copy array over it, an array of objects as a list."""
    if name == PROMPT and isinstance(value, list | tuple):
        value = first_row(value)  # one prompt in a list of prompts is that prompt
    if isinstance(value, list | tuple):
        return value
    if type(value) is np.ndarray and value.ndim == 1 and value.dtype.kind in "iuf":
        return value
    try:
        array = array_over(opened(name, value))
    except Fault as fault:
        raise ResponseFault(fault.of(_at(name, place)), raw.index) from fault
    if array is not None:
        return array.tolist() if array.dtype.kind == "O" else array
    if count(value) is None:
        why = f"{_at(name, place)} is {type(value).__name__}: a list or a one-dimensional array is needed"
        raise ResponseFault(why, raw.index)
    return value


def _at(name: str, place: str) -> str:
    return name if name == place else f"{name} ({place})"


def _agreed(
    raw: RawChoice,
    name: str,
    places: Sequence[Place],
    read: Callable[[Any], Any],
    first_unequal: Callable[[Any, Any], int | None],
) -> Any:
    """The value of the first place, if it can be one of the field and the others say the same."""
    try:
        values = [read(value) for _, value, _ in places]
        if name in ID_FIELDS:
            check_ids(id_array(values[0]))
    except Fault as fault:
        fault.shown = "null" if fault.shown == "None" else fault.shown  # as the server wrote it
        raise ResponseFault(fault.of(name), raw.index) from fault
    for (place, _, _), value in zip(places[1:], values[1:], strict=True):
        position = first_unequal(values[0], value)
        if position is not None:
            raise ResponseFault(f"{places[0][0]} and {place} disagree at position {position}", raw.index)
    return values[0]


def _ids(value: Any) -> Any:
    """Token ids as the same object; those written as "token_id:41" as integers."""
    return value if isinstance(value, np.ndarray) else ids_from_words(value) or value


def _log_probs(value: Any) -> Any:
    """Log-probs as the same object; "NaN" and its like become the floats that they name."""
    if copy_float_list(value) is not None:
        return value
    if isinstance(value, list | tuple) and any(isinstance(number, str) for number in value):
        value = [_NON_FINITE.get(number, number) if isinstance(number, str) else number for number in value]
    log_prob_array(value)
    return value


def _as_it_is(value: Any) -> Any:
    return value


def _first_unequal(a: Any, b: Any) -> int | None:
    """The first position at which two sequences differ, which may be the end of the shorter one."""
    if isinstance(a, list) and isinstance(b, list):
        if a == b:
            return None
        return next((k for k, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray) and a.dtype == b.dtype and a.tobytes() == b.tobytes():
        return None
    return _first_true_or_end(_exact(a), _exact(b), lambda x, y: x != y)


def _first_unequal_log_prob(a: Any, b: Any) -> int | None:
    # Engines compute in float32 and servers print it in two ways (-0.1, -0.10000000149011612).
    with np.errstate(over="ignore"):
        x, y = (np.asarray(values, dtype=np.float64).astype(np.float32) for values in (a, b))
    return _first_true_or_end(x, y, lambda x, y: (x != y) & ~(np.isnan(x) & np.isnan(y)))


def _first_true_or_end(a: Any, b: Any, unequal: Callable[[Any, Any], Any]) -> int | None:
    shared = min(len(a), len(b))
    positions = np.flatnonzero(unequal(a[:shared], b[:shared]))
    if positions.size:
        return int(positions[0])
    return None if len(a) == len(b) else shared


def _first_unequal_value(a: Any, b: Any) -> int | None:
    return None if same(a, b) else 0


def _first_unequal_but_clipped(exact: Any, clipped: Any) -> int | None:
    """As `_first_unequal`, but 0 stands for any id among the clipped ones."""
    return _first_true_or_end(_exact(exact), _exact(clipped), lambda x, y: (x != y) & (y != 0))


def _exact(ids: Any) -> Any:
    """Ids as an array. Of a list with one of 2**63 or more beside a smaller one numpy would make floats."""
    array = np.asarray(ids)
    return array if array is ids or array.dtype.kind != "f" else np.asarray(ids, object)


def _first_unequal_flag(a: Any, b: Any) -> int | None:
    return _first_true_or_end(mask_array(a), mask_array(b), lambda x, y: x != y)


def check_counts(choice: ServedChoice, raw: RawChoice) -> None:
    """Compare a choice with the engine's own counts of it.

    Raises:
        ResponseFault: There are other numbers of ids.
    """
    lengths = {GENERATION: len(choice.generation_token_ids), PROMPT: len(choice.prompt_token_ids)}
    for name, counted in raw.counts.items():
        if counted is not None and counted != lengths[name]:
            raise _miscounted(lengths[name], name, counted, choice.index)


def check_usage(choices: Sequence[ServedChoice], usage: Mapping[str, Any]) -> None:
    """Compare the choices with what `usage` counts for all of them.

    Raises:
        ResponseFault: There are other numbers of ids.
    """
    first, last = choices[0].index, choices[-1].index
    generated = sum(len(choice.generation_token_ids) for choice in choices)
    counted = usage.get("completion_tokens")
    if counted is not None and counted != generated:
        raise _miscounted(generated, GENERATION, counted, first, last)
    # A prompt is counted once for all its choices, and a payload may hold several prompts of n choices each.
    prompts = sum(len(choice.prompt_token_ids) for choice in choices)
    counted = usage.get("prompt_tokens")
    shares = [n for n in range(1, len(choices) + 1) if len(choices) % n == 0 == prompts % n]
    if counted is not None and counted not in [prompts // n for n in shares]:
        raise _miscounted(prompts, PROMPT, counted, first, last)


def _miscounted(found: int, name: str, counted: Any, first: int, last: int | None = None) -> ResponseFault:
    return ResponseFault(f"{found} {name}, but the engine counted {counted}", first, last)
