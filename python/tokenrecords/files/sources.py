"""Where lines come from: paths, directories, open files and bytes, compressed or not."""

from __future__ import annotations

import gzip
import importlib
import io
import os
import sys
import zlib
from collections.abc import Generator, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias, cast

if TYPE_CHECKING:
    from types import ModuleType

    from typing_extensions import Buffer

SUFFIX = ".tokens.jsonl"
_COMPRESSED = (".gz", ".zst")
BOM = b"\xef\xbb\xbf"
# Large enough that a record's line is gathered from few pieces, small against the memory of one record.
_BUFFER_SIZE = 1 << 20

PathLike: TypeAlias = str | os.PathLike[str]
Source: TypeAlias = "PathLike | IO[bytes] | Buffer | Iterable[PathLike]"


class Line(NamedTuple):
    """A line of a source."""

    data: bytes
    path: str
    number: int  # from 1
    offset: int  # bytes before it, uncompressed
    is_last: bool = False  # it has no line break


class Damage(NamedTuple):
    """What stands in for the rest of a file whose compressed data are damaged."""

    path: str
    number: int
    offset: int
    reason: str


def is_compressed(path: PathLike) -> bool:
    """True if the file's name says that it is compressed."""
    return os.fspath(path).endswith(_COMPRESSED)


def lines(source: Source) -> Generator[Line | Damage, None, None]:
    """The lines of a source, without a byte order mark at the start of a file, and without blank lines.

    Raises:
        TypeError: `source` is none.
        FileNotFoundError: There is no such file, or no file of records in a directory.
    """
    if isinstance(source, str | os.PathLike):
        return _lines_of_files(record_files(source))
    if _has_buffer(source):
        return _lines_of(io.BytesIO(cast("Buffer", source)), "<bytes>")
    if hasattr(source, "read"):
        if not isinstance(source.read(0), bytes):
            raise TypeError("source is a text file: open it in binary mode")
        name = getattr(source, "name", None)
        return _lines_of(cast("IO[bytes]", source), name if isinstance(name, str) else "<file>")
    if isinstance(source, Iterable):
        return _lines_of_files([file for path in source for file in record_files(path)])
    raise TypeError(
        f"source is {type(source).__name__}: a path, an open binary file, bytes, or an iterable of paths is needed"
    )


def record_files(path: PathLike) -> list[Path]:
    """The file, or the files of records in a directory."""
    if not isinstance(path, str | os.PathLike):
        raise TypeError(f"source holds {type(path).__name__}: several sources must be paths")
    path = Path(path)
    if not path.is_dir():
        path.stat()  # raises now, not at the first record
        return [path]
    names = (SUFFIX, *(SUFFIX + ending for ending in _COMPRESSED))
    files = sorted(file for file in path.iterdir() if file.name.endswith(names) and file.is_file())
    if not files:
        raise FileNotFoundError(f"{path} holds no *{SUFFIX}")
    return files


def _lines_of_files(files: list[Path]) -> Generator[Line | Damage, None, None]:
    for file in files:
        with open_file(file) as stream:
            yield from _lines_of(stream, str(file))


def _has_buffer(source: Any) -> bool:
    try:
        memoryview(source).release()
    except TypeError:
        return False
    return True


def _lines_of(stream: IO[bytes], path: str) -> Generator[Line | Damage, None, None]:
    number = offset = 0
    try:
        while data := _read_line(stream):
            number += 1
            size, is_last = len(data), not data.endswith(b"\n")
            if number == 1:
                data = data.removeprefix(BOM)
            line = Line(data, path, number, offset, is_last=is_last)
            del data  # nobody here keeps a line while the next one is read
            if line.data and not line.data.isspace():
                yield line
            del line
            offset += size
    except (EOFError, gzip.BadGzipFile, zlib.error, *_zstd_errors()) as error:  # type: ignore[misc] # may be absent
        yield Damage(path, number + 1, offset, f"the compressed data are damaged: {error}")


def _read_line(stream: IO[bytes]) -> bytes:
    """The next line. A file that its owner reads on from is not read ahead of."""
    data = stream.readline(_BUFFER_SIZE)
    if len(data) < _BUFFER_SIZE or data.endswith(b"\n"):
        return data
    if not isinstance(stream, io.BufferedReader) or not stream.seekable():
        return data + stream.readline()
    # A long line would be in memory twice while its pieces are joined: it is measured, then read in one piece.
    start, size = stream.tell() - len(data), len(data)
    while data and not data.endswith(b"\n"):
        data = stream.readline(_BUFFER_SIZE)
        size += len(data)
    stream.seek(start)
    return stream.read(size)


@contextmanager
def open_file(path: Path, mode: Literal["rb", "wb"] = "rb", *, name: str | None = None) -> Iterator[IO[bytes]]:
    """A binary file, compressed or not by its name, or by `name`."""
    name = path.name if name is None else name
    with ExitStack() as stack:
        stream: Any = stack.enter_context(path.open(mode, buffering=_BUFFER_SIZE))
        if name.endswith(".gz"):
            # No name and no time in the header: the same records are the same bytes.
            stream = stack.enter_context(gzip.GzipFile("", mode, fileobj=stream, mtime=0))
        elif name.endswith(".zst"):
            stream = stack.enter_context(_zstd().open(stream, mode))
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
