"""What is wrong with the records of files, each file on its own."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from tokenrecords.capture.served import CallReader
from tokenrecords.entry.model import TokenEntry, origin
from tokenrecords.files.names import stem
from tokenrecords.files.side_files import still_there
from tokenrecords.files.zstd_frames import lacks_checksum
from tokenrecords.verification.entries import verify_entries
from tokenrecords.verification.findings import Finding, Report
from tokenrecords.verification.lost import lost_findings

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from tokenrecords.capture.served import BadCall
    from tokenrecords.files.remote import AnyPath
    from tokenrecords.files.side_files import SideFiles


def verify_files(
    files: Iterable[AnyPath],
    sides: Mapping[str, SideFiles],
    *,
    vocab_size: int | None = None,
    threads: int | None = None,
) -> Iterator[tuple[str, list[TokenEntry], Report]]:
    """Path, records and findings of each file that has lines; last what the side files of other rollouts say.

    Args:
        files: As `call_files` gives them.
        sides: The side files, read before the records.
        vocab_size: As for `verify`.
        threads: As for `verify`.
    """
    alone = dict(sides)
    files = list(files)
    packed = {str(file): file for file in files if file.name.endswith(".zst")}
    for path, found in _by_file(CallReader(files, threads=threads)):
        entries = [each for each in found if isinstance(each, TokenEntry)]
        bad = [each for each in found if not isinstance(each, TokenEntry)]
        of = stem(path) or ""
        side = {of: alone.pop(of)} if of in alone else {}
        report = file_report(entries, bad, side, vocab_size=vocab_size, threads=threads)
        if path in packed and lacks_checksum(packed[path]):
            report = dataclasses.replace(report, findings=[*report.findings, _no_checksum(path)])
        yield path, entries, report
    if alone:
        yield "", [], Report(lost_findings(still_there(alone), ()))


def file_report(
    entries: Iterable[TokenEntry],
    bad: Iterable[BadCall],
    sides: Mapping[str, SideFiles],
    *,
    vocab_size: int | None = None,
    threads: int | None = None,
) -> Report:
    """What is wrong with the records of a file, with its lines that hold none, and beside it."""
    entries = list(entries)
    report = verify_entries(entries, vocab_size=vocab_size, threads=threads)
    findings = [*bad_findings(bad), *lost_findings(sides, entries)]
    return dataclasses.replace(report, findings=[*findings, *report.findings])


def bad_findings(bad: Iterable[BadCall]) -> list[Finding]:
    """The lines that hold no record."""
    return [Finding("unreadable_line", each.reason, path=each.path, line=each.line) for each in bad]


def _no_checksum(path: str) -> Finding:
    message = "the file was compressed without checksums, so that damage may read as other text"
    return Finding("no_checksum", message, path=path, line=1)


def _by_file(reader: CallReader) -> Iterator[tuple[str, list[TokenEntry | BadCall]]]:
    """The records and errors of each file that has some; all files are read by one reader, which reads ahead."""
    held: list[TokenEntry | BadCall] = []
    last = ("", 0)
    for place, found in _in_order(reader):
        # A file that was named twice starts again.
        if held and (place[0] != last[0] or place[1] < last[1]):
            yield last[0], held
            held = []
        last = place
        held.append(found)
    if held:
        yield last[0], held


def _in_order(reader: CallReader) -> Iterator[tuple[tuple[str, int], TokenEntry | BadCall]]:
    """The records and errors, each with its file and line."""
    reported = 0
    for entry in reader:
        yield from _placed(reader.errors[reported:])
        reported = len(reader.errors)
        yield origin(entry) or ("", 0), entry
    yield from _placed(reader.errors[reported:])


def _placed(errors: Iterable[BadCall]) -> Iterator[tuple[tuple[str, int], BadCall]]:
    return (((error.path, error.line), error) for error in errors)
