"""Records from files of one kind to files of another, with proof that none was lost or changed."""

from __future__ import annotations

import hashlib
import json
import os
from typing import TYPE_CHECKING

import numpy as np

from tokenrecords.capture.served import read_calls
from tokenrecords.files import durable
from tokenrecords.files.jsonl import write_jsonl
from tokenrecords.files.names import PARQUET, SUFFIX, stem
from tokenrecords.tokens.arrays import id_array, log_prob_array
from tokenrecords.tokens.names import ID_FIELDS, LOG_PROBS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tokenrecords.entry.model import TokenEntry
    from tokenrecords.files.arrow import IdType
    from tokenrecords.files.remote import AnyPath
    from tokenrecords.tokens.arrays import LogProbArray, TokenIds

_FILES = (PARQUET, ".jsonl", ".jsonl.gz", ".jsonl.zst")


class Count:
    """What records there were, in any order.

    Attributes:
        records: Their number.
        ids: The ids of their prompts and generations.
        digest: The sum of the SHA-256 of all that each of them holds, modulo 2**256.
    """

    def __init__(self) -> None:
        self.records = self.ids = self.digest = 0

    def __str__(self) -> str:
        return f"records: {self.records:,}, ids: {self.ids:,}, digest: {self.digest:064x}"

    def counted(self, entries: Iterable[TokenEntry]) -> Iterator[TokenEntry]:
        """The same entries, each counted as it passes."""
        for entry in entries:
            self.records += 1
            self.ids += len(entry.prompt_token_ids) + len(entry.generation_token_ids)
            self.digest = (self.digest + _digest(entry)) % (1 << 256)
            yield entry


def _digest(entry: TokenEntry) -> int:
    values = entry.json_values()
    hashed = hashlib.sha256()
    for array in (*(id_array(values.pop(name)) for name in ID_FIELDS), log_prob_array(values.pop(LOG_PROBS))):
        hashed.update(f"{len(array)}:".encode() + _bytes(array))
    # Writers may sort keys.
    hashed.update(json.dumps(values, sort_keys=True).encode())
    return int.from_bytes(hashed.digest())


def _bytes(array: TokenIds | LogProbArray) -> bytes:
    """The same bytes for the same values, whatever holds them."""
    if isinstance(array, list):  # ids that no dtype holds together
        return repr(array).encode()
    if array.dtype.kind == "f":
        numbers = array.astype(np.float64)
        numbers[np.isnan(numbers)] = np.nan  # one of its many bit patterns
        return numbers.tobytes()
    beyond = array.dtype == np.uint64 and len(array) and array.max() >= 2**63
    return array.astype(np.uint64 if beyond else np.int64).tobytes() + b"u" * bool(beyond)


def targets(files: list[AnyPath], out: AnyPath) -> list[tuple[list[AnyPath], AnyPath]]:
    """Which files become which.

    Args:
        files: Files of records.
        out: A file, by its ending; or else a directory, which gets a file of the other kind for each of them.

    Raises:
        ValueError: Two files would become one.
    """
    if out.name.endswith(_FILES):
        return [(files, out)]
    found = [([file], out / _renamed(file)) for file in files]
    names = [target.name for _, target in found]
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"{name} would be made of several files: different names are needed")
    return found


def _renamed(file: AnyPath) -> str:
    if file.name.endswith(PARQUET):
        return file.name.removesuffix(PARQUET) + SUFFIX
    return (stem(file.name) or file.stem) + PARQUET


def convert(files: list[AnyPath], out: AnyPath, *, ids: IdType = "int32") -> Count:
    """Write the records of files to one file, and read it again before it gets its name.

    Args:
        files: As `read_calls` takes them.
        out: The file; its ending says what it is.
        ids: Of a Parquet file, as for `to_arrow`.

    Raises:
        RecordError: A line or row holds no record.
        ValueError: A record that can't be written, or that is read back as another.
        OSError: The file can't be written. After any error `out` is as it was.
    """
    was, is_now = Count(), Count()
    made = out.with_name(f".{os.urandom(8).hex()}.{out.name}")
    try:
        _write(made, was.counted(read_calls(files)), ids)
        for _ in is_now.counted(read_calls([made])):
            pass
        if vars(was) != vars(is_now):
            raise ValueError(f"{out} would hold other records than were read: {is_now}, not {was}")
        durable.put_in_place(made, out)
    finally:
        made.unlink(missing_ok=True)
    return was


def _write(path: AnyPath, entries: Iterator[TokenEntry], ids: IdType) -> None:
    if not path.name.endswith(PARQUET):
        write_jsonl(path, entries)
        return
    from tokenrecords.files.parquet import write_parquet  # noqa: PLC0415 - pyarrow is an extra

    write_parquet(path, entries, ids=ids)
