"""Text Generation Inference `/generate`: `details`, with further choices in `best_of_sequences`."""

from __future__ import annotations

from typing import Any

from tokenrecords.engines.choice import RawChoice, Source, said
from tokenrecords.engines.items import finish_reason, text_items
from tokenrecords.engines.payload import Body, Payload, column, ends, listed, mapping
from tokenrecords.engines.vllm import on_payload
from tokenrecords.tokens.names import GENERATION, LOG_PROBS, PROMPT


def is_tgi(payload: Payload) -> bool:
    """True for an answer of `/generate`, which a chunk of its stream is not."""
    return "generated_text" in payload.body and "token" not in payload.body


def read_tgi(payload: Payload) -> list[RawChoice]:
    """The best sequence, and the others of `best_of`."""
    details = mapping(payload.body.get("details"))
    prompt = [*on_payload(payload.body), *_prefill("details", details)]
    choices = [_read_sequence("details", payload.body.get("generated_text"), details, prompt)]
    for place, other in enumerate(map(mapping, listed(details.get("best_of_sequences")))):
        where = f"best_of_sequences[{place}]"
        # One request has one prompt: each sequence's own prefill must be that of the first.
        prompts = [*_prefill(where, other), *prompt]
        choices.append(_read_sequence(where, other.get("generated_text"), other, prompts))
    return choices


def _prefill(place: str, details: Body) -> list[Source]:
    # Empty unless the request set decoder_input_details: no prompt is empty.
    prefill = listed(details.get("prefill"))
    return said((PROMPT, f"{place}.prefill", column(prefill, "id"))) if prefill else []


def _log_prob_key(tokens: Any) -> str:
    """What a token calls its log-prob: DJL's servers, which send TGI's shape, have another name for it."""
    return "log_prob" if any("log_prob" in mapping(token) for token in ends(tokens)) else "logprob"


def _read_sequence(place: str, text: Any, details: Body, prompts: list[Source]) -> RawChoice:
    tokens = details.get("tokens")
    items = text_items(text)
    own = said(
        (GENERATION, f"{place}.tokens", column(tokens, "id")),
        (LOG_PROBS, f"{place}.tokens", column(tokens, _log_prob_key(tokens))),
    )
    return RawChoice(
        index=None,
        sources=[*prompts, *own],
        output_items=items,
        token_item_index=0 if items else None,
        finish_reason=finish_reason(details.get("finish_reason")),
        counts={GENERATION: details.get("generated_tokens")},
    )
