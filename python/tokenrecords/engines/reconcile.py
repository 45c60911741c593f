"""What several places say of one choice, settled: nothing is repaired, and two that disagree are an error."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np

from tokenrecords._core import copy_float_list
from tokenrecords.engines.choice import RawChoice, ResponseFault
from tokenrecords.engines.openai import ids_from_words
from tokenrecords.engines.payload import count
from tokenrecords.tokens.arrays import Fault, array_over, check_ids, id_array, log_prob_array
from tokenrecords.tokens.names import GENERATION, ID_FIELDS, LOG_PROBS, PROMPT, ROUTED_EXPERTS

if TYPE_CHECKING:
    from tokenrecords.tokens.arrays import LogProbs, TokenIds

Places: TypeAlias = Sequence[tuple[str, Any]]

_NOWHERE: Final[Places] = (("", None),)
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
    [(index, times)] = Counter(raw.index for raw in raws).most_common(1)
    if times > 1:
        raise ResponseFault(f"duplicate choice index {index}", index)
    return sorted(raws, key=lambda raw: int(raw.index))


def settle(raw: RawChoice) -> ServedChoice:
    """The choice that all places agree on.

    Raises:
        ResponseFault: A field is missing, holds what it can't, or is said twice in two ways.
    """
    generations, log_probs, prompts = (_sequences(raw, name) for name in (GENERATION, LOG_PROBS, PROMPT))
    generated, scored = len(generations[0][1]), len(log_probs[0][1])
    if generated != scored:
        raise ResponseFault(f"{generated} {GENERATION} and {scored} {LOG_PROBS}", raw.index)
    # What holds no number is said before two places are compared.
    agreed_log_probs = _agreed(raw, LOG_PROBS, log_probs, _log_probs, _first_unequal_log_prob)
    return ServedChoice(
        index=raw.index,
        prompt_token_ids=_agreed(raw, PROMPT, prompts, _ids, _first_unequal),
        generation_token_ids=_agreed(raw, GENERATION, generations, _ids, _first_unequal),
        generation_log_probs=agreed_log_probs,
        routed_experts=_agreed(
            raw, ROUTED_EXPERTS, raw.values(ROUTED_EXPERTS) or _NOWHERE, _as_it_is, _first_unequal_route
        ),
        output_items=raw.output_items,
        token_item_index=raw.token_item_index,
        finish_reason=raw.finish_reason,
        response_id=raw.response_id,
    )


def _sequences(raw: RawChoice, name: str) -> Places:
    """The places of a field, a tensor as the array over it."""
    found = raw.values(name)
    if not found:
        raise ResponseFault(f"{name} is missing", raw.index)
    return [(place, _sequence(raw, name, place, value)) for place, value in found]


def _sequence(raw: RawChoice, name: str, place: str, value: Any) -> Any:
    """A list as it is, a tensor as the zero-copy array over it, an array of objects as a list."""
    if isinstance(value, list | tuple):
        return value
    try:
        array = array_over(value)
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
    places: Places,
    read: Callable[[Any], Any],
    first_unequal: Callable[[Any, Any], int | None],
) -> Any:
    """The value of the first place, if it can be one of the field and the others say the same."""
    try:
        values = [read(value) for _, value in places]
        if name in ID_FIELDS:
            check_ids(id_array(values[0]))
    except Fault as fault:
        fault.shown = "null" if fault.shown == "None" else fault.shown  # as the server wrote it
        raise ResponseFault(fault.of(name), raw.index) from fault
    for (place, _), value in zip(places[1:], values[1:], strict=True):
        position = first_unequal(values[0], value)
        if position is not None:
            raise ResponseFault(f"{places[0][0]} and {place} disagree at position {position}", raw.index)
    return values[0]


def _ids(value: Any) -> Any:
    """Token ids as the same object; those written as "token_id:41" as integers."""
    return ids_from_words(value) or value


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
    return _first_true_or_end(np.asarray(a), np.asarray(b), lambda x, y: x != y)


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


def _first_unequal_route(a: Any, b: Any) -> int | None:
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return None if np.array_equal(a, b) else 0
    return None if a == b else 0


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
