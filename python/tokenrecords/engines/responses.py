"""OpenAI Responses: tokens on an output item, in raw messages, or in the log-probs of its texts."""

from __future__ import annotations

from tokenrecords.engines.choice import RawChoice, ResponseFault, Source, said
from tokenrecords.engines.lmdeploy import on_output
from tokenrecords.engines.native import read_body
from tokenrecords.engines.openai import on_entries
from tokenrecords.engines.payload import Payload, listed, mapping
from tokenrecords.engines.raw_messages import has_raw_messages, on_raw_messages
from tokenrecords.engines.token_fields import carries
from tokenrecords.tokens.names import GENERATION, LOG_PROBS


def is_responses(payload: Payload) -> bool:
    """True for an OpenAI Responses body."""
    if any(carries(mapping(item)) for item in payload.items) or has_raw_messages(payload.body):
        return True
    return (payload.body.get("object") == "response" or bool(payload.items)) and not payload.choices


def read_items(payload: Payload) -> list[RawChoice]:
    """The one call of a Responses body."""
    [choice] = read_body(payload)
    if not choice.of(GENERATION):
        choice.sources += _on_items(payload)
    choice.sources += on_raw_messages(payload)
    if not choice.of(LOG_PROBS):  # those of texts may lack the tokens around them
        choice.sources += _on_texts(payload, alone=not choice.of(GENERATION))
    if choice.token_item_index is None and choice.output_items and choice.carries_ids:
        choice.token_item_index = len(choice.output_items) - 1
    return [choice]


def _on_items(payload: Payload) -> list[Source]:
    """What an engine says beside an item, under its own names."""
    found: list[Source] = []
    for place, item in enumerate(map(mapping, payload.items)):
        own = [*said((GENERATION, "token_ids", item.get("token_ids"))), *on_output(item)]
        if own and found:
            raise ResponseFault(f"output[{place}] has ids as an earlier item has: the tokens of one call are needed", 0)
        found += own
    return found


def _on_texts(payload: Payload, *, alone: bool) -> list[Source]:
    """The log-probs of the texts of all items, one after the other.

    Args:
        payload: A Responses body.
        alone: True where no other place has the ids: texts that name them must then be all that was generated.
    """
    blocks = [mapping(block) for item in payload.items for block in listed(mapping(item).get("content"))]
    parts = [block["logprobs"] for block in blocks if listed(block.get("logprobs"))]
    if not parts:
        return []
    sources = on_entries(parts[0] if len(parts) == 1 else [entry for part in parts for entry in part])
    if alone and any(source.field == GENERATION for source in sources):
        _refuse_uncovered(payload)
    return sources


def _refuse_uncovered(payload: Payload) -> None:
    for place, item in enumerate(map(mapping, payload.items)):
        blocks = listed(item.get("content"))
        if not blocks or not all(listed(mapping(block).get("logprobs")) for block in blocks):
            raise ResponseFault(f"output[{place}] has no log-probs, and those of other items are not the whole call", 0)
