"""Group commit: those who wait for the disk at the same time wait for it once."""

from __future__ import annotations

import asyncio
import threading
from queue import SimpleQueue
from typing import TYPE_CHECKING, NamedTuple

from tokenrecords.files.durable import sync

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


class _Wanted(NamedTuple):
    """A file that somebody waits for."""

    path: Path
    is_new: bool
    future: asyncio.Future[None]


class Commits:
    """Brings files to the disk, all that wait in one go, on a thread of its own."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._wanted: SimpleQueue[_Wanted | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="tokenrecords-fsync", daemon=True)
        self._thread.start()

    async def durable(self, path: Path, *, is_new: bool) -> None:
        """Return when what was written to the file survives a power cut, and so does the name of a new one.

        Raises:
            OSError: It may not.
        """
        future = self._loop.create_future()
        self._wanted.put(_Wanted(path, is_new, future))
        await future

    def close(self) -> None:
        """End the thread, when it has done what is waited for."""
        self._wanted.put(None)
        self._thread.join()

    def _run(self) -> None:
        ends = False
        while not ends:
            batch = [self._wanted.get()]
            while not self._wanted.empty():
                batch.append(self._wanted.get())
            ends = None in batch
            waiting = [wanted for wanted in batch if wanted is not None]
            self._loop.call_soon_threadsafe(_tell, waiting, _synced(waiting))


def _synced(waiting: list[_Wanted]) -> dict[Path, Exception]:
    """Bring the files to the disk, and the names of the new ones; what went wrong with which."""
    wanted: dict[Path, bool] = {}
    for path, is_new, _ in waiting:
        wanted[path] = wanted.get(path, False) or is_new
    failed: dict[Path, Exception] = {}
    for path, is_new in wanted.items():
        try:
            sync(path)
            if is_new:
                sync(path.parent)
        except Exception as error:  # noqa: BLE001 - for whoever waits
            failed[path] = error
    return failed


def _tell(waiting: list[_Wanted], failed: Mapping[Path, Exception]) -> None:
    for path, _, future in waiting:
        if future.done():  # its agent has left
            continue
        if path in failed:
            future.set_exception(failed[path])
        else:
            future.set_result(None)
