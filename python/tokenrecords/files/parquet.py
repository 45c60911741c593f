"""Files of records as Parquet: small where prompts repeat, and read by everything that reads tables."""

from __future__ import annotations

import os
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from tokenrecords.entry.errors import one_line
from tokenrecords.entry.model import TokenEntry, set_origin
from tokenrecords.files import durable
from tokenrecords.files.arrow import as_rows, in_chunks, made_of, record_schema
from tokenrecords.files.jsonl import RecordError, left_out
from tokenrecords.files.names import PARQUET, is_compressed
from tokenrecords.files.remote import RemotePath
from tokenrecords.files.row_groups import GroupReader, GroupWriter
from tokenrecords.files.sources import record_files

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tokenrecords.files.arrow import IdType, Row
    from tokenrecords.files.jsonl import OnError
    from tokenrecords.files.names import PathLike
    from tokenrecords.files.remote import AnyPath

ROW_GROUP: Final = 1 << 23


def write_parquet(
    path: PathLike, entries: Iterable[TokenEntry], *, ids: IdType = "int32", row_group: int = ROW_GROUP
) -> None:
    """Write records to a Parquet file of `RECORD_SCHEMA`, whole: as `write_jsonl` does.

    Within a row group the records of a rollout stand together, in their order; rollouts in the order of their first
    records.

    Args:
        path: The file, or its URL.
        entries: The records; of a generator no more than a row group's are held.
        ids: As for `to_arrow`.
        row_group: The most ids in the column of a row group, but for a record that has more of them alone. It is what a
            reader holds in memory at once.

    Raises:
        ValueError: An entry that could not be read back, an id or integer that does not fit its column, or a path whose
            ending says that it is compressed; nothing was written then.
        TypeError: `entries` holds something else.
        OSError: The file can't be written; what was there before still is.

    >>> import os, tempfile
    >>> entry = TokenEntry(rollout_id="r", model_call_id="c", prompt_token_ids=[1, 2], generation_token_ids=[3],
    ...                    generation_log_probs=[-0.5])
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     path = os.path.join(directory, "records.parquet")
    ...     write_parquet(path, [entry])
    ...     read_parquet(path) == [entry]
    True
    """
    if is_compressed(path):
        raise ValueError(
            f"path is {os.fspath(path)!r}: a name without .gz and .zst is needed, Parquet compresses itself"
        )
    if row_group < 1:
        raise ValueError(f"row_group is {row_group}: at least 1 is needed")
    schema = record_schema(ids)
    rows = as_rows(entries, ids)
    with durable.whole_file(path) as stream:
        writer = GroupWriter(stream, schema)
        for chunk in in_chunks(rows, row_group):
            writer.write(_by_rollout(chunk))
        writer.close()


def _by_rollout(rows: list[Row]) -> list[Row]:
    first: dict[bytes, int] = {}
    for row in rows:
        first.setdefault(row.values["rollout_id"], len(first))
    return sorted(rows, key=lambda row: first[row.values["rollout_id"]])


def scan_parquet(source: PathLike | Iterable[PathLike], *, on_error: OnError = "raise") -> Iterator[TokenEntry]:
    """Iterate over the records of Parquet files; a row group is in memory at once, and what was kept of earlier ones.

    Args:
        source: A path, several paths, or a directory of `*.parquet` files; also URLs, as `scan_jsonl` takes them.
        on_error: What happens at a row that holds no record, or a file that is damaged: "raise" a `RecordError`, "skip"
            it, or call this with the `RecordError` and go on. Its `line` is the row, from 1.

    Returns:
        The records of `from_arrow`: their arrays are views that keep their row group's column alive.

    Raises:
        FileNotFoundError: There is no such file, or no Parquet file in a directory.
        TypeError: An `on_error` of the wrong kind.

    >>> import os, tempfile
    >>> entry = TokenEntry(rollout_id="r", model_call_id="c", prompt_token_ids=[1, 2], generation_token_ids=[3],
    ...                    generation_log_probs=[-0.5])
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     write_parquet(os.path.join(directory, "a.parquet"), [entry])
    ...     [found.model_call_id for found in scan_parquet(directory)]
    ['c']
    """
    if on_error not in ("raise", "skip") and not callable(on_error):
        raise TypeError(f"on_error is {on_error!r}: 'raise', 'skip' or a function is needed")
    paths = [source] if isinstance(source, str | os.PathLike) else source
    files = [file for path in paths for file in record_files(path, (PARQUET,))]
    return _scanned(files, on_error)


def read_parquet(source: PathLike | Iterable[PathLike], *, on_error: OnError = "raise") -> list[TokenEntry]:
    """The records of Parquet files as a list; the arguments and errors of `scan_parquet`.

    With `on_error="skip"` one warning says how many rows were left out.

    >>> import os, tempfile
    >>> entry = TokenEntry(rollout_id="r", model_call_id="c", prompt_token_ids=[1, 2], generation_token_ids=[3],
    ...                    generation_log_probs=[-0.5])
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     write_parquet(os.path.join(directory, "a.parquet"), [entry])
    ...     read_parquet(directory)[0].prompt_token_ids
    array([1, 2], dtype=int32)
    """
    errors: list[RecordError] = []
    entries = list(scan_parquet(source, on_error=errors.append if on_error == "skip" else on_error))
    if errors:
        left_out(errors, "row")
    return entries


def _scanned(files: list[AnyPath], on_error: OnError) -> Iterator[TokenEntry]:
    for file in files:
        for made in _read(file):
            if isinstance(made, TokenEntry):
                yield made
            elif on_error == "raise":
                raise made
            elif callable(on_error):
                on_error(made)


@contextmanager
def _opened(file: AnyPath) -> Iterator[pa.NativeFile]:
    if isinstance(file, RemotePath):
        with file.open() as stream, pa.PythonFile(stream, "rb") as opened:
            yield opened
    else:
        with pa.OSFile(str(file)) as opened:
            yield opened


def _read(file: AnyPath) -> Iterator[TokenEntry | RecordError]:
    row = 0
    name = str(file)
    try:
        with ExitStack() as stack:
            groups = GroupReader(stack.enter_context(_opened(file)))
            for group in range(groups.count):
                for made in made_of(groups.read(group)):
                    row += 1
                    if isinstance(made, TokenEntry):
                        set_origin(made, name, row)
                        yield made
                    else:
                        yield RecordError(name, row, 0, one_line(made))
    except (ValueError, OSError, pa.ArrowException) as error:
        if isinstance(error, OSError) and (error.errno is not None or type(error) is not OSError):
            raise  # not the data: the system
        yield RecordError(name, row + 1, 0, one_line(error))
