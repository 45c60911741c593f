"""Token fields and content of served responses that carry them under the names of a record."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tokenrecords.engines.payload import choices_of
from tokenrecords.tokens.arrays import Fault
from tokenrecords.tokens.envelopes import opened
from tokenrecords.tokens.names import ARRAY_FIELDS, TOKEN_FIELDS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    _Reader = Callable[[dict[str, Any]], list[dict[str, Any]]]

__all__ = ["extract_token_fields", "response_to_output_items", "strip_token_fields"]

_ITEM = {"type": "message", "role": "assistant"}


def extract_token_fields(response_json: dict[str, Any]) -> dict[str, Any] | None:
    """The token fields of the one item, message or body of a response that carries them.

    Looked at are the dicts of `output` (Responses), an Anthropic Messages body itself, and `choices[*].message` (Chat
    Completions). An empty list is present, None is missing.

    Returns:
        The four TOKEN_FIELDS as the same objects (`routed_experts` may be None; what an envelope `ngtok1:...` holds
        is an array), or None if nothing carries tokens.

    Raises:
        ValueError: Two carriers, a carrier without one of the first three fields, or a broken envelope.
        TypeError: The response is not a mapping, or its `choices` are not a list.

    >>> message = {"prompt_token_ids": [1], "generation_token_ids": [2], "generation_log_probs": [-0.5]}
    >>> extract_token_fields({"choices": [{"message": message}]})["generation_token_ids"]
    [2]
    """
    if not isinstance(response_json, Mapping):
        raise TypeError(f"response_json is {type(response_json).__name__}: a mapping is needed")
    found = [item for item in _candidates(response_json) if carries(item)]
    if not found:
        return None
    if len(found) > 1:
        raise ValueError(_several(found))
    (carrier,) = found
    missing = [name for name in ARRAY_FIELDS if carrier.get(name) is None]
    if missing:
        raise ValueError(f"partial token metadata is missing: {', '.join(missing)}")
    return {name: _opened(name, carrier.get(name)) for name in TOKEN_FIELDS}


def _opened(name: str, value: Any) -> Any:
    try:
        return opened(name, value) if name in ARRAY_FIELDS else value
    except Fault as fault:
        raise fault.error(name) from None


def _several(carriers: list[dict[str, Any]]) -> str:
    shared = [name for name in ARRAY_FIELDS if sum(item.get(name) is not None for item in carriers) > 1]
    if shared:
        return f"multiple response items carry token fields: {len(carriers)} have {', '.join(shared)}"
    return f"one call's token fields are split over multiple response items: {len(carriers)} carry a part of them"


def _candidates(payload: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield from _output_dicts(payload)
    if is_messages_body(payload):
        yield payload
    yield from _messages(payload)


def carries(item: Mapping[str, Any]) -> bool:
    """True if an item, message or body has one of the fields that every record has."""
    return any(item.get(name) is not None for name in ARRAY_FIELDS)


def _output_dicts(payload: dict[str, Any]) -> list[dict[str, Any]]:
    return [item for item in payload.get("output") or () if isinstance(item, dict)]


def is_messages_body(payload: Mapping[str, Any]) -> bool:
    """True for an Anthropic Messages body."""
    return payload.get("type") == "message" and payload.get("role") == "assistant"


def _messages(payload: dict[str, Any]) -> list[dict[str, Any]]:
    """The messages of the choices. A null choice or message counts as an empty one, as in the replaced module."""
    choices = [choice or {} for choice in choices_of(payload)]
    messages = [choice.get("message") or {} for choice in choices if isinstance(choice, dict)]
    return [message for message in messages if isinstance(message, dict)]


def response_to_output_items(payload: dict[str, Any]) -> list[dict[str, Any]]:
    """The content of a response as Responses output items.

    A source that carries token fields (see `extract_token_fields`) is the one that is read. Where none does, the first
    of these: a non-empty `output`, an Anthropic Messages body, `choices`.

    Returns:
        The dicts of `output`, the same objects; or one item for each choice: a shallow copy of its message with `type`
        "message" and `role` "assistant" where absent; or for an Anthropic body a `reasoning` item for each `thinking`
        or `redacted_thinking` block and then one message with the other blocks. So for interleaved thinking the order
        of the blocks is lost.

    Raises:
        ValueError: A choice holds a `delta`: a chunk of a stream, which `merge_stream` puts together.
        TypeError: `choices` or the `content` of a body are not a list.

    >>> response_to_output_items({"choices": [{"message": {"content": "hi"}}]})
    [{'content': 'hi', 'type': 'message', 'role': 'assistant'}]
    """
    output = payload.get("output")
    sources: list[tuple[_Reader, _Reader]] = []
    if isinstance(output, list | tuple) and output:
        sources.append((_output_dicts, _output_dicts))
    if is_messages_body(payload):
        sources.append((lambda body: [body], _body_items))
    if not sources or isinstance(payload.get("choices"), list | tuple):
        sources.append((_messages, _choice_items))
    for candidates, items in sources:
        if any(map(carries, candidates(payload))):
            return items(payload)
    return sources[0][1](payload)


def _choice_items(payload: dict[str, Any]) -> list[dict[str, Any]]:
    for index, choice in enumerate(choices_of(payload)):
        if isinstance(choice, dict) and choice.get("message") is None and choice.get("delta") is not None:
            raise ValueError(
                f"choices[{index}].delta is a chunk of a stream: put the chunks together with merge_stream"
            )
    return [
        {**message, **{key: message.get(key, value) for key, value in _ITEM.items()}} for message in _messages(payload)
    ]


def _body_items(payload: dict[str, Any]) -> list[dict[str, Any]]:
    """The items of an Anthropic Messages body."""
    content = payload.get("content") or ()
    if isinstance(content, str):
        content = ({"type": "text", "text": content},)
    elif isinstance(content, dict):
        content = (content,)
    elif not isinstance(content, list | tuple):
        raise TypeError(f"content is {type(content).__name__}: a list of blocks is needed")
    items: list[dict[str, Any]] = []
    blocks = []
    for block in content:
        kind = block.get("type") if isinstance(block, dict) else None
        if kind == "thinking":
            items.append({"type": "reasoning", "summary": _summary(block.get("thinking"))})
        elif kind == "redacted_thinking":
            data = block.get("data")
            items.append({"type": "reasoning", "summary": [], **({} if data is None else {"encrypted_content": data})})
        else:
            blocks.append(block)
    carried = {name: payload.get(name) for name in TOKEN_FIELDS} if carries(payload) else {}
    if blocks or carried:
        items.append({**_ITEM, "content": blocks, **carried})
    return items


def _summary(thinking: Any) -> list[dict[str, Any]]:
    return [] if thinking is None else [{"type": "summary_text", "text": thinking}]


def strip_token_fields(items: Iterable[dict[str, Any]]) -> tuple[list[dict[str, Any]], int | None]:
    """Output items without TOKEN_FIELDS, and the index of the one that carried the tokens.

    Returns:
        `(items, index)`: shallow copies, and the place of the item whose `generation_token_ids` is not None, or None.

    Raises:
        ValueError: Two items carry generated ids.

    >>> strip_token_fields([{"type": "reasoning"}, {"type": "message", "generation_token_ids": [3]}])
    ([{'type': 'reasoning'}, {'type': 'message'}], 1)
    """
    stripped = []
    index = None
    for place, item in enumerate(items):
        if item.get("generation_token_ids") is not None:
            if index is not None:
                raise ValueError(f"multiple output items carry generation_token_ids: items {index} and {place}")
            index = place
        stripped.append({key: value for key, value in item.items() if key not in TOKEN_FIELDS})
    return stripped, index
