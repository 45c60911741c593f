"""The end of a file: what broke off is cut away, what did not is an error and stays."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from support.factories import make_entry
from tokenrecords import append_jsonl, read_jsonl, scan_jsonl

if TYPE_CHECKING:
    from pathlib import Path

LINE = make_entry().to_json()
WHOLE = {
    "two records": LINE + LINE,
    "words behind": LINE + b" xx",
    "a wrong byte": LINE.replace(b'"model":""', b'"model":"\xff"'),
    "a wrong word": LINE.replace(b"null", b"nul", 1),
    "a comma": LINE[:-1] + b",}",
    "text": b"precious text",
}
TORN = {
    "half": LINE[: len(LINE) // 2],
    "one byte": b"{",
    "a character": '{"rollout_id":"é'.encode()[:-1],
    "a long character": '{"rollout_id":"😀'.encode()[:-1],
    "zeros": b"\0" * 9,
    "zeros behind": LINE[:30] + b"\0" * 9,
}


@pytest.mark.parametrize("name", WHOLE)
def test_a_last_line_that_does_not_break_off_is_an_error_and_stays(path: Path, name: str) -> None:
    path.write_bytes(LINE + b"\n" + WHOLE[name])
    with scan_jsonl(path, on_error="skip") as reader:
        assert len(list(reader)) == 1
    assert [error.line for error in reader.errors] == [2]
    append_jsonl(path, [make_entry()])
    assert path.read_bytes() == b"\n".join([LINE, WHOLE[name], LINE, b""])


def test_a_file_that_breaks_off_behind_its_byte_order_mark(path: Path) -> None:
    for mark in (b"\xef\xbb\xbf", b""):
        path.write_bytes(mark + LINE[:9])
        append_jsonl(path, [make_entry()])
        assert path.read_bytes() == LINE + b"\n"


@pytest.mark.parametrize("name", TORN)
def test_a_last_line_that_breaks_off_is_torn(path: Path, name: str) -> None:
    path.write_bytes(LINE + b"\n" + TORN[name])
    with pytest.warns(UserWarning, match=f"the last {len(TORN[name])} bytes are a torn record"):
        assert len(read_jsonl(path)) == 1
    append_jsonl(path, [make_entry()])
    assert path.read_bytes() == b"\n".join([LINE, LINE, b""])


def test_a_line_that_breaks_off_at_any_byte_is_torn(path: Path) -> None:
    for end in range(1, len(LINE)):
        path.write_bytes(LINE + b"\n" + LINE[:end])
        with pytest.warns(UserWarning, match=f"the last {end} bytes are a torn record"):
            assert len(read_jsonl(path)) == 1
        append_jsonl(path, [make_entry()], fsync=False)
        assert path.read_bytes() == b"\n".join([LINE, LINE, b""])
