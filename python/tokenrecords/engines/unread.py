"""Token ids that a payload holds and no reader reads: an engine that nobody knows must not pass for one without ids."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from tokenrecords._core import array_over
from tokenrecords.engines.openai import ids_from_words
from tokenrecords.engines.payload import listed, mapping, plain
from tokenrecords.tokens.arrays import same
from tokenrecords.tokens.envelopes import is_envelope

_SPEAKS_OF_TOKENS: Final = re.compile(r"(ids|tokens)$|token_?id|^context$")  # Ollama: prompt and generation as one
_PACKED: Final = re.compile(r"ids_(b64|base64)$")  # a text that holds them
# Ids of other things, numbers of tokens, and tokens that a request names or that were only candidates.
_OTHER: Final = re.compile(
    r"(^|_)(session|request|conversation|thread|trace|span|user|message|call|tool|batch|sample|group|task|job|row|item"
    r"|file|vector_store|document|doc|source|citation|page|chunk|node|image|frame|audio|video|object|class|label"
    r"|expert|layer|lora|adapter|slot|worker|rank|gpu|device|cache|type|position)_ids$"
    r"|block|stop|(^|_)(bad|eos|bos|pad|special|suppress\w*|allow\w*|ban\w*|preserved|forced|cached)_"
    r"|^(num|n|max|min|total|top|topk|topn|candidate\w*)_|logprob"
)
# What the model said, what it was asked, and what was counted.
_SAID: Final = frozenset(
    {
        *("content", "text", "generated_text", "reasoning", "reasoning_content", "reasoning_details", "refusal"),
        *("tool_calls", "function_call", "arguments", "tool_results", "annotations", "audio", "summary", "document"),
        *("tools", "tool_choice", "logit_bias", "instructions", "error", "timings", "embedding"),
        *("sampling_params", "generation_settings", "parameters"),
        *("prompt_logprobs", "top_logprobs", "topk_prompt_logprobs", "completion_probabilities", "top_tokens"),
    }
)
# On an output item these are a tool's or the model's own as well.
_SAID_BY_ITEMS: Final = _SAID | {"input", "output", "outputs", "action", "code", "queries", "results"}
_ID_KEYS: Final = ("id", "token_id", "tokenId")
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
        name = value.get("name")
        if isinstance(name, str) and _speaks_of_tokens(name) and _holds_ids(value.get("data")):
            yield f"{path}.data of {name}", value["data"]  # a tensor of KServe's and Triton's
            return
        for key, held in value.items():
            if not isinstance(key, str) or key in said or held is None:
                continue
            where = f"{path}.{key}" if path else key
            found = _under(key, held, where)
            if found is not None:
                yield from found
            else:
                yield from _walk(held, where, _SAID_BY_ITEMS if key in _ITEMS else said, depth + 1)
    elif isinstance(value, list | tuple):
        for place, held in enumerate(value):
            if isinstance(held, int | float | str):
                break  # a list of numbers or words, however long, under a key that does not speak of tokens
            yield from _walk(held, f"{path}[{place}]", said, depth + 1)


def _under(key: str, held: Any, path: str) -> Iterable[tuple[str, Any]] | None:
    """What a key itself says to be ids; None where its value is to be walked through."""
    if key == "logprobs":
        return _beside(held, path)
    if key == "usage":  # how many there were, however often it was counted
        return [(where, ids) for where, ids in _beside(held, path) if not where.endswith("tokens")]
    if _PACKED.search(key) and isinstance(held, str) and held:
        return [(path, held)]
    if _speaks_of_tokens(key):
        if _holds_ids(held):
            return [(path, held)]
        if _are_tokens(held):
            return [(f"{path}[]", held)]
    return None


def _beside(holder: Any, path: str) -> Iterator[tuple[str, Any]]:
    """The lists of an object itself: what stands inside an entry of log-probs are candidates."""
    holder = plain(holder)
    for key, held in holder.items() if isinstance(holder, Mapping) else ():
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


def _are_tokens(value: Any) -> bool:
    """True for a list of objects with an id each."""
    tokens = [mapping(plain(token)) for token in listed(value)]
    return bool(tokens) and any(_are_integers([token.get(key) for token in tokens]) for key in _ID_KEYS)


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
    if any(ids is found for found in read):
        return True
    rows = [ids]
    if isinstance(ids, list | tuple) and any(isinstance(row, list | tuple) or hasattr(row, "shape") for row in ids):
        rows = [row for row in ids if row is not None]
    return all(any(row is found or _same(row, found) for found in read) for row in rows)


def _same(row: Any, found: Any) -> bool:
    try:
        return same(list(row), list(found))
    except (TypeError, ValueError):
        return False
