"""OpenAI's own shape: chat and text completions and their log-probs, which every server extends."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from tokenrecords._core import IdWords
from tokenrecords.engines.body import Entries
from tokenrecords.engines.choice import Source, said
from tokenrecords.engines.payload import LISTS, Body, Payload, column, count, ends, mapping
from tokenrecords.tokens.arrays import same
from tokenrecords.tokens.names import GENERATION, LOG_PROBS

if TYPE_CHECKING:
    from collections.abc import Callable

# The parts of a message whose tokens have entries, in the order in which a model generates them.
ENTRY_LISTS: Final = ("reasoning_content", "reasoning", "content", "refusal")
_SAME_PART: Final = ("reasoning_content", "reasoning")  # two names of one: a server may send both
_ENTRY_IDS: Final = ("token_id", "id")
_ID_WORD: Final = "token_id:"
_LONGEST: Final = 4300  # digits that Python makes a number of


def is_chat(payload: Payload) -> bool:
    """True for a chat completion."""
    return payload.body.get("object") == "chat.completion" or any("message" in choice for choice in payload.choices)


def is_text(payload: Payload) -> bool:
    """True for a text completion."""
    return payload.body.get("object") == "text_completion" or any("text" in choice for choice in payload.choices)


def on_logprobs(choice: Body) -> list[Source]:
    """Log-probs, request `logprobs`: one entry a token (chat), or parallel lists (text completions).

    The ids are there as well where the request asked for `return_tokens_as_token_ids` (vLLM: the token is the word
    "token_id:41"), from an SGLang that writes `token_id` into each entry, from llama.cpp and mlx-lm, which write `id`
    (an older mlx-lm: the tokens are the ids), and from Together in `token_ids`.
    """
    logprobs = choice.get("logprobs")
    if logprobs is None:
        return []
    if isinstance(logprobs, LISTS):
        return on_entries(logprobs)
    lists = mapping(logprobs)
    if not lists:
        return []
    entries, scored = entries_of(lists), lists.get("token_logprobs")
    if entries is None and scored is None and count(choice.get("token_ids")) == 0:
        # Null because nothing was generated: no log-prob is missing.
        return [Source(LOG_PROBS, "logprobs", [])]
    sources = on_entries(entries)
    if scored is not None or lists.get("tokens") is not None or lists.get("token_ids") is not None:
        sources += said(
            (GENERATION, "logprobs.token_ids", lists.get("token_ids")),
            (GENERATION, "logprobs.tokens", _ids_from_tokens(lists.get("tokens"))),
            (LOG_PROBS, "logprobs.token_logprobs", scored),
        )
    return sources


def entries_of(logprobs: Body) -> Any:
    """The entries of all parts of a message, in the order in which they are generated; one part as the same list."""
    parts = [logprobs[name] for name in ENTRY_LISTS if logprobs.get(name) is not None]
    if all(logprobs.get(name) for name in _SAME_PART):
        if not same(*(logprobs[name] for name in _SAME_PART)):
            return None
        parts = parts[1:]
    if len(parts) < 2:
        return parts[0] if parts else None
    return [entry for part in parts for entry in part] if all(isinstance(part, list) for part in parts) else None


def on_entries(entries: Any) -> list[Source]:
    """Entries of one token each: log-probs, and ids under each key that has them."""
    if not isinstance(entries, LISTS):
        return []
    sources = [Source(LOG_PROBS, "logprobs.content[].logprob", column(entries, "logprob"))]
    sources += [
        Source(GENERATION, f"logprobs.content[].{key}", column(entries, key))
        for key in _ENTRY_IDS
        if _holds(entries, key, _is_id)
    ]
    if _holds(entries, "token", _is_id_word):
        sources.append(Source(GENERATION, "logprobs.content[].token", ids_from_words(column(entries, "token"))))
    return sources


def _holds(entries: Any, key: str, is_one: Callable[[Any], bool]) -> bool:
    """True where the first or the last entry has an id under this key."""
    if isinstance(entries, Entries):
        return entries.holds(key)
    return any(is_one(mapping(entry).get(key)) for entry in ends(entries))


def numbers_entries(payload: Payload, key: str) -> bool:
    """True where the log-prob entries of a choice have their ids under this key."""
    for choice in payload.choices:
        logprobs = choice.get("logprobs")
        entries = logprobs if isinstance(logprobs, LISTS) else entries_of(mapping(logprobs))
        if _holds(entries, key, _is_id):
            return True
    return False


def _is_id(value: Any) -> bool:
    """True for what may be an id; the `id` of something else is a word."""
    return value is not None and not isinstance(value, str)


def _ids_from_tokens(tokens: Any) -> Any:
    if any(isinstance(token, int) for token in ends(tokens)):
        return tokens
    return ids_from_words(tokens)


def ids_from_words(words: Any) -> Any:
    """The ids of tokens written as "token_id:<id>", None for any other word; None where all are text.

    >>> ids_from_words(["token_id:41", "token_id:2"])
    [41, 2]
    >>> ids_from_words(["token_id:41", "w"])
    [41, None]
    >>> ids_from_words(["o", "k"])
    """
    if isinstance(words, IdWords):
        return words.ids
    if not any(map(_is_id_word, ends(words))):
        return None
    try:
        return list(map(_id_of_word, words))
    except (AttributeError, TypeError):  # a word that is not a string
        return [_id_of_word(word) if isinstance(word, str) else None for word in words]


def _is_id_word(word: Any) -> bool:
    return isinstance(word, str) and _id_of_word(word) is not None


# A vocabulary's words come again, and to parse them each time costs more than the rest of a response.
@lru_cache(maxsize=1 << 16)
def _id_of_word(word: str) -> int | None:
    digits = word.removeprefix(_ID_WORD)
    if digits == word or not digits.isdecimal() or not digits.isascii() or len(digits) > _LONGEST:
        return None
    return int(digits)
