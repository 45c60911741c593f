"""A stream while its bytes come in, for whoever stands between a server and its client."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tokenrecords._core import SseEvents
from tokenrecords.engines import anthropic_events, responses_events
from tokenrecords.engines.joining import WORDS
from tokenrecords.engines.sse import DONE, chunk_of
from tokenrecords.engines.stream import serve_events, server_error

if TYPE_CHECKING:
    from tokenrecords.engines.body import Bytes, Served

_ENDS: Final = responses_events.ENDS | anthropic_events.ENDS
# What an event holds as a key or a value of its own if it is to be looked at: a quote in a text has a backslash.
_TELLING: Final = ("error", *WORDS, *sorted(_ENDS))


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
        self._events = SseEvents(_TELLING)

    @property
    def body(self) -> bytes:
        """All bytes so far."""
        return self._events.body

    def feed(self, packet: Bytes) -> None:
        """Take the next bytes."""
        self._events.feed(bytes(packet))
        self._look()

    def payload(self, *, is_cut: bool = False) -> Served:
        """What the chunks so far join to, as `merge_stream` says.

        Args:
            is_cut: True where the bytes end before the stream does: an event of which a part has come is left out, and
                else taken for the whole.

        Raises:
            ValueError: As `merge_stream`.
        """
        if not is_cut:
            self._events.end()
            self._look()
        return serve_events(self._events)

    def _look(self) -> None:
        """Look at the telling ones of the events that are whole since the last time."""
        for place in self._events.telling():
            kind, begin, data = self._events[place]
            if kind == "data" and data == DONE:
                self._end(begin)
            else:
                self._watch(kind, begin, data)

    def _watch(self, kind: str, begin: int, data: bytes) -> None:
        try:
            chunk = chunk_of(kind, data)
        except ValueError:
            return  # for `payload` to say
        if self.error is None:
            self.error = responses_events.failure(chunk) or server_error(chunk)
        said = chunk.get("type")
        if isinstance(said, str) and said in _ENDS:
            self._end(begin)

    def _end(self, begin: int) -> None:
        self.end_at = begin if self.end_at is None else self.end_at
