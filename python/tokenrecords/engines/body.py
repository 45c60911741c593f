"""The body of a response as its bytes: what is large in it becomes arrays without an object for each number.

Reading natively never decides that a body is wrong: `spliced` gives a payload in which arrays stand for lists, and
says what they are, so that whoever reads it can tell that each was read as tokens. If not, or if anything else is
unusual, the parsed payload says what the body is.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias, TypeGuard, TypeVar

import numpy as np
from pydantic_core import from_json

from tokenrecords._core import IdWords, scan_body

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    import numpy.typing as npt

BODY: Final = (bytes, bytearray, memoryview)
Bytes: TypeAlias = bytes | bytearray | memoryview

T = TypeVar("T")

_WORD: Final = "token_id:"
_PLAIN: Final = (int, float, str, bool, type(None))
_ARRAYS: Final = (np.ndarray, IdWords)
_LEAST: Final = 16  # fewer elements are not worth an array


class Entries(Sequence[Any]):
    """A list of one entry for each token, as columns: what a reader asks an entry for, by key or place.

    Attributes:
        columns: All columns, by key where the entries are objects, by place where they are rows; None for what is not
            held.
    """

    __slots__ = ("columns",)

    def __init__(self, columns: Mapping[Any, Any] | tuple[Any, ...]) -> None:
        self.columns: Mapping[Any, Any] = dict(enumerate(columns)) if isinstance(columns, tuple) else columns

    @classmethod
    def joined(cls, parts: Sequence[Entries]) -> Entries:
        """The entries of all parts.

        Raises:
            ValueError: They do not hold the same columns.
        """
        first = parts[0].columns
        if any(part.columns.keys() != first.keys() for part in parts):
            raise ValueError("the parts of a list of entries hold different columns")
        return cls({key: join_columns([part.columns[key] for part in parts]) for key in first})

    def column(self, key: str | int) -> npt.NDArray[Any] | IdWords:
        """One value of each entry.

        Raises:
            LookupError: It is not held.
        """
        column = self.columns[key]
        if column is None:
            raise LookupError(f"the column {key} is not held")
        return column  # type: ignore[no-any-return]

    def holds(self, key: str) -> bool:
        """True where the entries are objects with an id, or a word that names one, under this key."""
        return key in self.columns

    def __len__(self) -> int:
        return next(len(column) for column in self.columns.values() if column is not None)

    def __getitem__(self, place: Any) -> Any:
        entry = {key: _element(column, place) for key, column in self.columns.items()}
        return list(entry.values()) if 0 in entry else entry


def is_entries(value: Any) -> TypeGuard[list[Any] | Entries]:
    """True for a list, and for `Entries`. An `isinstance` of those costs more where the value is something else."""
    return isinstance(value, list) or type(value) is Entries


def _element(column: npt.NDArray[Any] | IdWords | None, place: int) -> Any:
    if isinstance(column, IdWords):
        return f"{_WORD}{column.ids[place]}"
    return None if column is None else column[place].item()


def join_columns(parts: Sequence[npt.NDArray[Any] | IdWords | None]) -> npt.NDArray[Any] | IdWords | None:
    """The parts of one column as one.

    Raises:
        ValueError: They are of several kinds.
    """
    if all(part is None for part in parts):
        return None
    if all(isinstance(part, IdWords) for part in parts):
        return IdWords(np.concatenate([part.ids for part in parts]))  # type: ignore[union-attr]
    if not all(isinstance(part, np.ndarray) for part in parts):
        raise ValueError("the parts of a column are of several kinds")
    return np.concatenate(parts)  # type: ignore[arg-type]


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

    def turned_into(self, payload: Any) -> Spliced:
        """What was made of the payload, and which arrays are in it: those that were in this one, or joined ones.

        Raises:
            ValueError: They do not have as many elements as those of this one.
        """
        found = list(_held(payload))
        if _size(found) != _size(self.found):
            raise ValueError("not all arrays are in what was made of the payload")
        return Spliced(payload, found)


class Served:
    """A response that can be read in two ways.

    Args:
        spliced: The payload with arrays; None where only the parsed one can say what the response is.
        parse: Gives the parsed payload. Called once at most: at once, if there is none with arrays.

    Attributes:
        spliced: As given.
        payload: The payload, with arrays if it can be.
    """

    def __init__(self, spliced: Spliced | None, parse: Callable[[], Any]) -> None:
        self.spliced = spliced
        self._parse = parse
        self.payload = self.parsed if spliced is None else spliced.payload

    @cached_property
    def parsed(self) -> Any:
        """The payload without arrays."""
        return self._parse()


def natively(native: Spliced | None, read: Callable[[Spliced], T]) -> T | None:
    """What reading the payload with arrays gives; None where it is for the parsed one to say."""
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


def spliced(body: Bytes, *, least: int = _LEAST, most: float = math.inf) -> Spliced | None:
    """The payload with an array for each large list of numbers, and `Entries`; None where only `parsed` can say it.

    Args:
        body: The bytes.
        least: Lists of fewer elements stay.
        most: More lists are not worth it.
    """
    scanned = scan_body(bytes(body), least)
    if scanned is None or len(scanned[1]) > most:
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


def _held(value: Any) -> Iterator[Iterable[Any]]:
    """The arrays of a payload, those of each list together."""
    if type(value) is dict:
        for part in value.values():
            yield from _held(part)
    elif type(value) is list:
        # A long list of plain values is not looked through: it holds no arrays, and many values.
        for part in value if value and type(value[0]) not in _PLAIN else ():
            yield from _held(part)
    elif type(value) is Entries:
        yield value.columns.values()
    elif type(value) in _ARRAYS:
        yield _arrays(value)


def _size(found: Iterable[Iterable[Any]]) -> int:
    return sum(len(array) for arrays in found for array in arrays if array is not None)
