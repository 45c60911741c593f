"""SGLang: `meta_info` of a chat choice or of `/generate`, and the extension object `sglext`."""

from __future__ import annotations

from typing import Any

from tokenrecords.engines.choice import RawChoice, Source, said
from tokenrecords.engines.items import finish_reason, text_items
from tokenrecords.engines.openai import id_column, is_chat
from tokenrecords.engines.payload import Body, Payload, column, listed, mapping
from tokenrecords.tokens.names import GENERATION, LOG_PROBS, PROMPT, ROUTED_EXPERTS

EXTENSIONS = ("sglext", "sgl_ext")


def is_sglang_chat(payload: Payload) -> bool:
    """True for a chat completion with what only SGLang writes."""
    if not is_chat(payload):
        return False
    choices, body = payload.choices, payload.body
    if any(mapping(holder.get(sign)) for holder in (body, *choices) for sign in ("meta_info", *EXTENSIONS)):
        return True
    if any(id_column(mapping(choice.get("logprobs")).get("content")) for choice in choices):
        return True
    # vLLM says the prompt of a chat once, on the payload.
    return body.get(PROMPT) is None and any(choice.get(PROMPT) is not None for choice in choices)


def is_sglang_generate(payload: Payload) -> bool:
    """True for an answer of `/generate`."""
    return "choices" not in payload.body and bool({"meta_info", "output_ids"} & payload.body.keys())


def on_meta_info(choice: Body) -> list[Source]:
    """Request `return_meta_info` (chat) or `return_logprob` (generate): entries [log-prob, id, text]."""
    meta = mapping(choice.get("meta_info"))
    if not meta:
        return []
    entries = meta.get("output_token_logprobs")
    return said(
        (PROMPT, "meta_info.prompt_token_ids", meta.get("prompt_token_ids")),
        (PROMPT, "meta_info.input_token_logprobs", _whole_prompt(meta)),
        (GENERATION, "meta_info.output_token_logprobs", column(entries, 1)),
        (LOG_PROBS, "meta_info.output_token_logprobs", column(entries, 0)),
        (ROUTED_EXPERTS, "meta_info.routed_experts", meta.get("routed_experts")),
    )


def _whole_prompt(meta: Body) -> list[Any] | None:
    """The prompt ids of `input_token_logprobs`, or None where they are not the whole prompt.

    The list starts at the request's `logprob_start_len`: it is empty without one, and a tail above 0.
    """
    entries = listed(meta.get("input_token_logprobs"))
    counted = meta.get("prompt_tokens")
    if not entries or (isinstance(counted, int) and len(entries) < counted):
        return None
    return column(entries, 1)


def on_sglext(holder: Body) -> list[Source]:
    """Request `return_routed_experts`: on the choice or the payload, under either of two names."""
    return said(
        *(
            (ROUTED_EXPERTS, f"{name}.routed_experts", mapping(holder.get(name)).get("routed_experts"))
            for name in EXTENSIONS
        )
    )


def meta_counts(choice: Body) -> dict[str, Any]:
    """How many tokens the engine counted for a choice."""
    meta = mapping(choice.get("meta_info"))
    return {GENERATION: meta.get("completion_tokens"), PROMPT: meta.get("prompt_tokens")}


def read_generate(payload: Payload) -> list[RawChoice]:
    """`/generate`: one object, or a list of them for several samples or prompts."""
    sample = payload.body
    meta = mapping(sample.get("meta_info"))
    items = text_items(sample.get("text"))
    own = said(
        (PROMPT, "prompt_token_ids", sample.get("prompt_token_ids")),
        (GENERATION, "output_ids", sample.get("output_ids")),
        (ROUTED_EXPERTS, "routed_experts", sample.get("routed_experts")),
    )
    choice = RawChoice(
        index=sample.get("index"),
        sources=[*own, *on_meta_info(sample), *on_sglext(sample)],
        output_items=items,
        token_item_index=0 if items else None,
        finish_reason=finish_reason(meta.get("finish_reason")),
        response_id=meta.get("id"),
        counts=meta_counts(sample),
    )
    return [choice]
