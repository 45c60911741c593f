"""Row groups of Parquet files: lists of numbers are written and read here, everything else by pyarrow."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import IO, TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tokenrecords.files.arrow import RECORD_SCHEMA, holds_arrays, to_batch
from tokenrecords.files.list_pages import BYTE_STREAM_SPLIT, LEVEL, PAGE, PLAIN, RLE, read_lists, write_lists
from tokenrecords.files.thrift import I16, I32, I64, LIST, STRUCT, Field, read_struct, written
from tokenrecords.tokens.names import ARRAY_FIELDS, ID_FIELDS, LOG_PROBS

if TYPE_CHECKING:
    from collections.abc import Callable

    from tokenrecords.files.arrow import Row
    from tokenrecords.files.list_pages import Chunk
    from tokenrecords.files.thrift import Struct

# zstd finds a prompt again that an earlier turn had, where its ids are stored as they are.
_ENCODINGS: Final = {**dict.fromkeys(ID_FIELDS, PLAIN), LOG_PROBS: BYTE_STREAM_SPLIT}
_OPTIONS: Final = {
    "compression": "zstd",
    "compression_level": LEVEL,
    "data_page_size": PAGE,
    "use_dictionary": ["model", "parent_resolution", "parent_resolution_reason"],
    "write_statistics": [name for name in RECORD_SCHEMA.names if name not in ARRAY_FIELDS],
    "write_page_checksum": True,
}
_MAGIC: Final = b"PAR1"
_WIDTHS: Final = {"INT32": 4, "INT64": 8, "FLOAT": 4, "DOUBLE": 8}

# The fields of parquet.thrift that are changed here: of FileMetaData, RowGroup, ColumnChunk and ColumnMetaData.
_ROWS, _GROUPS = 3, 4
_COLUMNS, _TOTAL_SIZE, _GROUP_OFFSET, _TOTAL_COMPRESSED, _ORDINAL = 1, 2, 5, 6, 7
_META = 3
_TYPE, _USED_ENCODINGS, _PATH, _CODEC, _VALUES, _SIZE, _COMPRESSED, _DATA, _DICTIONARY = 1, 2, 3, 4, 5, 6, 7, 9, 11


class GroupWriter:
    """Writes a Parquet file, one row group after the other; the footer comes with `close`."""

    def __init__(self, stream: IO[bytes], schema: pa.Schema) -> None:
        self._stream = stream
        self._schema = schema
        self._at = 0
        self._rows = 0
        self._groups: list[Struct] = []
        self._footer: Struct = {}
        self._put(_MAGIC)

    def write(self, rows: list[Row]) -> None:
        """Write a row group of these rows, of which there is one at least."""
        empty = {name: np.empty(0) for name in _ENCODINGS}
        with ThreadPoolExecutor(len(_ENCODINGS)) as pool:
            made = {name: _started(pool, partial(self._lists, rows, name)) for name in _ENCODINGS}
            data = self._by_pyarrow([row._replace(values=row.values | empty) for row in rows])
            lists = {name: result() for name, result in made.items()}
        (group,) = self._footer[_GROUPS].value.value
        group[_GROUP_OFFSET] = Field(I64, self._at)
        metas = []
        for column in group[_COLUMNS].value.value:
            meta = column[_META].value
            name = meta[_PATH].value.value[0].decode()
            if name in _ENCODINGS:
                meta = _meta_of(lists[name], meta, self._at, _ENCODINGS[name])
                for part in lists[name].parts:
                    self._put(part)
            else:
                start = meta.get(_DICTIONARY, meta[_DATA]).value
                for offset in meta.keys() & {_DATA, _DICTIONARY}:
                    meta[offset] = Field(I64, meta[offset].value - start + self._at)
                self._put(data[start : start + meta[_COMPRESSED].value])
            column[_META] = Field(STRUCT, meta)
            metas.append(meta)
        group[_TOTAL_SIZE] = Field(I64, sum(meta[_SIZE].value for meta in metas))
        group[_TOTAL_COMPRESSED] = Field(I64, sum(meta[_COMPRESSED].value for meta in metas))
        group[_ORDINAL] = Field(I16, len(self._groups))
        self._groups.append(group)
        self._rows += len(rows)

    def close(self) -> None:
        """Write the footer."""
        if not self._groups:
            self._by_pyarrow([])
        groups = Field(LIST, Field(STRUCT, self._groups))
        tail = written({**self._footer, _ROWS: Field(I64, self._rows), _GROUPS: groups})
        self._put(tail + len(tail).to_bytes(4, "little") + _MAGIC)

    def _lists(self, rows: list[Row], name: str) -> Chunk:
        dtype = np.dtype(self._schema.field(name).type.value_type.to_pandas_dtype())
        return write_lists([row.values[name] for row in rows], dtype, _ENCODINGS[name])

    def _put(self, part: Any) -> None:
        self._stream.write(part)
        self._at += len(part)

    def _by_pyarrow(self, rows: list[Row]) -> memoryview:
        """A file of these rows, or of none; its footer is held."""
        out = pa.BufferOutputStream()
        with pq.ParquetWriter(out, self._schema, **_OPTIONS) as writer:
            if rows:
                writer.write_batch(to_batch(rows, self._schema), row_group_size=len(rows))
        data = memoryview(out.getvalue()).cast("B")
        self._footer, _ = read_struct(data, len(data) - 8 - int.from_bytes(data[-8:-4], "little"))
        return data


def _started(pool: ThreadPoolExecutor, work: Callable[[], Chunk]) -> Callable[[], Chunk]:
    """What gives the result of work that goes on in a thread, or does it where no thread can be started."""
    try:
        return pool.submit(work).result
    except RuntimeError:
        return work


def _meta_of(lists: Chunk, of_empty: Struct, at: int, encoding: int) -> Struct:
    """What the footer says of a column of lists that begins at a byte."""
    return {
        **{id_: of_empty[id_] for id_ in (_TYPE, _PATH, _CODEC)},
        _USED_ENCODINGS: Field(LIST, Field(I32, [RLE, encoding])),
        _VALUES: Field(I64, lists.levels),
        _SIZE: Field(I64, lists.size),
        _COMPRESSED: Field(I64, lists.compressed),
        _DATA: Field(I64, at),
    }


def read_group(parquet: pq.ParquetFile, file: pa.NativeFile, group: int) -> pa.Table:
    """A row group of a file: what `parquet.read_row_group` gives.

    Raises:
        ValueError: It is damaged; also OSError and pyarrow's own.
    """
    schema = parquet.schema_arrow
    try:
        lists = _lists_of(parquet, file, group)
    except (ValueError, IndexError, OSError, pa.ArrowException):
        lists = {}  # not as they are written here, or damaged: pyarrow reads them, or says what is wrong
    if not lists:
        return parquet.read_row_group(group)
    rest = parquet.read_row_group(group, columns=[name for name in schema.names if name not in lists])
    columns = [lists[name] if name in lists else rest.column(name) for name in schema.names]
    return pa.Table.from_arrays(columns, schema=schema)


def _lists_of(parquet: pq.ParquetFile, file: pa.NativeFile, group: int) -> dict[str, pa.ListArray]:
    """The columns of lists of numbers, by name, that are as they are written here.

    Raises:
        ValueError: A column is damaged, or of a kind that is not written here; also OSError and pyarrow's own.
    """
    described = parquet.metadata.row_group(group)
    lists: dict[str, pa.ListArray] = {}
    if len(set(parquet.schema_arrow.names)) < len(parquet.schema_arrow.names):
        return lists
    for index in range(described.num_columns):
        column, shape = described.column(index), parquet.schema.column(index)
        name, _, rest = column.path_in_schema.partition(".")
        if rest != "list.element" or (shape.max_repetition_level, shape.max_definition_level) != (1, 1):
            continue
        type_ = parquet.schema_arrow.field(name).type
        if not (
            pa.types.is_list(type_)
            and holds_arrays(type_)
            and _WIDTHS.get(column.physical_type, 0) * 8 == type_.value_type.bit_width
            and column.compression == "ZSTD"
            and not column.has_dictionary_page
        ):
            continue
        file.seek(column.data_page_offset)
        pages = file.read_buffer(column.total_compressed_size)
        lists[name] = read_lists(pages, described.num_rows, type_)
    return lists
