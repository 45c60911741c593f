"""What a gateway counts, for Prometheus and for the status line."""

from __future__ import annotations

import asyncio
from contextlib import contextmanager
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

if TYPE_CHECKING:
    from collections.abc import Iterator

_SECONDS = (0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600)


class Metrics:
    """The counts of one gateway, in a registry of their own."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        name = "tokenrecords_gateway"
        self._calls = Counter(f"{name}_calls", "Generating calls, by how they ended", ["end"], registry=self._registry)
        self._ended = {end: self._calls.labels(end) for end in ("recorded", "lost", "failed", "passed")}
        self._open = Gauge(f"{name}_open_calls", "Generating calls without an answer yet", registry=self._registry)
        self.ids = Counter(f"{name}_generated_ids", "Generated token ids that were recorded", registry=self._registry)
        self.seconds = Histogram(
            f"{name}_call_seconds",
            "Time from request to the end of the answer",
            registry=self._registry,
            buckets=_SECONDS,
        )
        self.open = 0  # calls
        self.idle = asyncio.Event()  # set while there are none
        self.idle.set()
        self.counts = dict.fromkeys(self._ended, 0)

    def begun(self) -> None:
        """Count a call that is going to end."""
        self.open += 1
        self.idle.clear()
        self._open.inc()

    def ended(self, end: str) -> None:
        """Count a call that was begun."""
        self.open -= 1
        if not self.open:
            self.idle.set()
        self._open.dec()
        self.counts[end] += 1
        self._ended[end].inc()

    @contextmanager
    def passing(self) -> Iterator[None]:
        """A generating call that passes unrecorded: open as the others are."""
        self.begun()
        try:
            yield
        finally:
            self.ended("passed")

    def text(self) -> bytes:
        """All of it, as Prometheus reads it."""
        return generate_latest(self._registry)
