"""SGLang: `meta_info` of a chat choice or of `/generate`, and the extension object `sglext`."""

from __future__ import annotations

from typing import Any

from tokenrecords.engines.choice import RawChoice, ResponseFault, Source, said
from tokenrecords.engines.items import finish_reason, text_items
from tokenrecords.engines.openai import is_chat, numbers_entries
from tokenrecords.engines.payload import Body, Payload, column, first_row, is_row, listed, mapping
from tokenrecords.engines.prompts import prompt_of
from tokenrecords.engines.provenance import kept
from tokenrecords.tokens.names import GENERATION, LOG_PROBS, PROMPT, ROUTED_EXPERTS

EXTENSIONS = ("sglext", "sgl_ext")
_SIGNS = ("meta_info", *EXTENSIONS)


def is_sglang_chat(payload: Payload) -> bool:
    """True for a chat completion with what only SGLang writes."""
    if not is_chat(payload):
        return False
    choices, body = payload.choices, payload.body
    for holder in (body, *choices):
        if any(mapping(holder[sign]) for sign in _SIGNS if sign in holder):
            return True
    if numbers_entries(payload, "token_id"):
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
    sources = said(
        (PROMPT, "meta_info.prompt_token_ids", meta.get("prompt_token_ids")),
        (GENERATION, "meta_info.output_ids", meta.get("output_ids")),
        (GENERATION, "meta_info.output_token_logprobs", column(entries, 1)),
        (LOG_PROBS, "meta_info.output_token_logprobs", column(entries, 0)),
        (ROUTED_EXPERTS, "meta_info.routed_experts", meta.get("routed_experts")),
    )
    prompt = _whole_prompt(meta)
    if prompt is not None:
        # Placeholders of images are beyond the vocabulary and come as 0 here.
        sources.append(Source(PROMPT, "meta_info.input_token_logprobs", prompt, clipped=True))
    return sources


def _whole_prompt(meta: Body) -> Any:
    """The prompt ids of `input_token_logprobs`, or None where they are not the whole prompt.

    The list starts at the request's `logprob_start_len`: it is empty without one, and a tail above 0.
    """
    entries = listed(meta.get("input_token_logprobs"))
    counted = meta.get("prompt_tokens")
    if not entries or (isinstance(counted, int) and len(entries) < counted):
        return None
    return column(entries, 1)


def on_sglext(holder: Body, rank: int = 0, choices: int = 1) -> list[Source]:
    """Requests `return_input_ids`, `return_output_ids`, `return_routed_experts`, on the choice or the payload.

    Args:
        holder: A choice, or the payload.
        rank: Which of the payload's choices is read, in the order of their numbers.
        choices: How many there are: the payload has a list of generated ids for each.
    """
    sources = []
    for name in EXTENSIONS:
        extension = mapping(holder[name]) if name in holder else None
        if extension:
            sources += said(
                (
                    PROMPT,
                    f"{name}.input_ids",
                    prompt_of(extension.get("input_ids"), rank, choices, f"{name}.input_ids"),
                ),
                (GENERATION, f"{name}.output_ids", _output_ids(name, extension.get("output_ids"), rank, choices)),
                (ROUTED_EXPERTS, f"{name}.routed_experts", extension.get("routed_experts")),
            )
            sources += kept(f"{name}.", extension)
    return sources


def _output_ids(name: str, rows: Any, rank: int, choices: int) -> Any:
    if rows is None or choices == 1:
        return first_row(rows)
    found = len(rows) if isinstance(rows, list | tuple) or getattr(rows, "ndim", 0) == 2 else None
    if found != choices:
        raise ResponseFault(f"{found} lists of {name}.output_ids for {choices} choices")
    row = rows[rank]
    if row is not None and not is_row(row):
        raise ResponseFault(f"{name}.output_ids[{rank}] is {type(row).__name__}: a list for each choice is needed")
    return row


def meta_counts(choice: Body) -> dict[str, Any]:
    """How many tokens the engine counted for a choice."""
    meta = mapping(choice.get("meta_info"))
    return {GENERATION: meta.get("completion_tokens"), PROMPT: meta.get("prompt_tokens")} if meta else {}


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
