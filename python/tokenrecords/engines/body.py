"""The body of a response as its bytes: what is large in it becomes arrays without an object for each number.

Reading natively never decides that a body is wrong: `spliced` gives a payload in which arrays stand for lists, and
says what they are, so that whoever reads it can tell that each was read as tokens. If not, or if anything else is
unusual, the parsed payload says what the body is.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias, TypeVar

from pydantic_core import from_json

from tokenrecords._core import IdWords, scan_body

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    import numpy.typing as npt

BODY: Final = (bytes, bytearray, memoryview)
Bytes: TypeAlias = bytes | bytearray | memoryview

T = TypeVar("T")

_WORD: Final = "token_id:"


class Entries(Sequence[Any]):
    """A list of one entry for each token, as columns: what a reader asks an entry for, by key or place."""

    __slots__ = ("_columns",)

    def __init__(self, columns: dict[str, Any] | tuple[Any, ...]) -> None:
        self._columns = columns

    def column(self, key: str | int) -> npt.NDArray[Any] | IdWords:
        """One value of each entry.

        Raises:
            LookupError: It is not held.
        """
        column = self._columns[key]  # type: ignore[index]
        if column is None:
            raise LookupError(f"the column {key} is not held")
        return column  # type: ignore[no-any-return]

    def holds(self, key: str) -> bool:
        """True where the entries are objects with an id, or a word that names one, under this key."""
        return isinstance(self._columns, dict) and key in self._columns

    def __len__(self) -> int:
        held = self._columns.values() if isinstance(self._columns, dict) else self._columns
        return next(len(column) for column in held if column is not None)

    def __getitem__(self, place: Any) -> Any:
        if isinstance(self._columns, dict):
            return {key: _element(column, place) for key, column in self._columns.items()}
        return [_element(column, place) for column in self._columns]


def _element(column: npt.NDArray[Any] | IdWords | None, place: int) -> Any:
    if isinstance(column, IdWords):
        return f"{_WORD}{column.ids[place]}"
    return None if column is None else column[place].item()


class Spliced(NamedTuple):
    """A payload with arrays.

    Attributes:
        payload: The payload, or the part of it that is read.
        found: What each of them holds: the array, or its columns.
    """

    payload: Any
    found: list[Iterable[Any]]

    def all_are_of(self, values: Iterable[Any]) -> bool:
        """True if of each of those found an array is one of the values."""
        used = set(map(id, values))
        return not any(map(used.isdisjoint, (map(id, arrays) for arrays in self.found)))


def natively(body: Bytes, read: Callable[[Spliced], T]) -> T | None:
    """What reading the payload with arrays gives; None where it is for the parsed one to say."""
    native = spliced(body)
    if native is None:
        return None
    try:
        return read(native)
    except MemoryError:
        raise
    except Exception:  # noqa: BLE001 - whatever it is
        return None


def parsed(body: Bytes) -> Any:
    """The payload as a JSON reader gives it.

    Raises:
        ValueError: The body is not JSON.
    """
    try:
        return from_json(bytes(body))
    except ValueError as error:
        if b"\\u" in bytes(body):  # half a character that was cut costs no tokens: Python's own reader takes it
            try:
                return json.loads(bytes(body))
            except (ValueError, RecursionError):
                pass
        raise ValueError(f"the body is not JSON: {error}") from None


def spliced(body: Bytes) -> Spliced | None:
    """The payload with an array for each large list of numbers, and `Entries`; None where only `parsed` can say it."""
    scanned = scan_body(bytes(body))
    if scanned is None:
        return None
    rest, found = scanned
    try:
        payload = from_json(rest)
        for path, mark, value in found:
            *steps, last = path
            holder = payload
            for step in steps:
                holder = holder[step]
            # Of two equal keys another one may count.
            if type(holder[last]) is not int or holder[last] != mark:
                return None
            holder[last] = Entries(value) if isinstance(value, dict | tuple) else value
    except (ValueError, LookupError, TypeError):
        return None
    return Spliced(payload, [_arrays(value) for _, _, value in found])


def _arrays(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        return value.values()
    if isinstance(value, tuple):
        return value
    return (value.ids if isinstance(value, IdWords) else value,)
