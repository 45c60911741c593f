"""Fireworks: what the model ran on and said before its tool calls were taken out, request `raw_output`."""

from __future__ import annotations

from tokenrecords.engines.choice import Source, below, said
from tokenrecords.engines.openai import on_logprobs
from tokenrecords.engines.payload import Body, Payload, mapping
from tokenrecords.tokens.names import GENERATION, PROMPT

_RAW = "raw_output"


def is_fireworks(payload: Payload) -> bool:
    """True where a choice has its raw output."""
    return any(mapping(choice.get(_RAW)) for choice in payload.choices)


def on_raw_output(choice: Body) -> list[Source]:
    """The raw output of a choice."""
    raw = mapping(choice.get(_RAW))
    if not raw:
        return []
    ids = said(
        (PROMPT, "prompt_token_ids", raw.get("prompt_token_ids")),
        (GENERATION, "completion_token_ids", raw.get("completion_token_ids")),
    )
    scored = on_logprobs({"logprobs": raw.get("completion_logprobs")})
    return below(_RAW, [*ids, *(source._replace(place=f"completion_{source.place}") for source in scored)])
