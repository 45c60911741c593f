"""The commands `tokenrecords show` and `tokenrecords verify`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from makers import make_entry
from tokenrecords import ParentResolutionStatus, TokenEntry, append_jsonl, stamp_lineage, write_jsonl
from tokenrecords.cli.app import app
from typer.testing import CliRunner

if TYPE_CHECKING:
    from pathlib import Path

ROOT, RESOLVED = ParentResolutionStatus.ROOT, ParentResolutionStatus.RESOLVED


def run(*arguments: Any) -> Any:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def calls(rollout: str = "r") -> list[TokenEntry]:
    first = make_entry(rollout_id=rollout, model_call_id="a")
    second = make_entry(rollout_id=rollout, model_call_id="b", prompt_token_ids=[1, 2, 3, 4])
    retry = make_entry(rollout_id=rollout, model_call_id="c", prompt_token_ids=[1, 2, 3, 4], generation_token_ids=[9])
    stamp_lineage(first, None, ROOT)
    return [first, stamp_lineage(second, "a", RESOLVED), stamp_lineage(retry, "a", RESOLVED)]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "r.tokens.jsonl"
    write_jsonl(path, calls())
    return path


def test_show_prints_the_records_and_their_tree(file: Path) -> None:
    result = run("show", file, "--terminal", "b")
    assert result.exit_code == 0
    lines = [line.split() for line in result.stdout.splitlines()]
    assert lines[0] == ["rollout", "call", "prompt", "generated", "parent", "digest"]
    assert [line[:6] for line in lines[1:4]] == [
        ["r", "a", "2", "1", "root", calls()[0].digest[:12]],
        ["r", "b", "4", "1", "resolved", "a"],
        ["r", "c", "4", "1", "resolved", "a"],
    ]
    tree = "\n".join(result.stdout.splitlines()[4:])
    for text in ("rollout r", "3 calls", "1 quarantined", "terminal delivered", "●  b", "✗  c", "retry, quarantined"):
        assert text in tree


def test_show_without_the_tree(file: Path) -> None:
    assert len(run("show", file, "--no-tree").stdout.splitlines()) == 4


def test_show_reports_bad_lines(file: Path) -> None:
    with file.open("ab") as stream:
        stream.write(b"{bad\n")
    result = run("show", file)
    assert result.exit_code == 1
    assert f"{file}:4: Invalid JSON" in result.stderr
    assert "1 line left out" in result.stderr


def test_show_takes_a_directory(tmp_path: Path, file: Path) -> None:
    write_jsonl(tmp_path / "s.tokens.jsonl", calls("s"))
    result = run("show", tmp_path)
    assert [line.split()[0] for line in result.stdout.splitlines()[1:7]] == ["r"] * 3 + ["s"] * 3
    assert file.exists()


def test_verify_of_sound_records(file: Path) -> None:
    result = run("verify", file)
    assert result.exit_code == 0
    assert result.stdout.startswith("3 records with 13 ids: nothing found, ")
    assert result.stdout.endswith(" ids a second\n")


def test_verify_finds_faults_by_file_and_line(tmp_path: Path, file: Path) -> None:
    wrong = calls("s")[:2]
    wrong[1].digest = "0" * 64
    other = tmp_path / "s.tokens.jsonl"
    write_jsonl(other, wrong)
    with file.open("ab") as stream:
        stream.write(b"{bad\n")
    result = run("verify", tmp_path)
    assert result.exit_code == 1
    lines = result.stdout.splitlines()
    assert lines[0].split() == ["rollout", "call", "severity", "code", "where", "message"]
    assert lines[1].split()[:3] == ["error", "unreadable_line", f"{file}:4"]
    assert lines[2].split()[:5] == ["s", "b", "error", "digest_mismatch", f"{other}:2"]
    assert lines[3].startswith("5 records with 21 ids: 2 errors, ")


def test_verify_as_json(file: Path) -> None:
    wrong = make_entry(rollout_id="r", model_call_id="d", prompt_token_ids=[7, 8], generation_log_probs=[0.5])
    append_jsonl(file, [stamp_lineage(wrong, None, ROOT)])
    result = run("verify", file, "--json", "--vocab-size", "8")
    report = json.loads(result.stdout)
    assert result.exit_code == 1
    assert (report["ok"], report["records"], report["ids"]) == (False, 4, 16)
    assert report["counts"] == {"id_outside_vocab": 2, "log_prob_positive": 1}
    found = report["findings"][-2]
    assert (found["code"], found["field"], found["index"]) == ("id_outside_vocab", "prompt_token_ids", 1)
    assert (found["path"], found["line"], found["position"]) == (str(file), 4, 3)


def test_a_torn_last_line_is_no_error(file: Path) -> None:
    with file.open("ab") as stream:
        stream.write(b'{"rollout_id"')
    with pytest.warns(UserWarning, match="torn record"):
        assert run("verify", file).exit_code == 0


@pytest.mark.parametrize("command", ["show", "verify"])
def test_a_missing_file_has_status_2(command: str, tmp_path: Path) -> None:
    assert run(command, tmp_path / "none").exit_code == 2


def test_an_empty_directory_says_so(tmp_path: Path) -> None:
    for command in ("show", "verify"):
        result = run(command, tmp_path)
        assert result.exit_code == 2
        assert "holds no" in result.stderr
