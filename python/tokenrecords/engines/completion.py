"""Choices in OpenAI's shape, whichever server sent them: every place is read, so that two that disagree are seen."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tokenrecords.engines.choice import RawChoice, Source, below
from tokenrecords.engines.dynamo import on_nvext, refuse_unassigned, without_postprocessed
from tokenrecords.engines.fireworks import on_raw_output
from tokenrecords.engines.items import finish_reason, message_items, text_items
from tokenrecords.engines.litellm import on_swept
from tokenrecords.engines.lmdeploy import on_output
from tokenrecords.engines.native import on_item
from tokenrecords.engines.openai import on_logprobs
from tokenrecords.engines.provenance import kept
from tokenrecords.engines.sglang import meta_counts, on_meta_info, on_sglext
from tokenrecords.engines.together import on_echo, on_stream
from tokenrecords.engines.vllm import on_choice, on_payload

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tokenrecords.engines.payload import Body, Payload


def read_choices(payload: Payload) -> list[RawChoice]:
    """The choices of a chat or text completion."""
    if len(payload.choices) > 1:
        refuse_unassigned(payload.body)
    ranks = _ranks(payload.choices or [{}])
    # Without any choice the payload may still carry ids (of the prompt): then its choice was lost.
    pairs = zip(payload.choices or [{}], payload.messages or [{}], strict=True)
    return [_read_choice(payload, rank, choice, message) for rank, (choice, message) in zip(ranks, pairs, strict=True)]


def _ranks(choices: Sequence[Body]) -> Sequence[int]:
    """The place of each choice in the order of their numbers, in which lists beside the choices are."""
    numbers = [number for number in (choice.get("index") for choice in choices) if isinstance(number, int)]
    if len(numbers) < len(choices):
        return range(len(choices))
    rank = {number: place for place, number in enumerate(sorted(numbers))}
    return [rank[number] for number in numbers]


def _read_choice(payload: Payload, rank: int, choice: Body, message: Body) -> RawChoice:
    items = text_items(choice.get("text")) if choice.get("message") is None else message_items(message)
    return RawChoice(
        index=choice.get("index"),
        sources=without_postprocessed(_sources(payload, rank, choice, message)),
        output_items=items,
        token_item_index=0 if items else None,
        finish_reason=finish_reason(choice.get("finish_reason")),
        counts=meta_counts(choice),
    )


def _sources(payload: Payload, rank: int, choice: Body, message: Body) -> list[Source]:
    """The best place first: what a trainer put on the message, what the engine reported, what its server wrote."""
    body = payload.body
    return [
        *below("message", [*on_item(message), *on_output(message), *on_stream(message), *kept("", message)]),
        *on_nvext(choice),
        *on_nvext(body),
        *on_payload(body, rank, len(payload.choices)),
        *on_choice(choice),
        *on_output(choice),
        *on_raw_output(choice),
        *on_meta_info(choice),
        *on_sglext(choice),
        *on_sglext(body, rank, len(payload.choices)),
        *on_swept(choice),
        *on_swept(message),
        *on_logprobs(choice),
        *on_echo(body),
        *kept("", choice),
    ]
