"""Files that survive a kill and a power cut: written whole, or appended to under a lock."""

from __future__ import annotations

import os
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic_core import from_json

from tokenrecords._sources import PathLike, is_compressed, open_file

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_CHUNK = 1 << 16


def write_whole(path: PathLike, lines: Iterable[bytes]) -> None:
    """Write a file so that at any moment its name stands for the old content or for the new one, whole."""
    target = Path(path).resolve()  # a link stays a link
    temporary = target.with_name(f".{os.urandom(4).hex()}-{target.name}")
    try:
        with open_file(temporary, "wb") as stream:
            for line in lines:
                stream.write(line)
        _sync(temporary)
        if target.exists():
            temporary.chmod(target.stat().st_mode)
        temporary.replace(target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    _sync(target.parent)


def append_lines(path: PathLike, lines: list[bytes], *, fsync: bool) -> None:
    """Append lines to a file, all of them or none.

    Under a lock on the file a torn tail is cut off, and a complete last line without its line break gets it.

    Raises:
        ValueError: The file's name says that it is compressed.
    """
    if is_compressed(path):
        raise ValueError(f"{os.fspath(path)} is compressed: records can't be appended to it")
    with _locked(path) as (descriptor, is_new):
        size = _mend_tail(descriptor)
        try:
            for line in lines:
                _write(descriptor, line)
            if fsync:
                os.fsync(descriptor)
        except BaseException:
            os.ftruncate(descriptor, size)
            raise
        if fsync and is_new:
            _sync(Path(path).resolve().parent)


@contextmanager
def _locked(path: PathLike) -> Iterator[tuple[int, bool]]:
    """An append-only descriptor of the file that `path` names, under an exclusive lock; and whether it is new."""
    import fcntl  # noqa: PLC0415 - POSIX only, and reading needs none

    while True:
        is_new = not os.path.exists(path)  # noqa: PTH110 - of a path as it was given
        descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o666)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            # While we waited, the file may have been replaced: then its lock protects nothing.
            with suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(descriptor), os.stat(path)):  # noqa: PTH116
                    yield descriptor, is_new
                    return
        finally:
            os.close(descriptor)  # and with it the lock


def _mend_tail(descriptor: int) -> int:
    """Cut off a torn last line, or give a complete one its line break; the size of the file then."""
    size = os.fstat(descriptor).st_size
    start = _start_of_last_line(descriptor, size)
    if start < size:
        if is_json(os.pread(descriptor, size - start, start)):
            _write(descriptor, b"\n")
            return size + 1
        os.ftruncate(descriptor, start)
    return start


def _start_of_last_line(descriptor: int, size: int) -> int:
    """Where the text after the last line break starts."""
    end = size
    while end > 0:
        start = max(0, end - _CHUNK)
        found = os.pread(descriptor, end - start, start).rfind(b"\n")
        if found >= 0:
            return start + found + 1
        end = start
    return 0


def is_json(line: bytes) -> bool:
    """True if the line is whole: a torn write ends within a value."""
    try:
        from_json(line)
    except ValueError:
        return False
    return True


def _write(descriptor: int, line: bytes) -> None:
    written = os.write(descriptor, line)
    while written < len(line):  # a signal, or a full disk, which the next try reports
        written += os.write(descriptor, line[written:])


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
