"""Token ids that a payload holds and no reader reads: an engine that nobody knows must not pass for one without ids."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from tokenrecords._core import array_over
from tokenrecords.engines.openai import ids_from_words
from tokenrecords.engines.payload import plain
from tokenrecords.tokens.arrays import same
from tokenrecords.tokens.envelopes import is_envelope

_SPEAKS_OF_TOKENS: Final = re.compile(r"(ids|tokens)$|token_?id")
# Ids of other things, numbers of tokens, and tokens that a request names or that were only candidates.
_OTHER: Final = re.compile(
    r"(^|_)(session|request|file|vector_store|document|user|message|call|expert|lora|slot|type|position)_ids$"
    r"|block|stop|(^|_)(bad|eos|bos|pad|special|suppress\w*|allow\w*|ban\w*|preserved|forced)_"
    r"|^(num|n|max|min|total|top|topk|topn|candidate\w*)_|logprob"
)
# What the model said, what it was asked, and what was counted.
_SAID: Final = frozenset(
    {
        *("content", "text", "generated_text", "reasoning", "reasoning_content", "reasoning_details", "refusal"),
        *("tool_calls", "function_call", "arguments", "annotations", "audio", "summary", "code", "queries", "results"),
        *("usage", "tools", "tool_choice", "logit_bias", "instructions", "error", "timings", "embedding"),
        *("sampling_params", "generation_settings", "parameters", "request"),
        *("prompt_logprobs", "top_logprobs", "topk_prompt_logprobs", "completion_probabilities", "top_tokens"),
    }
)
# On an output item these are a tool's or the model's own as well.
_SAID_BY_ITEMS: Final = _SAID | {"input", "output", "outputs", "action"}
_ITEMS: Final = ("input", "output")
_DEEPEST: Final = 32


def unread_ids(bodies: Any, read: list[Any]) -> str | None:
    """The path of the first list or array of integers under a key that speaks of tokens; None where there is none.

    Args:
        bodies: The body of a payload, or a list of them.
        read: What the readers found: the same ids elsewhere are not lost.
    """
    return next((path for path, ids in _walk(bodies, "", _SAID, 0) if not _is_read(ids, read)), None)


def _walk(value: Any, path: str, said: frozenset[str], depth: int) -> Iterator[tuple[str, Any]]:
    """The path and value of everything that looks like token ids."""
    value = plain(value)
    if depth > _DEEPEST:
        return
    if isinstance(value, Mapping):
        for key, held in value.items():
            if not isinstance(key, str) or key in said or held is None:
                continue
            where = f"{path}.{key}" if path else key
            if _speaks_of_tokens(key) and _holds_ids(held):
                yield where, held
            elif key == "logprobs":
                yield from _beside_entries(held, where)
            else:
                yield from _walk(held, where, _SAID_BY_ITEMS if key in _ITEMS else said, depth + 1)
    elif isinstance(value, list | tuple):
        for place, held in enumerate(value):
            if isinstance(held, int | float | str):
                break  # a list of numbers or words, however long, under a key that does not speak of tokens
            yield from _walk(held, f"{path}[{place}]", said, depth + 1)


def _beside_entries(logprobs: Any, path: str) -> Iterator[tuple[str, Any]]:
    """The parallel lists of log-probs; what stands inside an entry are candidates."""
    logprobs = plain(logprobs)
    for key, held in logprobs.items() if isinstance(logprobs, Mapping) else ():
        if isinstance(key, str) and _speaks_of_tokens(key) and _holds_ids(held):
            yield f"{path}.{key}", held


def _speaks_of_tokens(key: str) -> bool:
    # camelCase as snake_case: promptTokenIds is prompt_token_ids.
    name = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", key).lower()
    return _SPEAKS_OF_TOKENS.search(name) is not None and _OTHER.search(name) is None


def _holds_ids(value: Any) -> bool:
    """True for integers in a list, an array or a tensor, in a list of these, as words or in an envelope."""
    if is_envelope(value):
        return True
    if isinstance(value, list | tuple):
        return bool(value) and (_are_ids(value) or any(_are_ids(row) for row in value))
    return _are_ids(value)


def _are_ids(row: Any) -> bool:
    if isinstance(row, list | tuple):
        numbers = [value for value in row if value is not None]
        return bool(numbers) and (_are_integers(numbers) or ids_from_words(row) is not None)
    if isinstance(row, str | bytes | bytearray | int | float | Mapping):
        return False
    try:
        array = array_over(row)
    except TypeError:
        return False
    return array is not None and array.size > 0 and array.dtype.kind in "iu"


def _are_integers(values: list[Any]) -> bool:
    return all(hasattr(value, "__index__") and not isinstance(value, bool) for value in values)


def _is_read(ids: Any, read: list[Any]) -> bool:
    rows = [ids]
    if isinstance(ids, list | tuple) and any(isinstance(row, list | tuple) or hasattr(row, "shape") for row in ids):
        rows = [row for row in ids if row is not None]
    return all(any(row is found or _same(row, found) for found in read) for row in rows)


def _same(row: Any, found: Any) -> bool:
    try:
        return same(list(row), list(found))
    except (TypeError, ValueError):
        return False
