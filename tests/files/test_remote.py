"""Files of other file systems, which fsspec opens."""

from __future__ import annotations

import errno
import gc
import gzip
import re
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import fsspec
import pytest
from support.bucket import Bucket, Hub
from support.factories import call_ids, conversation, line, make_entry
from tokenrecords import (
    RecordError,
    append_jsonl,
    build_rollouts,
    read_jsonl,
    scan_jsonl,
    verify,
    write_jsonl,
)
from tokenrecords.arrow import read_parquet, scan_parquet, write_parquet
from tokenrecords.capture.served import CallReader, call_files
from tokenrecords.entry.model import origin
from tokenrecords.files.remote import RemotePath, as_path
from tokenrecords.files.side_files import read_side_files
from tokenrecords.files.sources import record_files
from tokenrecords.files.streams import OnlyReads

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tokenrecords import TokenEntry
    from tokenrecords.files.remote import AnyPath

KINDS = ["memory", "bucket", "hub", "file", "chain"]
NAMES = ["r.tokens.jsonl", "r.tokens.jsonl.gz", "r.tokens.jsonl.zst", "r.parquet"]


@pytest.fixture(autouse=True)
def empty() -> Iterator[None]:
    for store in (Bucket, Hub):
        fsspec.register_implementation(store.protocol, store, clobber=True)
    memory = fsspec.filesystem("memory")
    yield
    memory.store.clear()
    memory.pseudo_dirs[:] = [""]
    Bucket.clear()
    Hub.clear_instance_cache()


@pytest.fixture(params=KINDS)
def there(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A directory, as a URL."""
    return {
        "memory": "memory://dir",
        "bucket": "bucket://dir",
        "hub": "hub://dir",
        "file": f"file://{tmp_path}",
        "chain": f"simplecache::file://{tmp_path}",
    }[request.param]


def write(path: str, entries: Any) -> None:
    (write_parquet if path.endswith(".parquet") else write_jsonl)(path, entries)


def read(path: str) -> list[TokenEntry]:
    return (read_parquet if path.endswith(".parquet") else read_jsonl)(path)


def names(there: str) -> list[str]:
    system, path = fsspec.core.url_to_fs(there)
    system.invalidate_cache()
    return sorted(name.rpartition("/")[2] for name in system.ls(path, detail=False))


@pytest.mark.parametrize("name", NAMES)
def test_what_is_written_is_read(there: str, name: str) -> None:
    path = f"{there}/{name}"
    write(path, conversation())
    found = read(path)
    assert found == conversation()
    assert [origin(entry) for entry in found] == [(path.removeprefix("file://"), number) for number in (1, 2, 3)]
    assert names(there) == [name]
    assert verify(path).records == 3


@pytest.mark.parametrize("name", NAMES)
def test_the_bytes_are_those_of_a_local_file(tmp_path: Path, name: str) -> None:
    write(str(tmp_path / name), conversation())
    write(f"memory://{name}", conversation())
    assert fsspec.filesystem("memory").cat_file(f"/{name}") == (tmp_path / name).read_bytes()


def test_a_local_file_that_is_named_as_a_url(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "memory:" / "dir").mkdir(parents=True)
    (tmp_path / "memory:" / "dir" / "r.tokens.jsonl").write_bytes(line(model_call_id="local"))
    write_jsonl("memory://dir/r.tokens.jsonl", [make_entry(model_call_id="remote")])
    assert call_ids(read_jsonl("memory://dir/r.tokens.jsonl")) == ["remote"]


def test_lines_longer_than_a_buffer(there: str) -> None:
    entries = [make_entry(model_call_id=str(size), model="x" * size) for size in (3_000_000, 5, 1 << 20)]
    write_jsonl(f"{there}/r.tokens.jsonl", entries)
    assert read_jsonl(f"{there}/r.tokens.jsonl") == entries


def test_a_directory(there: str) -> None:
    for name in ("c.tokens.jsonl", "a.tokens.jsonl.gz", "b.tokens.jsonl.zst", "other.jsonl", "below/d.tokens.jsonl"):
        system, path = fsspec.core.url_to_fs(f"{there}/{name}")
        system.makedirs(system._parent(path), exist_ok=True)
        write_jsonl(f"{there}/{name}", [make_entry(model_call_id=name[0])])
    assert call_ids(read_jsonl(there)) == ["a", "b", "c"]
    assert call_ids(read_jsonl(f"{there}/")) == ["a", "b", "c"]
    assert call_ids(read_jsonl([f"{there}/c.tokens.jsonl", there])) == ["c", "a", "b", "c"]
    assert verify(there).records == 3
    write_parquet(f"{there}/e.parquet", [make_entry(model_call_id="e")])
    assert call_ids(scan_parquet(there)) == ["e"]


@pytest.mark.parametrize("there", ["memory", "bucket", "hub", "chain"], indirect=True)
def test_a_pattern(there: str) -> None:
    for name in ("a1.tokens.jsonl", "a2.tokens.jsonl.gz", "b.tokens.jsonl", "a3[x].tokens.jsonl"):
        write_jsonl(f"{there}/{name}", [make_entry(model_call_id=name[:2])])
    assert call_ids(read_jsonl(f"{there}/a[12]*")) == ["a1", "a2"]
    assert call_ids(read_jsonl(f"{there}/?.tokens.jsonl")) == ["b."]
    assert call_ids(read_jsonl(f"{there}/a3[x].tokens.jsonl")) == ["a3"]
    system, path = fsspec.core.url_to_fs(f"{there}/below")
    system.makedirs(path, exist_ok=True)
    write_jsonl(f"{there}/below/c.tokens.jsonl", [make_entry(model_call_id="c")])
    assert call_ids(read_jsonl(f"{there}/b*")) == ["b."]
    assert verify(f"{there}/a*").records == 3
    with pytest.raises(FileNotFoundError, match=r"no\*"):
        read_jsonl(f"{there}/no*")


def test_what_a_directory_said_of_its_files_is_not_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(5):
        write_jsonl(f"bucket://dir/{number}.tokens.jsonl", [make_entry(model_call_id=str(number))])
    asked: list[str] = []
    info = Bucket.info
    monkeypatch.setattr(Bucket, "info", lambda store, path: asked.append(path) or info(store, path))
    assert len(record_files("bucket://dir")) == 5
    assert set(asked) == {"dir"}


def test_a_directory_is_listed_once_for_the_side_files_of_all_its_files(
    there: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in "abc":
        write_jsonl(f"{there}/{name}.tokens.jsonl", [make_entry(model_call_id=name)])
        with fsspec.open(f"{there}/{name}.intents", "wb") as file:
            file.write(b"x\n")
    files = record_files(there)
    listed: list[str] = []
    iterdir = RemotePath.iterdir
    monkeypatch.setattr(RemotePath, "iterdir", lambda path: listed.append(str(path)) or iterdir(path))
    assert [list(side.begun) for side in read_side_files(files).values()] == [["x"]] * 3
    assert listed == ([] if there.startswith("file") else [there])


def test_a_file_that_is_renamed_and_the_directories_above_it() -> None:
    path = as_path("memory://dir/below/a")
    path.parent.mkdir(parents=True, exist_ok=False)
    with pytest.raises(FileExistsError):
        path.parent.mkdir(parents=True, exist_ok=False)
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        file.write(b"x")
    path.replace(path.with_name("b"))  # type: ignore[arg-type]
    assert names("memory://dir/below") == ["b"]
    assert path.with_name("b").read_bytes() == b"x"


def test_files_of_a_pattern_come_by_their_names(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in "cab":
        write_jsonl(f"bucket://dir/{name}.tokens.jsonl", [make_entry(model_call_id=name)])
    glob = Bucket.glob

    def in_another_order(store: Bucket, path: str, **options: Any) -> dict[str, Any]:
        return dict(reversed(glob(store, path, **options).items()))

    monkeypatch.setattr(Bucket, "glob", in_another_order)
    assert call_ids(read_jsonl("bucket://dir/*")) == ["a", "b", "c"]


def test_the_parts_of_a_name() -> None:
    path = as_path("memory://dir/a.tokens.jsonl")
    assert (path.name, path.stem, str(path.parent)) == ("a.tokens.jsonl", "a.tokens", "memory://dir")
    assert str(path.with_name("b")) == "memory://dir/b"


def test_a_pattern_of_directories() -> None:
    for name in "ab":
        write_jsonl(f"bucket://runs/{name}/r.tokens.jsonl", [make_entry(model_call_id=name)])
    assert call_ids(read_jsonl("bucket://runs/*/r.tokens.jsonl")) == ["a", "b"]
    assert [build.chains[0].call_ids for build in build_rollouts("bucket://runs/b/*")] == [["b"]]


def test_a_file_that_came_after_a_listing() -> None:
    for number in range(3):
        write_jsonl(f"bucket://dir/{number}.tokens.jsonl", [make_entry(model_call_id=str(number))])
        data = Bucket.objects.pop("dir/0.tokens.jsonl")
        read_jsonl("bucket://dir") if number else None
        Bucket.objects["dir/0.tokens.jsonl"] = data  # another process put it there
        assert len(read_jsonl("bucket://dir")) == number + 1
        assert len(read_jsonl("bucket://dir/*")) == number + 1


@pytest.mark.parametrize("pattern", ["", "/*", "/r.tokens.jsonl"])
def test_side_files_are_read(there: str, pattern: str) -> None:
    if there.startswith("file"):
        pattern = pattern.removesuffix("/*")  # a shell expands those
    write_jsonl(f"{there}/r.tokens.jsonl", conversation())
    assert [build.reasons for build in build_rollouts(there + pattern)] == [[]]
    with fsspec.open(f"{there}/r.tokens.intents", "wb") as file:
        file.write(b"c0\nc1\nc2\nnever\n")
    assert [build.reasons for build in build_rollouts(there + pattern.replace("*", "*.jsonl"))] == [["incomplete"]]
    assert "lost_call" in verify(there + pattern.replace("*", "*.jsonl")).counts
    with fsspec.open(f"{there}/gone.tokens.intents", "wb") as file:
        file.write(b"lost\n")
    with pytest.warns(UserWarning, match="'gone'"):
        list(build_rollouts(there))


def test_side_files_of_a_directory_without_records(there: str) -> None:
    with fsspec.open(f"{there}/gone.tokens.intents", "wb") as file:
        file.write(b"lost\n")
    assert verify(there).counts == {"lost_call": 1}
    with pytest.raises(FileNotFoundError, match=r"holds no \*\.tokens\.jsonl"):
        read_jsonl(there)


def failing() -> Iterator[TokenEntry]:
    yield from conversation()
    raise RuntimeError("in the middle")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("is_there", [True, False])
def test_a_write_that_fails_changes_nothing(there: str, name: str, is_there: bool) -> None:
    path, old = f"{there}/{name}", [make_entry(model_call_id="old")]
    write(f"{there}/beside.tokens.jsonl", old)
    if is_there:
        write(path, old)
    with pytest.raises(RuntimeError, match="in the middle"):
        write(path, failing())
    gc.collect()
    assert names(there) == ["beside.tokens.jsonl"] + [name] * is_there
    assert not is_there or read(path) == old
    assert not Bucket.open_uploads or there.startswith("hub")  # it has none: what was sent is here still
    write(f"{there}/again.{name}", conversation())  # simplecache keeps what it has read
    assert read(f"{there}/again.{name}") == conversation()


@pytest.mark.parametrize("store", ["bucket", "hub"])
@pytest.mark.parametrize("what", ["part", "commit"])
@pytest.mark.parametrize("error", [OSError("the store is gone"), KeyboardInterrupt("Ctrl-C")])
@pytest.mark.parametrize("name", NAMES)
def test_an_upload_that_fails_is_discarded(store: str, what: str, error: BaseException, name: str) -> None:
    path = f"{store}://dir/{name}"
    write(path, old := [make_entry(model_call_id="old")])
    Bucket.fails[what] = error
    with pytest.raises(type(error), match=str(error)):
        write(path, conversation())
    gc.collect()
    assert read(path) == old
    assert not Bucket.open_uploads or store == "hub"


def test_a_write_within_a_write_is_on_its_own() -> None:
    def entries() -> Iterator[TokenEntry]:
        yield make_entry()
        write_jsonl("memory://inner", [make_entry(model_call_id="inner")])
        assert call_ids(read_jsonl("memory://inner")) == ["inner"]
        raise RuntimeError("outer")

    with pytest.raises(RuntimeError, match="outer"):
        write_jsonl("memory://outer", entries())
    assert call_ids(read_jsonl("memory://inner")) == ["inner"]


def test_a_bad_entry_writes_nothing(there: str) -> None:
    bad = make_entry()
    bad.generation_token_ids = [3, 4]
    with pytest.raises(ValueError, match="generation_log_probs"):
        write_jsonl(f"{there}/r.tokens.jsonl", [make_entry(), bad])
    with pytest.raises(FileNotFoundError):
        read_jsonl(f"{there}/r.tokens.jsonl")


@pytest.mark.parametrize("there", ["memory", "bucket", "hub", "chain"], indirect=True)
def test_nothing_is_appended(there: str) -> None:
    path = f"{there}/r.tokens.jsonl"
    write_jsonl(path, old := [make_entry()])
    message = f"{path} is on another file system: records can't be appended to it, only written whole"
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        append_jsonl(path, [make_entry()])
    assert read_jsonl(path) == old


def test_a_local_url_is_a_local_path(tmp_path: Path) -> None:
    path = tmp_path / "r.tokens.jsonl"
    append_jsonl(f"file://{path}", [make_entry(model_call_id="a")])
    append_jsonl(f"local://{path}", [make_entry(model_call_id="b")])
    append_jsonl(path, [make_entry(model_call_id="c")])
    assert call_ids(read_jsonl(path)) == ["a", "b", "c"]
    assert path.read_bytes() == b"".join(entry.to_json() + b"\n" for entry in read_jsonl(f"file://{path}"))


@pytest.mark.parametrize("reader", [read_jsonl, read_parquet, verify, build_rollouts, scan_jsonl])
def test_what_is_missing_is_missed_at_the_call(there: str, reader: Any) -> None:
    with pytest.raises(FileNotFoundError) as caught:
        reader(f"{there}/missing")
    assert str(caught.value.filename) == f"{there}/missing".removeprefix("file://")


@pytest.fixture
def three() -> list[AnyPath]:
    for name in "abc":
        write_jsonl(f"bucket://dir/{name}.tokens.jsonl", [make_entry(model_call_id=name)])
    files, _ = call_files(["bucket://dir"])
    return files


def test_a_file_that_goes_meanwhile(three: list[AnyPath]) -> None:
    with scan_jsonl(three) as reader:
        assert next(reader).model_call_id == "a"
        del Bucket.objects["dir/b.tokens.jsonl"]
        with pytest.raises(FileNotFoundError) as caught:
            next(reader)
    assert caught.value.filename == "bucket://dir/b.tokens.jsonl"


def test_rollouts_that_are_retired_meanwhile_are_passed_over(three: list[AnyPath]) -> None:
    del Bucket.objects["dir/a.tokens.jsonl"]
    named = [RemotePath(str(file)) for file in three]  # which ask again whether they are there
    assert call_ids(CallReader(named)) == ["b", "c"]
    reader = iter(CallReader(named[1:]))
    assert next(reader).model_call_id == "b"
    del Bucket.objects["dir/c.tokens.jsonl"]
    assert call_ids(reader) == []


def test_an_empty_file_holds_no_record(there: str) -> None:
    write_jsonl(f"{there}/r.tokens.jsonl", [])
    assert read_jsonl(f"{there}/r.tokens.jsonl") == []


def test_a_file_is_read_in_large_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    write_jsonl("memory://r.tokens.jsonl", [make_entry(model="x" * 100)] * 5_000)
    sizes: list[int] = []
    readinto = OnlyReads.readinto

    def watched(reads: OnlyReads, buffer: Any) -> int:
        sizes.append(len(buffer))
        return readinto(reads, buffer)

    monkeypatch.setattr(OnlyReads, "readinto", watched)
    assert len(read_jsonl("memory://r.tokens.jsonl")) == 5_000
    assert min(sizes) >= 1 << 19


def test_bad_lines_and_damage() -> None:
    memory = fsspec.filesystem("memory")
    memory.pipe_file("/a", line(model_call_id="a") + b"{}\n" + line(model_call_id="b"))
    memory.pipe_file("/c.gz", gzip.compress(line(model_call_id="c") * 1000)[:-9])
    memory.pipe_file("/d.parquet", b"PAR1 is not enough")
    memory.pipe_file("/empty.gz", b"")
    errors: list[RecordError] = []
    scanned = scan_jsonl(["memory://a", "memory://c.gz", "memory://empty.gz"], on_error=errors.append)
    assert set(call_ids(scanned)) == {"a", "b", "c"}
    assert list(scan_parquet("memory://d.parquet", on_error=errors.append)) == []
    assert [error.path for error in errors] == [
        "memory://a",
        "memory://c.gz",
        "memory://empty.gz",
        "memory://d.parquet",
    ]
    assert errors[0].line == 2
    assert "damaged" in errors[1].reason
    counts = verify(["memory://a", "memory://c.gz", "memory://d.parquet"]).counts
    assert counts["unreadable_line"] == 3


@pytest.mark.parametrize(
    "error", [TimeoutError("the store does not answer"), OSError(errno.EIO, "the store does not answer")]
)
def test_a_network_error_is_not_a_bad_row(monkeypatch: pytest.MonkeyPatch, error: OSError) -> None:
    write_parquet("bucket://dir/r.parquet", conversation())

    def fetch(*_: Any) -> bytes:
        raise error

    monkeypatch.setattr("support.bucket._Object._fetch_range", fetch)
    with pytest.raises(type(error), match="does not answer"):
        read_parquet("bucket://dir/r.parquet", on_error="skip")


def test_open_files_of_fsspec(there: str) -> None:
    write_jsonl(f"{there}/r.tokens.jsonl", conversation())
    with fsspec.open(f"{there}/r.tokens.jsonl", "rb") as file:
        assert read_jsonl(file) == conversation()


@pytest.mark.parametrize("url", ["s3://bucket/r.tokens.jsonl", "hf://datasets/a/b", "simplecache::s3://bucket/x"])
def test_without_the_extra(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, url: str) -> None:
    for name in [*filter(lambda name: name.partition(".")[0] == "fsspec", sys.modules), "fsspec"]:
        monkeypatch.setitem(sys.modules, name, None)
    scheme = url.partition("://")[0]
    message = rf"^{scheme}:// paths need an extra: pip install 'tokenrecords\[fsspec\]'"
    for call in (read_jsonl, verify, build_rollouts, read_parquet):
        with pytest.raises(ModuleNotFoundError, match=message):
            call(url)
    for writer in (write_jsonl, append_jsonl, write_parquet):
        with pytest.raises(ModuleNotFoundError, match=message):
            writer(url, [make_entry()])
    write_jsonl(f"file://{tmp_path}/x", [make_entry()])
    assert read_jsonl(f"file://{tmp_path}/x") == [make_entry()]


def test_local_paths_do_not_load_fsspec(tmp_path: Path) -> None:
    program = f"""
import sys
from tokenrecords import append_jsonl, build_rollouts, read_jsonl, verify, write_jsonl
write_jsonl({str(tmp_path / "r.tokens.jsonl")!r}, [])
append_jsonl({str(tmp_path / "r.tokens.jsonl")!r}, [])
read_jsonl({str(tmp_path)!r}), verify({str(tmp_path)!r}), list(build_rollouts({str(tmp_path)!r}))
sys.exit("fsspec" in sys.modules)
"""
    subprocess.run([sys.executable, "-c", program], check=True)


def test_a_slash_at_the_end_is_no_part_of_a_name() -> None:
    path = as_path("memory://folder/")
    assert (str(path), path.name, str(path / "a")) == ("memory://folder", "folder", "memory://folder/a")
    root = as_path("memory://")
    assert (str(root), str(root / "a")) == ("memory://", "memory://a")


def test_a_file_whose_size_nobody_knows_has_none() -> None:
    fsspec.filesystem("memory").pipe_file("/a", b"12345")
    assert RemotePath("memory://a").stat().st_size == 5
    assert RemotePath("memory://a", {"type": "file", "size": None}).stat().st_size == 0


def test_a_file_is_deleted_if_it_is_there() -> None:
    fsspec.filesystem("memory").pipe_file("/a", b"")
    for _ in range(2):
        as_path("memory://a").unlink(missing_ok=True)
        assert not as_path("memory://a").exists()
    with pytest.raises(FileNotFoundError):
        as_path("memory://a").unlink(missing_ok=False)


def test_a_module_that_fsspec_lacks_is_not_the_extra(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "fsspec"]:
        monkeypatch.delitem(sys.modules, name)
    (tmp_path / "fsspec.py").write_text("import what_fsspec_needs\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ModuleNotFoundError, match=r"^No module named 'what_fsspec_needs'$"):
        read_jsonl("s3://bucket/r.tokens.jsonl")
