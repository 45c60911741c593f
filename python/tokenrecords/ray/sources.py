"""Files as sources of Ray Data: listed and opened as everywhere in this package, shared out and retried by Ray."""

from __future__ import annotations

import os
import warnings
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any, NamedTuple

import ray
from pyarrow.fs import LocalFileSystem
from ray.data.datasource import DefaultFileMetadataProvider, FileBasedDatasource

from tokenrecords.files.remote import AnyPath, as_path
from tokenrecords.ray.work import chain_table, record_tables

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    import pyarrow as pa

    from tokenrecords.files.arrow import IdType
    from tokenrecords.ray.found import Found
    from tokenrecords.training.loss import Shared
    from tokenrecords.verification.findings import Report


class Listed(NamedTuple):
    """A file, and the bytes that it has."""

    name: str
    size: int


class Options(NamedTuple):
    """What sources of both kinds are told.

    Attributes:
        skip: Whether lines that hold no record are left out, or the first is raised.
        ids: The type of all ids.
        found: Takes what workers find.
        shuffle: As for Ray's own readers: "files" reads the files in another order each time.
    """

    skip: bool
    ids: IdType
    found: Found | None
    shuffle: Any


class Files(FileBasedDatasource):
    """Files of records."""

    def __init__(self, files: Sequence[Listed], options: Options) -> None:
        # Ray resolves no path: it passes over those that it can't, and knows neither patterns nor side files.
        nothing = {"paths": os.sep, "filesystem": LocalFileSystem()}
        super().__init__(**nothing, meta_provider=_Listed(files), shuffle=options.shuffle)
        self._meta_provider = DefaultFileMetadataProvider()  # the files stay here, and each task gets its own
        self._options = options

    def _open_input_source(self, filesystem: Any, path: str, **_: Any) -> AbstractContextManager[AnyPath]:  # noqa: ARG002 - Ray's
        return nullcontext(as_path(path))

    def _report(self, path: str, report: Report) -> None:
        if self._options.found is not None:
            self._options.found.add(path, report)
            return
        bad = [finding for finding in report.findings if finding.code == "unreadable_line"]
        if bad:
            warnings.warn(
                f"{path}: {len(bad):,} lines held no record and were left out; the first: {bad[0]}", stacklevel=2
            )


class _Listed(DefaultFileMetadataProvider):
    """What was listed before."""

    def __init__(self, files: Sequence[Listed]) -> None:
        self._files = files

    def expand_paths(self, *_: Any, **__: Any) -> Iterator[Listed]:
        return iter(self._files)


class Records(Files):
    """Tables of records."""

    def _read_stream(self, file: AnyPath, path: str) -> Iterator[pa.Table]:
        report = yield from record_tables(file, skip=self._options.skip, ids=self._options.ids)
        self._report(path, report)


class Chains(Files):
    """Tables of chains, one a file."""

    def __init__(
        self,
        files: Sequence[Listed],
        options: Options,
        names: Mapping[str, Collection[str]],
        terminals: Mapping[str, Mapping[str, str]],
        *,
        verify: bool,
        shared: Shared,
    ) -> None:
        super().__init__(files, options)
        self._known = ray.put((names, terminals))  # once, and not with each task
        self._verify = verify
        self._shared = shared

    def _read_stream(self, file: AnyPath, path: str) -> Iterator[pa.Table]:
        table, report = chain_table(
            file,
            *ray.get(self._known),
            verify=self._verify,
            skip=self._options.skip,
            ids=self._options.ids,
            shared=self._shared,
        )
        self._report(path, report)
        yield table
