"""What `verify` says of the calls of a rollout that have no record."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tokenrecords.files.side_files import beside
from tokenrecords.verification.findings import Finding

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from tokenrecords.entry.model import TokenEntry
    from tokenrecords.files.side_files import Beside, SideFiles


def lost_findings(sides: Mapping[str, SideFiles], entries: Iterable[TokenEntry]) -> list[Finding]:
    """What the side files of rollouts say against them.

    Args:
        sides: The side files, by stem, read before the records.
        entries: The records of these rollouts, as they were read from files.

    Returns:
        A finding for each call that has no record. Where a rollout has none, one for each other line that says that it
        lost something. One of a rollout whose records are gone because they are not needed any more.
    """
    return [finding for found in beside(sides, entries) for finding in _of_rollout(found)]


def _of_rollout(found: Beside) -> Iterator[Finding]:
    side, rollout_id = found.side, min(found.rollout_ids)
    codes = dict.fromkeys(side.lost(found.recorded), "lost_call") or dict.fromkeys(side.marks, "incomplete_rollout")
    for call, code in codes.items():
        note = side.marks.get(call) or side.once.get(call) or side.begun[call]
        yield Finding(
            code,
            f"{note.why}{_and(side, call, is_lost=code == 'lost_call')}",
            rollout_id=rollout_id,
            model_call_id=call or None,
            path=note.path,
            line=note.line,
        )
    if side.retired is not None and not found.recorded:
        message = "its records were deleted once it was rebuilt: the tokens are in its row of the run's rollouts.jsonl"
        yield Finding("records_retired", message, rollout_id=rollout_id, path=side.retired, line=1)


def _and(side: SideFiles, call: str, *, is_lost: bool) -> str:
    if not is_lost:
        return ", and has a record" if call else ""
    is_over = side.is_frozen or call in side.marks or call in side.once
    return " and has no record" if is_over else " and has no record: it is lost, or still open"
