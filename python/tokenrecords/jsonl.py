"""Files of records, one JSON object a line."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from tokenrecords.entry import TokenEntry

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path


def read_jsonl(path: Path) -> list[TokenEntry]:
    """The records of a file, with arrays."""
    with path.open("rb") as lines:
        return [TokenEntry.model_validate_json(line).as_arrays() for line in lines]


def write_jsonl(path: Path, entries: Iterable[TokenEntry]) -> None:
    """Write a file whole: nobody sees a part of it."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    append_jsonl(temporary, entries)
    temporary.replace(path)


def append_jsonl(path: Path, entries: Iterable[TokenEntry]) -> None:
    """Add records to the end of a file."""
    with path.open("ab") as file:
        for entry in entries:
            file.write(entry.model_dump_json().encode() + b"\n")
        file.flush()
        os.fsync(file.fileno())
