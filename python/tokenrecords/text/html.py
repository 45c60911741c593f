"""Short pieces of HTML, for notebooks."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING

from tokenrecords.text.printable import printable

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


def table(caption: str, header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table with its caption above it: of any text, which is shown and never run."""
    head = "".join(f"<th scope='col'>{_cell(name)}</th>" for name in header)
    body = "".join(f"<tr>{''.join(f'<td>{_cell(each)}</td>' for each in row)}</tr>" for row in rows)
    return f"<table><caption>{_cell(caption)}</caption><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _cell(value: object) -> str:
    return html.escape(printable(f"{value:,}" if isinstance(value, int) else str(value)))
