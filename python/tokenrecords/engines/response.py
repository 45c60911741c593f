"""From what a model server sent to choices with their tokens; docs/dialects.md has each engine's flags and shape."""

from __future__ import annotations

from typing import Any

from tokenrecords.engines.choice import ResponseFault
from tokenrecords.engines.dialects import BY_NAME, Dialect, dialect_of
from tokenrecords.engines.payload import Payload, mapping, unwrap
from tokenrecords.engines.reconcile import ServedChoice, by_index, check_counts, check_usage, settle

__all__ = ["ServedChoice", "read_response"]


def read_response(payload: Any, *, dialect: str | None = None, check_counts: bool = True) -> list[ServedChoice]:
    """The choices of one served response, in order of index.

    Lists and arrays are passed through as the same objects wherever they hold the field in its final form. The payload
    is never changed.

    Args:
        payload: One response, as a mapping or a pydantic model (of any client); `sglang-generate` and `tgi` also send
            lists of them. The chunks of a stream go through `merge_stream` first.
        dialect: One of the names that `detect_dialect` gives; None to detect it.
        check_counts: True if the tokens must be as many as the engine counted (`usage` of a chat or text completion,
            `meta_info`, `details.generated_tokens`).

    Returns:
        One `ServedChoice` for each choice; an empty list where the payload carries no token ids.

    Raises:
        ValueError: A choice's tokens are incomplete or contradict each other; the message names dialect, choice, field
            and position. Or the dialect is not known, or the payload is a chunk of a stream.
        TypeError: The payload is neither a mapping nor a pydantic model nor a list of these.

    >>> [choice] = read_response({
    ...     "object": "chat.completion", "prompt_token_ids": [1, 7],
    ...     "choices": [{"index": 0, "finish_reason": "stop", "token_ids": [41, 2],
    ...                  "message": {"role": "assistant", "content": "ok"},
    ...                  "logprobs": {"content": [{"token": "ok", "logprob": -0.125},
    ...                                           {"token": "", "logprob": -0.5}]}}],
    ... })
    >>> choice.prompt_token_ids, choice.generation_token_ids, choice.generation_log_probs
    ([1, 7], [41, 2], [-0.125, -0.5])
    >>> choice.output_items
    [{'role': 'assistant', 'content': 'ok', 'type': 'message'}]
    """
    return read_sent(unwrap(payload), dialect=dialect, check=check_counts)


def read_sent(sent: Payload | list[Payload], *, dialect: str | None, check: bool) -> list[ServedChoice]:
    """`read_response` for what `unwrap` gave."""
    known = dialect_of(sent) if dialect is None else BY_NAME.get(dialect)
    if known is None:
        raise ValueError(f"dialect is {dialect!r}: one of {', '.join(BY_NAME)} is needed")
    try:
        return _read(sent, known, check=check)
    except ResponseFault as fault:
        raise ValueError(fault.of(known.name)) from fault


def _read(sent: Payload | list[Payload], dialect: Dialect, *, check: bool) -> list[ServedChoice]:
    parts = sent if isinstance(sent, list) else [sent]
    _refuse_chunks(parts)
    if isinstance(sent, list) and sent and not dialect.batched:
        raise ResponseFault(f"a list of {len(sent)} payloads: read each one by itself")
    raws = [raw for part in parts for raw in dialect.read(part)]
    if not any(raw.carries_ids for raw in raws):
        return []
    raws = by_index(raws)
    choices = [settle(raw) for raw in raws]
    if check:
        for choice, raw in zip(choices, raws, strict=True):
            check_counts(choice, raw)
        if dialect.counts_in_usage:
            check_usage(choices, mapping(parts[0].body.get("usage")))
    return choices


def _refuse_chunks(parts: list[Payload]) -> None:
    for part in parts:
        for place, choice in enumerate(part.choices):
            if "delta" in choice:
                why = f"choices[{place}].delta belongs to a chunk of a stream; merge_stream joins the chunks"
                raise ResponseFault(why, place)
