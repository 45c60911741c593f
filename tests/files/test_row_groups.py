"""Row groups: pyarrow reads what is written here, and what pyarrow wrote is read here, one way or the other."""

import threading

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.factories import bare, conversation, make_entry
from tokenrecords import RecordError
from tokenrecords.arrow import read_parquet, to_arrow, write_parquet
from tokenrecords.files import row_groups
from tokenrecords.files.footer import read_footer
from tokenrecords.files.row_groups import GroupReader
from tokenrecords.files.thrift import BINARY, I16, I64, STRUCT, Field, elements_of, written


@pytest.fixture
def path(tmp_path):
    return tmp_path / "x.parquet"


@pytest.fixture
def entries():
    draw = np.random.default_rng(0)
    return [
        make_entry(
            model_call_id=f"c{call}",
            prompt_token_ids=draw.integers(0, 2**31, draw.integers(0, 40), np.int32),
            generation_token_ids=[7] * (call % 3),
            generation_log_probs=-draw.random(call % 3),
            output_items=[{"text": "ä" * call}],
            response_id=None if call % 4 else f"r{call}",
        )
        for call in range(20)
    ]


@pytest.mark.parametrize("row_group", [1, 50, 1 << 20])
@pytest.mark.parametrize("ids", ["int32", "int64", "uint64"])
def test_pyarrow_reads_the_same_table(path, entries, ids, row_group):
    write_parquet(path, entries, ids=ids, row_group=row_group)
    pq.ParquetFile(path, page_checksum_verification=True).read()
    table = pq.read_table(path)
    table.validate(full=True)
    assert table.equals(to_arrow(entries, ids=ids), check_metadata=True)


def test_what_the_footer_says(path, entries):
    write_parquet(path, entries, row_group=100)
    data = path.read_bytes()
    metadata = pq.read_metadata(path)
    assert metadata.num_rows == len(entries)
    assert metadata.num_row_groups > 2
    groups = [metadata.row_group(index) for index in range(metadata.num_row_groups)]
    assert sum(group.num_rows for group in groups) == len(entries)
    at, row = 4, 0
    for group in groups:
        columns = [group.column(index) for index in range(group.num_columns)]
        lists = {c.path_in_schema.split(".")[0]: c for c in columns if "." in c.path_in_schema}
        for column in columns:  # one behind the other
            assert (column.dictionary_page_offset or column.data_page_offset) == at
            at += column.total_compressed_size
        rows = entries[row : row + group.num_rows]
        row += group.num_rows
        for name, column in lists.items():
            assert column.num_values == sum(len(getattr(entry, name)) or 1 for entry in rows)
        assert group.total_byte_size == sum(column.total_uncompressed_size for column in columns)
    assert data[at:].startswith(b"\x15")  # the footer
    described = elements_of(read_footer(pa.BufferReader(data)), 4, STRUCT)
    for index, (group, raw) in enumerate(zip(groups, described, strict=True)):
        columns = [group.column(place) for place in range(group.num_columns)]
        assert raw[5] == Field(I64, columns[0].data_page_offset)
        assert raw[6] == Field(I64, sum(column.total_compressed_size for column in columns))
        assert raw[7] == Field(I16, index)
        assert all(16 not in column[3].value for column in elements_of(raw, 1, STRUCT))  # no histograms of levels
    assert metadata.row_group(0).column(1).statistics.min == entries[0].rollout_id


def test_sizes_of_lists_are_those_of_pyarrow(path, tmp_path):
    entries = [bare(f"c{n}", [1, 2, 3] * n, [4] * n) for n in range(1, 5)]
    write_parquet(path, entries)
    pq.write_table(to_arrow(entries), tmp_path / "y.parquet", compression="zstd", use_dictionary=False)
    ours, theirs = (pq.read_metadata(p).row_group(0) for p in (path, tmp_path / "y.parquet"))
    for index in (4, 5, 6):
        assert ours.column(index).num_values == theirs.column(index).num_values
        assert abs(ours.column(index).total_uncompressed_size - theirs.column(index).total_uncompressed_size) < 100


def groups_of(path):
    parquet = pq.ParquetFile(path)
    with pa.OSFile(str(path)) as file:
        reader = GroupReader(file)
        return [(reader.read(group), parquet.read_row_group(group)) for group in range(reader.count)]


def test_the_lists_are_not_read_by_pyarrow(path, entries, monkeypatch):
    write_parquet(path, entries)
    asked = []
    read = pq.ParquetFile.read_row_group
    monkeypatch.setattr(pq.ParquetFile, "read_row_group", lambda *a, **k: asked.append(k["columns"]) or read(*a, **k))
    assert read_parquet(path) == entries
    (columns,) = asked
    assert not {"prompt_token_ids", "generation_token_ids", "generation_log_probs"} & set(columns)
    assert "rollout_id" in columns


WRITERS = {
    "as here": {"compression": "zstd", "use_dictionary": False},
    "defaults": {},
    "gzip": {"compression": "gzip", "use_dictionary": False},
    "dictionaries": {"compression": "zstd", "use_dictionary": True},
    "pages of version 2": {"compression": "zstd", "use_dictionary": False, "data_page_version": "2.0"},
    "deltas": {
        "compression": "zstd",
        "use_dictionary": False,
        "column_encoding": {"prompt_token_ids.list.element": "DELTA_BINARY_PACKED"},
    },
    "statistics and checksums": {"compression": "zstd", "use_dictionary": False, "write_page_checksum": True},
    "small pages": {"compression": "zstd", "use_dictionary": False, "data_page_size": 16, "write_batch_size": 1},
    "page index": {"compression": "zstd", "use_dictionary": False, "write_page_index": True},
    "plain": {"compression": "none", "use_dictionary": False},
}


@pytest.mark.parametrize("options", WRITERS.values(), ids=WRITERS)
@pytest.mark.parametrize("lengths", [[0, 1, 2, 0, 0, 3], [100, 0, 200], [9]], ids=str)
def test_files_of_pyarrow(path, options, lengths):
    entries = [bare(f"c{n}", list(range(length)), [5] * length) for n, length in enumerate(lengths)]
    pq.write_table(to_arrow(entries), path, row_group_size=2, **options)
    for ours, theirs in groups_of(path):
        assert ours.equals(theirs, check_metadata=True)
    assert read_parquet(path) == entries


def test_lists_of_other_kinds_are_read_by_pyarrow(path):
    table = pa.table(
        {
            "missing numbers": pa.array([[1, None], [2]]),
            "missing lists": pa.array([[1], None]),
            "large": pa.array([[1], []], pa.large_list(pa.field("element", pa.int32(), nullable=False))),
            "texts": pa.array([["a"], []]),
            "dates": pa.array([[1], []], pa.list_(pa.field("element", pa.date32(), nullable=False))),
            "narrow": pa.array([[1], []], pa.list_(pa.field("element", pa.int8(), nullable=False))),
            "nested": pa.array([[[1]], []]),
            "floats": pa.array([[0.5], []], pa.list_(pa.field("element", pa.float32(), nullable=False))),
            "flags": pa.array([[True], []], pa.list_(pa.field("element", pa.bool_(), nullable=False))),
            "a.list.element": pa.array([1, 2]),
        }
    )
    schema = pa.schema([field.with_nullable(field.name == "missing lists") for field in table.schema])
    pq.write_table(table.cast(schema), path, compression="zstd", use_dictionary=False)
    ((ours, theirs),) = groups_of(path)
    assert ours.equals(theirs, check_metadata=True)
    assert ours["floats"].to_pylist() == [[0.5], []]


def test_lists_that_are_all_missing_are_not_empty_ones(path):
    of_ids = pa.list_(pa.field("element", pa.int32(), nullable=False))
    table = pa.table({"none": pa.array([None] * 100, of_ids)})
    pq.write_table(table, path, compression="zstd", use_dictionary=False)
    ((ours, theirs),) = groups_of(path)
    assert ours.equals(theirs)
    assert ours["none"].to_pylist() == [None] * 100


def test_two_columns_of_one_name(path):
    ids = pa.array([[1], []], pa.list_(pa.field("element", pa.int32(), nullable=False)))
    table = pa.Table.from_arrays([ids, ids], schema=pa.schema([pa.field("x", ids.type, nullable=False)] * 2))
    pq.write_table(table, path, compression="zstd", use_dictionary=False)
    ((ours, theirs),) = groups_of(path)
    assert ours.equals(theirs)


def test_no_flipped_bit_changes_a_record(path):
    entries = conversation()
    write_parquet(path, entries)
    sound = path.read_bytes()
    footer = len(sound) - 8 - int.from_bytes(sound[-8:-4], "little")
    found = dict.fromkeys(("pages", "footer"), 0)
    for part, places in (("pages", range(4, footer, 5)), ("footer", range(footer, len(sound), 11))):
        for place in places:
            flipped = bytearray(sound)
            flipped[place] ^= 1 << place % 8
            path.write_bytes(flipped)
            try:
                read = read_parquet(path)
            except RecordError:
                found[part] += 1
            else:
                assert read == entries, place
        assert found[part] > len(places) * (0.5 if part == "pages" else 0.95)  # pages have statistics that nobody reads


def test_a_damaged_footer_is_said_to_be_one(path):
    write_parquet(path, conversation())
    path.write_bytes(path.read_bytes().replace(b"model_call_id", b"model_call_ie"))
    with pytest.raises(RecordError, match=r"the checksum of the footer is another one: the file is damaged"):
        read_parquet(path)


def test_a_file_without_a_checksum_of_its_footer_is_read(path):
    write_parquet(path, entries := conversation())
    data = path.read_bytes()
    footer = read_footer(pa.BufferReader(data))
    at = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    plain = written({id_: field for id_, field in footer.items() if id_ != 32_767})
    path.write_bytes(data[:at] + plain + len(plain).to_bytes(4, "little") + b"PAR1")
    assert len(plain) < len(data) - at - 8
    assert read_parquet(path) == entries


def test_what_others_keep_in_the_place_for_extensions_is_passed_over(path):
    write_parquet(path, entries := conversation())
    data = path.read_bytes()
    at = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    for extension in (Field(BINARY, b"theirs"), Field(BINARY, b"tokenrecords crc33 1234"), Field(I64, 5)):
        footer = written({**read_footer(pa.BufferReader(data)), 32_767: extension})
        path.write_bytes(data[:at] + footer + len(footer).to_bytes(4, "little") + b"PAR1")
        assert read_parquet(path) == entries


def test_where_no_thread_can_be_started(path, entries, monkeypatch):
    def refused(_):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refused)
    write_parquet(path, entries)
    monkeypatch.undo()
    assert read_parquet(path) == entries


def test_what_a_thread_raises_is_raised(path, entries, monkeypatch):
    def broken(*_):
        raise MemoryError("no room")

    monkeypatch.setattr(row_groups, "write_page", broken)
    with pytest.raises(MemoryError, match="no room"):
        write_parquet(path, entries)
    assert not path.exists()
