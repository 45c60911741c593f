"""The commands on URLs of other file systems, and on what is not there."""

import json
import os
import sys
from pathlib import Path

import fsspec
import pytest
from support.command import Capture, row, run
from support.factories import conversation
from tokenrecords import read_jsonl, write_jsonl
from tokenrecords.__main__ import main
from tokenrecords.arrow import read_parquet


def said(result):
    """What was said of an error, without its frame."""
    return " ".join(result.stderr.replace("│", " ").split())


@pytest.fixture(autouse=True)
def memory():
    memory = fsspec.filesystem("memory")
    write_jsonl("memory://in/r.tokens.jsonl", conversation())
    yield memory
    memory.store.clear()
    memory.pseudo_dirs[:] = [""]


@pytest.mark.parametrize("path", ["memory://in", "memory://in/r.tokens.jsonl", "memory://in/*.jsonl"])
def test_verify_and_show(path):
    result = run("verify", path, "--json")
    assert result.exit_code == 0
    assert json.loads(result.stdout)["records"] == 3
    assert "c2" in run("show", path).stdout


def test_report(tmp_path):
    result = run("report", "memory://in", "--out", tmp_path / "page.html")
    assert result.exit_code == 0
    assert "1 rollout written" in result.stdout


def test_several_paths(tmp_path):
    write_jsonl(tmp_path / "s.tokens.jsonl", conversation())
    result = run("verify", "memory://in", tmp_path, f"file://{tmp_path}", "--json")
    assert json.loads(result.stdout)["records"] == 9


@pytest.mark.parametrize("out", ["memory://out/r.parquet", "memory://out/r.jsonl.zst", "memory://out"])
def test_convert(out, memory):
    result = run("convert", "memory://in", out)
    assert result.exit_code == 0
    assert f"3 records with 18 ids written to {out} and read back equal" in result.stdout
    [made] = memory.find("/out")
    assert (read_jsonl if "jsonl" in made else read_parquet)(f"memory:/{made}") == conversation()
    assert "is already there: say --overwrite" in said(run("convert", "memory://in", out))
    assert run("convert", "memory://in", out, "--overwrite").exit_code == 0
    assert memory.find("/out") == [made]


def test_a_conversion_that_fails_leaves_nothing(memory):
    memory.pipe_file("/in/s.tokens.jsonl", b"{}\n")
    assert run("convert", "memory://in", "memory://out/r.parquet").exit_code == 1
    assert memory.find("/out") == []


@pytest.fixture
def responses(memory, tmp_path):
    """A file of responses at two places, and what the command makes of it."""
    local = Capture(tmp_path)
    assert local(row("a", [1], [2, 3]), row("b", [1, 2, 3, 4], [5]), row("c", [7], [8], "s")).exit_code == 0
    memory.pipe_file("/responses.jsonl", local.source.read_bytes())
    return local


def test_capture(memory, responses):
    assert run("capture", "memory://responses.jsonl", "--out", "memory://out").exit_code == 0
    assert {name.removeprefix("/out/"): memory.cat_file(name) for name in memory.find("/out")} == {
        path.name: path.read_bytes() for path in responses.out.iterdir()
    }
    again = run("capture", "memory://responses.jsonl", "--out", "memory://out")
    assert "is already there: say --append or --overwrite" in said(again)
    assert run("capture", "memory://responses.jsonl", "--out", "memory://out", "--overwrite").exit_code == 0


def test_capture_appends_on_this_machine_alone(responses):
    result = run("capture", "memory://responses.jsonl", "--out", "memory://out", "--append")
    assert result.exit_code == 2
    assert "memory://out/r.tokens.jsonl is on another file system: records can't be appended to it" in said(result)
    out = f"file://{responses.out}"
    assert run("capture", "memory://responses.jsonl", "--out", out, "--append").exit_code == 0
    assert len(responses.records()) == 2


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("verify", "memory://missing"), "'memory://missing' does not exist"),
        (("show", "memory://in/*.zst"), "'memory://in/*.zst' does not exist"),
        (("verify", "missing"), "'missing' does not exist"),
        (("convert", "memory://missing", "out"), "'memory://missing' does not exist"),
        (("capture", "memory://in", "--out", "out"), "'memory://in' is a directory"),
        (("capture", str(Path(__file__).parent), "--out", "out"), "is a directory"),
        (("capture", __file__, "--out", "memory://in/r.tokens.jsonl"), "'memory://in/r.tokens.jsonl' is a file"),
    ],
)
def test_what_is_not_there(arguments, says):
    result = run(*arguments)
    assert result.exit_code == 2
    assert says in said(result)


def test_without_the_extra(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "fsspec", None)
    monkeypatch.setattr(sys, "argv", ["tokenrecords", "verify", "s3://bucket/run"])
    with pytest.raises(SystemExit) as exit_:
        main()
    assert exit_.value.code == 3
    assert capsys.readouterr().err == "tokenrecords: the command needs an extra: pip install 'tokenrecords[fsspec]'\n"


def test_a_file_system_that_needs_a_package(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "s3fs", None)
    monkeypatch.setattr(sys, "argv", ["tokenrecords", "verify", "s3://bucket/run"])
    with pytest.raises(SystemExit) as exit_:
        main()
    assert exit_.value.code == 3
    assert capsys.readouterr().err == "tokenrecords: Install s3fs to access S3\n"


def test_the_gateway_writes_to_this_machine_alone():
    result = run("gateway", "--engine", "http://localhost:8000", "--out", "memory://sessions")
    assert result.exit_code == 2
    assert "'memory://sessions' is not on this machine" in said(result)


def test_the_gateway_does_not_write_into_a_file(tmp_path):
    file = tmp_path / "file"
    file.touch()
    result = run("gateway", "--engine", "http://localhost:8000", "--out", file)
    assert result.exit_code == 2
    assert "is a file." in said(result)


def test_what_may_not_be_read_is_said(tmp_path, monkeypatch):
    monkeypatch.setattr("tokenrecords.cli.paths.os.access", lambda _, mode: mode != os.R_OK)
    result = run("verify", tmp_path)
    assert result.exit_code == 2
    assert "is not readable." in said(result)
