"""Tables of records on a terminal or in a pipe, printed while their rows come."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain, islice
from typing import TYPE_CHECKING, TypeAlias

import typer

from tokenrecords.entry.resolution import ParentResolutionStatus
from tokenrecords.text.printable import printable

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from tokenrecords.entry.model import TokenEntry
    from tokenrecords.verification.findings import Finding

# The columns' widths are those of the first rows: a large file must not be read to its end before a row is printed.
_MEASURED_ROWS = 200

Cell: TypeAlias = "str | tuple[str, str]"  # a text, or a text and its colour


@dataclass(frozen=True)
class Column:
    """A column's header, and whether it is aligned to the right."""

    name: str
    right: bool = False


CALLS = (
    Column("rollout"),
    Column("call"),
    Column("prompt", right=True),
    Column("generated", right=True),
    Column("parent"),
    Column("digest"),
)

FINDINGS = (
    Column("rollout"),
    Column("call"),
    Column("severity"),
    Column("code"),
    Column("where"),
    Column("message"),
)

SEVERITY_COLOURS = {"error": "red", "warning": "yellow", "info": "blue"}

STATUS_COLOURS = {
    ParentResolutionStatus.ROOT: "cyan",
    ParentResolutionStatus.RESOLVED: "green",
    ParentResolutionStatus.UNRESOLVED: "yellow",
}


def print_table(columns: Sequence[Column], rows: Iterable[Sequence[Cell]]) -> None:
    """Print a table; colours go to a terminal only."""
    iterator = iter(rows)
    first = list(islice(iterator, _MEASURED_ROWS))
    header = [(column.name, "bold") for column in columns]
    widths = [max(len(_text(cell)) for cell in cells) for cells in zip(header, *first, strict=True)]
    for row in chain([header], first, iterator):
        typer.echo("  ".join(_padded(columns, widths, row)).rstrip())


def _padded(columns: Sequence[Column], widths: Sequence[int], row: Sequence[Cell]) -> Iterator[str]:
    for column, width, cell in zip(columns, widths, row, strict=True):
        text = _text(cell)
        padding = " " * (width - len(text))
        shown = text if isinstance(cell, str) else typer.style(text, bold=cell[1] == "bold", fg=_colour(cell[1]))
        yield padding + shown if column.right else shown + padding


def _text(cell: Cell) -> str:
    return printable(cell if isinstance(cell, str) else cell[0])


def _colour(name: str) -> str | None:
    return None if name == "bold" else name


def call_row(entry: TokenEntry) -> list[Cell]:
    """A call under the columns `CALLS`."""
    status = entry.parent_resolution
    parent = " ".join(filter(None, (status, entry.parent_call_id or entry.parent_resolution_reason)))
    return [
        entry.rollout_id,
        entry.model_call_id,
        f"{len(entry.prompt_token_ids):,}",
        f"{len(entry.generation_token_ids):,}",
        parent if status is None else (parent, STATUS_COLOURS[status]),
        (entry.digest or "")[:12],
    ]


def finding_row(finding: Finding) -> list[Cell]:
    """A finding under the columns `FINDINGS`."""
    return [
        finding.rollout_id or "",
        finding.model_call_id or "",
        (finding.severity, SEVERITY_COLOURS[finding.severity]),
        finding.code,
        "" if finding.path is None else f"{finding.path}:{finding.line}",
        finding.message,
    ]
