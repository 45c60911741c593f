"""What a worker does: a file to tables of its records, or to one of its chains."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from tokenrecords.capture.served import CallReader, whole
from tokenrecords.files.arrow import to_arrow
from tokenrecords.files.names import stem
from tokenrecords.files.side_files import beside, read_named
from tokenrecords.training.arrow import chains_to_arrow
from tokenrecords.training.rollouts import build_rollouts
from tokenrecords.verification.by_file import bad_findings, file_report
from tokenrecords.verification.findings import Report
from tokenrecords.verification.lost import lost_findings

if TYPE_CHECKING:
    from collections.abc import Collection, Generator, Iterable, Iterator, Mapping

    import pyarrow as pa

    from tokenrecords.entry.model import TokenEntry
    from tokenrecords.files.arrow import IdType
    from tokenrecords.files.remote import AnyPath
    from tokenrecords.training.chains import ChainBuild
    from tokenrecords.training.loss import Shared

_IDS = 1 << 23  # of prompts and generations in a table of records


def record_tables(file: AnyPath, *, skip: bool, ids: IdType) -> Generator[pa.Table, None, Report]:
    """The records of a file as tables, at least one.

    Args:
        file: As `listed_files` gives it.
        skip: Whether lines that hold no record are left out, or the first is raised.
        ids: As for `to_arrow`.

    Returns:
        The lines that were left out, and what was read.
    """
    reader = CallReader([file], threads=1)  # a task has one CPU
    records = total = 0
    held: list[TokenEntry] = []
    weight = 0
    for entry in reader if skip else whole(reader):
        size = _size(entry)
        if held and weight + size > _IDS:
            yield to_arrow(held, ids=ids)
            held, weight = [], 0
        held.append(entry)
        weight += size
        records += 1
        total += size
    yield to_arrow(held, ids=ids)
    return Report(bad_findings(reader.errors), records=records, ids=total)


def chain_table(
    file: AnyPath,
    names: Mapping[str, Collection[str]],
    terminals: Mapping[str, Mapping[str, str]],
    *,
    verify: bool,
    skip: bool,
    ids: IdType,
    shared: Shared,
) -> tuple[pa.Table, Report]:
    """The chains of the rollouts in a file, and what was found in it and in the side files.

    Args:
        file: As `listed_files` gives it.
        names: Those of side files, as it gives them.
        terminals: By the name of a parameter of `build_rollouts`, what is known of any rollouts.
        verify: Whether each record is checked; a rollout with an error on its main chain is not trainable.
        skip: Whether lines that hold no record are left out, or the first is raised. Where the records are those of one
            rollout, so was such a line, and the rollout is incomplete.
        ids: As for `chains_to_arrow`.
        shared: As for `chains_to_arrow`.
    """
    of = stem(file) or ""
    sides = read_named({of: names[of]} if of in names else {})  # before the records
    reader = CallReader([file], threads=1)
    entries = list(reader if skip else whole(reader))
    if verify:
        report = file_report(entries, reader.errors, sides, threads=1)
    else:
        findings = [*bad_findings(reader.errors), *lost_findings(sides, entries)]
        report = Report(findings, records=len(entries), ids=sum(map(_size, entries)))
    known = {entry.rollout_id for entry in entries}
    incomplete = {each for found in beside(sides, entries) if found.is_incomplete for each in found.rollout_ids}
    if reader.errors and len(known) == 1:
        incomplete |= known
    builds = build_rollouts(entries, threads=1, **terminals_of(terminals, known))
    return chains_to_arrow(_judged(builds, incomplete, report), ids=ids, shared=shared), report


def terminals_of(terminals: Mapping[str, Mapping[str, str]], rollouts: Iterable[str]) -> Any:
    """What is known of these rollouts, by parameter of `build_rollouts`, which would warn of others."""
    return {name: {each: known[each] for each in rollouts if each in known} for name, known in terminals.items()}


def _size(entry: TokenEntry) -> int:
    return len(entry.prompt_token_ids) + len(entry.generation_token_ids)


def _judged(builds: Iterable[ChainBuild], incomplete: set[str], report: Report) -> Iterator[ChainBuild]:
    """The builds, with what else stands against training on each."""
    wrong: dict[tuple[str | None, str | None], set[str]] = {}
    for finding in report.errors:
        wrong.setdefault((finding.rollout_id, finding.model_call_id), set()).add(finding.code)
    for build in builds:
        if build.main is None:
            yield build
            continue
        rollout_id = build.main.rollout_id
        codes = {code for call in build.main.call_ids for code in wrong.get((rollout_id, call), ())}
        lost = ["incomplete"] * (rollout_id in incomplete)
        yield dataclasses.replace(build, reasons=[*lost, *build.reasons, *sorted(codes)])
