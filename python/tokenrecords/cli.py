"""The commands: what is printed, and exit statuses. The work is done by the modules that they name."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

from tokenrecords.capture import Capture, record_path
from tokenrecords.dialects import READERS
from tokenrecords.jsonl import append_jsonl, read_jsonl, scan_jsonl, write_jsonl
from tokenrecords.table import CALLS, call_row, print_table

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence, Sized

    from tokenrecords.entry import TokenEntry

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Exact tokens of served model calls as proven training records.",
)


@app.command()
def capture(
    responses: Annotated[
        Path,
        typer.Argument(
            metavar="RESPONSES.jsonl",
            exists=True,
            dir_okay=False,
            help='One {"rollout_id", "model_call_id", "response"} a line, optionally with "parent_call_id".',
        ),
    ],
    out: Annotated[Path, typer.Option(metavar="DIR", file_okay=False, help="Where the rollouts' files go.")],
    *,
    append: Annotated[bool, typer.Option("--append", help="Add to the files that are there.")] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the files that are there.")] = False,
    dialect: Annotated[
        str | None, typer.Option(metavar="NAME", help=f"Of all responses, if not detected: {', '.join(READERS)}.")
    ] = None,
) -> None:
    """Write the calls of served responses as records, DIR/<rollout_id>.tokens.jsonl.

    Exit status: 0 if every line was captured, 1 if some were not, 2 if nothing was written.
    """
    if append and overwrite:
        raise typer.BadParameter("--append and --overwrite exclude each other")
    if dialect is not None and dialect not in READERS:
        raise typer.BadParameter(f"--dialect is {dialect}: one of {', '.join(READERS)} is needed")

    def earlier(rollout_id: str) -> Iterable[TokenEntry]:
        path = record_path(out, rollout_id)
        if not path.exists() or overwrite:
            return ()
        if not append:
            raise typer.BadParameter(f"{path} is already there: say --append or --overwrite")
        return read_jsonl(path)

    captured = Capture(earlier, dialect)
    with responses.open("rb") as lines, _progress() as progress:
        task = progress.add_task(responses.name, total=responses.stat().st_size)
        for done in captured.read(lines, str(responses)):
            progress.advance(task, done)

    write = append_jsonl if append else write_jsonl
    try:
        out.mkdir(parents=True, exist_ok=True)
        for rollout_id, new in captured.new.items():
            write(record_path(out, rollout_id), new)
    except OSError as error:
        raise typer.BadParameter(str(error)) from error

    entries = [entry for new in captured.new.values() for entry in new]
    print_table(CALLS, map(call_row, entries))
    typer.secho(f"{_count(entries, 'call')} of {_count(captured.new, 'rollout')} written to {out}", bold=True)
    _report(captured.bad)


@app.command()
def show(
    file: Annotated[Path, typer.Argument(metavar="FILE", exists=True, help="A file of records, or a directory.")],
) -> None:
    """Print the records of a file as a table.

    Exit status: 0 if every line held a record, 1 if some did not.
    """
    with scan_jsonl(file, on_error="skip") as reader:
        print_table(CALLS, map(call_row, reader))
    _report(reader.errors)


def _report(bad: Sequence[object]) -> None:
    """Say which lines were left out, and end with status 1 if there are any."""
    for line in bad:
        typer.secho(line, fg="red", err=True)
    if bad:
        typer.secho(f"{_count(bad, 'line')} left out", fg="red", bold=True, err=True)
        raise typer.Exit(1)


def _count(things: Sized, noun: str) -> str:
    return f"{len(things):,} {noun}{'' if len(things) == 1 else 's'}"


def _progress() -> Progress:
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    return Progress(*columns, console=console, transient=True, disable=not console.is_terminal)
