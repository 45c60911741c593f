"""LiteLLM: what OpenAI's types do not know is swept off the choice and the message into `provider_specific_fields`."""

from __future__ import annotations

from tokenrecords.engines.choice import Source, below
from tokenrecords.engines.lmdeploy import on_output
from tokenrecords.engines.native import on_item
from tokenrecords.engines.payload import Body, Payload, mapping
from tokenrecords.engines.provenance import kept
from tokenrecords.engines.sglang import on_meta_info, on_sglext
from tokenrecords.engines.vllm import on_choice

_SWEPT = "provider_specific_fields"


def is_litellm(payload: Payload) -> bool:
    """True where a choice or its message has such fields."""
    return any(mapping(holder.get(_SWEPT)) for holder in (*payload.choices, *payload.messages))


def on_swept(holder: Body) -> list[Source]:
    """What was swept off a choice or a message: the places of every engine behind the proxy."""
    swept = mapping(holder.get(_SWEPT))
    if not swept:
        return []
    places = [*on_item(swept), *on_choice(swept), *on_output(swept), *on_meta_info(swept), *on_sglext(swept)]
    return below(_SWEPT, [*places, *kept("", swept)])
