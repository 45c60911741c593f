"""Capture: files of served responses to files of records, one for each rollout."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pydantic_core import from_json

from tokenrecords.capture.entries import entries_from_response
from tokenrecords.entry.errors import one_line
from tokenrecords.entry.resolution import ParentResolutionStatus
from tokenrecords.files.sources import BOM, SUFFIX
from tokenrecords.lineage.parents import resolve_parent
from tokenrecords.tokens.names import ARRAY_FIELDS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path
    from types import UnionType

    from tokenrecords.entry.model import TokenEntry

_ROLLOUT_ID = re.compile(r"[A-Za-z0-9._-]+")
_MAX_NAME = 255  # bytes of a file name, on every file system in use


# What a line of any content may raise: the line is bad, whatever it was that could not work with it.
_FAULTS = (ValueError, TypeError, ArithmeticError, AttributeError, LookupError)


@dataclass(frozen=True)
class BadLine:
    """A line that could not be captured."""

    path: str
    line: int
    reason: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.reason}"


@dataclass
class Capture:
    """The calls captured so far, by rollout and in the order of capture.

    Args:
        earlier: Gives the records that a rollout has already, when the first of its calls comes.
        dialect: As for `read_response`.
    """

    earlier: Callable[[str], Iterable[TokenEntry]]
    dialect: str | None = None
    new: dict[str, list[TokenEntry]] = field(default_factory=dict)
    known: int = 0  # calls that were there already, with the same tokens
    bad: list[BadLine] = field(default_factory=list)
    _calls: dict[str, dict[str, TokenEntry]] = field(default_factory=dict)

    def read(self, lines: Iterable[bytes], path: str) -> Iterator[int]:
        """Capture the lines of a file; yields the bytes of each, for a progress bar."""
        for number, line in enumerate(lines, 1):
            if line.strip():
                try:
                    self._add(from_json(line.removeprefix(BOM) if number == 1 else line))
                except _FAULTS as error:
                    self.bad.append(BadLine(path, number, one_line(error)))
            yield len(line)

    def _add(self, row: Any) -> None:
        if not isinstance(row, dict):
            raise ValueError(f"an object is needed, got {type(row).__name__}")
        rollout_id = check_rollout_id(_required(row, "rollout_id", str))
        if rollout_id not in self._calls:
            self._calls[rollout_id] = {call.model_call_id: call for call in self.earlier(rollout_id)}
        calls = self._calls[rollout_id]
        new = []
        for entry in _entries(row, self.dialect):
            known = calls.get(entry.model_call_id)
            if known is None:
                _decide(entry, row, calls.values())
                entry.to_json()  # what can't be written must not cost the others when all of them are
                new.append(entry)
            elif not _same_tokens(known, entry):
                raise ValueError(f"model call {entry.model_call_id!r} was seen before with other tokens")
            else:
                self.known += 1
        # All choices of a line are captured or none.
        for entry in new:
            calls[entry.model_call_id] = entry
            self.new.setdefault(rollout_id, []).append(entry)


def record_path(directory: Path, rollout_id: str) -> Path:
    """The file of a rollout's records."""
    return directory / f"{check_rollout_id(rollout_id)}{SUFFIX}"


def check_rollout_id(rollout_id: str) -> str:
    """The id, if it can name a file and can't leave its directory.

    Raises:
        ValueError: It has other characters than letters, digits, `.`, `_` and `-`, is `.` or `..`, or too long.
    """
    if not _ROLLOUT_ID.fullmatch(rollout_id) or rollout_id in {".", ".."}:
        raise ValueError(f"rollout_id {rollout_id!r} can't name a file: letters, digits, '.', '_' and '-' can")
    if len(rollout_id) + len(SUFFIX) > _MAX_NAME:
        raise ValueError(f"rollout_id is too long for a file name: {len(rollout_id)} characters")
    return rollout_id


def _required(row: dict[str, Any], name: str, kind: type | UnionType) -> Any:
    if name not in row:
        raise ValueError(f"{name} is missing")
    if not isinstance(row[name], kind):
        needed = getattr(kind, "__name__", str(kind))
        raise ValueError(f"{name} is {type(row[name]).__name__}, {needed} is needed")
    return row[name]


def _entries(row: dict[str, Any], dialect: str | None) -> list[TokenEntry]:
    entries = entries_from_response(
        _required(row, "response", dict | list),
        rollout_id=row["rollout_id"],
        model_call_id=_required(row, "model_call_id", str),
        dialect=dialect,
    )
    if not entries:
        raise ValueError("the response carries no token ids")
    return [entry.as_arrays() for entry in entries]


def _decide(entry: TokenEntry, row: dict[str, Any], earlier: Iterable[TokenEntry]) -> None:
    """Find the parent of an entry, and note it."""
    if "parent_call_id" in row and row["parent_call_id"] is None:
        entry.parent_resolution = ParentResolutionStatus.ROOT
        return
    if "parent_call_id" in row:
        entry.parent_call_id = _required(row, "parent_call_id", str)
    decision = resolve_parent(entry, earlier)
    entry.parent_call_id, entry.parent_resolution, entry.parent_resolution_reason = decision


def _same_tokens(a: TokenEntry, b: TokenEntry) -> bool:
    return a.model_copy(update={name: getattr(b, name) for name in ARRAY_FIELDS}) == a
