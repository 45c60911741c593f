"""A stream while its bytes come in, for whoever stands between a server and its client."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Final

from tokenrecords._core import SseEvents
from tokenrecords.engines import anthropic_events, responses_events
from tokenrecords.engines.joining import WORDS
from tokenrecords.engines.sse import DONE, chunk_of
from tokenrecords.engines.stream import serve_events, server_error

if TYPE_CHECKING:
    from tokenrecords._core import MemberCutter
    from tokenrecords.engines.body import Bytes, Served

_ENDS: Final = responses_events.ENDS | anthropic_events.ENDS
# What an event holds as a key or a value of its own if it is to be looked at: a quote in a text has a backslash.
_TELLING: Final = ("error", *WORDS, *sorted(_ENDS), "generated_text", "stop")
_ALL: Final = sys.maxsize


class EventStream:
    """The events of a streamed call; the bytes may be cut anywhere.

    Attributes:
        error: What the server said went wrong, in its own words; None until an event says so.
        end_at: Where in `body` the event begins with which the answer ends; None until it has come. It is the one that
            ends the stream (`[DONE]`, `response.completed`, `message_stop`, ...); where TGI's or llama.cpp's own
            endpoint has none, the first that says that an answer is whole.
        is_ended: True when the event has come that ends the stream, where there is one.
    """

    def __init__(self) -> None:
        self.error: str | None = None
        self.end_at: int | None = None
        self.is_ended = False
        self._events = SseEvents(_TELLING)

    @property
    def body(self) -> bytes:
        """All bytes so far."""
        return self._events.body

    def feed(self, packet: Bytes) -> None:
        """Take the next bytes."""
        self._events.feed(bytes(packet))
        self._look()

    def before_end(self, cutter: MemberCutter | None = None) -> bytes:
        """The bytes of whole events that were not asked for yet, as far as the answer's last event.

        Args:
            cutter: What their data loses.
        """
        return self._events.pass_on(cutter, self.end_at)

    def rest(self, cutter: MemberCutter | None = None) -> bytes:
        """All bytes that were not asked for yet.

        Args:
            cutter: What the data of whole events loses.
        """
        return self._events.pass_on(cutter, _ALL)

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
                self._end(begin, is_ended=True)
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
            self._end(begin, is_ended=True)
        elif chunk.get("stop") is True or isinstance(chunk.get("generated_text"), str):
            self._end(begin, is_ended=False)

    def _end(self, begin: int, *, is_ended: bool) -> None:
        self.end_at = begin if self.end_at is None else self.end_at
        self.is_ended = self.is_ended or is_ended
