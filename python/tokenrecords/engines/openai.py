"""OpenAI's own shape: chat and text completions and their log-probs, which every server extends."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final

from tokenrecords.engines.choice import Source, said
from tokenrecords.engines.payload import Body, Payload, column, count, ends, item, mapping
from tokenrecords.tokens.names import GENERATION, LOG_PROBS

_ID_WORD: Final = "token_id:"


def is_chat(payload: Payload) -> bool:
    """True for a chat completion."""
    return payload.body.get("object") == "chat.completion" or any("message" in choice for choice in payload.choices)


def is_text(payload: Payload) -> bool:
    """True for a text completion."""
    return payload.body.get("object") == "text_completion" or any("text" in choice for choice in payload.choices)


def on_logprobs(choice: Body) -> list[Source]:
    """Log-probs, request `logprobs`: one entry a token (chat), or parallel lists (text completions).

    The ids are there as well where the request asked for `return_tokens_as_token_ids` (vLLM: the token is the word
    "token_id:41"), and from an SGLang that writes `token_id` into each entry.
    """
    logprobs = choice.get("logprobs")
    if isinstance(logprobs, list):
        return _on_entries(logprobs)
    lists = mapping(logprobs)
    if not lists:
        return []
    entries, scored = lists.get("content"), lists.get("token_logprobs")
    if entries is None and scored is None and count(choice.get("token_ids")) == 0:
        # Null because nothing was generated: no log-prob is missing.
        return [Source(LOG_PROBS, "logprobs", [])]
    words = said(
        (GENERATION, "logprobs.tokens", ids_from_words(lists.get("tokens"))),
        (LOG_PROBS, "logprobs.token_logprobs", scored),
    )
    return _on_entries(entries) + words


def _on_entries(entries: Any) -> list[Source]:
    if entries is None:
        return []
    return said(
        (GENERATION, "logprobs.content[].token_id", id_column(entries)),
        (GENERATION, "logprobs.content[].token", _word_column(entries)),
        (LOG_PROBS, "logprobs.content[].logprob", column(entries, "logprob")),
    )


def id_column(entries: Any) -> list[Any] | None:
    """The `token_id` of each entry, or None where the entries have none."""
    if all(item(entry, "token_id") is None for entry in ends(entries)):
        return None
    return column(entries, "token_id")


def _word_column(entries: Any) -> list[int | None] | None:
    """The id of each entry whose token is the word "token_id:<id>", or None where the tokens are text."""
    if not any(_is_id_word(item(entry, "token")) for entry in ends(entries)):
        return None
    return ids_from_words(column(entries, "token"))


def ids_from_words(words: Any) -> list[int | None] | None:
    """The ids of tokens written as "token_id:<id>", None for any other word; None where all are text.

    >>> ids_from_words(["token_id:41", "token_id:2"])
    [41, 2]
    >>> ids_from_words(["token_id:41", "w"])
    [41, None]
    >>> ids_from_words(["o", "k"])
    """
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
    return int(digits) if digits != word and digits.isdecimal() and digits.isascii() else None
