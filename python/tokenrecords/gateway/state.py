"""What the handlers of one gateway share."""

from __future__ import annotations

import hmac
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tokenrecords.gateway.commits import Commits
from tokenrecords.gateway.metrics import Metrics

if TYPE_CHECKING:
    import asyncio

    from tokenrecords.gateway.engines import Pool
    from tokenrecords.gateway.settings import Settings
    from tokenrecords.gateway.store import Store
    from tokenrecords.gateway.upstream import Upstream


@dataclass
class State:
    """One running gateway.

    Attributes:
        weight_version: What the records of calls that begin now say, where the engine does not; None for nothing.
        is_paused: True while calls are refused because weights change.
        is_draining: True once it is being stopped.
        background: What runs as long as it does.
    """

    settings: Settings
    store: Store
    pool: Pool
    upstream: Upstream
    commits: Commits = field(default_factory=Commits)
    metrics: Metrics = field(default_factory=Metrics)
    weight_version: Any = None
    is_paused: bool = False
    is_draining: bool = False
    background: list[asyncio.Future[None]] = field(default_factory=list)

    def may_call(self, key: str | None) -> bool:
        """True for whoever may send calls."""
        return _is(key, self.settings.key)

    def may_administer(self, key: str | None) -> bool:
        """True for whoever may read sessions and change what the gateway does."""
        return _is(key, self.settings.admin_key)


def _is(key: str | None, wanted: str | None) -> bool:
    """In a time that does not tell how much of the key is right."""
    return wanted is None or hmac.compare_digest(_bytes(key or ""), _bytes(wanted))


def _bytes(key: str) -> bytes:
    return key.encode("utf-8", "surrogateescape")  # a header may have any bytes
