"""What this process holds open and runs."""

from __future__ import annotations

import time
from contextlib import suppress
from pathlib import Path


def open_files(path: Path) -> list[str]:
    fds = Path("/proc/self/fd")
    return [found for fd in fds.iterdir() if fd.is_symlink() and (found := str(fd.readlink())) == str(path)]


def threads_are(*, there: bool) -> bool:
    """True if the extension has threads, or has none, now or soon.

    On a busy machine a thread that was started gets its name late, and one that was joined is listed for a while.
    """
    deadline = time.monotonic() + 10
    while bool(threads()) is not there and time.monotonic() < deadline:
        time.sleep(0.001)
    return bool(threads()) is there


def threads() -> set[str]:
    """The ids of the threads that the extension started and keeps."""
    found = set()
    for task in Path("/proc/self/task").iterdir():
        with suppress(OSError):  # it ended meanwhile
            if (task / "comm").read_text() == "tokenrecords\n":
                found.add(task.name)
    return found
