"""Token fields in their final form: on a message, an item, an Anthropic body or a row (NeMo Gym and its like)."""

from __future__ import annotations

from tokenrecords.engines.choice import RawChoice, ResponseFault, Source, said
from tokenrecords.engines.items import finish_reason, public_items, text_items
from tokenrecords.engines.payload import Body, Payload, mapping
from tokenrecords.engines.provenance import kept
from tokenrecords.engines.token_fields import carries, is_messages_body, response_to_output_items
from tokenrecords.tokens.names import LOSS_MASK, TOKEN_FIELDS

_FIELDS = (*TOKEN_FIELDS, LOSS_MASK)
_MASKS = ("env_mask", "tool_mask", "loss_mask", "response_mask")  # the loss mask, as rows of trainers call it
_OTHER_SHAPES = ("choices", "output", "outputs", "sequences")


def is_messages(payload: Payload) -> bool:
    """True for an Anthropic Messages body."""
    return is_messages_body(payload.body)


def is_chat_with_tokens(payload: Payload) -> bool:
    """True for a chat completion whose messages carry token fields."""
    return any(map(carries, payload.messages))


def is_flat(payload: Payload) -> bool:
    """True for a row of token fields and nothing that another engine's answer is known by."""
    return carries(payload.body) and all(payload.body.get(name) is None for name in _OTHER_SHAPES)


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
            sources=[*on_item(body), *said(*((LOSS_MASK, name, body.get(name)) for name in _MASKS))],
            output_items=items,
            token_item_index=0 if items else None,
            finish_reason=finish_reason(body.get("finish_reason")),
            response_id=body.get("response_id"),
        )
    ]
