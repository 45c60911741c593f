"""The values of chunks joined: what comes in pieces, what grows, and what is said once."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from tokenrecords._core import IdWords
from tokenrecords.engines.body import Entries, join_columns
from tokenrecords.engines.payload import count
from tokenrecords.tokens import arrays
from tokenrecords.tokens.arrays import Fault, join_arrays, same
from tokenrecords.tokens.envelopes import opened
from tokenrecords.tokens.names import ARRAY_FIELDS, GENERATION

_IDS: Final = frozenset({"token_ids", "output_ids", "gen_tokens"})  # of generated tokens
# Where an error that does not call itself one has its words.
WORDS: Final = ("message", "detail", "errors")
# By these rules several chunks may be taken as one, whatever the stream: no error is lost.
RULES: Final = {**dict.fromkeys(("type", "object"), "same"), **dict.fromkeys(WORDS, "never")}


class Unfinished:
    """A value of which more may come."""

    def closed(self) -> Any:
        """The value, once all has come."""
        raise NotImplementedError


class Joined(list[Any], Unfinished):
    """The parts of a value that is to be joined once all have come."""

    def closed(self) -> Any:
        """The parts as one."""
        return join(self)


def append(into: dict[str, Any], key: str, value: Any, k: int) -> None:
    """Add a piece of text, of a list or of an array.

    Raises:
        ValueError: It is something else.
    """
    value = unpacked(key, value, k)
    if not isinstance(value, str) and count(value) is None:
        raise ValueError(f"chunk {k}: {key} is neither text nor a list: {arrays.shown(value)}")
    into[key] = into[key] if isinstance(into.get(key), Joined) else Joined()
    into[key].append(value)


def unpacked(key: str, value: Any, k: int) -> Any:
    """What an envelope holds: texts of envelopes can't be joined."""
    name = GENERATION if key in _IDS else key
    try:
        return opened(name, value) if name in ARRAY_FIELDS else value
    except Fault as fault:
        raise ValueError(f"chunk {k}: {fault.of(key)}") from None


def join(parts: Joined) -> Any:
    """Texts as one text, arrays as one array, `Entries` as one, lists as one list.

    Raises:
        ValueError: Texts and lists.
    """
    if all(isinstance(part, str) for part in parts):
        return "".join(parts)
    if any(isinstance(part, str) for part in parts):
        raise ValueError("a value of the stream comes as text in some chunks and as a list in others")
    filled = [part for part in parts if len(part)] or parts[:1]
    if all(type(part) is Entries for part in filled):
        return Entries.joined(filled)
    if all(isinstance(part, IdWords) for part in filled):
        return join_columns(filled)
    if all(isinstance(part, np.ndarray) for part in filled):
        if any(part.dtype.kind not in "iu" for part in filled):
            return np.concatenate(filled)
        joined = join_arrays(filled)
        if joined is not None:
            return joined
    return [value for part in parts for value in part]


def closed(value: Any) -> Any:
    """The merged value with every join made."""
    if isinstance(value, Unfinished):
        return value.closed()
    if isinstance(value, dict):
        return {key: closed(held) for key, held in value.items()}
    return value


def number(value: Any, what: str, k: int) -> int | None:
    """A number that an engine gave to something; None where it gave none.

    Raises:
        ValueError: It is not an integer.
    """
    if value is not None and (isinstance(value, bool) or not isinstance(value, int)):
        raise ValueError(f"chunk {k}: {what} must be an integer, got {arrays.shown(value)}")
    return value


def set_once(into: dict[str, Any], key: str, value: Any, k: int) -> None:
    """Note a value that is said once for the whole response; said again, it must be the same.

    Raises:
        ValueError: It is not.
    """
    if into.get(key) is not None and not same(into[key], value):
        raise ValueError(f"chunk {k}: a second {key} disagrees with the first")
    into[key] = value


class Growing(Unfinished):
    """A list that comes again from its start in each chunk, or in pieces; the engine's own count tells which."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._parts = Joined()
        self._length = 0

    def add(self, k: int, value: Any, counted: Any, *, whole: bool | None = True) -> bool | None:
        """Take what a chunk has.

        Args:
            k: The chunk.
            value: Its list.
            counted: How many there are by now, as the engine says; None where it does not.
            whole: Whether it comes from its start, where nothing is counted; None where nothing tells.

        Returns:
            True if it came from its start, False if it is a piece; None for the first and for an empty one, which is
            both.

        Raises:
            ValueError: It is neither.
        """
        value = unpacked(self._name, value, k)
        length = count(value)
        if length is None:
            raise ValueError(f"chunk {k}: {self._name} is not a list: {arrays.shown(value)}")
        if not self._length:
            self._set(value, length)
            return None
        if counted is None:
            is_piece, is_whole = whole is False or not (length or whole), whole is True
        else:
            is_piece, is_whole = counted == self._length + length, counted == length
        if is_piece:
            self._parts.append(value)
            self._length += length
            return False if length else None
        if is_whole and length >= self._length and same(self.closed(), value[: self._length]):
            self._set(value, length)
            return True
        raise ValueError(f"chunk {k}: {self._name} does not go on from that of an earlier chunk")

    def closed(self) -> Any:
        """All that has come."""
        if len(self._parts) > 1:
            self._parts = Joined([join(self._parts)])
        return self._parts[0] if self._parts else []

    def _set(self, value: Any, length: int) -> None:
        self._parts, self._length = Joined([value]), length
