"""What verify says of files that were compressed without checksums."""

import gzip
import importlib
import sys

import pytest
from support.factories import conversation
from tokenrecords import verify, write_jsonl

zstd = importlib.import_module("compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd")


@pytest.fixture
def text():
    return b"".join(entry.to_json() + b"\n" for entry in conversation())


def test_a_file_without_checksums_is_said_to_have_none(tmp_path, text):
    path = tmp_path / "r.tokens.jsonl.zst"
    path.write_bytes(zstd.compress(text))
    report = verify(tmp_path)
    assert report.ok
    assert report.sound
    [finding] = report.findings
    assert (finding.code, finding.severity, finding.path, finding.line) == ("no_checksum", "info", str(path), 1)
    assert str(finding) == (
        f"{path}:1: info no_checksum: the file was compressed without checksums, so that damage may read as other text"
    )


def test_of_several_files_the_right_one_is_named(tmp_path, text):
    for name in ("a.tokens.jsonl.zst", "c.tokens.jsonl.zst"):
        write_jsonl(tmp_path / name, conversation())
    (tmp_path / "b.tokens.jsonl.zst").write_bytes(zstd.compress(text))
    (tmp_path / "d.tokens.jsonl.gz").write_bytes(gzip.compress(text))
    (tmp_path / "e.tokens.jsonl").write_bytes(text)
    found = [finding.path for finding in verify(tmp_path).findings]
    assert found == [str(tmp_path / "b.tokens.jsonl.zst")]


@pytest.mark.parametrize("ending", [".zst", ".gz", ""])
def test_what_is_written_here_has_them(tmp_path, ending):
    write_jsonl(tmp_path / f"r.tokens.jsonl{ending}", conversation())
    assert verify(tmp_path).findings == []
