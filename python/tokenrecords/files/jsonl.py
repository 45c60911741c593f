"""Files of records, one JSON object a line: read straight into arrays, written so that nothing is lost."""

from __future__ import annotations

import os
import warnings
from contextlib import closing
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Literal, Self, TypeAlias

from pydantic import ValidationError

from tokenrecords._core import RecordScanner
from tokenrecords.entry import json_line
from tokenrecords.entry.entries import several
from tokenrecords.entry.errors import one_line
from tokenrecords.entry.model import TokenEntry, set_origin
from tokenrecords.files import durable
from tokenrecords.files.sources import Damage, Feed, Source, places

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable

    import numpy.typing as npt

    from tokenrecords._core import RecordLine
    from tokenrecords.files.names import PathLike

    OnError: TypeAlias = Literal["raise", "skip"] | Callable[["RecordError"], object]

__all__ = ["JsonlReader", "RecordError", "append_jsonl", "read_jsonl", "scan_jsonl", "write_jsonl"]


class RecordError(ValueError):
    """A line, or a row of a Parquet file, that holds no record.

    Attributes:
        path: The file; `<bytes>` or `<file>` where there is no name.
        line: The number of the line or row, from 1.
        offset: Bytes before the line, uncompressed; 0 for a row.
        reason: What is wrong with it.
    """

    def __init__(self, path: str, line: int, offset: int, reason: str) -> None:
        super().__init__(path, line, offset, reason)  # all of them, so that it can be pickled
        self.path = path
        self.line = line
        self.offset = offset
        self.reason = reason

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.reason}"


class JsonlReader:
    """An iterator of the records of a source; `scan_jsonl` makes it.

    It is a context manager too: leaving it early closes the file and ends the threads.

    Attributes:
        errors: The lines that held no record so far.
    """

    def __init__(self, scanner: RecordScanner, feed: Feed, options: json_line.Options, on_error: OnError) -> None:
        self.errors: list[RecordError] = []
        # The generator does not know the reader: an abandoned reader frees both, and the file, at once.
        self._entries = _entries(scanner, feed, options, _Errors(self.errors, on_error))

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> TokenEntry:
        return next(self._entries)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file and end the threads; there are no more records then."""
        self._entries.close()


@dataclass(frozen=True)
class _Errors:
    """What happens to errors."""

    found: list[RecordError]
    on_error: OnError

    def report(self, error: RecordError, cause: Exception | None) -> None:
        if self.on_error == "raise":
            raise error from cause
        self.found.append(error)
        if callable(self.on_error):
            self.on_error(error)


def _entries(
    scanner: RecordScanner, feed: Feed, options: json_line.Options, errors: _Errors
) -> Generator[TokenEntry, None, None]:
    with closing(feed), closing(scanner):
        while True:
            try:
                taken = scanner.take()
            except Damage as damage:
                errors.report(RecordError(*damage.args), None)
                continue
            if taken is None:
                return
            line, scanned = taken
            try:
                # The line's text becomes bytes only where pydantic must read it.
                entry = json_line.build_scanned(TokenEntry, scanned, options)
                if entry is None:
                    entry = json_line.parse(TokenEntry, line.data, options)
            except ValueError as error:
                _bad(line, error, errors)
                continue
            set_origin(entry, line.path, line.number)
            # Nothing of a record is kept here while the next one is read.
            del line, scanned, taken
            yield entry
            del entry


def _bad(line: RecordLine, error: ValueError, errors: _Errors) -> None:
    if line.is_last and durable.is_torn(line.data):
        # It was never acknowledged: its writer was stopped before the line break.
        size = len(line.data)
        message = f"{line.path}: the last {size:,} bytes are a torn record, which was never acknowledged: left out"
        warnings.warn(message, stacklevel=4)
        return
    errors.report(RecordError(line.path, line.number, line.offset, _reason(line, error)), error)


def _reason(line: RecordLine, error: ValueError) -> str:
    """What is wrong, with a place in this line alone: pydantic counts the line break as a further line."""
    try:
        TokenEntry.model_validate_json(line.data.rstrip())
    except ValidationError as found:
        error = found
    return one_line(error).replace(" at line 1 column ", " at column ")


def scan_jsonl(
    source: Source,
    *,
    arrays: bool = True,
    dtype: npt.DTypeLike | None = None,
    log_prob_dtype: npt.DTypeLike = "float64",
    on_error: OnError = "raise",
    threads: int | None = None,
) -> JsonlReader:
    """Iterate over the records of a file.

    Takes what `TokenEntry.model_validate_json` takes, line by line. Blank lines and a byte order mark at the start of a
    file are passed over. A last line without a line break is a record if it is whole; a torn one was never acknowledged
    and is left out with a warning. Of a file that is written to meanwhile, a line is what two readings agree on.

    Memory is bounded: 1 MiB of text for each thread, or the longest lines, `threads + 1` of them, and what was read of
    it.

    Args:
        source: A path, several paths, a directory of `*.tokens.jsonl` files, an open binary file, or bytes. A path may
            be a URL of another file system (extra `fsspec`), also with `*`. Files whose names end with `.gz` or `.zst`
            are decompressed.
        arrays: Token ids arrive as arrays of shape `(n,)`: int32, or int64 or uint64 where an id needs it, or a list
            where none of them holds all ids. False: lists, as pydantic gives them.
        dtype: The integer dtype of all ids; an id that does not fit it makes the line an error.
        log_prob_dtype: float64 or float32. Each number is rounded once, from its text; in a line in an unusual form (an
            escaped key, a number as a string) that only pydantic can read, float32 is rounded from float64.
        on_error: What happens at a line that holds no record: "raise" a `RecordError`, "skip" it, or call this with the
            `RecordError` and go on. The reader collects the errors in any case.
        threads: The most threads that read, decompress and parse ahead, of which the consumer's is the first; by
            default the CPUs that this process may use, but one for an open file, which is read no further than it has
            to be. They are started where the work is worth it, and need no GIL. A reader that has some can't be used in
            a process that was forked meanwhile.

    Raises:
        FileNotFoundError: There is no such file, or no file of records in a directory.
        TypeError: A source, dtype, `on_error` or `threads` of the wrong kind.
        ValueError: `threads` below 1.
        RuntimeError: While it is read: its threads are in the process that this one was forked from.

    >>> line = b'{"rollout_id":"r","model_call_id":"c","prompt_token_ids":[1,2],"generation_token_ids":[3],'
    >>> line += b'"generation_log_probs":[-0.5]}'
    >>> [entry.prompt_token_ids for entry in scan_jsonl(line)]
    [array([1, 2], dtype=int32)]
    """
    if on_error not in ("raise", "skip") and not callable(on_error):
        raise TypeError(f"on_error is {on_error!r}: 'raise', 'skip' or a function is needed")
    options = json_line.Options.of(arrays=arrays, dtype=dtype, log_prob_dtype=log_prob_dtype)
    found = places(source)
    feed = Feed(found)
    if threads is None and any(place.stream for place in found):
        threads = 1  # its owner may read on
    sources = [(place.name, place.scanned) for place in found]
    scanner = RecordScanner(sources, feed, threads=threads, arrays=options.arrays, narrow=options.narrow)
    return JsonlReader(scanner, feed, options, on_error)


def read_jsonl(
    source: Source,
    *,
    arrays: bool = True,
    dtype: npt.DTypeLike | None = None,
    log_prob_dtype: npt.DTypeLike = "float64",
    on_error: OnError = "raise",
    threads: int | None = None,
) -> list[TokenEntry]:
    """The records of a file as a list; the arguments and errors of `scan_jsonl`.

    With `on_error="skip"` one warning says how many lines were left out.

    >>> read_jsonl(b"")
    []
    """
    reader = scan_jsonl(
        source, arrays=arrays, dtype=dtype, log_prob_dtype=log_prob_dtype, on_error=on_error, threads=threads
    )
    entries = list(reader)
    if reader.errors and on_error == "skip":
        left_out(reader.errors, "line")
    return entries


def left_out(errors: list[RecordError], noun: str) -> None:
    """Warn the caller's caller of the lines, or rows, that held no record."""
    count = len(errors)
    held = f"{noun} held no record and was" if count == 1 else f"{noun}s held no record and were"
    warnings.warn(f"{count:,} {held} left out; the first: {errors[0]}", stacklevel=3)


def write_jsonl(target: PathLike | IO[bytes], entries: Iterable[TokenEntry]) -> None:
    """Write records to a file, whole: a reader sees the old file or the new one, also after a power cut.

    A line is what `TokenEntry.to_json` gives and a line break. On another file system (a URL, extra `fsspec`) an upload
    becomes the file when it is complete, and is discarded on an error, where the file system allows it: object stores
    do.

    Args:
        target: A path or URL (a name that ends with `.gz` or `.zst` is compressed; `.zst` needs the extra `zstd` before
            Python 3.14), or an open binary file, which gets each line in one write once all of them were made.
        entries: The records; they may come from a generator.

    Raises:
        ValueError: An entry that could not be read back; nothing was written then.
        OSError: The file can't be written; what was there before still is.

    >>> import io
    >>> file = io.BytesIO()
    >>> write_jsonl(file, [TokenEntry(rollout_id="r", model_call_id="c", prompt_token_ids=[1, 2],
    ...                               generation_token_ids=[3], generation_log_probs=[-0.5])])
    >>> file.getvalue()[:24]
    b'{"continuation_context_d'
    """
    made = (_line(entry) for entry in several(entries))
    if isinstance(target, str | os.PathLike):
        durable.write_whole(target, made)
        return
    if not hasattr(target, "write"):
        raise TypeError(f"target is {type(target).__name__}: a path or an open binary file is needed")
    durable.write_lines(target, list(made))


def append_jsonl(path: PathLike, entries: Iterable[TokenEntry], *, fsync: bool = True) -> None:
    """Append records to a file; when it returns, they survive a kill and a power cut.

    The file is locked meanwhile, so that several processes may append to it. A torn last line that a crash left is cut
    off first, and a complete one without its line break gets it. Each line is one write.

    Args:
        path: The file, on this machine; it is made if it is not there.
        entries: The records.
        fsync: False returns before the disk has them: they survive a kill, not a power cut.

    Raises:
        ValueError: An entry that could not be read back, a compressed file, or one of another file system.
        OSError: The file can't be written. After any error the file is as it was.

    >>> import os, tempfile
    >>> entry = TokenEntry(rollout_id="r", model_call_id="c", prompt_token_ids=[1, 2], generation_token_ids=[3],
    ...                    generation_log_probs=[-0.5])
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     path = os.path.join(directory, "r.tokens.jsonl")
    ...     append_jsonl(path, [entry])
    ...     append_jsonl(path, [entry])
    ...     len(read_jsonl(path))
    2
    """
    durable.append_lines(path, [_line(entry) for entry in several(entries)], fsync=fsync)


def _line(entry: TokenEntry) -> bytes:
    if not isinstance(entry, TokenEntry):
        raise TypeError(f"entries holds {type(entry).__name__}: a TokenEntry is needed")
    return entry.to_json() + b"\n"
