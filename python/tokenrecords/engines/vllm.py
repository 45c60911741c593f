"""vLLM, and SGLang 0.5.13 on: ids beside the choices, request `return_token_ids`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tokenrecords.engines.choice import Source, said
from tokenrecords.engines.openai import on_logprobs
from tokenrecords.engines.prompts import prompt_of
from tokenrecords.tokens.names import GENERATION, LOSS_MASK, PROMPT, ROUTED_EXPERTS

if TYPE_CHECKING:
    from tokenrecords.engines.payload import Body, Payload


def on_payload(body: Body, rank: int = 0, choices: int = 1) -> list[Source]:
    """The prompt of all choices, or of several prompts that of one of so many choices."""
    prompts = body.get("prompt_token_ids")
    return said((PROMPT, "prompt_token_ids", prompt_of(prompts, rank, choices, "prompt_token_ids")))


def on_choice(choice: Body) -> list[Source]:
    """What one choice says of itself."""
    return said(
        (PROMPT, "choices[].prompt_token_ids", choice.get("prompt_token_ids")),
        (GENERATION, "token_ids", choice.get("token_ids")),
        (ROUTED_EXPERTS, "routed_experts", choice.get("routed_experts")),
        (LOSS_MASK, LOSS_MASK, choice.get(LOSS_MASK)),
    )


def names_ids(payload: Payload) -> bool:
    """True where ids stand in the places that vLLM uses."""
    for holder in (payload.body, *payload.choices):
        if holder.get("prompt_token_ids") is not None or holder.get("token_ids") is not None:
            return True
    return any(source.field == GENERATION for choice in payload.choices for source in on_logprobs(choice))


def is_vllm_generate(payload: Payload) -> bool:
    """True for an answer of `/inference/v1/generate`: choices that are neither messages nor texts."""
    return "choices" in payload.body and ("request_id" in payload.body or names_ids(payload))
