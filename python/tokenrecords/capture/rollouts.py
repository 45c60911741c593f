"""Capture: files of served responses to files of records, one for each rollout."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tokenrecords.capture.rows import Reading
from tokenrecords.engines.body import natively, parsed, spliced
from tokenrecords.entry.errors import one_line
from tokenrecords.entry.model import set_origin
from tokenrecords.files.names import COMPRESSED, SUFFIX, PathLike
from tokenrecords.files.sources import BOM
from tokenrecords.lineage.parents import link_entries
from tokenrecords.tokens.names import ARRAY_FIELDS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from tokenrecords.engines.body import Spliced
    from tokenrecords.entry.model import TokenEntry
    from tokenrecords.files.remote import AnyPath

_ROLLOUT_ID = re.compile(r"[A-Za-z0-9._-]+")
_MAX_NAME = 255  # bytes of a file name, on every file system in use
_CAPTURE = ".capture.jsonl"  # NeMo Gym's observability: the calls of one rollout, which the name says


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
class _Line:
    """The records of one line."""

    path: str
    number: int
    entries: list[TokenEntry]


@dataclass
class Capture:
    """The calls captured so far, by rollout and in the order of capture.

    Args:
        earlier: Gives the records that a rollout has already, when the first of its calls comes.
        reading: How responses are read.
    """

    earlier: Callable[[str], Iterable[TokenEntry]]
    reading: Reading = field(default_factory=Reading)
    known: int = 0  # calls that were there already, with the same tokens
    bad: list[BadLine] = field(default_factory=list)
    _earlier: dict[str, list[TokenEntry]] = field(default_factory=dict)
    _calls: dict[str, dict[str, TokenEntry]] = field(default_factory=dict)
    _new: dict[str, list[_Line]] = field(default_factory=dict)
    _rollout_id: str | None = None  # of all calls of the file that is read

    def read(self, lines: Iterable[bytes], path: str) -> Iterator[int]:
        """Capture the lines of a file; yields the bytes of each, for a progress bar."""
        self._rollout_id = Path(path).name.partition(_CAPTURE)[0] if is_capture_file(path) else None
        for number, line in enumerate(lines, 1):
            if line.strip():
                try:
                    self._add(self._entries(line.removeprefix(BOM) if number == 1 else line), path, number)
                except _FAULTS as error:
                    self.bad.append(BadLine(path, number, one_line(error)))
            yield len(line)

    def linked(self) -> Iterator[tuple[str, list[TokenEntry], list[bytes]]]:
        """Each rollout's new records, linked, and their lines; what can't be written becomes a bad line."""
        for rollout_id, found in self._new.items():
            entries, lines = self._written(self._earlier[rollout_id], found)
            if entries:
                yield rollout_id, entries, lines

    def faults(self) -> list[BadLine]:
        """The bad lines in the order of the input."""
        return sorted(self.bad, key=lambda bad: bad.line)

    def _entries(self, line: bytes) -> list[TokenEntry]:
        """The records of a line."""
        found = natively(spliced(line), lambda native: self._of_row(native.payload, native))
        return self._of_row(parsed(line)) if found is None else found

    def _of_row(self, row: Any, native: Spliced | None = None) -> list[TokenEntry]:
        if self._rollout_id is not None and isinstance(row, dict):
            row = {"rollout_id": self._rollout_id, **row}
        # Before anything else, so that a bad id is said as such.
        if isinstance(row, dict) and isinstance(row.get("rollout_id"), str):
            check_rollout_id(row["rollout_id"])
        return self.reading.entries(row, native)

    def _add(self, found: list[TokenEntry], path: str, number: int) -> None:
        new: dict[str, list[TokenEntry]] = {}
        for entry in found:
            set_origin(entry, path, number)
            known = self._of(check_rollout_id(entry.rollout_id)).get(entry.model_call_id)
            if known is None:
                new.setdefault(entry.rollout_id, []).append(entry)
            elif not _same_tokens(known, entry):
                raise ValueError(f"model call {entry.model_call_id!r} was seen before with other tokens")
            else:
                self.known += 1
        # All choices of a line are captured or none.
        for rollout_id, entries in new.items():
            self._calls[rollout_id].update((entry.model_call_id, entry) for entry in entries)
            self._new.setdefault(rollout_id, []).append(_Line(path, number, entries))

    def _of(self, rollout_id: str) -> dict[str, TokenEntry]:
        """The calls of a rollout by id."""
        if rollout_id not in self._calls:
            self._earlier[rollout_id] = list(self.earlier(rollout_id))
            self._calls[rollout_id] = {call.model_call_id: call for call in self._earlier[rollout_id]}
        return self._calls[rollout_id]

    def _written(self, earlier: list[TokenEntry], found: list[_Line]) -> tuple[list[TokenEntry], list[bytes]]:
        """Link the records of a rollout, and write each once; again without those that can't be written."""
        copies = [[entry.model_copy() for entry in line.entries] for line in found]
        new = [entry for entries in copies for entry in entries]
        link_entries([*(entry.model_copy() for entry in earlier), *new])
        lines, left = [], []
        for line, entries in zip(found, copies, strict=True):
            try:
                lines += [entry.to_json() + b"\n" for entry in entries]
            except _FAULTS as error:
                self.bad.append(BadLine(line.path, line.number, one_line(error)))
            else:
                left.append(line)
        return (new, lines) if len(left) == len(found) else self._written(earlier, left)


def is_capture_file(path: PathLike) -> bool:
    """True for the calls of one rollout, in NeMo Gym's `<rollout_id>.capture.jsonl`."""
    return os.fspath(path).endswith((_CAPTURE, *(_CAPTURE + ending for ending in COMPRESSED)))


def record_path(directory: AnyPath, rollout_id: str) -> AnyPath:
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


def _same_tokens(a: TokenEntry, b: TokenEntry) -> bool:
    return a.model_copy(update={name: getattr(b, name) for name in ARRAY_FIELDS}) == a
