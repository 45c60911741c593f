"""The body of a response as its bytes: what is large in it becomes arrays without an object for each number.

Reading natively never decides that a body is wrong: `spliced` gives a payload in which arrays stand for lists, and
says what they are, so that whoever reads it can tell that each was read as tokens, and read `parsed` if not.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from pydantic_core import from_json

from tokenrecords._core import IdWords, scan_body

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

BODY: Final = (bytes, bytearray, memoryview)
Bytes: TypeAlias = bytes | bytearray | memoryview

_WORD: Final = "token_id:"


class Entries(Sequence[Any]):
    """A list of one entry for each token, as columns: what a reader asks an entry for, by key or place."""

    __slots__ = ("_columns", "_length")

    def __init__(self, columns: dict[str, Any] | tuple[Any, ...]) -> None:
        self._columns = columns
        self._length = next(len(column) for column in self.columns() if column is not None)

    def columns(self) -> list[Any]:
        """The columns that are held; None for one that is not."""
        return list(self._columns.values() if isinstance(self._columns, dict) else self._columns)

    def column(self, key: str | int) -> npt.NDArray[Any] | IdWords:
        """One value of each entry.

        Raises:
            LookupError: It is not held.
        """
        column = self._columns[key]  # type: ignore[index]
        if column is None:
            raise LookupError(f"the column {key} is not held")
        return column  # type: ignore[no-any-return]

    def __len__(self) -> int:
        return self._length

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
        found: The arrays, `IdWords` and `Entries` in it.
    """

    payload: Any
    found: list[Any]

    def all_among(self, values: list[Any]) -> bool:
        """True if each of those found, or a column of it, is one of the values."""
        used = set(map(id, values))
        return all(any(id(part) in used for part in _parts(value)) for value in self.found)


def _parts(value: np.ndarray | IdWords | Entries) -> list[Any]:
    columns = value.columns() if isinstance(value, Entries) else [value]
    return [column.ids if isinstance(column, IdWords) else column for column in columns]


def parsed(body: Bytes) -> Any:
    """The payload as a JSON reader gives it.

    Raises:
        ValueError: The body is not JSON.
    """
    try:
        return from_json(bytes(body))
    except ValueError as error:
        raise ValueError(f"the body is not JSON: {error}") from None


def spliced(body: Bytes) -> Spliced | None:
    """The payload with an array for each large list of numbers, and `Entries`; None where only `parsed` can say it."""
    scanned = scan_body(bytes(body))
    if scanned is None:
        return None
    rest, found = scanned
    try:
        payload = from_json(rest)
        return Spliced(payload, [_splice(payload, *part) for part in found])
    except (ValueError, LookupError, TypeError):
        return None


def _splice(payload: Any, path: tuple[str | int, ...], mark: int, value: Any) -> Any:
    """Put a value in the place of its mark.

    Raises:
        LookupError: The mark is not there: of two equal keys another one counts.
        TypeError: Likewise.
    """
    *steps, last = path
    for step in steps:
        payload = payload[step]
    if type(payload[last]) is not int or payload[last] != mark:
        raise LookupError(f"{path} holds another value")
    payload[last] = Entries(value) if isinstance(value, dict | tuple) else value
    return payload[last]
