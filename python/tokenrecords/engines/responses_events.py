"""The events of a Responses stream: its last one holds the whole; without it the items are put together."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Final

from tokenrecords._core import ChunkRules
from tokenrecords.engines.joining import RULES, append, closed, number, set_once
from tokenrecords.engines.payload import count, listed, mapping, plain
from tokenrecords.tokens.arrays import same
from tokenrecords.tokens.names import GENERATION, LOG_PROBS, LOSS_MASK, PROMPT, ROUTED_EXPERTS

if TYPE_CHECKING:
    from collections.abc import Mapping

PREFIX: Final = "response."
_FINAL: Final = frozenset({"response.completed", "response.incomplete", "response.cancelled"})
_FAILED: Final = "response.failed"
ENDS: Final = _FINAL | {_FAILED}
_LISTS: Final = frozenset({"token_ids", "output_ids", "output_token_logprobs", GENERATION, LOG_PROBS, LOSS_MASK})
_ONCE: Final = frozenset({PROMPT, ROUTED_EXPERTS})
# Kinds of parts: where the item has them, the number of a part in an event, its type, the name of its text.
_PARTS: Final = {
    "output_text": ("content", "content_index", "output_text", "text"),
    "refusal": ("content", "content_index", "refusal", "refusal"),
    "reasoning_text": ("content", "content_index", "reasoning_text", "text"),
    "reasoning_summary_text": ("summary", "summary_index", "summary_text", "text"),
}
_NAMES: Final = frozenset({"type", "output_index", *(numbered for _, numbered, _, _ in _PARTS.values())})
# What an event says of itself, or of a part of its item.
_OF_EVENTS: Final = _NAMES | {"logprobs"}
_ARGUMENTS: Final = {
    "function_call_arguments": ("function_call", "arguments"),
    "mcp_call_arguments": ("mcp_call", "arguments"),
    "custom_tool_call_input": ("custom_tool_call", "input"),
}


class Response:
    """A response while its events come in."""

    RULES: ClassVar = ChunkRules(
        {
            **RULES,
            **dict.fromkeys(("response", "item"), "never"),
            **dict.fromkeys(_LISTS | _OF_EVENTS, "list"),
            **dict.fromkeys(_NAMES | _ONCE, "same"),
            "delta": "text",
            "*": "last",
        }
    )

    def __init__(self, _dialect: str | None, *, check_ids: bool) -> None:
        self._check_ids = check_ids
        self._head: dict[str, Any] = {}
        self._final: Mapping[str, Any] | None = None
        self._items: dict[int | None, _Item] = {}

    def add(self, k: int, event: Mapping[str, Any]) -> None:
        """Take an event.

        Raises:
            ValueError: It is of another response, or says that the response failed.
        """
        kind, response = str(event.get("type")), mapping(event.get("response"))
        error = failure(event)
        if error is not None:
            raise ValueError(f"chunk {k}: the server sent an error: {error}")
        own, held = response.get("id"), self._head.get("id")
        if self._check_ids and own and held and own != held:
            raise ValueError(f"chunk {k}: id {own!r} of another response than {held!r}")
        if response:
            self._head |= {**_lists(event), **response}
            if kind in _FINAL:
                self._final = response
        elif "output_index" in event:
            index = number(event["output_index"], "output_index", k)
            self._items.setdefault(index, _Item()).add(k, kind.removeprefix(PREFIX), event)

    def payload(self) -> dict[str, Any]:
        """The whole response."""
        built = [self._items[index].item() for index in sorted(self._items, key=_place)]
        final = [plain(item) for item in listed(mapping(self._final).get("output"))]
        if final and len(final) == len(built):
            items: list[Any] = [_with_tokens(place, *pair) for place, pair in enumerate(zip(final, built, strict=True))]
        else:
            items = final or built
            if final and any(_tokens(item) for item in built):
                raise ValueError(f"the stream has the tokens of {len(built)} items, and the last event {len(final)}")
        return {"object": "response", **self._head, "output": items}


def failure(event: Mapping[str, Any]) -> str | None:
    """What the event of a failed response says went wrong; None of any other event."""
    if event.get("type") != _FAILED:
        return None
    error = mapping(event.get("response")).get("error")
    return str(mapping(error).get("message") or error)


class _Item:
    """An output item while its events come in."""

    def __init__(self) -> None:
        self._item: dict[str, Any] = {}
        self._parts: dict[str, dict[int | None, dict[str, Any]]] = {"content": {}, "summary": {}}
        self._is_done = False

    def add(self, k: int, kind: str, event: Mapping[str, Any]) -> None:
        name, _, step = kind.rpartition(".")
        if name == "output_item":
            self._item |= mapping(event.get("item"))
            self._is_done = self._is_done or step == "done"
        elif name in _PARTS and step == "delta":
            place, numbered, type_, text = _PARTS[name]
            self._item.setdefault("type", "message" if place == "content" and name != "reasoning_text" else "reasoning")
            part = self._parts[place].setdefault(number(event.get(numbered), numbered, k), {"type": type_})
            append(part, text, event.get("delta") or "", k)
            if listed(event.get("logprobs")):
                append(part, "logprobs", event["logprobs"], k)
        elif name in _ARGUMENTS and step == "delta":
            type_, text = _ARGUMENTS[name]
            self._item.setdefault("type", type_)
            append(self._item, text, event.get("delta") or "", k)
        for key, value in event.items():
            if key in _ONCE and value is not None:
                set_once(self._item, key, value, k)
        for key, value in _lists(event).items():
            append(self._item, key, value, k)

    def item(self) -> dict[str, Any]:
        """The item: as its last event has it, or else of its parts."""
        item: dict[str, Any] = closed(self._item)
        if self._is_done:
            return item
        for place, parts in self._parts.items():
            if parts:
                item[place] = [closed(parts[index]) for index in sorted(parts, key=_place)]
        return {"role": "assistant", **item} if item.get("type") == "message" else item


def _lists(event: Mapping[str, Any]) -> dict[str, Any]:
    """What an event brings in pieces: the tokens that are read, and lists that no event of the API has."""
    held = {key: value for key, value in event.items() if value is not None and key not in _OF_EVENTS | _ONCE}
    return {key: value for key, value in held.items() if key in _LISTS or count(value) is not None}


def _place(index: int | None) -> int:
    return index or 0


def _tokens(item: Any) -> dict[str, Any]:
    return {key: value for key, value in mapping(item).items() if key in _LISTS | _ONCE and value is not None}


def _with_tokens(place: int, final: Any, built: Any) -> Any:
    """An item of the last event, with the tokens that only earlier events said.

    Raises:
        ValueError: Both said them, in two ways.
    """
    earlier, held = _tokens(built), _tokens(final)
    for key, value in earlier.items():
        if key in held and not same(value, held[key]):
            raise ValueError(f"{key} of output[{place}] disagrees with what earlier events said")
    return {**mapping(final), **earlier} if earlier.keys() - held.keys() else final
