"""The tables of records and findings."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from support.command import Capture, row
from support.factories import call, make_entry
from tokenrecords import Finding, compute_digest
from tokenrecords.cli.table import CALLS, Column, call_row, finding_row, print_table

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


def test_the_table_shows_counts_parent_and_digest(tmp_path: Path) -> None:
    capture = Capture(tmp_path)
    lines = capture(row("a", [1, 2], [3]), row("b", [1, 2, 3, 4], []), row("c", [9, 9, 9], [8])).stdout.splitlines()
    digests = [compute_digest(ids)[:12] for ids in ([1, 2, 3], [1, 2, 3, 4], [9, 9, 9, 8])]
    assert [line.split() for line in lines] == [
        ["rollout", "call", "prompt", "generated", "parent", "digest"],
        ["r", "a", "2", "1", "root", digests[0]],
        ["r", "b", "4", "0", "resolved", "a", digests[1]],
        ["r", "c", "3", "1", "unresolved", "no_prefix_parent", digests[2]],
        f"3 calls of 1 rollout written to {capture.out}".split(),
    ]


def test_columns_are_as_wide_as_their_widest_cell(capsys: pytest.CaptureFixture[str]) -> None:
    print_table([Column("name"), Column("ids", right=True), Column("end")], [["a", "1", "x"], ["long", "1,000", ""]])
    assert capsys.readouterr().out == (
        "name    ids  end\n"
        "a         1  x\n"
        "long  1,000\n"
    )  # fmt: skip


def test_a_cell_stays_on_its_line(capsys: pytest.CaptureFixture[str]) -> None:
    print_table([Column("name"), Column("end")], [["a\nb\x1b", ("x\t", "red")]])
    assert capsys.readouterr().out.splitlines()[1] == r"a\nb\x1b  x\t"


def test_rows_are_printed_while_they_come(capsys: pytest.CaptureFixture[str]) -> None:
    def rows() -> Iterator[list[str]]:
        for number in range(1_000):
            if number == 500:
                raise RuntimeError("the file can't be read on")
            yield [str(number)]

    with pytest.raises(RuntimeError):
        print_table([Column("number")], rows())
    assert len(capsys.readouterr().out.splitlines()) == 501


def test_a_call_has_a_cell_under_each_column() -> None:
    entry = call("b", list(range(1_000)), [1], "a")
    assert entry.digest is not None
    assert call_row(entry) == ["r", "b", "1,000", "1", ("resolved a", "green"), entry.digest[:12]]
    assert len(call_row(entry)) == len(CALLS)
    assert call_row(make_entry()) == ["r", "c", "2", "1", "", ""]
    assert call_row(call("a", [1], [2]))[4] == ("root", "cyan")
    lost = call("a", [1], [2], parent_resolution="unresolved", parent_resolution_reason="prefix_mismatch")
    assert call_row(lost)[4] == ("unresolved prefix_mismatch", "yellow")


@pytest.mark.parametrize(
    ("code", "severity", "colour"),
    [
        ("digest_mismatch", "error", "red"),
        ("empty_generation", "warning", "yellow"),
        ("no_digest", "info", "blue"),
    ],
)
def test_a_finding_has_its_severity_and_its_place(code: str, severity: str, colour: str) -> None:
    finding = Finding(code, "why", rollout_id="r", model_call_id="c", position=7, path="x.jsonl", line=3)
    assert finding_row(finding) == ["r", "c", (severity, colour), code, "x.jsonl:3", "why"]
    assert finding_row(Finding(code, "why")) == ["", "", (severity, colour), code, "", "why"]


def test_a_column_is_as_wide_as_what_is_written_out(capsys: pytest.CaptureFixture[str]) -> None:
    print_table([Column("a"), Column("b")], [["\x1b", "x"], ["y", "x"]])
    assert capsys.readouterr().out.splitlines() == ["a     b", r"\x1b  x", "y     x"]


def test_a_parent_is_named_before_a_reason() -> None:
    entry = call("b", [1, 2], [3], "a", parent_resolution_reason="why")
    assert call_row(entry)[4] == ("resolved a", "green")


def test_a_wide_cell_among_the_first_rows_widens_its_column(capsys: pytest.CaptureFixture[str]) -> None:
    print_table([Column("a"), Column("b")], [*[["x", "y"]] * 199, ["x" * 9, "y"]])
    lines = capsys.readouterr().out.splitlines()
    assert {line.index("y") for line in lines[1:]} == {11}


def test_a_header_is_bold_and_a_colour_is_that_of_its_cell(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[str] = []
    monkeypatch.setattr("tokenrecords.cli.table.typer.echo", shown.append)
    print_table([Column("a")], [[("x", "red")], ["y"]])
    assert shown == ["\x1b[1ma\x1b[0m", "\x1b[31m\x1b[22mx\x1b[0m", "y"]
