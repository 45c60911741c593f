"""Where records are read from: paths, directories, open files, bytes, compressed files."""

from __future__ import annotations

import gzip
import io
import mmap
import random
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from support.factories import THREE, call_ids, line, make_entry, raw
from support.watch import open_files
from tokenrecords import RecordError, read_jsonl, scan_jsonl, write_jsonl
from tokenrecords.entry.model import origin
from tokenrecords.files.sources import given_paths

zstd = import_module("compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd")


@pytest.mark.parametrize("kind", [str, Path])
def test_a_path(path: Path, kind: Any) -> None:
    path.write_bytes(THREE)
    assert call_ids(read_jsonl(kind(path))) == ["a", "b", "c"]


@pytest.mark.parametrize("kind", [list, tuple, iter])
def test_several_paths_in_their_order(tmp_path: Path, kind: Any) -> None:
    for name in "ab":
        (tmp_path / name).write_bytes(line(model_call_id=name))
    assert call_ids(read_jsonl(kind([tmp_path / "b", str(tmp_path / "a")]))) == ["b", "a"]
    assert read_jsonl(kind([])) == []


def test_a_directory(tmp_path: Path) -> None:
    (tmp_path / "c.tokens.jsonl").write_bytes(line(model_call_id="c"))
    (tmp_path / "a.tokens.jsonl.gz").write_bytes(gzip.compress(line(model_call_id="a")))
    (tmp_path / "b.tokens.jsonl.zst").write_bytes(zstd.compress(line(model_call_id="b")))
    (tmp_path / "other.jsonl").write_bytes(b"no record\n")
    (tmp_path / "x.tokens.jsonl.bak").write_bytes(b"no record\n")
    (tmp_path / "d.tokens.jsonl").mkdir()
    assert call_ids(read_jsonl(tmp_path)) == ["a", "b", "c"]
    assert call_ids(read_jsonl([tmp_path, tmp_path / "c.tokens.jsonl"])) == ["a", "b", "c", "c"]


def test_a_directory_while_a_file_is_written_to_it(tmp_path: Path) -> None:
    write_jsonl(tmp_path / "old.tokens.jsonl", [make_entry(model_call_id="old")])
    seen = []

    def entries() -> Any:
        yield make_entry(model_call_id="new", model="x" * 3_000_000)
        seen.extend(call_ids(read_jsonl(tmp_path)))
        yield make_entry(model_call_id="newer")

    write_jsonl(tmp_path / "new.tokens.jsonl", entries())
    assert seen == ["old"]
    assert call_ids(read_jsonl(tmp_path)) == ["new", "newer", "old"]


@pytest.mark.parametrize("buffering", [-1, 0])
def test_an_open_file_is_read_from_where_it_stands_and_stays_open(path: Path, buffering: int) -> None:
    path.write_bytes(THREE)
    with path.open("rb", buffering=buffering) as file:
        file.readline()
        reader = scan_jsonl(file)
        assert next(reader).model_call_id == "b"
        reader.close()
        assert file.readline() == line(model_call_id="c")
    with gzip.open(io.BytesIO(gzip.compress(THREE))) as file:
        assert call_ids(read_jsonl(file)) == ["a", "b", "c"]


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview, io.BytesIO])
def test_bytes(kind: Any) -> None:
    assert call_ids(read_jsonl(kind(THREE))) == ["a", "b", "c"]
    assert read_jsonl(kind(b"")) == []


def test_a_memory_map(path: Path) -> None:
    path.write_bytes(THREE)
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
        assert call_ids(read_jsonl(mapped)) == ["a", "b", "c"]


@pytest.mark.parametrize("source", [None, 5, 0.5, object(), [None], [5], (b"x" for _ in range(2)), [["x"]]])
def test_what_is_no_source(source: Any) -> None:
    with pytest.raises(TypeError, match="source"):
        scan_jsonl(source)


def test_a_text_file(path: Path) -> None:
    path.write_bytes(THREE)
    with path.open(encoding="utf-8") as file, pytest.raises(TypeError, match="binary"):
        read_jsonl(file)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="binary"):
        read_jsonl(io.StringIO(""))  # type: ignore[arg-type]


def test_what_is_missing_is_missed_at_the_call(tmp_path: Path, path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        scan_jsonl(path)
    with pytest.raises(FileNotFoundError, match=r"\.tokens\.jsonl"):
        scan_jsonl(tmp_path)
    path.write_bytes(THREE)
    with pytest.raises(FileNotFoundError):
        scan_jsonl([path, tmp_path / "missing"])


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"threads": 0}, ValueError),
        ({"threads": -1}, ValueError),
        ({"on_error": "ignore"}, TypeError),
        ({"on_error": None}, TypeError),
        ({"dtype": "float32"}, TypeError),
        ({"dtype": "bool"}, TypeError),
        ({"log_prob_dtype": "float16"}, TypeError),
        ({"log_prob_dtype": "int32"}, TypeError),
    ],
)
def test_options_are_checked_at_the_call(options: dict[str, Any], error: type[Exception]) -> None:
    for read in (scan_jsonl, read_jsonl):
        with pytest.raises(error, match=next(iter(options))):
            read(b"", **options)


def test_where_a_record_comes_from(path: Path) -> None:
    path.write_bytes(b"\n" + THREE)
    first, *_, last = read_jsonl(path, threads=2)
    assert origin(first) == (str(path), 2)
    assert origin(last) == (str(path), 4)
    assert origin(last.as_lists()) == (str(path), 4)
    assert [origin(found) for found in read_jsonl(b"\n" + line())] == [("<bytes>", 2)]
    assert first == make_entry(model_call_id="a")
    assert origin(make_entry()) is None


@pytest.mark.parametrize("size", [1 << 20, 3_000_000])
def test_lines_of_any_length_are_counted(path: Path, size: int) -> None:
    long = raw(model=f'"{"x" * size}"')
    path.write_bytes(long + b"{bad\n" + long + long.rstrip())
    with pytest.warns(UserWarning, match="1 line held no record"):
        found = read_jsonl(path, on_error="skip")
    assert [origin(entry) for entry in found] == [(str(path), number) for number in (1, 3, 4)]
    assert {len(entry.model) for entry in found} == {size}
    (error,) = scan_errors(path)
    assert (error.line, error.offset) == (2, len(long))


def scan_errors(path: Path) -> list[RecordError]:
    reader = scan_jsonl(path, on_error="skip")
    list(reader)
    return reader.errors


def many(count: int) -> bytes:
    noise = random.Random(5)
    return b"".join(line(model_call_id=str(i), model=noise.randbytes(500).hex()) for i in range(count))


def damaged(path: Path, kind: str, data: bytes) -> Path:
    """A compressed file that is cut in the middle, or whose checksum is wrong."""
    packed = zstd.compress(data) if kind == "zst cut" else gzip.compress(data, 1)
    path = path.with_name(path.name + (".zst" if kind == "zst cut" else ".gz"))
    path.write_bytes(packed[: len(packed) // 2] if "cut" in kind else packed[:-8] + bytes(8))
    return path


@pytest.mark.parametrize("threads", [1, 2, 8])
@pytest.mark.parametrize("kind", ["gz cut", "zst cut", "gz wrong"])
def test_damaged_data_cost_no_record_before_them(path: Path, kind: str, threads: int) -> None:
    data = many(1000)
    file = damaged(path, kind, data)
    lines = data.splitlines(keepends=True)
    expected = call_ids(scan_jsonl(file, on_error="skip"))
    assert len(expected) > 100
    assert expected == [str(i) for i in range(len(expected))]

    reader = scan_jsonl(file, on_error="skip", threads=threads)
    assert call_ids(reader) == expected
    (error,) = reader.errors
    assert (error.path, error.line) == (str(file), len(expected) + 1)
    assert error.offset == sum(map(len, lines[: len(expected)]))
    assert "compressed data are damaged" in error.reason

    reader = scan_jsonl(file, threads=threads)
    found = []
    with pytest.raises(RecordError, match="damaged"):
        found.extend(reader)  # extend keeps what it got
    assert call_ids(found) == expected


@pytest.mark.parametrize("kind", ["gz cut", "zst cut"])
def test_damaged_data_cost_no_other_file(tmp_path: Path, path: Path, kind: str) -> None:
    file = damaged(path, kind, many(300))
    before, after = tmp_path / "before", tmp_path / "after"
    before.write_bytes(line(model_call_id="before"))
    after.write_bytes(line(model_call_id="after"))
    reader = scan_jsonl([before, file, after], on_error="skip")
    found = call_ids(reader)
    assert (found[0], found[-1]) == ("before", "after")
    assert [error.path for error in reader.errors] == [str(file)]


def test_a_damaged_file_is_closed_by_its_error(path: Path) -> None:
    file = damaged(path, "gz cut", many(300))
    with pytest.raises(RecordError, match="damaged") as caught:
        read_jsonl(file)
    assert open_files(file) == [], caught  # whose frames hold what read it


def test_a_damaged_file_is_closed_when_another_is_begun(tmp_path: Path) -> None:
    first, second = (damaged(tmp_path / name, "gz cut", many(300)) for name in "ab")
    (tmp_path / "after").write_bytes(line(model_call_id="after"))
    with scan_jsonl([first, second, tmp_path / "after"], on_error="skip") as reader:
        for entry in reader:
            if entry.model_call_id == "after":
                break
        assert len(reader.errors) == 2
        assert open_files(first) == []


@pytest.mark.parametrize(
    ("ending", "data"),
    [(".gz", THREE), (".zst", THREE), (".gz", gzip.compress(THREE)[:10] + b"\xff" * 64)],
    ids=["gz text", "zst text", "gz data"],
)
def test_what_is_not_compressed(path: Path, ending: str, data: bytes) -> None:
    path = path.with_name(path.name + ending)
    path.write_bytes(data)
    with pytest.raises(RecordError, match="damaged") as info:
        read_jsonl(path)
    assert (info.value.line, info.value.offset) == (1, 0)


def test_zstd_is_read_without_its_extra_and_written_with_it(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = path.with_name(path.name + ".zst")
    path.write_bytes(zstd.compress(THREE))
    packed = zstd.compress(many(300))
    damaged = path.with_name("damaged.zst")
    damaged.write_bytes(packed[: len(packed) // 2])
    for name in ("compression.zstd", "backports.zstd"):
        monkeypatch.setitem(sys.modules, name, None)
    assert call_ids(read_jsonl(path)) == ["a", "b", "c"]
    needed = r"pip install 'tokenrecords\[zstd\]' \(import of .*zstd halted"
    with pytest.raises(ModuleNotFoundError, match=needed):
        write_jsonl(path, [])
    with pytest.raises(RecordError, match=f"the compressed data are damaged: zstd files need an extra: {needed}"):
        read_jsonl(damaged)


@pytest.mark.parametrize("ending", [".gz", ".zst"])
def test_several_members(path: Path, ending: str) -> None:
    path = path.with_name(path.name + ending)
    compress = gzip.compress if ending == ".gz" else zstd.compress
    path.write_bytes(b"".join(compress(part) for part in (THREE[:700], THREE[700:])))
    assert call_ids(read_jsonl(path)) == ["a", "b", "c"]


def test_an_empty_path_is_not_the_directory_one_stands_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_jsonl("a.tokens.jsonl", [make_entry()])
    for empty in ("", [""]):
        with pytest.raises(FileNotFoundError, match=r"^source is an empty path: a file or a directory is needed$"):
            read_jsonl(empty)


def test_a_flipped_bit_of_a_zst_file_is_never_another_record(tmp_path: Path) -> None:
    path = tmp_path / "a.tokens.jsonl.zst"
    entry = make_entry().as_arrays()
    write_jsonl(path, [entry])
    whole = path.read_bytes()
    for place in range(0, 8 * len(whole), 5):  # each bit of a byte in turn
        flipped = bytearray(whole)
        flipped[place // 8] ^= 1 << place % 8
        path.write_bytes(flipped)
        try:
            found = read_jsonl(path)
        except (ValueError, OSError):
            continue
        assert found in ([], [entry])


@pytest.mark.parametrize(("count", "rollouts"), [(1, "1 rollout"), (2, "2 rollouts"), (1_001, "1,001 rollouts")])
def test_a_directory_of_retired_rollouts_says_how_many(tmp_path: Path, count: int, rollouts: str) -> None:
    for number in range(count):
        (tmp_path / f"{number}.tokens.state.json").write_text('{"retired": true}')
    with pytest.raises(FileNotFoundError) as caught:
        read_jsonl(tmp_path)
    assert str(caught.value) == (
        f"{tmp_path} holds no *.tokens.jsonl: the records of {rollouts} were retired once rebuilt, and their tokens "
        "are in the rows of the run's rollouts.jsonl"
    )


def test_paths_and_records_are_not_mixed(path: Path) -> None:
    path.write_bytes(THREE)
    for mixed in ([path, make_entry()], [make_entry(), path]):
        assert given_paths(mixed) == ([], mixed)
    assert given_paths(iter([path, str(path)])) == ([path, str(path)], [])
