"""The commands: what they print, and the status with which they end."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from support.command import Capture, row, run
from support.factories import make_entry
from support.places import EXAMPLES
from tokenrecords import ParentResolutionStatus, TokenEntry, __version__, append_jsonl, stamp_lineage, write_jsonl
from tokenrecords.info.installation import installation

if TYPE_CHECKING:
    from pathlib import Path

ROOT, RESOLVED = ParentResolutionStatus.ROOT, ParentResolutionStatus.RESOLVED


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


def test_verify_reads_several_files_as_if_each_were_read_alone(tmp_path: Path) -> None:
    files = []
    for number, (ending, bad) in enumerate([("", (0,)), ("", ()), (".gz", (1, 3)), ("", (3,)), ("", ())]):
        path = tmp_path / f"{number}.tokens.jsonl{ending}"
        records = calls(f"r{number % 2}")  # rollouts are those of one file: two files are not one
        records[2].digest = "0" * 64
        lines = [record.to_json() + b"\n" for record in records]
        for place in bad:
            lines.insert(place, b"{bad\n")
        # A file may begin at a later line than the one before it ends.
        text = b"" if number == 4 else b"\n" * 9 * (number == 1) + b"".join(lines)
        path.write_bytes(gzip.compress(text) if ending else text)
        files.append(path)
    for paths in (files, [files[0], files[0], files[1]], [files[4]], [files[2], files[1], files[2]]):
        reports = [json.loads(run("verify", path, "--json").stdout) for path in paths]
        together = json.loads(run("verify", *paths, "--json").stdout)
        assert together["findings"] == [finding for report in reports for finding in report["findings"]]
        assert together["records"] == sum(report["records"] for report in reports)
        assert together["ids"] == sum(report["ids"] for report in reports)
        assert together["ok"] is all(report["ok"] for report in reports)


def test_a_torn_last_line_is_no_error(file: Path) -> None:
    with file.open("ab") as stream:
        stream.write(b'{"rollout_id"')
    with pytest.warns(UserWarning, match="torn record"):
        assert run("verify", file).exit_code == 0


@pytest.mark.parametrize("command", ["show", "verify"])
def test_a_missing_file_has_status_2(command: str, tmp_path: Path) -> None:
    assert run(command, tmp_path / "none").exit_code == 2


def test_a_missing_file_to_capture_has_status_2(tmp_path: Path) -> None:
    result = run("capture", tmp_path / "none", "--out", tmp_path)
    assert result.exit_code == 2


@pytest.mark.parametrize("flags", [("--append", "--overwrite"), ("--never",)])
def test_a_wrong_call_has_status_2(tmp_path: Path, flags: tuple[str, ...]) -> None:
    capture = Capture(tmp_path)
    assert capture(row("a", [1], [2]), flags=flags).exit_code == 2
    assert not capture.out.exists()


def test_the_version() -> None:
    result = run("--version")
    assert (result.exit_code, result.stdout) == (0, f"tokenrecords {__version__}\n")
    result = run("--version", "show", "no such file")
    assert (result.exit_code, result.stdout) == (0, f"tokenrecords {__version__}\n")


@pytest.mark.parametrize("flags", [("--version", "--verbose"), ("--verbose", "--version")])
def test_the_version_and_what_this_machine_computes_with(flags: tuple[str, ...]) -> None:
    result = run(*flags)
    assert (result.exit_code, result.stdout) == (0, f"{installation()}\n")


def test_verbose_alone_or_no_command_has_status_2() -> None:
    result = run("--verbose")
    assert result.exit_code == 2
    assert "--verbose needs --version" in result.stderr
    result = run("--")
    assert result.exit_code == 2
    assert "Missing command" in result.stderr


def test_an_empty_directory_says_so(tmp_path: Path) -> None:
    for command in ("show", "verify"):
        result = run(command, tmp_path)
        assert result.exit_code == 2
        assert "holds no" in result.stderr


def test_nothing_but_the_table_goes_to_a_pipe(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tokenrecords", "capture", EXAMPLES / "served_responses.jsonl", "--out", tmp_path]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    assert "\x1b" not in done.stdout
    assert len(done.stdout.splitlines()) == 12


@pytest.mark.parametrize(
    ("module", "extra"), [("typer", "cli"), ("rich", "cli"), ("aiohttp", "gateway"), ("prometheus_client", "gateway")]
)
def test_without_its_extra_the_command_says_so(module: str, extra: str, tmp_path: Path) -> None:
    arguments = ["gateway", "--engine", "http://localhost:1", "--out", str(tmp_path)]
    code = f"import sys; sys.modules['{module}'] = None; sys.argv[1:] = {arguments}; "
    code += "import tokenrecords.__main__ as m; m.main()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr == f"tokenrecords: the command needs an extra: pip install 'tokenrecords[{extra}]'\n"


def test_odd_ids_stay_in_their_row_whatever_the_terminal(tmp_path: Path) -> None:
    path = tmp_path / "r.tokens.jsonl"
    write_jsonl(path, [make_entry(model_call_id="x\ny\x1b[31m")])
    command = [sys.executable, "-m", "tokenrecords", "show", path]
    done = subprocess.run(command, capture_output=True, env={**os.environ, "PYTHONIOENCODING": "ascii"}, check=True)
    lines = done.stdout.decode("ascii").splitlines()
    assert lines[1].split()[1] == r"x\ny\x1b[31m"
    assert len(lines) == 5


def test_a_torn_tail_is_one_line_of_the_command(tmp_path: Path) -> None:
    path = tmp_path / "r.tokens.jsonl"
    path.write_bytes(make_entry().to_json() + b"\n{")
    command = [sys.executable, "-m", "tokenrecords", "verify", "--json", path]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)["ok"]
    assert (
        done.stderr == f"warning: {path}: the last 1 bytes are a torn record, which was never acknowledged: left out\n"
    )


def test_what_could_not_be_read_comes_first(file: Path) -> None:
    append_jsonl(file, [make_entry(model_call_id="d")])
    with file.open("ab") as stream:
        stream.write(b"{bad\n")
    first, *others = json.loads(run("verify", file, "--json").stdout)["findings"]
    assert first["code"] == "unreadable_line"
    assert {finding["model_call_id"] for finding in others} == {"d"}


def test_a_vocabulary_has_ids(file: Path) -> None:
    assert run("verify", file, "--vocab-size", "0").exit_code == 2


def test_nothing_is_cut_off_in_a_pipe(tmp_path: Path) -> None:
    path = tmp_path / "r.tokens.jsonl"
    write_jsonl(path, [stamp_lineage(make_entry(model_call_id="c" * 500), None, ROOT)])
    table, tree = run("show", path).stdout.split("rollout r")
    assert "c" * 500 in table
    assert "c" * 500 in tree


def test_the_directory_is_made_with_those_above_it(tmp_path: Path) -> None:
    capture = Capture(tmp_path)
    capture.out = tmp_path / "a" / "b"
    assert capture(row("a", [1], [2])).exit_code == 0
    assert [entry.model_call_id for entry in capture.records()] == ["a"]


def test_where_no_directory_can_be(tmp_path: Path) -> None:
    capture = Capture(tmp_path)
    for out in (capture.source, capture.source / "out"):
        capture.out = out
        assert capture(row("a", [1], [2])).exit_code == 2


def test_a_module_that_is_missing_for_another_reason_is_not_hidden() -> None:
    code = "import sys; sys.modules['tokenrecords.cli.tree'] = None; import tokenrecords.__main__ as m; m.main()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "ModuleNotFoundError" in done.stderr
    assert "pip install" not in done.stderr


def test_show_takes_the_id_of_the_last_response(tmp_path: Path) -> None:
    path = tmp_path / "r.tokens.jsonl"
    entries = calls()
    entries[1].response_id = "last"
    write_jsonl(path, entries)
    tree = run("show", path, "--terminal-response", "last").stdout
    assert "terminal delivered" in tree
    assert "○  c" in tree or "✗  c" in tree


def test_show_says_what_was_lost_of_each_rollout(tmp_path: Path, file: Path) -> None:
    assert file.exists()
    (tmp_path / "r.tokens.intents").write_text("a\nb\nc\ngone\n")
    (tmp_path / "s.tokens.incomplete").write_text("x\n")
    first, second = run("show", tmp_path).stdout.split("rollout ")[2:]
    assert first.startswith("r ")
    assert "└── gone  " in first
    assert second.startswith("s ")
    assert "0 of 0 generated ids in main" in second
    assert "└── " in second
