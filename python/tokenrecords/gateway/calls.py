"""One generating call of a session: begun, recorded, lost or taken back."""

from __future__ import annotations

import asyncio
import json
import time
import uuid
from typing import TYPE_CHECKING, Any

from tokenrecords.capture.entries import entries_from_response
from tokenrecords.engines.body import Served
from tokenrecords.engines.stream import server_error
from tokenrecords.entry.errors import one_line
from tokenrecords.files.names import SUFFIX
from tokenrecords.gateway.store import MESSAGES, append

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tokenrecords.entry.model import TokenEntry
    from tokenrecords.gateway.requests import Request
    from tokenrecords.gateway.state import State
    from tokenrecords.gateway.store import Session


class LostCallError(Exception):
    """A call could not be recorded; says why."""


class EngineError(Exception):
    """An engine answered with an error, whatever the status said; in its words."""


class Call:
    """A generating call, from before it is sent until its answer is recorded.

    Attributes:
        id: Its `model_call_id`.
        engine: The engine that answers it, once that is known.
    """

    def __init__(self, session: Session, request: Request, kept: Mapping[str, str], state: State) -> None:
        self.id = uuid.uuid4().hex
        self.engine = ""
        self._session, self._request, self._kept, self._state = session, request, kept, state
        self._version = state.weight_version
        self._started, self._clock = time.time(), time.perf_counter()
        session.begin(self.id)
        state.metrics.begun()

    @property
    def is_open(self) -> bool:
        """True until it is recorded, lost or taken back."""
        return self.id in self._session.open

    async def record(self, payload: bytes | Served, *, partial: bool = False) -> None:
        """Record what the engine answered; return when that survives what the settings say.

        Args:
            payload: The answer: the bytes of its body, or what the chunks of its stream join to.
            partial: True where the agent left before the end.

        Raises:
            LostCallError: It could not be recorded, which is noted.
            EngineError: The answer is an error, which is noted: the call is taken back.
        """
        session = self._session
        is_new = not session.recorded
        try:
            entries = self._entries(payload, partial=partial)
            if self._state.settings.keep_messages:
                self._keep_messages(payload)
            session.keep(self.id, entries, delta=self._state.settings.delta)
            if self._state.settings.durable == "fsync":
                await self._state.commits.durable(session.path(SUFFIX), is_new=is_new)
        except EngineError as error:
            self.take_back(f"the engine answered with an error: {error}")
            raise
        except (ValueError, TypeError, ArithmeticError, AttributeError, LookupError, OSError, MemoryError) as error:
            why = one_line(error)
            self.lose(why)
            raise LostCallError(why) from error
        except asyncio.CancelledError:  # the agent left while the disk was waited for
            self._recorded(entries)
            raise
        self._recorded(entries)

    def _recorded(self, entries: list[TokenEntry]) -> None:
        self._state.metrics.ended("recorded")
        self._state.metrics.ids.inc(sum(len(entry.generation_token_ids) for entry in entries))

    def lose(self, why: str) -> None:
        """Note that the call is not recorded."""
        self._session.lose(self.id, why)
        self._state.metrics.ended("lost")

    def take_back(self, why: str) -> None:
        """Note that the engine generated nothing."""
        self._session.take_back(self.id, why)
        self._state.metrics.ended("failed")

    def _entries(self, payload: bytes | Served, *, partial: bool) -> list[TokenEntry]:
        latency = time.perf_counter() - self._clock
        fields: dict[str, Any] = {**self._kept, "engine": self.engine, "started_at": self._started, "latency": latency}
        if partial:
            fields["finish_reason"] = "abort"
        problem = ValueError("the response carries no token ids")
        try:
            entries = entries_from_response(
                payload,
                rollout_id=self._session.id,
                model_call_id=self.id,
                earlier=self._session.calls,
                prompt_token_ids=self._request.prompt,
                **fields,
            )
        except ValueError as refused:
            entries, problem = [], refused
        if not entries:
            error = _error(payload)
            raise problem if error is None else EngineError(error)
        wanted = self._request.said.get("n")
        if type(wanted) is int and len(entries) < wanted and not partial:
            raise ValueError(f"{len(entries)} of {wanted} choices were served")
        for choice, entry in enumerate(entries):
            extra = {"choice": choice, "weight_version": self._version}
            for name, value in extra.items():
                if value is not None and getattr(entry, name, None) is None:  # what the engine says wins
                    setattr(entry, name, value)
        return entries

    def _keep_messages(self, payload: bytes | Served) -> None:
        kept = {"model_call_id": self.id, "request": self._request.said, "response": _parsed(payload)}
        line = json.dumps(kept, default=_as_list, ensure_ascii=False) + "\n"
        append(self._session.path(MESSAGES), line)


def _error(payload: bytes | Served) -> str | None:
    """What an answer without choices says went wrong."""
    try:
        whole = _parsed(payload)
    except ValueError:
        return None
    return server_error(whole) if isinstance(whole, dict) and not whole.get("choices") else None


def _parsed(payload: bytes | Served) -> Any:
    return payload.parsed if isinstance(payload, Served) else json.loads(payload)


def _as_list(value: Any) -> list[Any]:
    """An array or the columns of log-probs, as JSON has them."""
    return value.tolist() if hasattr(value, "tolist") else list(value)
