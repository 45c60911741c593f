"""The tool calls of a streamed message, joined from their pieces."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tokenrecords.engines.joining import Unfinished, append, closed, number
from tokenrecords.engines.payload import mapping

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


@dataclass(slots=True)
class _Call:
    index: int | None
    merged: dict[str, Any] = field(default_factory=dict)


@dataclass
class ToolCalls(Unfinished):
    """The calls in the order in which they began.

    A piece belongs to the call of its id; where it has none, to the last call of its index, unless that has arguments
    and the piece names another function; where it has neither, to the call at its place among several of one chunk, or
    else to the last one.
    """

    _calls: list[_Call] = field(default_factory=list)
    _by_id: dict[Any, _Call] = field(default_factory=dict)
    _by_index: dict[int, _Call] = field(default_factory=dict)

    def add(self, k: int, pieces: Iterable[Any]) -> None:
        """Take the pieces of a chunk.

        Raises:
            ValueError: The index of a piece is not an integer, or a part of its function is not text.
        """
        pieces = [mapping(piece) for piece in pieces]
        for place, piece in enumerate(pieces):
            call = self._call_of(k, piece, place if len(pieces) > 1 else None)
            for key, value in piece.items():
                if key == "function":
                    merge_function(call.merged.setdefault("function", {}), value, k)
                elif key != "index" and value is not None:
                    call.merged.setdefault(key, value)

    def _call_of(self, k: int, piece: Mapping[str, Any], place: int | None) -> _Call:
        index, id_ = number(piece.get("index"), "the index of a tool call", k), piece.get("id") or None
        if isinstance(id_, str) and id_ in self._by_id:
            return self._by_id[id_]
        call = self._by_index.get(index) if index is not None else self._at(place, piece)
        if call is None or _begins_another(call, piece, id_):
            call = _Call(index)
            self._calls.append(call)
        if index is not None:
            self._by_index[index] = call
        if isinstance(id_, str):
            self._by_id[id_] = call
        return call

    def _at(self, place: int | None, piece: Mapping[str, Any]) -> _Call | None:
        """The call that a piece without an index goes on with, unless it names another function."""
        if not self._calls or (place is not None and place >= len(self._calls)):
            return None
        call = self._calls[-1 if place is None else place]
        held, name = mapping(call.merged.get("function")).get("name"), _names(piece)
        return call if piece.get("id") or name is None or not any(held or ()) or _is_text(held, name) else None

    def closed(self) -> list[dict[str, Any]]:
        """The calls in order of index, those without one where they began."""
        order = sorted(enumerate(self._calls), key=lambda at: at[0] if at[1].index is None else at[1].index)
        return [closed(call.merged) for _, call in order]


def _begins_another(call: _Call, piece: Mapping[str, Any], id_: Any) -> bool:
    """True where a piece names a function under another id, or another function once the call has arguments."""
    name = _names(piece)
    if name is None or id_ is not None:
        return name is not None and call.merged.get("id") is not None
    function = mapping(call.merged.get("function"))
    return any(function.get("arguments") or ()) and not _is_text(function.get("name"), name)


def _names(piece: Mapping[str, Any]) -> Any:
    """The name of the function that a piece begins with, if it does."""
    return mapping(piece.get("function")).get("name") or None


def merge_function(into: dict[str, Any], function: Any, k: int) -> None:
    """Add a piece of a call's function.

    Raises:
        ValueError: A part of it is not text.
    """
    for key, value in mapping(function).items():
        if value is None:
            continue
        if not isinstance(value, str):
            raise ValueError(f"chunk {k}: {key} of a function must be text, got {value!r:.80}")
        # The name comes whole, with some servers in each chunk; arguments come in pieces.
        if key not in into or (value and not (key == "name" and _is_text(into[key], value))):
            append(into, key, value, k)


def _is_text(pieces: Iterable[str] | None, text: str) -> bool:
    """True if the pieces are the text; the others are not looked at once one differs."""
    place = 0
    for piece in pieces or ():
        if not text.startswith(piece, place):
            return False
        place += len(piece)
    return place == len(text)
