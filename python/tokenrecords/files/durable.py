"""Files that survive a kill and a power cut: written whole, or appended to under a lock."""

from __future__ import annotations

import os
import stat
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING

from pydantic_core import from_json

from tokenrecords.files.names import PathLike, is_compressed
from tokenrecords.files.remote import AnyPath, RemotePath, as_path
from tokenrecords.files.sources import BOM, open_file

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_CHUNK = 1 << 16


def write_whole(path: PathLike, lines: Iterable[bytes]) -> None:
    """Write a file so that at any moment its name stands for the old content or for the new one, whole."""
    with whole_file(path) as stream:
        write_lines(stream, lines)


@contextmanager
def whole_file(path: PathLike) -> Iterator[IO[bytes]]:
    """A binary file that gets its name when it is left without an error; the old content has it until then.

    Of another file system this holds as far as that has it: object stores do, where files are uploaded and then named.
    """
    named = as_path(path)
    if isinstance(named, RemotePath):
        with open_file(named, "wb") as stream:
            yield stream
        return
    target = _resolved(named)
    mode = target.stat().st_mode if target.exists() else None
    if mode is not None and not stat.S_ISREG(mode):  # a pipe or a device can't be replaced
        with target.open("wb") as stream:
            yield stream
        return
    temporary = target.with_name(f".{os.urandom(8).hex()}.tmp")
    try:
        temporary.touch(0o666 if mode is None else 0o600, exist_ok=False)
        with open_file(temporary, "wb", name=target.name) as stream:
            yield stream
        sync(temporary)
        if mode is not None:
            temporary.chmod(stat.S_IMODE(mode))
        put_in_place(temporary, target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def put_in_place(made: AnyPath, target: AnyPath) -> None:
    """Give a file a name of the same file system, in place of the file that had it."""
    made.replace(target)  # type: ignore[arg-type]  # they are of one kind
    if isinstance(target, Path):
        sync(target.parent)


def _resolved(path: Path) -> Path:
    """What a path leads to, so that a link stays a link.

    Raises:
        OSError: It leads round in a circle.
    """
    with suppress(FileNotFoundError):
        path.stat()  # what `resolve` makes of a circle depends on the Python
    return path.resolve()


def write_lines(stream: IO[bytes], lines: Iterable[bytes]) -> None:
    """Write each line with one call, and what an unbuffered stream leaves of it with further ones.

    Raises:
        BlockingIOError: The stream takes nothing now.
    """
    for line in lines:
        rest = memoryview(line)
        while rest:
            written = stream.write(rest)
            if written is None:
                raise BlockingIOError("the stream takes nothing now, and can't be waited for")
            rest = rest[written:]


def append_lines(path: PathLike, lines: list[bytes], *, fsync: bool, mode: int = 0o666) -> None:
    """Append lines to a file, all of them or none.

    Under a lock on the file a torn tail is cut off, and a complete last line without its line break gets it. A new file
    has `mode`, less the process's mask.

    Raises:
        ValueError: The file's name says that it is compressed, or it is of another file system.
    """
    path = as_path(path)
    if isinstance(path, RemotePath):
        raise ValueError(f"{path} is on another file system: records can't be appended to it, only written whole")
    if is_compressed(path):
        raise ValueError(f"{path} is compressed: records can't be appended to it")
    with _locked(path, mode) as descriptor:
        size, line_break = _mend_tail(descriptor)
        try:
            for line in lines:
                _write(descriptor, line_break + line)
                line_break = b""
            if line_break:
                _write(descriptor, line_break)
            if fsync:
                os.fsync(descriptor)
                if size == 0:  # perhaps its name is new too
                    sync(path.resolve().parent)
        except BaseException:
            with suppress(OSError):  # a device has no size; what went wrong before is what counts
                os.ftruncate(descriptor, size)
            raise


@contextmanager
def _locked(path: Path, mode: int) -> Iterator[int]:
    """An append-only descriptor of the file that `path` names, under an exclusive lock."""
    import fcntl  # noqa: PLC0415 - POSIX only, and reading needs none

    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, mode)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            # While we waited, the file may have been replaced: then its lock protects nothing.
            with suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(descriptor), path.stat()):
                    yield descriptor
                    return
        finally:
            os.close(descriptor)  # and with it the lock


def _mend_tail(descriptor: int) -> tuple[int, bytes]:
    """Cut off a torn last line; the size of the file then, and the line break that a complete one lacks."""
    size = os.fstat(descriptor).st_size
    start = _start_of_last_line(descriptor, size)
    if start == size:
        return size, b""
    if is_torn(os.pread(descriptor, size - start, start)):
        os.ftruncate(descriptor, start)
        return start, b""
    return size, b"\n"


def _start_of_last_line(descriptor: int, size: int) -> int:
    """Where the text after the last line break starts."""
    if size and os.pread(descriptor, 1, size - 1) == b"\n":
        return size  # as nearly always
    end = size
    while end > 0:
        start = max(0, end - _CHUNK)
        found = os.pread(descriptor, end - start, start).rfind(b"\n")
        if found >= 0:
            return start + found + 1
        end = start
    return 0


def is_torn(line: bytes) -> bool:
    """True for a last line that breaks off: a beginning of JSON, or what a file system puts where nothing was written.

    Everything else that lacks its line break was written whole, be it a record or not.
    """
    if line.endswith(b"\0"):
        return True
    try:
        from_json(line.removeprefix(BOM))
    except ValueError as error:
        return "EOF while parsing" in str(error)  # also where it breaks off within a character
    return False


def _write(descriptor: int, line: bytes) -> None:
    written = os.write(descriptor, line)
    while written < len(line):  # a signal, or a full disk, which the next try reports
        written += os.write(descriptor, line[written:])


def sync(path: Path) -> None:
    """Bring what was written to a file, or the names in a directory, to the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
