"""Paths of other file systems: URLs that fsspec opens, with as much of `pathlib.Path` as readers and writers use."""

from __future__ import annotations

import errno
import io
import os
import re
from contextlib import contextmanager, nullcontext, suppress
from functools import total_ordering
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias, cast

from tokenrecords.files.streams import BUFFER_SIZE, OnlyReads

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager
    from typing import Literal

    from tokenrecords.files.names import PathLike

# Of a chain, as in simplecache::s3://bucket/key, the last one has the path.
_URL: Final = re.compile(r"(?:[A-Za-z][A-Za-z0-9+.-]+::)*[A-Za-z][A-Za-z0-9+.-]+://")
_LOCAL: Final = ("file://", "local://")
_MAGIC: Final = re.compile(r"[*?\[]")


def as_path(path: PathLike) -> AnyPath:
    """What a path names: a file of this machine, also where it is a `file://` URL, or one of another file system.

    Raises:
        ModuleNotFoundError: It is a URL of another file system, and fsspec is not installed.
    """
    if isinstance(path, RemotePath):
        return path
    name = os.fspath(path)
    if not is_url(name):
        return Path(path)
    scheme = next(filter(name.startswith, _LOCAL), None)
    return RemotePath(name) if scheme is None else Path(name.removeprefix(scheme))


def is_url(path: PathLike) -> bool:
    """True where a path begins as `s3://` does."""
    return _URL.match(os.fspath(path)) is not None


class _Stat(NamedTuple):
    st_size: int


@total_ordering
class RemotePath:
    """A file or directory of a file system that fsspec opens.

    What it is asked is asked of the file system each time, whose listings may be cached and old. What a directory said
    of its files is not asked again.
    """

    def __init__(self, url: str, info: dict[str, Any] | None = None) -> None:
        _fsspec(url)
        self._url = url if url.endswith("//") else url.rstrip("/")
        self._known = info

    def __fspath__(self) -> str:
        return self._url

    __str__ = __fspath__

    def __eq__(self, other: object) -> bool:
        return self._url == other._url if isinstance(other, RemotePath) else NotImplemented

    def __lt__(self, other: RemotePath) -> bool:
        return self._url < other._url

    def __hash__(self) -> int:
        return hash(self._url)

    def __truediv__(self, name: str) -> RemotePath:
        return RemotePath(f"{self._directory}{name}")

    @property
    def _directory(self) -> str:
        return self._url if self._url.endswith("/") else f"{self._url}/"

    @property
    def name(self) -> str:
        """The last part."""
        return self._url.rpartition("/")[2]

    @property
    def stem(self) -> str:
        """The last part without its ending."""
        return Path(self.name).stem

    @property
    def parent(self) -> RemotePath:
        """The directory."""
        return RemotePath(self._url[: self._url.rindex("/") + 1])

    def with_name(self, name: str) -> RemotePath:
        """Another name in the same directory."""
        return self.parent / name

    def exists(self) -> bool:
        """True where there is a file, or a directory."""
        return self._type() is not None

    def is_dir(self) -> bool:
        """True for a directory."""
        return self._type() == "directory"

    def is_file(self) -> bool:
        """True for a file."""
        return self._type() == "file"

    def stat(self) -> _Stat:
        """The size in bytes, 0 where nobody knows it."""
        return _Stat(self._info()["size"] or 0)

    def iterdir(self) -> Iterator[RemotePath]:
        """What is in the directory."""
        system, path = self._located()
        for info in system.ls(path, detail=True):
            yield RemotePath(self._directory + info["name"].rstrip("/").rpartition("/")[2], info)

    def matches(self) -> list[RemotePath]:
        """The file itself, or those that it is a pattern of, sorted.

        Raises:
            FileNotFoundError: There is none.
        """
        magic = _MAGIC.search(self._url)
        if magic is None or self.exists():
            self._info()
            return [self]
        base = RemotePath(self._url[: self._url.rindex("/", 0, magic.start()) + 1])
        system, path = self._located()
        start = len(base._located()[1].rstrip("/")) + 1
        found = system.glob(path, detail=True)
        files = [RemotePath(base._directory + at[start:], info) for at, info in found.items() if info["type"] == "file"]
        if not files:
            raise self._missing()
        return sorted(files)

    def open(self, mode: Literal["rb", "wb"] = "rb", buffering: int = BUFFER_SIZE) -> AbstractContextManager[IO[bytes]]:
        """The file, to read it, or to write it whole."""
        return self._read(buffering) if mode == "rb" else self._written()

    def read_bytes(self) -> bytes:
        """The content of the file."""
        system, path = self._located()
        return cast("bytes", system.cat_file(path))

    def mkdir(self, *, parents: Literal[True], exist_ok: bool) -> None:  # noqa: ARG002 - as `Path` has it
        """Make the directory, and those above it, in a file system that has directories."""
        system, path = self._located()
        system.makedirs(path, exist_ok=exist_ok)

    def replace(self, target: RemotePath) -> None:
        """Rename the file, which many file systems do by copying it."""
        system, path = self._located()
        system.mv(path, target._located()[1])

    def unlink(self, *, missing_ok: bool) -> None:
        """Delete the file, if it is there."""
        system, path = self._located()
        if not missing_ok or self.exists():
            system.rm_file(path)

    @contextmanager
    def _read(self, buffering: int) -> Iterator[IO[bytes]]:
        system, path = self._located()
        try:
            opened = system.open(path, "rb")
        except FileNotFoundError:
            raise self._missing() from None
        with opened as stream:
            yield io.BufferedReader(OnlyReads(stream), buffering)

    @contextmanager
    def _written(self) -> Iterator[IO[bytes]]:
        """A file that is there when this is left without an error, and else is discarded."""
        fsspec = _fsspec(self._url)
        # Transactions are one of a file system object, which others may have, too.
        system, path = fsspec.core.url_to_fs(self._url, skip_instance_cache=True)
        stream: Any = None
        try:
            with _transaction(system):
                stream = system.open(path, "wb")
                try:
                    yield stream
                    stream.close()
                except BaseException:
                    if isinstance(stream, fsspec.spec.AbstractBufferedFile):
                        stream.closed = True  # closing it, as the collector does, too, may upload it
                    else:
                        stream.close()
                    raise
        except BaseException:
            if hasattr(stream, "discard"):
                with suppress(Exception):  # fsspec before 2026.9 forgets a file whose commit failed
                    stream.discard()
            raise

    def _located(self) -> tuple[Any, str]:
        """The file system, which has forgotten what it knew of this path, and the path in it."""
        system, path = _fsspec(self._url).core.url_to_fs(self._url)
        system.invalidate_cache(path)
        return system, path

    def _info(self) -> dict[str, Any]:
        if self._known is not None:
            return self._known
        system, path = self._located()
        try:
            return cast("dict[str, Any]", system.info(path))
        except FileNotFoundError:
            raise self._missing() from None

    def _type(self) -> str | None:
        try:
            return str(self._info()["type"])
        except FileNotFoundError:
            return None

    def _missing(self) -> FileNotFoundError:
        return FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), self._url)


def _transaction(system: Any) -> AbstractContextManager[Any]:
    """Where a file system holds back what is written until it is left, as far as it can."""
    try:
        return cast("AbstractContextManager[Any]", system.transaction)
    except NotImplementedError:  # the Hugging Face Hub, where a file is one commit when it is closed
        return nullcontext()


AnyPath: TypeAlias = Path | RemotePath


def _fsspec(url: str) -> Any:
    try:
        import fsspec  # noqa: PLC0415 - an extra
    except ModuleNotFoundError as error:
        if error.name != "fsspec":
            raise
        scheme = url.partition("://")[0]
        message = f"{scheme}:// paths need an extra: pip install 'tokenrecords[fsspec]' ({error})"
        raise ModuleNotFoundError(message, name="fsspec") from None
    return fsspec
