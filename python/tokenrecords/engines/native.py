"""Token fields in their final form: on a message, an item, an Anthropic body or a row (NeMo Gym and its like)."""

from __future__ import annotations

from typing import Any

from tokenrecords.engines.choice import RawChoice, ResponseFault, Source, said
from tokenrecords.engines.items import finish_reason, public_items, text_items
from tokenrecords.engines.payload import Body, Payload, count, ends, mapping
from tokenrecords.engines.provenance import kept
from tokenrecords.engines.token_fields import carries, is_messages_body, response_to_output_items
from tokenrecords.tokens.names import GENERATION, ID_FIELDS, LOG_PROBS, LOSS_MASK, PROMPT, TOKEN_FIELDS

_FIELDS = (*TOKEN_FIELDS, LOSS_MASK)
# What rows of trainers call the fields (verl, rLLM, verifiers), and the loss mask.
_OF_TRAINERS = {
    PROMPT: ("prompt_ids",),
    GENERATION: ("completion_ids", "completion_token_ids", "response_ids", "response_token_ids"),
    LOG_PROBS: ("logprobs", "completion_logprobs", "response_logprobs"),
}
_MASKS = ("env_mask", "tool_mask", "loss_mask", "response_mask", "completion_mask")
_OTHER_SHAPES = ("choices", "output", "outputs", "sequences")


def is_messages(payload: Payload) -> bool:
    """True for an Anthropic Messages body."""
    return is_messages_body(payload.body)


def is_chat_with_tokens(payload: Payload) -> bool:
    """True for a chat completion whose messages carry token fields."""
    return any(map(carries, payload.messages))


def is_flat(payload: Payload) -> bool:
    """True for a row of token fields and nothing that another engine's answer is known by."""
    body = payload.body
    return (carries(body) or is_row_of_a_trainer(body)) and all(body.get(name) is None for name in _OTHER_SHAPES)


def is_row_of_a_trainer(body: Body) -> bool:
    """True for the ids of one call under a trainer's names, and not for lists of several calls' ids."""
    sources = _said_by_a_trainer(body)
    has_ids = any(_are_ids(source.value) for source in sources if source.field in ID_FIELDS)
    return has_ids and all(map(_is_one_row, sources))


def _said_by_a_trainer(body: Body) -> list[Source]:
    return said(*((field, name, body.get(name)) for field, names in _OF_TRAINERS.items() for name in names))


def _are_ids(ids: Any) -> bool:
    """True for ids, and not for an empty list or what else has this name."""
    return bool(count(ids)) and all(hasattr(id_, "__index__") for id_ in (ids[0], ids[-1]))


def _is_one_row(source: Source) -> bool:
    return count(source.value) is not None and not any(count(part) is not None for part in ends(source.value))


def on_item(holder: Body) -> list[Source]:
    """The token fields of a record and its loss mask, on the message or the item itself."""
    return [Source(name, name, holder[name]) for name in _FIELDS if holder.get(name) is not None]


def read_body(payload: Payload) -> list[RawChoice]:
    """`responses` and `messages`: the token fields on one output item, or on the Anthropic body."""
    body = payload.body
    items = response_to_output_items({**body, "output": payload.items} if payload.items else dict(body))
    carriers = [place for place, item in enumerate(items) if carries(item)]
    if len(carriers) > 1 or (carriers and body.get("output") and is_chat_with_tokens(payload)):
        why = "multiple output items carry token fields: entries_from_transcript reads several calls"
        raise ResponseFault(why, 0)
    details = mapping(body.get("incomplete_details"))
    carrier = items[carriers[0]] if carriers else {}
    return [
        RawChoice(
            index=0,
            sources=[*on_item(carrier), *kept("", carrier)],
            output_items=public_items(items),
            token_item_index=carriers[0] if carriers else None,
            finish_reason=finish_reason(details.get("reason") or body.get("stop_reason") or body.get("status")),
        )
    ]


def read_flat(payload: Payload) -> list[RawChoice]:
    """`flat`: a row that is the token fields of one call."""
    body = payload.body
    if body.get("prompt_is_delta"):
        raise ResponseFault("prompt_is_delta is true: the whole prompt is needed", 0)
    items = text_items(body.get("text"))
    return [
        RawChoice(
            index=None,
            sources=[
                *on_item(body),
                *(_said_by_a_trainer(body) if is_row_of_a_trainer(body) else ()),
                *said(*((LOSS_MASK, name, body.get(name)) for name in _MASKS)),
            ],
            output_items=items,
            token_item_index=0 if items else None,
            finish_reason=finish_reason(body.get("finish_reason")),
            response_id=body.get("response_id"),
        )
    ]
