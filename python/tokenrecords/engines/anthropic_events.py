"""The events of an Anthropic Messages stream, with the ids that a server adds to them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, ClassVar, Final

from tokenrecords._core import ChunkRules
from tokenrecords.engines.joining import RULES, Joined, append, closed, number, set_once
from tokenrecords.engines.payload import count, mapping
from tokenrecords.tokens.arrays import shown
from tokenrecords.tokens.names import GENERATION, LOG_PROBS, LOSS_MASK, PROMPT, ROUTED_EXPERTS

if TYPE_CHECKING:
    from collections.abc import Mapping

EVENTS: Final = frozenset(
    {
        *("message_start", "message_delta", "message_stop", "ping"),
        *("content_block_start", "content_block_delta", "content_block_stop"),
    }
)
ENDS: Final = frozenset({"message_stop"})
_IDS: Final = ("output_ids", "token_ids", GENERATION)
_SCORES: Final = ("output_token_logprobs", LOG_PROBS)
_LISTS: Final = frozenset({*_IDS, *_SCORES, LOSS_MASK})
_ONCE: Final = frozenset({PROMPT, ROUTED_EXPERTS})
_STRUCTURE: Final = frozenset({"type", "index", "message", "content_block", "delta", "usage"})
# What a delta adds to its block.
_PIECES: Final = ("text", "thinking", "signature", "partial_json")
_RULES: Final = {
    **RULES,
    **dict.fromkeys(_LISTS, "list"),
    **dict.fromkeys(_ONCE, "same"),
    **dict.fromkeys(("content_block", "usage", "citation"), "never"),
    "*": "last",
}


class Messages:
    """A message while its events come in."""

    RULES: ClassVar = ChunkRules(
        {
            **_RULES,
            "type": ("content_block_delta",),
            "index": "same",
            "delta": {**_RULES, **dict.fromkeys(_PIECES, "text"), "type": "same"},
        }
    )

    def __init__(self, _dialect: str | None, *, check_ids: bool) -> None:
        self._check_ids = check_ids
        self._body: dict[str, Any] = {}
        self._blocks: dict[int | None, dict[str, Any]] = {}

    def add(self, k: int, event: Mapping[str, Any]) -> None:
        """Take an event.

        Raises:
            ValueError: It is of another message, or has other numbers of ids and log-probs.
        """
        message, delta = mapping(event.get("message")), mapping(event.get("delta"))
        own, held = message.get("id"), self._body.get("id")
        if self._check_ids and own and held and own != held:
            raise ValueError(f"chunk {k}: id {own!r} of another response than {held!r}")
        for holder in (message, event, delta):
            _refuse_unequal(holder, k)
        self._merge({key: value for key, value in message.items() if key not in ("content", "usage")}, k)
        index = number(event.get("index"), "index", k)
        if event.get("type") == "content_block_start":
            self._blocks[index] = dict(mapping(event.get("content_block")))
        if event.get("type") == "content_block_delta":
            delta = self._say(index, delta, k)
        self._merge(delta, k)
        self._merge({key: value for key, value in event.items() if key not in _STRUCTURE}, k)
        # What is counted before the first token is not the number of tokens.
        before = {key: value for key, value in mapping(message.get("usage")).items() if key != "output_tokens"}
        for usage in (before, mapping(event.get("usage"))):
            counted = {key: value for key, value in usage.items() if value is not None}
            if counted:
                self._body["usage"] = {**mapping(self._body.get("usage")), **counted}

    def _merge(self, values: Mapping[str, Any], k: int) -> None:
        for key, value in values.items():
            if value is None:
                self._body.setdefault(key, None)
            elif key in _LISTS:
                append(self._body, key, value, k)
            elif key in _ONCE:
                set_once(self._body, key, value, k)
            else:
                self._body[key] = value

    def _say(self, index: int | None, delta: Mapping[str, Any], k: int) -> dict[str, Any]:
        """Add a delta to its block; what is left of it belongs to the message."""
        block = self._blocks.setdefault(index, {})
        rest = {key: value for key, value in delta.items() if key != "type"}
        pieces: dict[str, Any] = {name: rest.pop(name) for name in _PIECES if name in rest}
        citation = rest.pop("citation", None)
        pieces["citations"] = None if citation is None else [citation]
        for name, piece in pieces.items():
            if piece is None:
                continue
            if name in _PIECES and not isinstance(piece, str):
                raise ValueError(f"chunk {k}: {name} of a block must be text, got {shown(piece)}")
            if type(block.get(name)) in (str, list):  # what the block began with
                block[name] = Joined([block[name]])
            append(block, name, piece, k)
        return rest

    def payload(self) -> dict[str, Any]:
        """The message."""
        content = [_block(closed(self._blocks[index])) for index in sorted(self._blocks, key=lambda index: index or 0)]
        return {"type": "message", "role": "assistant", **closed(self._body), "content": content}


def _refuse_unequal(holder: Mapping[str, Any], k: int) -> None:
    ids = [count(holder[name]) for name in _IDS if holder.get(name) is not None]
    scores = [count(holder[name]) for name in _SCORES if holder.get(name) is not None]
    if ids and scores and ids[0] != scores[0]:
        raise ValueError(f"chunk {k}: {ids[0]} {GENERATION} and {scores[0]} {LOG_PROBS}")


def _block(block: dict[str, Any]) -> dict[str, Any]:
    """A block with the input of its tool call, whose JSON may be cut off."""
    text = block.pop("partial_json", None)
    if text:
        try:
            block["input"] = json.loads(text)
        except (ValueError, RecursionError):
            block["input"] = text
    return block
