"""Parquet files of records: what is written is read back, whole or not at all, and small."""

import gzip
import io
import pickle
import re
import signal
import stat
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet as pq
import pytest
from support.factories import bare, conversation, make_entry
from tokenrecords import RecordError
from tokenrecords.arrow import RECORD_SCHEMA, from_arrow, read_parquet, scan_parquet, to_arrow, write_parquet
from tokenrecords.entry.model import origin


@pytest.fixture
def path(tmp_path):
    return tmp_path / "x.parquet"


def names(path):
    """The files beside it, and its own."""
    return [file.name for file in path.parent.iterdir()]


def test_what_is_written_is_read_back(path):
    entries = [
        *conversation(deltas=True),
        make_entry(rollout_id="s", generation_log_probs=[float("nan")], output_items=[{"a": [float("inf")]}]),
        make_entry(rollout_id="s", reward=1.5, routed_experts=[[[1]]], generation_loss_mask=[0]),
        bare("empty", [], [], rollout_id="t"),
    ]
    write_parquet(path, entries)
    assert read_parquet(path) == entries
    assert read_parquet(str(path)) == entries
    assert pq.read_schema(path).equals(RECORD_SCHEMA, check_metadata=True)
    assert names(path) == ["x.parquet"]


def test_a_file_of_no_records(path):
    write_parquet(path, [])
    assert read_parquet(path) == []
    assert pq.read_schema(path).equals(RECORD_SCHEMA)


@pytest.mark.parametrize("ids", ["int64", "uint64"])
def test_wide_ids(path, ids):
    entries = [make_entry(prompt_token_ids=[2**62])]
    write_parquet(path, entries, ids=ids)
    assert read_parquet(path) == entries
    assert read_parquet(path)[0].prompt_token_ids.dtype == ids


def test_turns_of_a_rollout_stand_together(path):
    entries = [make_entry(rollout_id=rollout, model_call_id=str(at)) for at, rollout in enumerate("bacbab")]
    write_parquet(path, iter(entries))
    assert [entry.rollout_id + entry.model_call_id for entry in read_parquet(path)] == [
        "b0",
        "b3",
        "b5",
        "a1",
        "a4",
        "c2",
    ]


def test_row_groups_hold_no_more_ids_than_was_said(path):
    entries = [bare(str(i), range(size)) for i, size in enumerate((4, 6, 1, 30, 2))]
    write_parquet(path, entries, row_group=10)
    file = pq.ParquetFile(path)
    assert [file.metadata.row_group(i).num_rows for i in range(file.num_row_groups)] == [2, 1, 1, 1]
    assert read_parquet(path) == entries
    assert [origin(entry) for entry in read_parquet(path)] == [(str(path), row) for row in range(1, 6)]


def test_a_row_group_is_taken_at_a_time(path, monkeypatch):
    write_parquet(path, [bare(str(i), range(10)) for i in range(3)], row_group=10)
    groups = []
    read = pq.ParquetFile.read_row_group
    monkeypatch.setattr(
        pq.ParquetFile, "read_row_group", lambda *args, **of: groups.append(args[1]) or read(*args, **of)
    )
    entries = scan_parquet(path)
    assert groups == []
    next(entries)
    assert groups == [0]
    next(entries)
    assert groups == [0, 1]


def test_records_are_taken_as_they_are_written(path):
    taken = []

    def entries():
        for i in range(4):
            taken.append(i)
            yield bare(str(i), range(10))
            if i == 3:
                assert len(names(path)) == 1
                assert not path.exists()

    write_parquet(path, entries(), row_group=10)
    assert len(read_parquet(path)) == len(taken) == 4


def test_how_columns_are_stored(path):
    write_parquet(path, conversation())
    group = pq.ParquetFile(path).metadata.row_group(0)
    columns = {group.column(i).path_in_schema: group.column(i) for i in range(group.num_columns)}
    assert {column.compression for column in columns.values()} == {"ZSTD"}
    for name in ("prompt_token_ids", "generation_token_ids"):
        column = columns[f"{name}.list.element"]
        assert (column.physical_type, set(column.encodings)) == ("INT32", {"PLAIN", "RLE"})
        assert column.statistics is None
    assert set(columns["generation_log_probs.list.element"].encodings) == {"BYTE_STREAM_SPLIT", "RLE"}
    assert "RLE_DICTIONARY" in columns["model"].encodings
    assert columns["rollout_id"].statistics.min == "r"


def test_repeated_prompts_cost_little(path):
    random = np.random.default_rng(0)
    entries, sequence = [], np.zeros(0, np.int32)
    for turn in range(10):
        sequence = np.concatenate([sequence, random.zipf(1.2, 2_000) % 151_936]).astype(np.int32)
        entries.append(bare(str(turn), sequence))
    write_parquet(path, entries)
    defaults = io.BytesIO()
    pq.write_table(to_arrow(entries), defaults)
    assert path.stat().st_size <= 0.6 * len(defaults.getvalue())


def test_a_failure_leaves_the_old_file(path):
    write_parquet(path, [make_entry()])
    before = path.read_bytes()

    def entries():
        yield bare("a", range(10))
        yield bare("b", [2**40])

    with pytest.raises(ValueError, match=r"prompt_token_ids\[0\] is 1099511627776: it does not fit int32$"):
        write_parquet(path, entries(), row_group=5)
    assert path.read_bytes() == before
    assert names(path) == ["x.parquet"]


def test_an_interrupt_leaves_the_old_file(path):
    write_parquet(path, [make_entry()])
    before = path.read_bytes()

    def entries():
        yield make_entry()
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_parquet(path, entries())
    assert path.read_bytes() == before
    assert names(path) == ["x.parquet"]


KILLED = """
import os, signal, sys
from tokenrecords.arrow import read_parquet, write_parquet

def entries():
    yield from read_parquet(sys.argv[1]) * 3
    os.kill(os.getpid(), signal.SIGKILL)

write_parquet(sys.argv[1], entries(), row_group=3)
"""


def test_a_kill_leaves_the_old_file(path):
    write_parquet(path, [make_entry()])
    killed = subprocess.run([sys.executable, "-c", KILLED, path], check=False)
    assert killed.returncode == -signal.SIGKILL
    assert read_parquet(path) == [make_entry()]


def test_mode_and_links_stay(tmp_path, path):
    write_parquet(path, [])
    path.chmod(0o640)
    link = tmp_path / "link.parquet"
    link.symlink_to(path)
    write_parquet(link, [make_entry()])
    assert link.is_symlink()
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert len(read_parquet(path)) == 1


@pytest.mark.parametrize("ending", [".gz", ".zst"])
def test_a_compressed_name_is_refused(tmp_path, ending):
    path = tmp_path / f"x.parquet{ending}"
    message = f"path is {str(path)!r}: a name without .gz and .zst is needed, Parquet compresses itself"
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        write_parquet(path, [])
    assert not path.exists()


def test_other_things_are_refused(path):
    with pytest.raises(ValueError, match=r"^row_group is 0: at least 1 is needed$"):
        write_parquet(path, [], row_group=0)
    with pytest.raises(ValueError, match=r"^ids is 'int8': one of int32, int64, uint64 is needed$"):
        write_parquet(path, [], ids="int8")
    with pytest.raises(TypeError, match=r"^entries is TokenEntry: several entries are needed; put it in a list$"):
        write_parquet(path, make_entry())
    with pytest.raises(TypeError, match=r"^on_error is 'ignore': 'raise', 'skip' or a function is needed$"):
        scan_parquet(path, on_error="ignore")
    assert not path.exists()


def test_directories_and_several_paths(tmp_path):
    for name in "ba":
        write_parquet(tmp_path / f"{name}.parquet", [make_entry(rollout_id=name)])
    (tmp_path / "c.txt").write_text("no records")
    assert [entry.rollout_id for entry in scan_parquet(tmp_path)] == ["a", "b"]
    both = [tmp_path / "b.parquet", tmp_path]
    assert [entry.rollout_id for entry in read_parquet(both)] == ["b", "a", "b"]


def test_what_is_not_there_is_said_before_the_first_record(tmp_path, path):
    with pytest.raises(FileNotFoundError, match=r"x\.parquet"):
        scan_parquet(path)
    with pytest.raises(FileNotFoundError, match=rf"^{re.escape(str(tmp_path))} holds no \*\.parquet$"):
        scan_parquet(tmp_path)


def spoiled(path):
    """A file of four rows in two groups, of which the second holds no record."""
    table = to_arrow([make_entry(model_call_id=str(i)) for i in range(4)])
    at = table.schema.get_field_index("output_items")
    pq.write_table(table.set_column(at, "output_items", pa.array(["[]", "[", "[]", "[]"])), path, row_group_size=2)


def test_a_row_that_holds_no_record_costs_itself_alone(path):
    spoiled(path)
    with pytest.raises(RecordError) as caught:
        read_parquet(path)
    assert str(caught.value).startswith(f"{path}:2: output_items is not JSON: EOF while parsing")
    assert (caught.value.path, caught.value.line) == (str(path), 2)
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)
    found = []
    entries = read_parquet(path, on_error=found.append)
    assert [entry.model_call_id for entry in entries] == ["0", "2", "3"]
    assert [origin(entry)[1] for entry in entries] == [1, 3, 4]
    assert [error.line for error in found] == [2]
    warning = f"1 row held no record and was left out; the first: {found[0]}"
    with pytest.warns(UserWarning, match=f"^{re.escape(warning)}$"):
        assert read_parquet(path, on_error="skip") == entries


@pytest.mark.parametrize("data", [b"", b"no Parquet", gzip.compress(b"x" * 100)], ids=["empty", "text", "gzip"])
def test_a_damaged_file_costs_itself_alone(tmp_path, path, data):
    path.write_bytes(data)
    write_parquet(tmp_path / "y.parquet", [make_entry()])
    found = []
    assert len(read_parquet(tmp_path, on_error=found.append)) == 1
    assert [(error.path, error.line) for error in found] == [(str(path), 1)]
    assert "Parquet" in found[0].reason or "parquet" in found[0].reason
    with pytest.raises(RecordError):
        read_parquet(tmp_path)


def test_damaged_pages_cost_what_follows_alone(path):
    write_parquet(path, [bare(str(i), range(1_000)) for i in range(2)], row_group=1_000)
    data = bytearray(path.read_bytes())
    start = pq.ParquetFile(path).metadata.row_group(1).column(1).data_page_offset
    data[start : start + 8] = b"\xff" * 8
    path.write_bytes(data)
    found = []
    assert [entry.model_call_id for entry in read_parquet(path, on_error=found.append)] == ["0"]
    assert [error.line for error in found] == [2]


def test_another_table_is_told_by_its_file(path):
    pq.write_table(pa.table({"a": [1]}), path)
    message = f"{path}:1: the table has no column rollout_id: the columns of RECORD_SCHEMA are needed"
    with pytest.raises(RecordError, match=f"^{re.escape(message)}$"):
        read_parquet(path)


def test_a_file_that_is_no_longer_there(path):
    write_parquet(path, [make_entry()])
    entries = scan_parquet(path, on_error="skip")
    path.unlink()
    with pytest.raises(FileNotFoundError):
        next(entries)


def test_a_dataset_of_a_directory(tmp_path):
    groups = [[make_entry(rollout_id="a", reward=1)], [make_entry(rollout_id="b"), *conversation()]]
    for at, entries in enumerate(groups):
        write_parquet(tmp_path / f"{at}.parquet", entries)
    dataset = pyarrow.dataset.dataset(tmp_path)
    assert dataset.schema.equals(RECORD_SCHEMA)
    assert from_arrow(dataset.to_table()) == groups[0] + groups[1]
    found = dataset.to_table(filter=pyarrow.dataset.field("rollout_id") == "a")
    assert from_arrow(found) == groups[0]


def test_long_texts_are_no_reason_for_another_row_group(tmp_path):
    write_parquet(tmp_path / "r.parquet", [make_entry(model="m" * 1_000)] * 5, row_group=100)
    assert pq.ParquetFile(tmp_path / "r.parquet").num_row_groups == 1
