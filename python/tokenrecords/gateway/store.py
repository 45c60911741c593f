"""What a gateway keeps of each session: a file of records, one of calls begun, and one of calls lost.

`<session>.intents` has a line for each call before it is sent to the engine: its id. It has one more for a call that
generated nothing, because the engine answered with an error: the id, a tab, and why. `<session>.lost` has the id, a tab
and why for each call of which an answer was seen, or may have been, that is not recorded. So every call that was begun
is recorded, lost, taken back or open; after a kill the open ones are lost.
"""

from __future__ import annotations

import json
import os
from collections import OrderedDict
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tokenrecords.entry.resolution import ParentResolutionStatus
from tokenrecords.files.durable import append_lines, write_whole
from tokenrecords.files.jsonl import read_jsonl
from tokenrecords.files.names import SUFFIX
from tokenrecords.files.side_files import GATEWAY, read_side_files
from tokenrecords.gateway.routes import file_name
from tokenrecords.lineage.parents import as_delta

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from tokenrecords.entry.model import TokenEntry
    from tokenrecords.tokens.arrays import TokenIds

INTENTS, LOST = GATEWAY.begun, GATEWAY.lost
MESSAGES: Final = ".messages.jsonl"
CLOSED: Final = ".closed.json"
_LOCK: Final = ".gateway.lock"
_NO_IDS: Final = np.empty(0, np.int32)
# Ids that are held; sessions without an open call are let go, and read again.
_HELD: Final = 1 << 25
_CALL: Final = 1 << 7  # ids that take as much memory as what else is held of a call
_SESSIONS: Final = 1_024
_MODE: Final = 0o600


@dataclass(slots=True, frozen=True)
class Held:
    """A recorded call, as far as the parent of a further one is found by it: a tenth of the memory of its record."""

    rollout_id: str
    model_call_id: str
    cum_len: int | None
    digest: str | None
    parent_resolution: ParentResolutionStatus | None
    prompt_token_ids: TokenIds
    generation_token_ids: TokenIds
    prompt_is_delta: bool

    @classmethod
    def of(cls, entry: TokenEntry, session_id: str) -> Held:
        """What is held of a record of a session, whose id is not held once more."""
        return cls(
            session_id if entry.rollout_id == session_id else entry.rollout_id,
            entry.model_call_id,
            entry.cum_len,
            entry.digest,
            entry.parent_resolution,
            entry.prompt_token_ids,
            entry.generation_token_ids,
            entry.prompt_is_delta,
        )

    def as_digest(self) -> Held:
        """The digest in place of the ids; a root keeps its prompt, which tells a further root."""
        if self.parent_resolution == ParentResolutionStatus.ROOT:
            return self
        return replace(self, prompt_token_ids=_NO_IDS, generation_token_ids=_NO_IDS, prompt_is_delta=True)

    @property
    def size(self) -> int:
        """How many ids it holds, or what takes as much memory."""
        return _CALL + len(self.prompt_token_ids) + len(self.generation_token_ids)


@dataclass
class Session:
    """A session, as far as its next call needs it.

    Attributes:
        id: Its id, the records' `rollout_id`.
        base: The path of its files, without their suffixes.
        calls: Its calls, as far as the parent of a further one is found by them.
        recorded: How many calls were recorded.
        lost: How many were lost.
        open: The calls that were sent and not answered.
        held: How many ids `calls` hold, or what takes as much memory.
        counted: What of that its store knows.
    """

    id: str
    base: Path
    calls: list[Held] = field(default_factory=list)
    recorded: int = 0
    lost: int = 0
    open: set[str] = field(default_factory=set)
    held: int = 0
    counted: int = 0

    def path(self, suffix: str) -> Path:
        """One of its files."""
        return self.base.with_name(self.base.name + suffix)

    def begin(self, call: str) -> None:
        """Note a call before it is sent."""
        append(self.path(INTENTS), f"{call}\n")
        self.open.add(call)

    def take_back(self, call: str, why: str) -> None:
        """Note that the call generated nothing; where that can't be written, it counts as lost."""
        try:
            append(self.path(INTENTS), f"{call}\t{_one_line(why)}\n")
        except OSError:
            self.lose(call, why)
        self.open.discard(call)

    def lose(self, call: str, why: str) -> None:
        """Note that the call is not recorded; where that can't be written, its line in `.intents` stands for it."""
        self.lost += 1
        self.open.discard(call)
        with suppress(OSError):
            append(self.path(LOST), f"{call}\t{_one_line(why)}\n", sync=True)

    def keep(self, call: str, entries: list[TokenEntry], *, delta: bool) -> None:
        """Append the records of a call, so that they survive a kill.

        Args:
            call: Its id.
            entries: Its records, with full prompts.
            delta: True to store what a prompt adds to its parent.
        """
        stored = map(self._delta, entries) if delta else entries
        append_lines(self.path(SUFFIX), [entry.to_json() + b"\n" for entry in stored], fsync=False, mode=_MODE)
        self.add(entries)
        self.recorded += 1
        self.open.discard(call)

    def close(self, said: Mapping[str, Any]) -> None:
        """Note how it ended."""
        write_whole(self.path(CLOSED), [json.dumps(said).encode()])

    def _delta(self, entry: TokenEntry) -> TokenEntry:
        named = (call for call in reversed(self.calls) if call.model_call_id == entry.parent_call_id)
        parent = next(named, None)
        return entry if parent is None else as_delta(entry, parent)

    def add(self, entries: Iterable[TokenEntry]) -> None:
        """Keep of further calls what a parent is found by: of the last one its ids, of the others the digest."""
        for entry in entries:
            if self.calls:
                self.held -= self.calls[-1].size
                self.calls[-1] = self.calls[-1].as_digest()
                self.held += self.calls[-1].size
            self.calls.append(Held.of(entry, self.id))
            self.held += self.calls[-1].size


class Store:
    """A directory of sessions, which one gateway writes."""

    def __init__(self, out: Path, *, hash_ids: bool = False) -> None:
        out.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.out = out
        self._hash_ids = hash_ids
        self._lock = _locked(out / _LOCK)
        self._sessions: OrderedDict[str, Session] = OrderedDict()
        self._held = 0

    def close(self) -> None:
        """Let another gateway have the directory."""
        os.close(self._lock)

    def session(self, session_id: str) -> Session:
        """A session, new or as its files have it.

        Raises:
            ValueError: The id can't name a file.
        """
        session = self._sessions.get(session_id)
        if session is None:
            session = Session(session_id, self.out / file_name(session_id, hashed=self._hash_ids))
            _restore(session)
            self._sessions[session_id] = session
        self._sessions.move_to_end(session_id)
        self._held += session.held - session.counted
        session.counted = session.held
        self._let_go(session)
        return session

    def forget(self, session_id: str) -> None:
        """Delete a session and its files."""
        session = self.session(session_id)
        del self._sessions[session_id]
        self._held -= session.counted
        for suffix in (SUFFIX, INTENTS, LOST, MESSAGES, CLOSED):
            session.path(suffix).unlink(missing_ok=True)

    def ids(self) -> list[str]:
        """The ids of all sessions, also of those that were there before."""
        known = {session.base.name: session.id for session in self._sessions.values()}
        names = (path.name.removesuffix(INTENTS) for path in self.out.glob(f"*{INTENTS}"))
        return sorted({known.get(name) or self._id_of(name) for name in names})

    def _id_of(self, name: str) -> str:
        """The id of a session whose files have this name; where that is a hash, its records say it."""
        return (_session_id(self.out / (name + SUFFIX)) or name) if self._hash_ids else name

    def _let_go(self, newest: Session) -> None:
        if self._held <= _HELD and len(self._sessions) <= _SESSIONS:
            return
        for session_id, session in list(self._sessions.items()):
            if session is not newest and not session.open:
                self._held -= session.counted
                del self._sessions[session_id]
                if self._held <= _HELD and len(self._sessions) <= _SESSIONS:
                    return


def _restore(session: Session) -> None:
    """Read what was kept of a session; calls that a gateway left open are lost."""
    path = session.path(SUFFIX)
    side = read_side_files([path]).get(str(session.base))
    recorded: set[str] = set()
    if path.exists():
        append_lines(path, [], fsync=False)  # a torn last line is cut off
        entries = read_jsonl(path)
        recorded = {entry.model_call_id.partition("#")[0] for entry in entries}
        session.add(entries)
    session.recorded = len(recorded)
    if side is not None:
        session.lost = len(side.marks)
        for call in side.lost(recorded):
            if call not in side.marks:
                session.lose(call, "the gateway ended before it was recorded")


def _session_id(records: Path) -> str | None:
    try:
        with records.open("rb") as lines:
            return str(json.loads(lines.readline())["rollout_id"])
    except (OSError, ValueError, KeyError):
        return None


def _one_line(why: str) -> str:
    return " ".join(why.split())[:500]


def append(path: Path, line: str, *, sync: bool = False) -> None:
    """Append a line to a file, all of it or nothing; a lone surrogate in it becomes JSON's escape."""
    append_lines(path, [line.encode("utf-8", "backslashreplace")], fsync=sync, mode=_MODE)


def _locked(path: Path) -> int:
    import fcntl  # noqa: PLC0415 - POSIX only, and all but the gateway does without

    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, _MODE)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        raise ValueError(f"{path.parent} is written by another gateway: a directory of its own is needed") from None
    return descriptor
