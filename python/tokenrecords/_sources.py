"""Where lines come from: paths, directories, open files and bytes, compressed or not."""

from __future__ import annotations

import gzip
import importlib
import io
import os
import sys
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Literal, TypeAlias, cast

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

    from typing_extensions import Buffer

SUFFIX = ".tokens.jsonl"
_COMPRESSED = (".gz", ".zst")
_BOM = b"\xef\xbb\xbf"
# Large enough that a record's line is gathered from few pieces, small against the memory of one record.
_BUFFER_SIZE = 1 << 20

PathLike: TypeAlias = str | os.PathLike[str]
Source: TypeAlias = "PathLike | IO[bytes] | Buffer | Iterable[PathLike]"


@dataclass(frozen=True)
class Line:
    """A line of a source."""

    data: bytes
    path: str
    number: int  # from 1
    offset: int  # bytes before it, uncompressed
    is_last: bool = False  # it has no line break


class DamagedError(ValueError):
    """A source that breaks off, after the lines that it gave: its compressed data are damaged."""

    def __init__(self, path: str, number: int, offset: int, reason: str) -> None:
        super().__init__(reason)
        self.path, self.number, self.offset, self.reason = path, number, offset, reason


def is_compressed(path: PathLike) -> bool:
    """True if the file's name says that it is compressed."""
    return os.fspath(path).endswith(_COMPRESSED)


def lines(source: Source) -> Iterator[Line]:
    """The lines of a source, without a byte order mark at the start of a file, and without blank lines.

    Raises:
        TypeError: `source` is none.
        FileNotFoundError: There is no such file, or no file of records in a directory.
        DamagedError: Compressed data are damaged (raised by the iterator).
    """
    if isinstance(source, str | os.PathLike):
        return _lines_of_files(_files(source))
    if _has_buffer(source):
        return _lines_of(io.BytesIO(cast("Buffer", source)), "<bytes>")
    if hasattr(source, "read"):
        name = getattr(source, "name", None)
        return _lines_of(cast("IO[bytes]", source), name if isinstance(name, str) else "<file>")
    if isinstance(source, Iterable):
        return _lines_of_files([file for path in source for file in _files(path)])
    raise TypeError(
        f"source is {type(source).__name__}: a path, an open binary file, bytes, or an iterable of paths is needed"
    )


def _files(path: PathLike) -> list[Path]:
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


def _lines_of_files(files: list[Path]) -> Iterator[Line]:
    for file in files:
        with open_file(file) as stream:
            yield from _lines_of(stream, str(file))


def _has_buffer(source: Any) -> bool:
    try:
        memoryview(source).release()
    except TypeError:
        return False
    return True


def _lines_of(stream: IO[bytes], path: str) -> Iterator[Line]:
    number = offset = 0
    try:
        # By readline, so that a file that its owner reads on from is not read ahead of.
        for number, data in enumerate(iter(stream.readline, b""), 1):
            if not isinstance(data, bytes):
                raise TypeError(f"source gives {type(data).__name__}, not bytes: open it in binary mode")
            content = data.removeprefix(_BOM) if number == 1 else data
            if content and not content.isspace():
                yield Line(content, path, number, offset, is_last=not data.endswith(b"\n"))
            offset += len(data)
    except (EOFError, gzip.BadGzipFile, zlib.error, *_zstd_errors()) as error:  # type: ignore[misc] # of a module that may be absent
        raise DamagedError(path, number + 1, offset, f"the compressed data are damaged: {error}") from error


@contextmanager
def open_file(path: Path, mode: Literal["rb", "wb"] = "rb") -> Iterator[IO[bytes]]:
    """A binary file, compressed or not by its name."""
    with _opener(path)(mode) as stream:
        yield stream


def _opener(path: Path) -> Callable[[Any], IO[bytes]]:
    if path.name.endswith(".gz"):
        return partial(cast("Callable[..., IO[bytes]]", gzip.open), path)
    if path.name.endswith(".zst"):
        return partial(_zstd().open, path)
    return partial(cast("Callable[..., IO[bytes]]", path.open), buffering=_BUFFER_SIZE)


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
