"""Token fields in their final form: on a message, on an output item, on an Anthropic body (NeMo Gym and its like)."""

from __future__ import annotations

from tokenrecords.engines.choice import RawChoice, ResponseFault, Source, said
from tokenrecords.engines.items import finish_reason, public_items
from tokenrecords.engines.payload import Body, Payload, mapping
from tokenrecords.engines.token_fields import carries, is_messages_body, response_to_output_items
from tokenrecords.tokens.names import TOKEN_FIELDS


def is_responses(payload: Payload) -> bool:
    """True for an OpenAI Responses body."""
    if any(carries(mapping(item)) for item in payload.items):
        return True
    return (payload.body.get("object") == "response" or bool(payload.items)) and not payload.choices


def is_messages(payload: Payload) -> bool:
    """True for an Anthropic Messages body."""
    return is_messages_body(payload.body)


def is_chat_with_tokens(payload: Payload) -> bool:
    """True for a chat completion whose messages carry token fields."""
    return any(map(carries, payload.messages))


def on_item(holder: Body) -> list[Source]:
    """The four token fields of a record, on the message or the item itself."""
    return said(*((name, name, holder.get(name)) for name in TOKEN_FIELDS))


def read_items(payload: Payload) -> list[RawChoice]:
    """`responses` and `messages`: the token fields on one output item, or on the Anthropic body."""
    body = payload.body
    items = response_to_output_items({**body, "output": payload.items} if payload.items else dict(body))
    carriers = [place for place, item in enumerate(items) if carries(item)]
    if len(carriers) > 1 or (carriers and body.get("output") and is_chat_with_tokens(payload)):
        raise ResponseFault("multiple output items carry token fields", 0)
    details = mapping(body.get("incomplete_details"))
    return [
        RawChoice(
            index=0,
            sources=on_item(items[carriers[0]]) if carriers else [],
            output_items=public_items(items),
            token_item_index=carriers[0] if carriers else None,
            finish_reason=finish_reason(details.get("reason") or body.get("stop_reason") or body.get("status")),
        )
    ]
