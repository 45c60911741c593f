"""What a page is made of: the records by rollout, and what is wrong with them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from tokenrecords.capture.served import call_files
from tokenrecords.entry.entries import group_by_rollout
from tokenrecords.entry.model import TokenEntry
from tokenrecords.files.side_files import beside
from tokenrecords.files.sources import given_paths
from tokenrecords.verification.by_file import verify_files
from tokenrecords.verification.entries import verify_entries
from tokenrecords.verification.findings import Report

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from tokenrecords.files.names import PathLike
    from tokenrecords.files.remote import AnyPath
    from tokenrecords.files.side_files import SideFiles


@dataclass(frozen=True)
class Reading:
    """The records of a page.

    Attributes:
        rollouts: The records of each rollout; of one that lost all of them, none.
        report: What `verify` finds.
        incomplete: The rollouts that lost a call, as the files beside the records say.
    """

    rollouts: dict[str, list[TokenEntry]]
    report: Report
    incomplete: set[str]

    @classmethod
    def of(
        cls, entries: Iterable[TokenEntry] | PathLike | Iterable[PathLike], *, threads: int | None = None
    ) -> Reading:
        """Of records, or of paths, as `verify` takes them.

        Raises:
            TypeError: One of the entries is none.
            FileNotFoundError: There is no such file.
        """
        paths, given = given_paths(entries)
        if paths:
            return cls.of_files(*call_files(paths), threads=threads)
        for position, each in enumerate(given):
            if not isinstance(each, TokenEntry):
                raise TypeError(f"entries[{position}] is {type(each).__name__}: a TokenEntry is needed, or paths alone")
        return cls._of(given, verify_entries(given, vocab_size=None, threads=threads), set())

    @classmethod
    def of_files(
        cls,
        files: Iterable[AnyPath],
        sides: Mapping[str, SideFiles],
        *,
        threads: int | None = None,
        read: Callable[[str], object] = str,
    ) -> Self:
        """Of files, as `call_files` gives them.

        Args:
            files: The files.
            sides: The side files, read before the records.
            threads: The most threads that read and hash.
            read: Is told the path of each file that was read.
        """
        entries: list[TokenEntry] = []
        reports = []
        for path, found, report in verify_files(files, sides, threads=threads):
            entries += found
            reports.append(report)
            read(path)
        lost = {each for of in beside(sides, entries) if of.is_incomplete for each in of.rollout_ids}
        return cls._of(entries, Report.merged(reports), lost)

    @classmethod
    def _of(cls, entries: list[TokenEntry], report: Report, incomplete: set[str]) -> Self:
        rollouts = group_by_rollout(entries)
        for rollout_id in (*(finding.rollout_id for finding in report.findings), *sorted(incomplete)):
            if rollout_id is not None:
                rollouts.setdefault(rollout_id, [])
        return cls(rollouts, report, incomplete)
