"""The engines behind a gateway: which one a session goes to, and which ones answer."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tokenrecords.gateway.upstream import Upstream

_STICKY: Final = 1 << 16  # sessions whose engine is remembered
_LOOK: Final = 5.0  # seconds that an engine has to say that it is there


@dataclass
class Engine:
    """One engine.

    Attributes:
        root: Its URL, without `/v1`.
        is_up: False where it could not be reached when it was last tried.
        open: The calls that it has.
        sessions: How many sessions were given to it.
    """

    root: str
    is_up: bool = True
    open: int = 0
    sessions: int = 0


class Pool:
    """Several engines; a session stays with its own one, whose cache has its prompt, as long as that answers."""

    def __init__(self, roots: Sequence[str]) -> None:
        self.engines = [Engine(root) for root in roots]
        self._of: OrderedDict[str, Engine] = OrderedDict()

    def choose(self, session: str | None) -> Engine:
        """The engine of a session; a new one gets the one with the fewest calls, of these that with fewest sessions."""
        known = self._of.get(session) if session is not None else None
        if known is not None and known.is_up:
            return known
        engine = min(self.engines, key=lambda engine: (not engine.is_up, engine.open, engine.sessions))
        if session is not None:
            engine.sessions += 1
            self._of[session] = engine
            self._of.move_to_end(session)
            if len(self._of) > _STICKY:
                self._of.popitem(last=False)
        return engine

    async def watch(self, upstream: Upstream, interval: float) -> None:
        """Look at the engines that failed, until it is cancelled."""
        while True:
            await asyncio.sleep(interval)
            for engine in self.engines:
                if not engine.is_up:
                    engine.is_up = await _answers(upstream, engine.root)


async def _answers(upstream: Upstream, root: str) -> bool:
    try:
        async with asyncio.timeout(_LOOK):
            with await upstream.request("GET", root, "/health", headers={}) as answer:
                return answer.status < 500
    except OSError:
        return False
