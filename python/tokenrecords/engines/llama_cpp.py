"""llama.cpp: `/completion` in its own shape, and chats whose log-prob entries have an `id` (mlx-lm sends the same)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tokenrecords.engines.choice import RawChoice, said
from tokenrecords.engines.items import finish_reason, text_items
from tokenrecords.engines.openai import is_chat, numbers_entries, on_entries
from tokenrecords.tokens.names import GENERATION, PROMPT

if TYPE_CHECKING:
    from tokenrecords.engines.payload import Body, Payload

_COUNTS = {GENERATION: "tokens_predicted", PROMPT: "tokens_evaluated"}


def is_llama_cpp_chat(payload: Payload) -> bool:
    """True for a chat completion whose entries have an `id`."""
    return is_chat(payload) and numbers_entries(payload, "id")


def is_llama_cpp(payload: Payload) -> bool:
    """True for an answer of `/completion`."""
    body = payload.body
    if "choices" in body or "content" not in body or "type" in body:
        return False
    return "tokens" in body or "completion_probabilities" in body or "tokens_predicted" in body


def read_completion(payload: Payload) -> list[RawChoice]:
    """Requests `return_tokens` and `n_probs`; a list of answers for several prompts."""
    body = payload.body
    items = text_items(body.get("content"))
    sources = said((PROMPT, "prompt_token_ids", body.get("prompt_token_ids")), (GENERATION, "tokens", _tokens(body)))
    entries = on_entries(body.get("completion_probabilities"))
    place = "completion_probabilities[]"
    sources += [source._replace(place=source.place.replace("logprobs.content[]", place)) for source in entries]
    return [
        RawChoice(
            index=body.get("index"),
            sources=sources,
            output_items=items,
            token_item_index=0 if items else None,
            finish_reason=finish_reason(body.get("stop_type")),
            counts={name: body.get(key) for name, key in _COUNTS.items()},
        )
    ]


def _tokens(body: Body) -> Any:
    """The ids; None for the empty list of a request that did not ask for them."""
    tokens = body.get("tokens")
    if isinstance(tokens, list) and not tokens and (body.get("content") or body.get("tokens_predicted")):
        return None
    return tokens
