"""What this process holds open and runs."""

from __future__ import annotations

import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tokenrecords import _core

if TYPE_CHECKING:
    from collections.abc import Callable

with_the_gil = pytest.mark.skipif(
    not getattr(sys, "_is_gil_enabled", lambda: True)(), reason="there is no GIL to release"
)


def open_files(path: Path) -> list[str]:
    fds = Path("/proc/self/fd")
    return [found for fd in fds.iterdir() if fd.is_symlink() and (found := str(fd.readlink())) == str(path)]


def others_run_during(call: Callable[[], object]) -> bool:
    """True if another thread gets to run while `call` does.

    The interval after which a thread must give the GIL away is so long that only `call` gives it. On a busy machine the
    other one may come too late to take it, so there are many calls.
    """
    go, ran = threading.Event(), threading.Event()
    thread = threading.Thread(target=lambda: (go.wait(), ran.set()))
    thread.start()
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e6)
    try:
        go.set()
        assert not ran.is_set()
        deadline = time.monotonic() + 30
        while not ran.is_set() and time.monotonic() < deadline:
            call()
        return ran.is_set()
    finally:
        sys.setswitchinterval(interval)
        thread.join()


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


def threads_asked(monkeypatch: pytest.MonkeyPatch) -> list[int | None]:
    """How many threads each reader and each batch of digests is asked for from now on."""
    asked: list[int | None] = []

    def watched(original: Callable[..., Any]) -> Callable[..., Any]:
        def ask(*arguments: Any, threads: int | None = None, **options: Any) -> Any:
            asked.append(threads)
            return original(*arguments, threads=threads, **options)

        return ask

    for name in ("RecordScanner", "compute_digests"):
        original = getattr(_core, name)
        for module in [each for home, each in sys.modules.items() if home.startswith("tokenrecords.")]:
            if vars(module).get(name) is original and module is not _core:
                monkeypatch.setattr(module, name, watched(original))
    return asked
