"""vLLM Responses, request `enable_response_messages`: prompt and generation as raw messages with their tokens."""

from __future__ import annotations

from typing import Any

from tokenrecords.engines.choice import ResponseFault, Source
from tokenrecords.engines.payload import Body, Payload, listed, mapping
from tokenrecords.tokens.names import GENERATION, PROMPT

_SIDES = {"input_messages": PROMPT, "output_messages": GENERATION}


def has_raw_messages(body: Body) -> bool:
    """True where a side of the call comes with its tokens."""
    return any(_tokens(body, name) for name in _SIDES)


def on_raw_messages(payload: Payload) -> list[Source]:
    """The tokens of both sides.

    Raises:
        ResponseFault: A side has several messages, those of several calls.
    """
    sources = []
    for name, field in _SIDES.items():
        tokens = _tokens(payload.body, name)
        messages = len(listed(payload.body.get(name)))
        if tokens and messages > 1:
            raise ResponseFault(f"{name} holds {messages} messages: the tokens of one call are needed", 0)
        sources += [Source(field, f"{name}[0].tokens", ids) for ids in tokens]
    return sources


def _tokens(body: Body, name: str) -> list[Any]:
    messages = map(mapping, listed(body.get(name)))
    return [message["tokens"] for message in messages if message.get("tokens") is not None]
