"""The commands: what is printed, and exit statuses. The work is done by the modules that they name."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from tokenrecords._core import __version__
from tokenrecords.capture.entries import CHOICES
from tokenrecords.capture.rollouts import Capture, record_path
from tokenrecords.capture.rows import Reading
from tokenrecords.capture.served import CallReader, call_files
from tokenrecords.cli.convert import convert
from tokenrecords.cli.gateway import gateway
from tokenrecords.cli.paths import directory, existing, existing_file
from tokenrecords.cli.progress import shown_progress
from tokenrecords.cli.report import report
from tokenrecords.cli.table import CALLS, FINDINGS, call_row, finding_row, print_table
from tokenrecords.cli.tree import rollout_tree
from tokenrecords.engines.dialects import BY_NAME
from tokenrecords.entry.entries import group_by_rollout
from tokenrecords.files.durable import append_lines, write_whole
from tokenrecords.files.jsonl import read_jsonl
from tokenrecords.info.installation import installation
from tokenrecords.verification.by_file import verify_files
from tokenrecords.verification.findings import Report
from tokenrecords.verification.lost import lost_findings

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence, Sized

    from tokenrecords.entry.model import TokenEntry
    from tokenrecords.files.remote import AnyPath
    from tokenrecords.files.side_files import SideFiles
    from tokenrecords.verification.findings import Finding

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Exact tokens of served model calls as proven training records.",
)


@app.callback(invoke_without_command=True)
def _options(
    context: typer.Context,
    *,
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
    verbose: Annotated[
        bool, typer.Option("--verbose", help="With --version: what this machine computes with.")
    ] = False,
) -> None:
    if version:
        typer.echo(installation() if verbose else f"tokenrecords {__version__}")
        raise typer.Exit
    if verbose:
        raise typer.BadParameter("--verbose needs --version")
    if context.invoked_subcommand is None:
        context.fail("Missing command.")


@app.command()
def capture(
    responses: Annotated[
        Path,
        typer.Argument(
            metavar="RESPONSES.jsonl",
            parser=existing_file,
            help='One {"rollout_id", "model_call_id", "response"} a line, optionally with "parent_call_id", '
            '"request", "prompt_token_ids", "weight_version". Or the rollouts.jsonl of a finished run of NeMo Gym, or '
            "its <rollout_id>.capture.jsonl.",
        ),
    ],
    out: Annotated[Path, typer.Option(metavar="DIR", parser=directory, help="Where the rollouts' files go.")],
    *,
    append: Annotated[bool, typer.Option("--append", help="Add to the files that are there.")] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the files that are there.")] = False,
    dialect: Annotated[
        str | None, typer.Option(metavar="NAME", help=f"Of all responses, if not detected: {', '.join(BY_NAME)}.")
    ] = None,
    choices: Annotated[
        str, typer.Option(metavar="calls|rollouts", help="What several choices of a response are.")
    ] = "calls",
    no_check_counts: Annotated[
        bool, typer.Option("--no-check-counts", help="Don't compare tokens with the engine's counts.")
    ] = False,
) -> None:
    """Write the calls of served responses as records, DIR/<rollout_id>.tokens.jsonl.

    A response is a payload, or a stream as text or as a list of its chunks. A rollout id has letters, digits, '.', '_'
    and '-'. A call that was there before with the same tokens counts once. Parents are found when all lines were read,
    whatever their order.

    Exit status: 0 if every line was captured, 1 if some were not, 2 if the command can't be carried out.
    """
    if append and overwrite:
        raise typer.BadParameter("--append and --overwrite exclude each other")
    if dialect is not None and dialect not in BY_NAME:
        raise typer.BadParameter(f"--dialect is {dialect}: one of {', '.join(BY_NAME)} is needed")
    if choices not in CHOICES:
        raise typer.BadParameter(f"--choices is {choices}: one of {', '.join(CHOICES)} is needed")

    def earlier(rollout_id: str) -> Iterable[TokenEntry]:
        path = record_path(out, rollout_id)
        if not path.exists() or overwrite:
            return ()
        if not append:
            raise typer.BadParameter(f"{path} is already there: say --append or --overwrite")
        return read_jsonl(path)

    captured = Capture(earlier, Reading(dialect, choices, check_counts=not no_check_counts))
    with responses.open("rb") as lines, shown_progress() as progress:
        task = progress.add_task(responses.name, total=responses.stat().st_size)
        for done in captured.read(lines, str(responses)):
            progress.advance(task, done)

    entries: list[TokenEntry] = []
    rollouts = 0
    try:
        out.mkdir(parents=True, exist_ok=True)
        for rollout_id, new, records in captured.linked():
            path = record_path(out, rollout_id)
            append_lines(path, records, fsync=True) if append else write_whole(path, records)
            entries += new
            rollouts += 1
    except (OSError, ValueError) as error:  # ValueError: --append on another file system
        raise typer.BadParameter(str(error)) from error

    print_table(CALLS, map(call_row, entries))
    known = f", {captured.known:,} there already" if captured.known else ""
    written = f"{_count(entries, 'call')} of {_counted(rollouts, 'rollout')}"
    typer.secho(f"{written} written to {out}{known}", bold=True)
    _report(captured.faults())


@app.command()
def show(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE", parser=existing, help="A file of records, or a directory; or what capture takes."
        ),
    ],
    *,
    terminal: Annotated[str | None, typer.Option(metavar="CALL", help="The call that the rollout ended with.")] = None,
    terminal_response: Annotated[
        str | None, typer.Option(metavar="ID", help="The id of the response that the rollout ended with.")
    ] = None,
    tree: Annotated[bool, typer.Option(help="Draw each rollout's calls as a tree below the table.")] = True,
) -> None:
    """Print the records of a file as a table, and how the calls of each rollout continue each other.

    Exit status: 0 if every line held a record, 1 if some did not.
    """
    entries: list[TokenEntry] = []
    files, sides = _files([file])
    reader = CallReader(files)
    # Without the tree nothing is kept, so that a file of any size can be looked at.
    print_table(CALLS, (call_row(_kept(entry, entries) if tree else entry) for entry in reader))
    if tree:
        rollouts = group_by_rollout(entries)
        lost: dict[str, list[Finding]] = {rollout_id: [] for rollout_id in rollouts}
        for finding in lost_findings(sides, entries):
            if finding.severity == "error":
                lost.setdefault(finding.rollout_id or "", []).append(finding)
        for rollout_id, findings in lost.items():
            drawn = rollout_tree(
                rollouts.get(rollout_id, ()),
                terminal_call_id=terminal,
                terminal_response_id=terminal_response,
                lost=findings,
            )
            _console().print("", drawn, sep="\n")
    _report(reader.errors)


@app.command()
def verify(
    paths: Annotated[
        list[Path],
        typer.Argument(
            metavar="PATHS...", parser=existing, help="Files of records, directories; or what capture takes."
        ),
    ],
    *,
    vocab_size: Annotated[int | None, typer.Option(metavar="N", min=1, help="Ids must be below it.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the report as one JSON object.")] = False,
) -> None:
    """Check records, each on its own and against those of its rollout in the same file, and what stands beside it.

    Exit status: 0 if no finding is an error, 1 if some are.
    """
    files, sides = _files(paths)
    started = time.perf_counter()
    reports = []
    sizes = {str(file): file.stat().st_size for file in files}
    with shown_progress() as progress:
        task = progress.add_task("verify", total=sum(sizes[str(file)] for file in files))
        for path, _, found in verify_files(files, sides, vocab_size=vocab_size):
            reports.append(found)
            progress.advance(task, sizes.get(path, 0))
    report = Report.merged(reports)
    if as_json:
        typer.echo(json.dumps(_as_json(report)))
    else:
        if report.findings:
            print_table(FINDINGS, map(finding_row, report.findings))
        speed = report.ids / (time.perf_counter() - started)
        typer.secho(f"{report.summary()}, {speed:,.0f} ids a second", fg="green" if report.ok else "red", bold=True)
    if not report.ok:
        raise typer.Exit(1)


app.command()(report)
app.command()(gateway)
app.command()(convert)


def _files(paths: Iterable[AnyPath]) -> tuple[list[AnyPath], dict[str, SideFiles]]:
    try:
        return call_files(paths)
    except FileNotFoundError as error:
        raise typer.BadParameter(str(error)) from error


def _as_json(report: Report) -> dict[str, Any]:
    return {
        "ok": report.ok,
        "records": report.records,
        "ids": report.ids,
        "counts": report.counts,
        "findings": [finding.as_dict() for finding in report.findings],
    }


def _kept(entry: TokenEntry, entries: list[TokenEntry]) -> TokenEntry:
    entries.append(entry)
    return entry


def _console() -> Console:
    console = Console()
    # In a pipe there is no width to keep to, and nothing may be cut off.
    return console if console.is_terminal else Console(width=10_000)


def _report(bad: Sequence[object]) -> None:
    """Say which lines were left out, and end with status 1 if there are any."""
    for line in bad:
        typer.secho(line, fg="red", err=True)
    if bad:
        typer.secho(f"{_count(bad, 'line')} left out", fg="red", bold=True, err=True)
        raise typer.Exit(1)


def _count(things: Sized, noun: str) -> str:
    return _counted(len(things), noun)


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
