"""vLLM Responses, request `enable_response_messages`: prompt and generation as raw messages with their tokens."""

from __future__ import annotations

from typing import Any

from tokenrecords.engines.choice import ResponseFault, Source
from tokenrecords.engines.openai import on_entries
from tokenrecords.engines.payload import Body, Payload, count, listed, mapping
from tokenrecords.tokens.names import GENERATION, LOG_PROBS, PROMPT

_SIDES = {"input_messages": PROMPT, "output_messages": GENERATION}


def has_raw_messages(body: Body) -> bool:
    """True where a side of the call comes with its tokens."""
    return any(_tokens(body, name) for name in _SIDES)


def on_raw_messages(payload: Payload, *, scored: bool) -> list[Source]:
    """The tokens of both sides, and the log-probs of what the model wrote.

    Args:
        payload: A Responses body.
        scored: True where another place has the log-probs: those of texts may lack the tokens around them.

    Raises:
        ResponseFault: A side has several messages, those of several calls.
    """
    if not has_raw_messages(payload.body):
        return []
    sources = []
    for name, field in _SIDES.items():
        tokens = _tokens(payload.body, name)
        messages = len(listed(payload.body.get(name)))
        if tokens and messages > 1:
            raise ResponseFault(f"{name} holds {messages} messages: the tokens of one call are needed", 0)
        sources += [Source(field, f"{name}[0].tokens", ids) for ids in tokens]
    return sources if scored else sources + _on_texts(payload)


def _tokens(body: Body, name: str) -> list[Any]:
    messages = map(mapping, listed(body.get(name)))
    return [message["tokens"] for message in messages if message.get("tokens") is not None]


def _on_texts(payload: Payload) -> list[Source]:
    """The log-probs of the texts of all items, one after the other."""
    blocks = [mapping(block) for item in payload.items for block in listed(mapping(item).get("content"))]
    parts = [block["logprobs"] for block in blocks if listed(block.get("logprobs"))]
    if parts:
        return on_entries(parts[0] if len(parts) == 1 else [entry for part in parts for entry in part])
    generated = _tokens(payload.body, "output_messages")
    # Nothing was generated: no log-prob is missing.
    return [Source(LOG_PROBS, "output_messages[0].tokens", [])] if [count(ids) for ids in generated] == [0] else []
