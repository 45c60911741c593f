"""The commands: what is printed, and exit statuses. The work is done by the modules that they name."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from tokenrecords.capture import Capture, record_path
from tokenrecords.entry import ParentResolutionStatus, TokenEntry
from tokenrecords.jsonl import append_jsonl, read_jsonl, write_jsonl

if TYPE_CHECKING:
    from collections.abc import Iterable, Sized

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Exact tokens of served model calls as proven training records.",
)

_STATUS_STYLES = {
    ParentResolutionStatus.ROOT: "cyan",
    ParentResolutionStatus.RESOLVED: "green",
    ParentResolutionStatus.UNRESOLVED: "yellow",
}


@app.callback()
def _commands() -> None:
    """Keep `capture` a subcommand."""


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
) -> None:
    """Write the calls of served responses as records, DIR/<rollout_id>.tokens.jsonl.

    Exit status: 0 if every line was captured, 1 if some were not, 2 if nothing was written.
    """
    if append and overwrite:
        raise typer.BadParameter("--append and --overwrite exclude each other")

    def earlier(rollout_id: str) -> Iterable[TokenEntry]:
        path = record_path(out, rollout_id)
        if not path.exists() or overwrite:
            return ()
        if not append:
            raise typer.BadParameter(f"{path} is already there: say --append or --overwrite")
        return read_jsonl(path)

    captured = Capture(earlier)
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
    _console().print(_table(entries))
    _console().print(f"{_count(entries, 'call')} of {_count(captured.new, 'rollout')} written to {out}", style="bold")
    for bad in captured.bad:
        _console(stderr=True).print(str(bad), style="red", markup=False, highlight=False, soft_wrap=True)
    if captured.bad:
        _console(stderr=True).print(f"{_count(captured.bad, 'line')} not captured", style="bold red")
        raise typer.Exit(1)


def _count(things: Sized, noun: str) -> str:
    return f"{len(things):,} {noun}{'' if len(things) == 1 else 's'}"


def _console(*, stderr: bool = False) -> Console:
    console = Console(stderr=stderr)
    # In a pipe there is no width to keep to, and a table must not lose characters.
    return console if console.is_terminal else Console(stderr=stderr, width=200)


def _progress() -> Progress:
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    return Progress(*columns, console=console, transient=True, disable=not console.is_terminal)


def _table(entries: Iterable[TokenEntry]) -> Table:
    table = Table("rollout", "call", box=None, pad_edge=False, header_style="bold")
    table.add_column("prompt", justify="right")
    table.add_column("generated", justify="right")
    table.add_column("parent")
    table.add_column("digest")
    for entry in entries:
        table.add_row(
            Text(entry.rollout_id),
            Text(entry.model_call_id),
            f"{len(entry.prompt_token_ids):,}",
            f"{len(entry.generation_token_ids):,}",
            _parent(entry),
            (entry.digest or "")[:12],
        )
    return table


def _parent(entry: TokenEntry) -> Text:
    status = entry.parent_resolution
    if status is None:
        return Text("")
    detail = entry.parent_call_id or entry.parent_resolution_reason
    return Text(f"{status} {detail}".rstrip(), style=_STATUS_STYLES[status])
