"""A stream while its bytes come in, for whoever stands between a server and its client."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from tokenrecords._core import SseEvents
from tokenrecords.engines import anthropic_events, responses_events
from tokenrecords.engines.joining import WORDS
from tokenrecords.engines.sse import DONE, chunk_of
from tokenrecords.engines.stream import merge_events, server_error

if TYPE_CHECKING:
    from tokenrecords.engines.body import Bytes

_ENDS: Final = responses_events.ENDS | anthropic_events.ENDS
# What an event holds as a key or a value of its own if it is to be looked at: a quote in a text has a backslash.
_TELLING: Final = re.compile("|".join(f'"{re.escape(word)}"' for word in ("error", *WORDS, *sorted(_ENDS))).encode())


class EventStream:
    """The events of a streamed call; the bytes may be cut anywhere.

    Attributes:
        error: What the server said went wrong, in its own words; None until an event says so.
        end_at: Where in `body` the event begins that ends the stream (`[DONE]`, `response.completed`, `message_stop`,
            ...); None until it has come. Streams of TGI and of llama.cpp's own endpoint end without one.
    """

    def __init__(self) -> None:
        self.error: str | None = None
        self.end_at: int | None = None
        self._events = SseEvents()
        self._seen = 0

    @property
    def body(self) -> bytes:
        """All bytes so far."""
        return self._events.body

    def feed(self, packet: Bytes) -> None:
        """Take the next bytes."""
        self._events.feed(bytes(packet))
        self._look()

    def payload(self, *, dialect: str | None = None, check_ids: bool = True) -> Any:
        """What `merge_stream` gives of the whole stream, once all bytes have come.

        Raises:
            ValueError: As `merge_stream`.
        """
        self._events.end()
        self._look()
        return merge_events(self._events, dialect=dialect, check_ids=check_ids)

    def _look(self) -> None:
        """Look at the events that are whole since the last time."""
        for place in range(self._seen, len(self._events)):
            kind, begin, data = self._events[place]
            if kind == "data" and data == DONE:
                self._end(begin)
            elif kind == "error" or _TELLING.search(data):
                self._watch(kind, begin, data)
        self._seen = len(self._events)

    def _watch(self, kind: str, begin: int, data: bytes) -> None:
        try:
            chunk = chunk_of(kind, data)
        except ValueError:
            return  # for `payload` to say
        if self.error is None:
            self.error = responses_events.failure(chunk) or server_error(chunk)
        if chunk.get("type") in _ENDS:
            self._end(begin)

    def _end(self, begin: int) -> None:
        self.end_at = begin if self.end_at is None else self.end_at
