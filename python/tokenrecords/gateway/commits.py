"""Group commit: those who wait for the disk at the same time wait for it once."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from tokenrecords.files.durable import sync

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


class Commits:
    """Brings files to the disk, all that wait in one go."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(1, "tokenrecords-fsync")
        self._waiting: list[tuple[Path, bool, asyncio.Future[None]]] = []
        self._running: asyncio.Task[None] | None = None

    async def durable(self, path: Path, *, is_new: bool) -> None:
        """Return when what was written to the file survives a power cut, and so does the name of a new one.

        Raises:
            OSError: It may not.
        """
        future = asyncio.get_running_loop().create_future()
        self._waiting.append((path, is_new, future))
        if self._running is None or self._running.done():
            self._running = asyncio.create_task(self._run())
        await future

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        while self._waiting:
            batch, self._waiting = self._waiting, []
            wanted: dict[Path, bool] = {}
            for path, is_new, _ in batch:
                wanted[path] = wanted.get(path, False) or is_new
            failed = await loop.run_in_executor(self._pool, _sync, wanted)
            for path, _, future in batch:
                if future.done():  # its agent has left
                    continue
                if path in failed:
                    future.set_exception(failed[path])
                else:
                    future.set_result(None)

    def close(self) -> None:
        """End the thread."""
        self._pool.shutdown()


def _sync(paths: Mapping[Path, bool]) -> dict[Path, OSError]:
    """Bring the files to the disk, and the names of the new ones; those with which it failed."""
    failed: dict[Path, OSError] = {}
    for path, is_new in paths.items():
        try:
            sync(path)
            if is_new:
                sync(path.parent)
        except OSError as error:
            failed[path] = error
    return failed
