"""What the model said, as output items without token arrays."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from tokenrecords.engines.provenance import PER_TOKEN
from tokenrecords.engines.token_fields import response_to_output_items, strip_token_fields
from tokenrecords.tokens.names import LOSS_MASK, TOKEN_FIELDS

# Fields that engines put on messages, items and content blocks for the trainer, not for the reader of the text.
_PRIVATE_FIELDS: Final = frozenset(
    {
        *TOKEN_FIELDS,
        *PER_TOKEN,
        LOSS_MASK,
        *("token_ids", "completion_token_ids", "token_id", "output_ids", "gen_tokens"),
        *("logprobs", "prompt_logprobs", "top_logprobs", "token_logprobs", "completion_logprobs"),
        *("output_token_logprobs", "input_token_logprobs"),
        *("meta_info", "nvext", "engine_data", "sglext", "sgl_ext"),
    }
)


def public_items(items: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The items without token arrays and log-probs: their own, their content blocks', and what LiteLLM swept.

    Deeper levels are the model's own words (a tool's arguments may well be named `logprobs`) and stay.
    """
    return [_public_item(item) for item in strip_token_fields(items)[0]]


def _public_item(item: dict[str, Any]) -> dict[str, Any]:
    item = dict(_without_private(item))
    if isinstance(item.get("content"), list):
        item["content"] = [_without_private(block) for block in item["content"]]
    if "provider_specific_fields" in item:
        item["provider_specific_fields"] = _without_private(item["provider_specific_fields"])
    return item


def _without_private(part: Any) -> Any:
    # A null is kept: it holds no tokens, and the part stays the caller's own object.
    if isinstance(part, Mapping) and any(part.get(name) is not None for name in _PRIVATE_FIELDS & part.keys()):
        return {name: value for name, value in part.items() if name not in _PRIVATE_FIELDS or value is None}
    return part


def text_items(text: Any) -> list[dict[str, Any]]:
    """A text as the content of one message; none where it is empty."""
    if not isinstance(text, str) or not text:
        return []
    return [{"type": "message", "role": "assistant", "content": text}]


def message_items(message: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The message of a choice as output items."""
    return public_items(response_to_output_items({"choices": [{"message": dict(message)}]}))


def finish_reason(value: Any) -> str | None:
    """Why a generation ended, as a word: some engines give an object with a type, `{"type": "stop", "matched": 2}`."""
    reason = value.get("type") if isinstance(value, Mapping) else value
    return None if reason is None else str(reason)
