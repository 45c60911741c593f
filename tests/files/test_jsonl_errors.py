"""Lines that hold no record: what is said about them, and what becomes of the others."""

from __future__ import annotations

import gzip
import io
import pickle
import sys
import warnings
from importlib import import_module
from typing import TYPE_CHECKING, Any

import pytest
from support.factories import THREE, call_ids, line
from support.watch import threads_are
from tokenrecords import RecordError, read_jsonl, scan_jsonl

if TYPE_CHECKING:
    from pathlib import Path

zstd = import_module("compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd")


BAD = b'{"rollout_id": 5}\n'


def test_an_error_says_where(tmp_path: Path) -> None:
    text = b"\xef\xbb\xbf" + line() + b"\n" + BAD + line()
    offset = 3 + len(line()) + 1
    plain, gz, zst = (tmp_path / f"x.tokens.jsonl{ending}" for ending in ("", ".gz", ".zst"))
    plain.write_bytes(text)
    gz.write_bytes(gzip.compress(text))
    zst.write_bytes(zstd.compress(text))
    with plain.open("rb") as file:
        nameless = io.BytesIO(text)
        for source, name in (
            (plain, str(plain)),
            (str(plain), str(plain)),
            ([gz], str(gz)),
            (zst, str(zst)),
            (file, str(plain)),
            (nameless, "<file>"),
            (text, "<bytes>"),
            (bytearray(text), "<bytes>"),
        ):
            with pytest.raises(RecordError) as info:
                read_jsonl(source)  # type: ignore[arg-type]
            error = info.value
            assert (error.path, error.line, error.offset) == (name, 3, offset)
            assert "rollout_id" in error.reason
            assert str(error) == f"{name}:3: {error.reason}"
            assert isinstance(error, ValueError)


def test_an_error_can_be_pickled() -> None:
    error = RecordError("a", 2, 3, "why")
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        copy = pickle.loads(pickle.dumps(error, protocol))
        assert type(copy) is RecordError
        assert (copy.path, copy.line, copy.offset, copy.reason, str(copy)) == ("a", 2, 3, "why", "a:2: why")


MIXED = b"".join(BAD if i in (2, 3, 7) else line(model_call_id=str(i)) for i in range(10))
GOOD = [str(i) for i in range(10) if i not in (2, 3, 7)]


@pytest.mark.parametrize("threads", [1, 2, 8])
def test_raise_at_the_line_after_those_before_it(threads: int) -> None:
    reader = scan_jsonl(MIXED, threads=threads)
    found = [next(reader), next(reader)]
    with pytest.raises(RecordError) as info:
        next(reader)
    assert call_ids(found) == ["0", "1"]
    assert info.value.line == 3
    assert list(reader) == []


@pytest.mark.parametrize("threads", [1, 2, 8])
def test_skip_delivers_the_rest(threads: int) -> None:
    reader = scan_jsonl(MIXED, on_error="skip", threads=threads)
    assert call_ids(reader) == GOOD
    assert [error.line for error in reader.errors] == [3, 4, 8]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert call_ids(read_jsonl(MIXED, on_error="skip", threads=threads)) == GOOD
    (warning,) = caught
    assert "3 lines" in str(warning.message)
    assert "the first: <bytes>:3: " in str(warning.message)
    assert warning.filename == __file__


def test_skip_does_not_warn_where_nothing_was_left_out() -> None:
    assert call_ids(read_jsonl(THREE, on_error="skip")) == ["a", "b", "c"]


@pytest.mark.parametrize("threads", [1, 2, 8])
def test_a_function_gets_each_error(threads: int) -> None:
    found: list[RecordError] = []
    reader = scan_jsonl(MIXED, on_error=found.append, threads=threads)
    assert call_ids(reader) == GOOD
    assert [error.line for error in found] == [3, 4, 8]
    assert reader.errors == found
    assert call_ids(read_jsonl(MIXED, on_error=found.append)) == GOOD  # without a warning


@pytest.mark.parametrize("threads", [1, 8])
def test_a_function_that_raises_ends_the_reading(path: Path, threads: int) -> None:
    path.write_bytes(MIXED)

    def refuse(error: RecordError) -> None:
        raise KeyError(error.line)

    reader = scan_jsonl(path, on_error=refuse, threads=threads)
    with pytest.raises(KeyError, match="3"):
        list(reader)
    assert [error.line for error in reader.errors] == [3]
    assert list(reader) == []
    assert threads_are(there=False)


def test_a_dtype_error_is_an_error_of_the_line() -> None:
    data = line(model_call_id="a", prompt_token_ids=[300]) + line(model_call_id="b")
    reader = scan_jsonl(data, dtype="uint8", on_error="skip")
    assert call_ids(reader) == ["b"]
    assert [error.reason for error in reader.errors] == ["prompt_token_ids[0] is 300: it does not fit uint8"]


@pytest.mark.parametrize("mode", ["raise", "skip", "call"])
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("cut", [1, 40, -3, -2])
def test_a_torn_last_line_is_left_out_with_a_warning(path: Path, mode: str, threads: int, cut: int) -> None:
    torn = line(model_call_id="torn")[:cut]
    path.write_bytes(THREE + torn)
    found: list[RecordError] = []
    on_error: Any = found.append if mode == "call" else mode
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        entries = read_jsonl(path, on_error=on_error, threads=threads)
    assert call_ids(entries) == ["a", "b", "c"]
    assert found == []
    (warning,) = caught
    assert str(path) in str(warning.message)
    assert f" {len(torn)} bytes" in str(warning.message)


def test_a_torn_line_is_said_to_who_reads_and_its_bytes_as_they_are_read(path: Path) -> None:
    path.write_bytes(THREE + b'{"rollout_id":"' + b"r" * 12_330)
    with pytest.warns(UserWarning, match=r": the last 12,345 bytes are a torn record, ") as caught:
        for _ in scan_jsonl(path):
            pass
    assert caught[0].filename == __file__


def test_many_lines_that_are_left_out_are_counted_as_they_are_read() -> None:
    with pytest.warns(UserWarning, match=r"^1,234 lines held no record and were left out; the first: <bytes>:1: "):
        assert read_jsonl(BAD * 1_234, on_error="skip") == []


def test_each_file_may_be_torn(tmp_path: Path) -> None:
    paths = [tmp_path / name for name in ("a", "b.gz", "c")]
    paths[0].write_bytes(line(model_call_id="a") + b'{"x')
    paths[1].write_bytes(gzip.compress(line(model_call_id="b") + b"{"))
    paths[2].write_bytes(line(model_call_id="c") + b"\0" * 100)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert call_ids(read_jsonl(paths)) == ["a", "b", "c"]
    assert [str(path) in str(warning.message) for path, warning in zip(paths, caught, strict=True)] == [True] * 3


def test_a_torn_line_is_torn_only_at_the_end() -> None:
    for torn in (line()[:40], b'{"rollout_id":"r"'):
        with pytest.raises(RecordError):
            read_jsonl(torn + b"\n")


def test_a_place_is_one_in_the_line() -> None:
    for data, place in ((b'{"rollout_id":"r"', 17), (b'{"rollout_id":1,,}', 17), (b'{"x":1} 2', 9)):
        with pytest.raises(RecordError) as caught:
            read_jsonl(line() + data + b"\n")
        assert str(caught.value).startswith("<bytes>:2: Invalid JSON: ")
        assert caught.value.reason.endswith(f" at column {place}")
        assert "line" not in caught.value.reason
        assert isinstance(caught.value.__cause__, ValueError)


def test_a_whole_last_line_needs_no_line_break() -> None:
    assert call_ids(read_jsonl(THREE[:-1])) == ["a", "b", "c"]
    assert call_ids(read_jsonl(THREE[:-1] + b"  ")) == ["a", "b", "c"]
    with pytest.raises(RecordError, match="rollout_id"):
        read_jsonl(THREE + BAD[:-1])
