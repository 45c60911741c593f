"""The command convert, and the commands that read Parquet."""

import pytest
from support.command import run
from support.factories import conversation, make_entry
from tokenrecords import read_jsonl, write_jsonl
from tokenrecords.arrow import read_parquet, write_parquet


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "in" / "r.tokens.jsonl"
    path.parent.mkdir()
    write_jsonl(path, conversation())
    return path


def test_a_file(tmp_path, file):
    out = tmp_path / "new" / "r.parquet"
    result = run("convert", file, out)
    assert result.exit_code == 0
    sizes = f"{file.stat().st_size:,} bytes became {out.stat().st_size:,}"
    assert result.stdout == f"3 records with 18 ids written to {out} and read back equal: {sizes}\n"
    assert read_parquet(out) == conversation()


def test_directories(tmp_path, file):
    write_jsonl(file.parent / "s.tokens.jsonl.gz", [make_entry(rollout_id="s")])
    assert run("convert", file.parent, tmp_path / "columns").exit_code == 0
    assert read_parquet(tmp_path / "columns" / "s.parquet") == [make_entry(rollout_id="s")]
    result = run("convert", tmp_path / "columns", tmp_path / "lines")
    assert result.stdout.startswith("4 records with 21 ids written to ")
    assert read_jsonl(tmp_path / "lines") == [*conversation(), make_entry(rollout_id="s")]


def test_files_that_are_there_stay(tmp_path, file):
    out = tmp_path / "r.parquet"
    write_parquet(out, [])
    result = run("convert", file, out)
    assert result.exit_code == 2
    assert "is already there: say --overwrite" in " ".join(result.stderr.replace("│", " ").split())
    assert read_parquet(out) == []
    assert run("convert", file, out, "--overwrite").exit_code == 0
    assert read_parquet(out) == conversation()


def test_a_bad_line(tmp_path, file):
    with file.open("ab") as stream:
        stream.write(b"{bad\n")
    result = run("convert", file, tmp_path / "r.parquet")
    assert result.exit_code == 1
    assert result.stderr.startswith(f"{file}:4: Invalid JSON")
    assert not (tmp_path / "r.parquet").exists()


def test_ids(tmp_path, file):
    write_jsonl(file, [make_entry(prompt_token_ids=[2**40])])
    out = tmp_path / "r.parquet"
    result = run("convert", file, out)
    assert result.exit_code == 1
    message = (
        "model call 'c' of rollout 'r' can't be written: prompt_token_ids[0] is 1099511627776: it does not fit int32"
    )
    assert result.stderr == f"{message}\n"
    assert run("convert", file, out, "--ids", "int64").exit_code == 0
    assert run("convert", file, out, "--ids", "int8").exit_code == 2


def test_what_can_not_be_carried_out(tmp_path, file):
    (tmp_path / "empty").mkdir()
    assert run("convert", tmp_path / "empty", tmp_path / "out").exit_code == 2
    assert run("convert", tmp_path / "none", tmp_path / "out").exit_code == 2
    assert run("convert", file, file / "r.parquet").exit_code == 2


@pytest.fixture
def columns(tmp_path, file):
    path = tmp_path / "columns" / "r.parquet"
    path.parent.mkdir()
    write_parquet(path, read_jsonl(file))
    return path


def test_show_takes_parquet(file, columns):
    for path in (columns, columns.parent):
        result = run("show", path, "--terminal", "c2")
        assert result.exit_code == 0
        assert result.stdout == run("show", file, "--terminal", "c2").stdout


def test_verify_takes_parquet(columns):
    wrong = conversation()
    wrong[1].digest = "0" * 64
    write_parquet(columns, wrong)
    result = run("verify", columns)
    assert result.exit_code == 1
    assert f"{columns}:2" in result.stdout
    columns.write_bytes(b"no Parquet")
    result = run("verify", columns)
    assert result.exit_code == 1
    assert "unreadable_line" in result.stdout
    assert f"{columns}:1" in result.stdout


def test_lines_of_a_directory_come_before_its_columns(file):
    write_parquet(file.parent / "r.parquet", conversation())
    with pytest.warns(UserWarning, match="the 1 in Parquet are passed over"):
        result = run("show", file.parent, "--no-tree")
    assert len(result.stdout.splitlines()) == 4
