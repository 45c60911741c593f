"""Data sets of records and of chains."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

import ray

from tokenrecords.capture.served import listed_files
from tokenrecords.files.arrow import from_arrow, id_type, record_schema
from tokenrecords.files.names import COMPRESSED, PARQUET, stem
from tokenrecords.files.remote import as_path
from tokenrecords.files.side_files import read_named
from tokenrecords.files.sources import given_paths
from tokenrecords.ray.sources import Chains, Listed, Options, Records
from tokenrecords.ray.work import terminals_of
from tokenrecords.training.arrow import chain_schema, chains_to_arrow
from tokenrecords.training.loss import check_shared
from tokenrecords.training.rollouts import build_rollouts, warn_without_record
from tokenrecords.verification.findings import Report
from tokenrecords.verification.lost import lost_findings

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    import pyarrow as pa

    from tokenrecords.files.arrow import IdType
    from tokenrecords.files.names import PathLike
    from tokenrecords.files.remote import AnyPath
    from tokenrecords.ray.found import Found
    from tokenrecords.ray.sources import Files
    from tokenrecords.training.loss import Shared

    OnError: TypeAlias = Literal["raise", "skip"]

_BLOCK: Final = 256 << 20  # of memory that the files of one task take
_PACKED: Final = 8  # as much smaller are files that are compressed: what prompts repeat is stored once


def read_records(
    paths: PathLike | Iterable[PathLike],
    *,
    on_error: OnError = "raise",
    ids: IdType = "int32",
    found: Found | None = None,
    shuffle: Any = None,
    override_num_blocks: int | None = None,
) -> Any:
    """Read records as a Ray data set of `RECORD_SCHEMA`.

    Args:
        paths: A path, a directory or several paths, also URLs, of JSONL, compressed or not, or Parquet, as `verify`
            takes them. Each worker must be able to open them.
        on_error: What happens at a line or row that holds no record: "raise" a `RecordError`, or "skip" it. What was
            skipped is in `found`; without it the worker warns.
        ids: The type of all ids: "int32", "int64" or "uint64".
        found: Takes the lines that were skipped, and the number of records.
        shuffle: "files" to read the files in another order each time, or a `ray.data.FileShuffleConfig`.
        override_num_blocks: The number of read tasks, at most one a file; by default it follows from the files' bytes.

    Returns:
        A `ray.data.Dataset` whose blocks are tables: take them with `batch_format="pyarrow"`, for rows would be made
        one Python object an id. Records of a file keep their order within it.

    Raises:
        FileNotFoundError: There is no such file, or no file of records in a directory.
        TypeError: `paths` holds something else.
        ValueError: `on_error` or `ids` is unknown.

    >>> from tokenrecords.ray import read_records
    >>> import tempfile
    >>> from tokenrecords import TokenEntry, write_jsonl
    >>> entry = TokenEntry(rollout_id="r", model_call_id="c", prompt_token_ids=[1, 2], generation_token_ids=[3],
    ...                    generation_log_probs=[-0.5])
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     write_jsonl(f"{directory}/r.tokens.jsonl", [entry])
    ...     read_records(directory).count()
    1
    """
    files, _ = _listed(paths)
    options = _options(on_error, ids, found, shuffle)
    return _read(partial(Records, options=options), files, record_schema(ids), override_num_blocks)


def read_chains(
    paths: PathLike | Iterable[PathLike],
    *,
    terminal_call_ids: Mapping[str, str] | None = None,
    terminal_response_ids: Mapping[str, str] | None = None,
    verify: bool = True,
    on_error: OnError = "raise",
    ids: IdType = "int32",
    shared: Shared = "once",
    found: Found | None = None,
    shuffle: Any = None,
    override_num_blocks: int | None = None,
) -> Any:
    """Read the chains of rollouts as a Ray data set of `CHAIN_SCHEMA`, built where each file is read.

    All records of a rollout must be in one file, as servers write them; else read records, and link them:
    `read_records(paths).groupby("rollout_id").map_groups(link_table, batch_format="pyarrow")`. Side files are read as
    `build_rollouts` reads them.

    Args:
        paths: As for `read_records`.
        terminal_call_ids: As for `build_rollouts`.
        terminal_response_ids: As for `build_rollouts`.
        verify: Check each record as the function `verify` does. A rollout whose main chain has an error is not
            trainable: the finding's code is among the `reasons`.
        on_error: As for `read_records`. Where the other records of a file are those of one rollout, a line that was
            skipped makes it `incomplete`.
        ids: As for `read_records`.
        shared: As for `chains_to_arrow`.
        found: Takes what `verify` finds, or without it the lines that were skipped and the calls that were lost.
        shuffle: As for `read_records`.
        override_num_blocks: As for `read_records`.

    Returns:
        A `ray.data.Dataset` whose blocks are tables of `CHAIN_SCHEMA`, a row a chain: `chains_from_arrow` makes chains
        of a batch in `batch_format="pyarrow"`. A rollout without a chain has no row.

    Raises:
        FileNotFoundError: There is no such file, or no file of records in a directory.
        TypeError: `paths` holds something else.
        ValueError: `on_error`, `ids` or `shared` is unknown.

    >>> from tokenrecords.ray import read_chains
    >>> import tempfile
    >>> from tokenrecords import TokenEntry, write_jsonl
    >>> entry = TokenEntry(rollout_id="r", model_call_id="c", prompt_token_ids=[1, 2], generation_token_ids=[3],
    ...                    generation_log_probs=[-0.5], parent_resolution="root")
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     write_jsonl(f"{directory}/r.tokens.jsonl", [entry])
    ...     [batch] = read_chains(directory).iter_batches(batch_format="pyarrow")
    >>> batch["token_ids"].to_pylist()
    [[1, 2, 3]]
    """
    files, names = _listed(paths)
    options = _options(on_error, ids, found, shuffle)
    check_shared(shared)
    terminals = {"terminal_call_ids": terminal_call_ids or {}, "terminal_response_ids": terminal_response_ids or {}}
    _report_lost(files, names, found)
    kind = partial(Chains, options=options, names=names, terminals=terminals, verify=verify, shared=shared)
    return _read(kind, files, chain_schema(ids), override_num_blocks)


def link_table(
    table: pa.Table,
    *,
    terminal_call_ids: Mapping[str, str] | None = None,
    terminal_response_ids: Mapping[str, str] | None = None,
    ids: IdType = "int32",
    shared: Shared = "once",
) -> pa.Table:
    """The chains of the rollouts in a table of records, which holds all records of each.

    Args:
        table: Of `RECORD_SCHEMA`.
        terminal_call_ids: As for `build_rollouts`; other rollouts may be named, too.
        terminal_response_ids: As for `build_rollouts`; other rollouts may be named, too.
        ids: As for `chains_to_arrow`.
        shared: As for `chains_to_arrow`.

    Returns:
        A table of `CHAIN_SCHEMA`.

    Raises:
        ValueError: A row holds no record.

    >>> from tokenrecords import TokenEntry
    >>> from tokenrecords.arrow import to_arrow
    >>> entry = TokenEntry(rollout_id="r", model_call_id="c", prompt_token_ids=[1, 2], generation_token_ids=[3],
    ...                    generation_log_probs=[-0.5], parent_resolution="root")
    >>> link_table(to_arrow([entry]))["chain_id"].to_pylist()
    ['main']
    """
    entries = from_arrow(table)
    terminals = {"terminal_call_ids": terminal_call_ids or {}, "terminal_response_ids": terminal_response_ids or {}}
    builds = build_rollouts(entries, threads=1, **terminals_of(terminals, {entry.rollout_id for entry in entries}))
    return chains_to_arrow(builds, ids=ids, shared=shared)


def _listed(paths: PathLike | Iterable[PathLike]) -> tuple[list[AnyPath], dict[str, set[str]]]:
    """The files, and the names of side files."""
    named, others = given_paths(paths)
    if others or not named:
        raise TypeError(f"paths is {type(paths).__name__}: a path or several are needed")
    return listed_files(map(_absolute, named))


def _absolute(path: PathLike) -> PathLike:
    """The path as workers need it, who stand in other directories."""
    named = as_path(path)
    return named.absolute() if isinstance(named, Path) and os.fspath(path) else path


def _report_lost(files: Sequence[AnyPath], names: Mapping[str, Collection[str]], found: Found | None) -> None:
    """Say which rollouts have side files alone: no worker reads those."""
    stems = {stem(file) for file in files}
    sides = read_named({of: suffixes for of, suffixes in names.items() if of not in stems})
    findings = lost_findings(sides, ())
    if found is not None:
        found.add("", Report(findings))
    elif lost := sorted({str(finding.rollout_id) for finding in findings if finding.severity == "error"}):
        warn_without_record("side files name rollouts", lost, len(names))


def _options(on_error: OnError, ids: IdType, found: Found | None, shuffle: Any) -> Options:
    if on_error not in ("raise", "skip"):
        raise ValueError(f"on_error is {on_error!r}: 'raise' or 'skip' is needed")
    id_type(ids)
    return Options(skip=on_error == "skip", ids=ids, found=found, shuffle=shuffle)


def _read(
    kind: Callable[[list[Listed]], Files], files: Iterable[AnyPath], schema: pa.Schema, blocks: int | None
) -> Any:
    """The data set of the files, in tasks of so many bytes that Ray's share of the work is small."""
    listed = [Listed(str(file), file.stat().st_size) for file in files]
    if not listed:
        return ray.data.from_arrow(schema.empty_table())
    weight = sum(file.size * (_PACKED if file.name.endswith((*COMPRESSED, PARQUET)) else 1) for file in listed)
    source = kind(listed)
    cpus = int(ray.cluster_resources().get("CPU", 1))
    by_bytes = max(-(-weight // _BLOCK), cpus)
    return ray.data.read_datasource(source, override_num_blocks=blocks or min(len(listed), by_bytes))
