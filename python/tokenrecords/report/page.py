"""The HTML of a page: one template, one sheet of style and some scripts, all in one file. Needs jinja2."""

from __future__ import annotations

import base64
import hashlib
from collections import Counter
from dataclasses import dataclass
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import jinja2
from markupsafe import Markup

from tokenrecords._core import __version__
from tokenrecords.report.embedding import as_json
from tokenrecords.text.printable import printable
from tokenrecords.verification.findings import SEVERITIES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tokenrecords.report.overview import Overview
    from tokenrecords.report.pieces import Piece
    from tokenrecords.verification.findings import Report

_SOURCES: Final = files("tokenrecords.report") / "page"
_SCRIPTS: Final = (
    *(
        "dom",
        "sequence",
        "table",
        "strip",
        "minimap",
        "cursor",
        "breaks",
        "tree",
        "panel",
        "rollout",
        "main",
    ),  # in this order
)
_LINES: Final = 50  # lines without a record that the page lists


class Embedded(NamedTuple):
    """A rollout that the page has the tokens of: its row, its details as values of JSON, and its arrays as text."""

    row: dict[str, Any]
    details: dict[str, Any]
    arrays: str


@dataclass(frozen=True)
class Page:
    """What a page shows.

    Attributes:
        overview: Numbers of all rollouts.
        report: All findings.
        rollouts: Those whose tokens are on the page.
        pieces: The text of their ids, None without a tokenizer.
        only: The kind of rollouts that was asked for.
        passed_over: Rollouts of another kind.
        cut_off: Rollouts beyond the most that were asked for.
    """

    overview: Overview
    report: Report
    rollouts: list[Embedded]
    pieces: Mapping[int, Piece] | None
    only: str | None
    passed_over: int
    cut_off: int

    def parts(self) -> Iterator[str]:
        """The text of the page, in pieces."""
        environment = jinja2.Environment(
            autoescape=True,
            loader=jinja2.FunctionLoader(_source),
            undefined=jinja2.StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        style = _source("page.css")
        script = "\n".join(['"use strict";', *(_source(f"{name}.js") for name in _SCRIPTS)])
        return environment.get_template("page.html").generate(
            page=self,
            severe=Counter(finding.severity for finding in self.report.findings),
            lines=self._lines(),
            most_lines=_LINES,
            severities=SEVERITIES,
            version=__version__,
            style=_inline(style),
            script=_inline(script),
            policy=f"default-src 'none'; script-src {_hash(script)}; style-src {_hash(style)}; base-uri 'none'; "
            "form-action 'none'",
            as_json=lambda value: _inline(as_json(value)),
        )

    def _lines(self) -> list[str]:
        """The lines that hold no record."""
        found = (finding for finding in self.report.findings if finding.rollout_id is None)
        return [printable(f"{finding.path}:{finding.line}: {finding.message}") for finding in found]


def _source(name: str) -> str:
    return (_SOURCES / name).read_text(encoding="utf-8")


def _inline(text: str) -> Markup:
    """Text that is not escaped: our own, or JSON that no element ends in."""
    return Markup(text)  # noqa: S704


def _hash(text: str) -> str:
    """What lets the browser run an inline script, and that one alone."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
