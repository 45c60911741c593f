"""Files of calls, whatever they are: records, served responses, or the rows of a finished run."""

from __future__ import annotations

import warnings
from contextlib import closing, suppress
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

from tokenrecords.capture.rollouts import BadLine, Capture, is_capture_file
from tokenrecords.engines.body import parsed
from tokenrecords.entry.model import origin
from tokenrecords.files.jsonl import RecordError, scan_jsonl
from tokenrecords.files.names import PARQUET, stem
from tokenrecords.files.remote import AnyPath, as_path
from tokenrecords.files.side_files import read_named, side_names
from tokenrecords.files.sources import BOM, open_file, record_files

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator

    from tokenrecords.entry.model import TokenEntry
    from tokenrecords.files.names import PathLike
    from tokenrecords.files.side_files import SideFiles

BadCall: TypeAlias = RecordError | BadLine


def call_files(paths: Iterable[PathLike]) -> tuple[list[AnyPath], dict[str, SideFiles]]:
    """The files of `listed_files`, and the side files of their rollouts; raises as it does."""
    files, names = listed_files(paths)
    return files, read_named(names)


def listed_files(paths: Iterable[PathLike]) -> tuple[list[AnyPath], dict[str, set[str]]]:
    """The files that are named, and the files of records in directories; and the names of side files.

    Where a directory has lines of records, Parquet files in it are passed over, with a warning: they most likely hold
    the same ones.

    Raises:
        FileNotFoundError: There is no such file; or a directory has none, and no rollout whose side files say that it
            lost them.
    """
    named = [each for path in paths for each in _matches(path)]
    names = side_names(named)
    files: list[AnyPath] = []
    for path in named:
        try:
            files += _files(path)
        except FileNotFoundError:
            there = {of: suffixes for of, suffixes in names.items() if as_path(of).parent == as_path(path)}
            if not any(side.is_incomplete(()) for side in read_named(there).values()):
                raise
    return files, names


def _matches(path: PathLike) -> list[PathLike]:
    """The path, or the files that a pattern names, which may have side files, too."""
    named = as_path(path)
    return [path] if isinstance(named, Path) or named.is_dir() else list(named.matches())


def _files(path: PathLike) -> list[AnyPath]:
    try:
        files = record_files(path)
    except FileNotFoundError:
        with suppress(FileNotFoundError):
            return record_files(path, (PARQUET,))
        raise
    if as_path(path).is_dir():
        with suppress(FileNotFoundError):
            passed_over = len(record_files(path, (PARQUET,)))
            warnings.warn(
                f"{path}: of its files of records the {passed_over:,} in Parquet are passed over", stacklevel=4
            )
    return files


class CallReader:
    """An iterator of the records of files, in order; those of served calls and finished rows are made, and linked.

    Attributes:
        errors: The lines that held none, so far.
    """

    def __init__(self, files: Iterable[AnyPath], *, threads: int | None = None) -> None:
        self.errors: list[BadCall] = []
        self._entries = self._read(list(files), threads)

    def __iter__(self) -> Iterator[TokenEntry]:
        return self._entries

    def close(self) -> None:
        """Close the file that is open, and end the threads that read; there are no more records then."""
        self._entries.close()

    def _read(self, files: list[AnyPath], threads: int | None) -> Generator[TokenEntry, None, None]:
        for kind, group in groupby(files, _kind):
            if kind == "parquet":
                yield from self._columns(list(group))
            elif kind == "served":
                for file in group:
                    yield from self._made(file)
            else:
                yield from self._scanned(list(group), threads)

    def _columns(self, files: list[AnyPath]) -> Iterator[TokenEntry]:
        from tokenrecords.files.parquet import scan_parquet  # noqa: PLC0415 - pyarrow is an extra

        yield from scan_parquet(files, on_error=self.errors.append)

    def _scanned(self, files: list[AnyPath], threads: int | None) -> Iterator[TokenEntry]:
        # A rollout may be retired, and its file deleted, while others are read.
        while files:
            try:
                reader = scan_jsonl(files, on_error=self.errors.append, threads=threads)
            except FileNotFoundError as error:
                files = [file for file in files if str(file) != str(error.filename)]
                continue
            try:
                with reader as entries:
                    yield from entries
            except FileNotFoundError as error:
                files = files[[str(file) for file in files].index(str(error.filename)) + 1 :]
            else:
                return

    def _made(self, file: AnyPath) -> Iterator[TokenEntry]:
        captured = Capture(lambda _: ())
        with open_file(file) as lines:
            for _ in captured.read(lines, str(file)):
                pass
        made = [entry for _, entries, _ in captured.linked() for entry in entries]
        bad = captured.faults()
        for entry in sorted(made, key=_line):
            while bad and bad[0].line <= _line(entry):
                self.errors.append(bad.pop(0))
            yield entry
        self.errors += bad


def read_calls(files: Iterable[AnyPath], *, threads: int | None = None) -> Iterator[TokenEntry]:
    """The records of files as `CallReader` gives them, none of which may be left out.

    Raises:
        RecordError: A line or row holds no record.
        ValueError: A line holds no served call.
    """
    return whole(CallReader(files, threads=threads))


def whole(reader: CallReader) -> Iterator[TokenEntry]:
    """The records of a reader, none of which may be left out; raises as `read_calls`."""
    with closing(reader):
        for entry in reader:
            if reader.errors:
                break
            yield entry
    if reader.errors:
        error = reader.errors[0]
        raise error if isinstance(error, ValueError) else ValueError(str(error))


def _line(entry: TokenEntry) -> int:
    return (origin(entry) or ("", 0))[1]


def _kind(file: AnyPath) -> Literal["parquet", "served", "records"]:
    if file.name.endswith(PARQUET):
        return "parquet"
    return "served" if _is_served(file) else "records"


def _is_served(file: AnyPath) -> bool:
    """True where the first line is a served call or a finished row."""
    if is_capture_file(file):
        return True
    if stem(file) is not None or not file.is_file():
        return False
    with open_file(file) as lines:
        first = next((line for line in lines if line.strip()), b"")
    try:
        row = parsed(first.removeprefix(BOM))
    except ValueError:
        return False
    return isinstance(row, dict) and "response" in row and "prompt_token_ids" not in row
