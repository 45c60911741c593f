"""Together: parallel lists on a chat's choices, with the ids in `token_ids`."""

from __future__ import annotations

from tokenrecords.engines.choice import Source, said
from tokenrecords.engines.openai import is_chat
from tokenrecords.engines.payload import Body, Payload, listed, mapping
from tokenrecords.tokens.names import GENERATION, PROMPT


def is_together_chat(payload: Payload) -> bool:
    """True for a chat completion whose log-probs have `token_ids`."""
    if not is_chat(payload):
        return False
    logprobs = (mapping(choice.get("logprobs")) for choice in payload.choices)
    return any(found.get("token_ids") is not None for found in logprobs) or any(map(on_stream, payload.messages))


def on_stream(message: Body) -> list[Source]:
    """The ids of a stream, one with each of its chunks."""
    ids = message.get("token_id")
    return said((GENERATION, "token_id", ids)) if isinstance(ids, list) else []


def on_echo(body: Body) -> list[Source]:
    """The prompt, request `echo`: said once for all choices."""
    prompts = listed(body.get("prompt"))
    if len(prompts) != 1:
        return []
    return said((PROMPT, "prompt[0].logprobs.token_ids", mapping(mapping(prompts[0]).get("logprobs")).get("token_ids")))
