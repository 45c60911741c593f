"""What this process holds open and runs."""

from __future__ import annotations

import time
from contextlib import suppress
from pathlib import Path


def open_files(path: Path) -> list[str]:
    fds = Path("/proc/self/fd")
    return [found for fd in fds.iterdir() if fd.is_symlink() and (found := str(fd.readlink())) == str(path)]


def scanning_threads() -> set[str]:
    """The ids of the threads that the extension started and keeps.

    A thread that was joined may still be listed for a moment, so that a look must find it twice.
    """
    seen = _threads()
    if seen:
        time.sleep(0.02)
    return seen & _threads()


def _threads() -> set[str]:
    found = set()
    for task in Path("/proc/self/task").iterdir():
        with suppress(OSError):  # it ended meanwhile
            if (task / "comm").read_text() == "tokenrecords\n":
                found.add(task.name)
    return found
