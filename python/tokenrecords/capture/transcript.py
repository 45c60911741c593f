"""A finished transcript as linked records: one for each call whose tokens an item carries."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from tokenrecords.capture.entries import entries_from_response
from tokenrecords.engines.payload import plain
from tokenrecords.engines.provenance import kept, kept_on_payload
from tokenrecords.engines.token_fields import carries
from tokenrecords.lineage.parents import link_entries

if TYPE_CHECKING:
    from tokenrecords.entry.model import TokenEntry

_NOT_GIVEN: Final = ("parent", "delta", "choices", "prompt_token_ids")
_LISTS: Final = ("output", "messages", "items")
# Whose items come between two calls: the answers of tools, and the words of others.
_OTHERS: Final = frozenset({"user", "system", "developer", "tool", "environment"})


def entries_from_transcript(
    payload: Any, *, rollout_id: str, model_call_id: str = "call", dialect: str | None = None, **fields: Any
) -> list[TokenEntry]:
    """The linked records of a transcript whose items carry the tokens of several calls.

    Each item that carries token fields is a call. Its output items are those that the model made before it, after the
    call or the answer before; items that follow the last call of a turn belong to that call.

    Args:
        payload: A Responses body (`output`), a mapping with `messages`, or the list of items itself.
        rollout_id: The training sample.
        model_call_id: The calls are `<model_call_id>-0`, `<model_call_id>-1`, in the order of the transcript.
        dialect: As for `read_response`, of each call; None for `responses`.
        **fields: As for `entries_from_response`.

    Returns:
        The records, linked as `link_entries` does; an empty list where no item carries tokens.

    Raises:
        ValueError: A call's tokens are incomplete; the message names the call.
        TypeError: The payload has no list of items.

    >>> def message(prompt, ids):
    ...     return {"type": "message", "role": "assistant", "content": [], "prompt_token_ids": prompt,
    ...             "generation_token_ids": ids, "generation_log_probs": [-0.5] * len(ids)}
    >>> entries = entries_from_transcript({"output": [
    ...     message([1], [2]), {"type": "function_call_output", "output": "4"}, message([1, 2, 3], [4]),
    ... ]}, rollout_id="r")
    >>> [(entry.model_call_id, entry.parent_call_id) for entry in entries]
    [('call-0', None), ('call-1', 'call-0')]
    """
    for name in _NOT_GIVEN:
        if name in fields:
            raise TypeError(f"{name} can't be given: the transcript says it")
    body = plain(payload)
    entries: list[TokenEntry] = []
    for items in _calls([plain(item) for item in _items(body)]):
        call_id = f"{model_call_id}-{len(entries)}"
        try:
            entries += entries_from_response(
                {**_about(body, items), "object": "response", "output": items},
                rollout_id=rollout_id,
                model_call_id=call_id,
                dialect=dialect or "responses",
                **fields,
            )
        except ValueError as error:
            raise ValueError(f"{call_id}: {error}") from error
    return link_entries(entries)


def _about(body: Any, items: list[Any]) -> dict[str, Any]:
    """What the whole says of each call, where the call does not say it itself."""
    if not isinstance(body, Mapping):
        return {}
    own = {source.field for item in items for source in kept("", item)}
    found = {source.field: source.value for source in kept_on_payload(body, len(items) + 1) if source.field not in own}
    return {**found, **{name: body[name] for name in ("model", "created_at", "created") if name in body}}


def _items(body: Any) -> list[Any]:
    found = body
    if isinstance(body, Mapping):
        found = next((body[name] for name in _LISTS if body.get(name) is not None), None)
    if not isinstance(found, list | tuple):
        raise TypeError(f"payload is {type(found).__name__}: a mapping with a list of items, or the list, is needed")
    return list(found)


def _calls(items: list[Any]) -> Iterator[list[Any]]:
    """The items of each call, and of each turn without one, which may hold ids that are not read."""
    turn: list[Any] = []
    for item in [*items, None]:
        if isinstance(item, Mapping) and not _is_of_others(item):
            turn.append(item)
        else:
            yield from _calls_of_turn(turn)
            turn = []


def _is_of_others(item: Mapping[str, Any]) -> bool:
    return item.get("role") in _OTHERS or str(item.get("type")).endswith("_output")


def _calls_of_turn(items: list[Any]) -> Iterator[list[Any]]:
    """What the model made without an answer in between, split behind each carrier but the last."""
    ends = [place + 1 for place, item in enumerate(items) if carries(item)]
    for start, end in zip([0, *ends], [*ends[:-1], len(items)], strict=False):
        if items:
            yield items[start:end]
