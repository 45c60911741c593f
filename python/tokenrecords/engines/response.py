"""From what a model server sent to choices with their tokens; docs/dialects.md has each engine's flags and shape."""

from __future__ import annotations

from functools import partial
from typing import Any

from tokenrecords.engines.body import BODY, Served, Spliced, natively, parsed, spliced
from tokenrecords.engines.choice import MissingField, RawChoice, ResponseFault, Source
from tokenrecords.engines.dialects import BY_NAME, Dialect, dialect_of
from tokenrecords.engines.payload import Payload, mapping, unwrap
from tokenrecords.engines.prompts import prompt_of
from tokenrecords.engines.provenance import kept_on_payload
from tokenrecords.engines.reconcile import ServedChoice, by_index, check_counts, check_usage, settle
from tokenrecords.engines.unread import unread_ids
from tokenrecords.tokens.names import ARRAY_FIELDS, ID_FIELDS, PROMPT

__all__ = ["ServedChoice", "read_response"]


def read_response(
    payload: Any, *, dialect: str | None = None, check_counts: bool = True, prompt_token_ids: Any = None
) -> list[ServedChoice]:
    """The choices of one served response, in order of index.

    Lists and arrays are passed through as the same objects wherever they hold the field in its final form. The payload
    is never changed.

    Args:
        payload: One response, as a mapping, a pydantic model (of any client), an engine's own object or the bytes of
            its JSON body (bytes, bytearray or memoryview); some engines (`sglang-generate`, `tgi`, `vllm-engine`, ...)
            also send lists of them. The chunks of a stream go through `merge_stream` first. What is read of bytes is
            the fastest, and held in arrays where it is long.
        dialect: One of the names that `detect_dialect` gives; None to detect it.
        check_counts: True if the tokens must be as many as the engine counted (`usage` of a chat or text completion,
            `meta_info`, `details.generated_tokens`).
        prompt_token_ids: The ids that were sent: a list or an integer array of shape `(prompt,)`, or a list of these
            where the payload has several prompts (choice i belongs to prompt i // n). They stand in where the engine
            says none, and must agree where it does.

    Returns:
        One `ServedChoice` for each choice; an empty list where the payload carries no token ids.

    Raises:
        ValueError: A choice's tokens are incomplete or contradict each other; the message names dialect, choice, field
            and position. Or the payload has ids under a key that is not read, which the message names. Or the dialect
            is not known, or the payload is a chunk of a stream, or its bytes are not JSON.
        TypeError: The payload is none of these, or its `choices` are not a list.

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
    return read_payload(payload, dialect=dialect, check=check_counts, prompts=prompt_token_ids)[1]


def read_payload(
    payload: Any, *, dialect: str | None, check: bool, prompts: Any
) -> tuple[Payload | list[Payload], list[ServedChoice]]:
    """What `read_response` gives, behind the payload as it was unwrapped.

    Args:
        payload: As for `read_response`, or one that is `Served` or `Spliced`.
        dialect: As for `read_response`.
        check: As `check_counts` of `read_response`.
        prompts: As `prompt_token_ids` of `read_response`.

    Raises:
        ValueError: As `read_response`, and where not all arrays of a `Spliced` one were read as tokens: a list in
            place of one might have been read as something else.
        TypeError: As `read_response`.
    """
    if isinstance(payload, BODY):
        body = bytes(payload)
        payload = Served(spliced(body), partial(parsed, body))
    if isinstance(payload, Served):
        found = natively(payload.spliced, lambda native: _read_spliced(native, dialect, check=check, prompts=prompts))
        if found is not None:
            return found
        payload = payload.parsed
    if isinstance(payload, Spliced):
        return _read_spliced(payload, dialect, check=check, prompts=prompts)
    sent = unwrap(payload)
    return sent, _read_sent(sent, dialect, check=check, prompts=prompts)[0]


def _read_spliced(
    payload: Spliced, dialect: str | None, *, check: bool, prompts: Any
) -> tuple[Payload | list[Payload], list[ServedChoice]]:
    sent = unwrap(payload.payload)
    choices, raws = _read_sent(sent, dialect, check=check, prompts=prompts)
    read = [value for raw in raws for field, _, value, _ in raw.sources if field in ARRAY_FIELDS]
    if not payload.all_are_of(read):
        raise ValueError("not all arrays of the payload were read")
    return sent, choices


def _read_sent(
    sent: Payload | list[Payload], dialect: str | None, *, check: bool, prompts: Any
) -> tuple[list[ServedChoice], list[RawChoice]]:
    known = dialect_of(sent) if dialect is None else BY_NAME.get(dialect)
    if known is None:
        raise ValueError(f"dialect is {dialect!r}: one of {', '.join(BY_NAME)} is needed")
    try:
        return _read(sent, known, check=check, prompts=prompts)
    except ResponseFault as fault:
        raise ValueError(fault.of(known.name)) from fault


def _read(
    sent: Payload | list[Payload], dialect: Dialect, *, check: bool, prompts: Any
) -> tuple[list[ServedChoice], list[RawChoice]]:
    """The choices, and what they were settled from."""
    parts = sent if isinstance(sent, list) else [sent]
    _refuse_chunks(parts)
    if isinstance(sent, list) and sent and not dialect.batched:
        raise ResponseFault(f"a list of {len(sent)} payloads: read each one by itself")
    raws = _gathered(parts, dialect)
    # An aborted call may have nothing but the prompt that was sent.
    if not any(raw.carries_ids or (raw.aborted and raw.silent and prompts is not None) for raw in raws):
        _refuse_unread(sent, raws)
        return [], raws
    raws = by_index(raws)
    if prompts is not None:
        _add_prompts(raws, prompts)
    try:
        choices = [settle(raw) for raw in raws]
    except MissingField as fault:
        _refuse_unread(sent, raws, fault)
        raise
    if check:
        for choice, raw in zip(choices, raws, strict=True):
            check_counts(choice, raw)
        if dialect.counts_in_usage:
            check_usage(choices, mapping(parts[0].body.get("usage")))
    return choices, raws


def _gathered(parts: list[Payload], dialect: Dialect) -> list[RawChoice]:
    """What the reader finds in each payload."""
    raws: list[RawChoice] = []
    for part in parts:
        found = dialect.read(part)
        about = kept_on_payload(part.body, len(found))
        for raw in found:
            raw.sources += about
        raws += by_index(found) if dialect.numbered_apart and len(parts) > 1 else found
    if dialect.numbered_apart and len(parts) > 1:
        for place, raw in enumerate(raws):
            raw.index = place
    return raws


def _add_prompts(raws: list[RawChoice], prompts: Any) -> None:
    """Add what the caller sent to what the engine says of the prompt."""
    for rank, raw in enumerate(raws):
        prompt = prompt_of(prompts, rank, len(raws), "prompt_token_ids of the caller")
        raw.sources.append(Source(PROMPT, "the caller's prompt_token_ids", prompt))


def _refuse_unread(sent: Payload | list[Payload], raws: list[RawChoice], missing: MissingField | None = None) -> None:
    """Refuse ids that are there and that no reader knows: they must never be "no tokens"."""
    read = [source.value for raw in raws for source in raw.sources if source.field in ID_FIELDS]
    bodies = [part.body for part in sent] if isinstance(sent, list) else sent.body
    place = unread_ids(bodies, read)
    if place is not None:
        choice = None if missing is None else missing.choice
        why = "no token ids were found" if missing is None else missing.why
        raise ResponseFault(f"{why}, and {place} is not read: its integers may be token ids", choice) from None


def _refuse_chunks(parts: list[Payload]) -> None:
    for part in parts:
        for place, choice in enumerate(part.choices):
            if "delta" in choice:
                why = f"choices[{place}].delta belongs to a chunk of a stream; merge_stream joins the chunks"
                raise ResponseFault(why, place)
