"""The chains of many rollouts: read, linked and built in one call."""

from __future__ import annotations

import warnings
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, Self, TypeAlias

from tokenrecords._core import PendingDigests, compute_digests
from tokenrecords.capture.served import call_files, read_calls
from tokenrecords.entry.entries import group_by_rollout
from tokenrecords.entry.model import TokenEntry
from tokenrecords.files.side_files import beside
from tokenrecords.files.sources import given_paths
from tokenrecords.lineage.hashing import answered
from tokenrecords.lineage.paths import Terminal
from tokenrecords.training.chains import building

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from tokenrecords.files.names import PathLike
    from tokenrecords.lineage.hashing import Hashing
    from tokenrecords.tokens.arrays import IdArray
    from tokenrecords.training.chains import ChainBuild

    _Begun: TypeAlias = tuple[Hashing[ChainBuild], list[IdArray]]

__all__ = ["build_rollouts"]

# Ids that are hashed together, about 1.7 ms of work for one thread, and what a rollout weighs beside its ids.
_WINDOW = 1 << 20
_ROLLOUT = 1 << 12
_NAMED = 5  # more names in a warning help nobody


def build_rollouts(
    entries: Iterable[TokenEntry] | PathLike | Iterable[PathLike],
    *,
    terminal_call_ids: Mapping[str, str] | None = None,
    terminal_response_ids: Mapping[str, str] | None = None,
    threads: int | None = None,
) -> Iterator[ChainBuild]:
    """Build the sequences of each rollout, as `build_chains` does of one.

    Records are read, and all of them held, when this is called; each rollout is built as the iterator comes to it, some
    ahead while their digests are computed by other threads.

    Args:
        entries: Records of any number of rollouts, in any order; or a path, a directory or several paths, of JSONL,
            compressed or not, or Parquet, as `verify` takes them. Of paths, the side files of each rollout are read
            too: one that lost a call is not trainable. A rollout that lost all of them has no chains; one warning names
            those.
        terminal_call_ids: The call that each rollout ended with, by rollout id; a rollout may be missing. A rollout
            that has no record has no chains either: one warning names those, and costs no other.
        terminal_response_ids: The `response_id` of that call, in the same way.
        threads: The most threads that read and hash, of which the calling one is the first; by default the CPUs that
            this process may use.

    Returns:
        An iterator of one build a rollout, in the order of their first records.

    Raises:
        FileNotFoundError: There is no such file.
        RecordError: A line or row holds no record.
        TypeError: `entries` is one entry or holds what is neither an entry nor a path, `terminal_call_ids` or
            `terminal_response_ids` is not a mapping, or `threads` not an integer.
        ValueError: `threads` is below 1, or a line holds no served call.

    >>> from tokenrecords import TokenEntry
    >>> calls = [TokenEntry(rollout_id=rollout, model_call_id="c", prompt_token_ids=[1], generation_token_ids=[2],
    ...                     generation_log_probs=[-0.5], parent_resolution="root") for rollout in ("r", "s")]
    >>> [build.main.rollout_id for build in build_rollouts(calls)]
    ['r', 's']
    """
    compute_digests([], threads=threads)  # says what is wrong with it now
    terminals = Terminals.given(terminal_call_ids, terminal_response_ids)
    paths, given = given_paths(entries)
    files, sides = call_files(paths)
    records = list(read_calls(files, threads=threads)) if paths else _records(given)
    rollouts = group_by_rollout(records)
    for name, ids in terminals._asdict().items():
        warn_without_record(f"{name} names rollouts", [each for each in ids if each not in rollouts], len(ids))
    incomplete = {each for found in beside(sides, records) if found.is_incomplete for each in found.rollout_ids}
    warn_without_record("side files name rollouts", sorted(incomplete - rollouts.keys()), len(sides))
    return _built(rollouts, terminals, incomplete, threads)


class Terminals(NamedTuple):
    """What is known of the last calls, by rollout id."""

    terminal_call_ids: Mapping[str, str]
    terminal_response_ids: Mapping[str, str]

    @classmethod
    def given(cls, call_ids: Mapping[str, str] | None, response_ids: Mapping[str, str] | None) -> Self:
        """Of the arguments of these names.

        Raises:
            TypeError: One of them is not a mapping.
        """
        return cls(
            _mapping("terminal_call_ids", "call", call_ids),
            _mapping("terminal_response_ids", "response", response_ids),
        )

    def of(self, rollout_id: str) -> Terminal:
        """What is known of one rollout."""
        return Terminal(self.terminal_call_ids.get(rollout_id), self.terminal_response_ids.get(rollout_id))


def _mapping(name: str, what: str, given: Mapping[str, str] | None) -> Mapping[str, str]:
    if given is not None and not (hasattr(given, "get") and hasattr(given, "keys")):
        raise TypeError(f"{name} is {type(given).__name__}: a mapping from rollout id to {what} id is needed")
    return {} if given is None else given


def warn_without_record(who: str, unknown: list[str], known: int) -> None:
    """Warn the caller's caller of rollouts that are named and have no record."""
    if unknown:
        shown = ", ".join(map(repr, unknown[:_NAMED])) + (", ..." if len(unknown) > _NAMED else "")
        warnings.warn(f"{who} without a record ({len(unknown):,} of {known:,}): {shown}", stacklevel=3)


def _records(given: list[Any]) -> list[TokenEntry]:
    for position, each in enumerate(given):
        if not isinstance(each, TokenEntry):
            raise TypeError(f"entries[{position}] is {type(each).__name__}: a TokenEntry is needed, or paths alone")
    return given


def _built(
    rollouts: dict[str, list[TokenEntry]], terminals: Terminals, incomplete: set[str], threads: int | None
) -> Iterator[ChainBuild]:
    before: tuple[list[_Begun], Callable[[], list[str]]] | None = None
    for window in _windows(rollouts, terminals, incomplete):
        asked = [ids for _, sequences in window for ids in sequences]
        digests: Callable[[], list[str]] = partial(compute_digests, asked, threads=1)
        if threads != 1:
            digests = PendingDigests(asked, threads=None if threads is None else threads - 1).result
        # While they are computed, the window before is finished and the next one begun.
        if before is not None:
            yield from _finished(*before)
        before = window, digests
    if before is not None:
        yield from _finished(*before)


def _windows(
    rollouts: dict[str, list[TokenEntry]], terminals: Terminals, incomplete: set[str]
) -> Iterator[list[_Begun]]:
    """Rollouts that are linked up to the digests that they ask for."""
    window: list[_Begun] = []
    weight = 0
    for rollout_id, entries in rollouts.items():
        is_incomplete = rollout_id in incomplete
        work = building(entries, terminals.of(rollout_id), is_incomplete=is_incomplete, threads=1)
        asked = next(work)
        window.append((work, asked))
        weight += sum(map(len, asked)) + _ROLLOUT
        if weight >= _WINDOW:
            yield window
            window, weight = [], 0
    if window:
        yield window


def _finished(window: list[_Begun], digests: Callable[[], list[str]]) -> Iterator[ChainBuild]:
    found = digests()
    start = 0
    for work, asked in window:
        yield answered(work, found[start : start + len(asked)])
        start += len(asked)
