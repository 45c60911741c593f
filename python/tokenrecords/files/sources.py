"""Where lines come from: paths, directories, open files and bytes, compressed or not."""

from __future__ import annotations

import gzip
import importlib
import io
import os
import sys
import zlib
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from typing import IO, TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias, cast

from tokenrecords.entry.entries import several
from tokenrecords.files.names import RECORD_NAMES, PathLike, is_compressed
from tokenrecords.files.remote import AnyPath, RemotePath, as_path
from tokenrecords.files.side_files import retired
from tokenrecords.files.streams import BUFFER_SIZE, OnlyReads

if TYPE_CHECKING:
    from pathlib import Path
    from types import ModuleType

    from typing_extensions import Buffer

BOM = b"\xef\xbb\xbf"

Source: TypeAlias = "PathLike | IO[bytes] | Buffer | Iterable[PathLike]"


class Place(NamedTuple):
    """Where lines come from."""

    name: str
    origin: AnyPath | bytes | None  # a file or text; None for a stream
    stream: IO[bytes] | None = None

    @property
    def scanned(self) -> Path | bytes | None:
        """What a `RecordScanner` reads by itself, in any thread."""
        return None if isinstance(self.origin, RemotePath) else self.origin


class Damage(Exception):  # noqa: N818 - it says what is wrong with data, and costs what follows in that file alone
    """The rest of a file can't be decompressed: its path, the next line's number and offset, and why."""


def places(source: Source) -> list[Place]:
    """The files of a source, or the one place that it is.

    Raises:
        TypeError: `source` is none.
        FileNotFoundError: There is no such file, or no file of records in a directory.
    """
    if isinstance(source, str | os.PathLike):
        return _files([source])
    if _has_buffer(source):
        return [Place("<bytes>", bytes(cast("Buffer", source)))]
    if hasattr(source, "read"):
        if not isinstance(source.read(0), bytes):
            raise TypeError("source is a text file: open it in binary mode")
        name = getattr(source, "name", None)
        return [Place(name if isinstance(name, str) else "<file>", None, cast("IO[bytes]", source))]
    if isinstance(source, Iterable):
        return _files(source)
    raise TypeError(
        f"source is {type(source).__name__}: a path, an open binary file, bytes, or an iterable of paths is needed"
    )


def _files(paths: Iterable[PathLike]) -> list[Place]:
    return [Place(str(file), file) for path in paths for file in record_files(path)]


def record_files(path: PathLike, endings: tuple[str, ...] = RECORD_NAMES) -> list[AnyPath]:
    """The file, or the files of records in a directory: those whose names have one of the endings.

    Of a URL with `*`, `?` or `[` in it, which no shell expands, the files that it is a pattern of.

    Raises:
        TypeError: `path` is not a path.
        FileNotFoundError: There is no such file, or none in a directory.
    """
    if not isinstance(path, str | os.PathLike):
        raise TypeError(f"source holds {type(path).__name__}: several sources must be paths")
    if not os.fspath(path):
        raise FileNotFoundError("source is an empty path: a file or a directory is needed")
    path = as_path(path)
    if not path.is_dir():
        if isinstance(path, RemotePath):
            return list(path.matches())
        path.stat()  # raises now, not at the first record
        return [path]
    files: list[Any] = sorted(file for file in path.iterdir() if file.name.endswith(endings) and file.is_file())
    if not files:
        gone = retired(path)
        where = (
            f": the records of {gone:,} rollout{'' if gone == 1 else 's'} were retired once rebuilt, and their tokens "
            "are in the rows of the run's rollouts.jsonl"
        )
        raise FileNotFoundError(f"{path} holds no *{endings[0]}{where if gone else ''}")
    return files


def given_paths(given: Any) -> tuple[list[PathLike], list[Any]]:
    """The paths that were given, one or several, or else what was given in their place.

    Raises:
        TypeError: What `several` refuses, but for a path.
    """
    if isinstance(given, str | os.PathLike):
        return [given], []
    held: list[Any] = list(several(given))
    are_paths = all(isinstance(each, str | os.PathLike) for each in held)
    return (held, []) if are_paths else ([], held)


def _has_buffer(source: Any) -> bool:
    try:
        memoryview(source).release()
    except TypeError:
        return False
    return True


class Feed:
    """Gives a `RecordScanner` the lines that it does not read itself.

    They are those of streams, and those of files that only Python can say something about: what can't be opened, is not
    a regular file, or is damaged.
    """

    def __init__(self, places: list[Place]) -> None:
        self._places = places
        self._open = ExitStack()
        self._at: int | None = None
        self._stream: IO[bytes]

    def __call__(self, place: int, number: int, offset: int) -> bytes:
        """The next line of a place, empty at its end.

        Args:
            place: The position of the place; there is no way back.
            number: Lines before it.
            offset: Bytes before it.

        Raises:
            Damage: The compressed data are damaged.
        """
        name = self._places[place].name
        try:
            if place != self._at:
                self._begin(place, offset)
            return _read_line(self._stream)
        # Where Python lacks zstd, such a file comes here because it is damaged.
        except (ModuleNotFoundError, EOFError, gzip.BadGzipFile, zlib.error, *_zstd_errors()) as error:  # type: ignore[misc]
            reason = f"the compressed data are damaged: {error}"
            raise Damage(name, number + 1, offset, reason) from None

    def _begin(self, place: int, offset: int) -> None:
        self.close()
        _, origin, stream = self._places[place]
        if stream is not None and not _gives_lines(stream):
            stream = cast("IO[bytes]", OnlyReads(stream))
        if isinstance(stream, io.RawIOBase) and stream.seekable():
            stream = self._open.enter_context(_buffered(stream))
        elif isinstance(stream, OnlyReads):
            stream = io.BufferedReader(stream, BUFFER_SIZE)
        elif stream is None:
            stream = self._open.enter_context(open_file(cast("AnyPath", origin)))
        if offset:
            stream.seek(offset)
        self._at, self._stream = place, stream

    def close(self) -> None:
        """Close the file that is open, unless its owner is somebody else."""
        self._open.close()


def _gives_lines(stream: IO[bytes]) -> bool:
    try:
        return stream.readline(0) == b""
    except (AttributeError, TypeError, NotImplementedError, io.UnsupportedOperation):
        return False


@contextmanager
def _buffered(raw: io.RawIOBase) -> Iterator[IO[bytes]]:
    """A file that is not buffered, buffered meanwhile; its owner reads on where the lines that were read end."""
    stream = io.BufferedReader(raw, BUFFER_SIZE)
    try:
        yield stream
    finally:
        end = stream.tell()
        stream.detach().seek(end)


def _read_line(stream: IO[bytes]) -> bytes:
    """The next line. A file that its owner reads on from is not read ahead of."""
    data = stream.readline(BUFFER_SIZE)
    if len(data) < BUFFER_SIZE or data.endswith(b"\n"):
        return data
    if not isinstance(stream, io.BufferedReader) or not stream.seekable():
        return data + stream.readline()
    # A long line would be in memory twice while its pieces are joined: it is measured, then read in one piece.
    start, size = stream.tell() - len(data), len(data)
    while data and not data.endswith(b"\n"):
        data = stream.readline(BUFFER_SIZE)
        size += len(data)
    stream.seek(start)
    return stream.read(size)


@contextmanager
def open_file(path: AnyPath, mode: Literal["rb", "wb"] = "rb", *, name: str | None = None) -> Iterator[IO[bytes]]:
    """A binary file, compressed or not by its name, or by `name`."""
    name = path.name if name is None else name
    with ExitStack() as stack:
        stream: Any = stack.enter_context(path.open(mode, buffering=BUFFER_SIZE))
        if mode == "rb" and is_compressed(name) and not stream.peek(1):
            raise EOFError("the file is empty, and compressed data have a head at least")
        if name.endswith(".gz"):
            # No name and no time in the header: the same records are the same bytes.
            stream = stack.enter_context(gzip.GzipFile("", mode, fileobj=stream, mtime=0))
        elif name.endswith(".zst"):
            zstd = _zstd()
            options = {zstd.CompressionParameter.checksum_flag: 1} if mode == "wb" else None
            stream = stack.enter_context(zstd.open(stream, mode, options=options))
            if mode == "wb":
                stream.write(b"")  # begins a frame, so that a file of no records is not an empty one
        yield stream


def _zstd() -> ModuleType:
    """The module of the standard library from 3.14 on, else its backport."""
    name = "compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd"
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(f"zstd files need an extra: pip install 'tokenrecords[zstd]' ({error})") from error


def _zstd_errors() -> tuple[type[Exception], ...]:
    loaded = (sys.modules.get(name) for name in ("compression.zstd", "backports.zstd"))
    return tuple(module.ZstdError for module in loaded if module is not None)
