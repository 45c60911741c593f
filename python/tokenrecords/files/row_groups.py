"""Row groups of Parquet files: lists of numbers are written and read here, everything else by pyarrow."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import IO, TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tokenrecords.files.arrow import RECORD_SCHEMA, holds_arrays, to_batch
from tokenrecords.files.footer import MAGIC, DamagedFooterError, read_footer, sealed
from tokenrecords.files.list_pages import BYTE_STREAM_SPLIT, LEVEL, PAGE, PLAIN, RLE, in_pages, read_lists, write_page
from tokenrecords.files.thrift import (
    BINARY,
    I16,
    I32,
    I64,
    LIST,
    STRUCT,
    Field,
    elements_of,
    value_of,
)
from tokenrecords.tokens.names import ARRAY_FIELDS, ID_FIELDS, LOG_PROBS

if TYPE_CHECKING:
    from collections.abc import Callable

    from tokenrecords.files.arrow import Row
    from tokenrecords.files.list_pages import Page
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
_ZSTD: Final = 6
_WIDTHS: Final = {1: 32, 2: 64, 4: 32, 5: 64}  # bits of the types INT32, INT64, FLOAT and DOUBLE

# The fields of parquet.thrift that are read or changed here: of FileMetaData, RowGroup, ColumnChunk and ColumnMetaData.
_ROWS, _GROUPS = 3, 4
_COLUMNS, _TOTAL_SIZE, _GROUP_ROWS, _GROUP_OFFSET, _TOTAL_COMPRESSED, _ORDINAL = 1, 2, 3, 5, 6, 7
_META = 3
_TYPE, _USED_ENCODINGS, _PATH, _CODEC, _VALUES, _SIZE, _COMPRESSED, _DATA, _DICTIONARY = 1, 2, 3, 4, 5, 6, 7, 9, 11
_HISTOGRAMS: Final = 16  # of levels: pyarrow 26 ends the process where they do not fit the schema of a damaged footer


class GroupWriter:
    """Writes a Parquet file, one row group after the other; the footer comes with `close`."""

    def __init__(self, stream: IO[bytes], schema: pa.Schema) -> None:
        self._stream = stream
        self._schema = schema
        self._at = 0
        self._rows = 0
        self._groups: list[Struct] = []
        self._footer: Struct = {}
        self._put(MAGIC)

    def write(self, rows: list[Row]) -> None:
        """Write a row group of these rows, of which there is one at least."""
        empty = {name: np.empty(0) for name in _ENCODINGS}
        with ThreadPoolExecutor() as pool:
            started = {name: self._started(pool, rows, name) for name in _ENCODINGS}
            data = self._by_pyarrow([row._replace(values=row.values | empty) for row in rows])
            lists = {name: [result() for result in results] for name, results in started.items()}
        (group,) = self._footer[_GROUPS].value.value
        group[_GROUP_OFFSET] = Field(I64, self._at)
        metas = []
        for column in group[_COLUMNS].value.value:
            meta = column[_META].value
            name = meta[_PATH].value.value[0].decode()
            if name in _ENCODINGS:
                meta = _meta_of(lists[name], meta, self._at, _ENCODINGS[name])
                for page in lists[name]:
                    self._put(page.header)
                    self._put(page.packed)
            else:
                meta.pop(_HISTOGRAMS, None)
                start = meta.get(_DICTIONARY, meta[_DATA]).value
                for offset in meta.keys() & {_DATA, _DICTIONARY}:
                    meta[offset] = Field(I64, meta[offset].value - start + self._at)
                self._put(data.slice(start, meta[_COMPRESSED].value))
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
        self._put(sealed({**self._footer, _ROWS: Field(I64, self._rows), _GROUPS: groups}))

    def _started(self, pool: ThreadPoolExecutor, rows: list[Row], name: str) -> list[Callable[[], Page]]:
        """What gives each page of a column of lists."""
        dtype = np.dtype(self._schema.field(name).type.value_type.to_pandas_dtype())
        pages = in_pages((row.values[name] for row in rows), dtype)
        return [_begun(pool, partial(write_page, pieces, dtype, _ENCODINGS[name])) for pieces in pages]

    def _put(self, part: Any) -> None:
        self._stream.write(part)
        self._at += len(part)

    def _by_pyarrow(self, rows: list[Row]) -> pa.Buffer:
        """A file of these rows, or of none; its footer is held."""
        out = pa.BufferOutputStream()
        with pq.ParquetWriter(out, self._schema, **_OPTIONS) as writer:
            if rows:
                writer.write_batch(to_batch(rows, self._schema), row_group_size=len(rows))
        data = out.getvalue()
        self._footer = read_footer(pa.BufferReader(data))
        return data


def _begun(pool: ThreadPoolExecutor, work: Callable[[], Page]) -> Callable[[], Page]:
    """What gives the result of work that goes on in a thread, or does it where no thread can be started."""
    try:
        return pool.submit(work).result
    except RuntimeError:
        return work


def _meta_of(pages: list[Page], of_empty: Struct, at: int, encoding: int) -> Struct:
    """What the footer says of a column of lists that begins at a byte."""
    return {
        **{id_: of_empty[id_] for id_ in (_TYPE, _PATH, _CODEC)},
        _USED_ENCODINGS: Field(LIST, Field(I32, [RLE, encoding])),
        _VALUES: Field(I64, sum(page.levels for page in pages)),
        _SIZE: Field(I64, sum(page.size for page in pages)),
        _COMPRESSED: Field(I64, sum(len(page.header) + page.packed.size for page in pages)),
        _DATA: Field(I64, at),
    }


class GroupReader:
    """Reads the row groups of a Parquet file."""

    def __init__(self, file: pa.NativeFile) -> None:
        """Of an open file.

        Raises:
            ValueError: It is damaged; also OSError and pyarrow's own.
        """
        self._file = file
        try:
            # pyarrow's own objects end the process where a footer is damaged.
            self._groups = elements_of(read_footer(file), _GROUPS, STRUCT)
        except DamagedFooterError:
            raise
        except (ValueError, OSError, pa.ArrowException):
            self._groups = []  # pyarrow says what is wrong
        self._parquet = pq.ParquetFile(file, page_checksum_verification=True)
        self.count: int = self._parquet.num_row_groups

    def read(self, group: int) -> pa.Table:
        """A row group: what `ParquetFile.read_row_group` gives.

        Raises:
            ValueError: It is damaged; also OSError and pyarrow's own.
        """
        schema = self._parquet.schema_arrow
        try:
            lists = self._lists(group)
        except (ValueError, LookupError, OSError, pa.ArrowException):
            lists = {}  # not as they are written here, or damaged: pyarrow reads them, or says what is wrong
        if not lists:
            return self._parquet.read_row_group(group)
        rest = self._parquet.read_row_group(group, columns=[name for name in schema.names if name not in lists])
        columns = [lists[name] if name in lists else rest.column(name) for name in schema.names]
        return pa.Table.from_arrays(columns, schema=schema)

    def _lists(self, group: int) -> dict[str, pa.ListArray]:
        """The columns of lists of numbers, by name, that are as they are written here.

        Raises:
            ValueError: A column is damaged, or of a kind that is not written here; also LookupError, OSError and
                pyarrow's own.
        """
        schema = self._parquet.schema_arrow
        described = self._groups[group]
        rows = value_of(described, _GROUP_ROWS, I64)
        lists: dict[str, pa.ListArray] = {}
        for column in elements_of(described, _COLUMNS, STRUCT):
            meta = value_of(column, _META, STRUCT)
            name = elements_of(meta, _PATH, BINARY)[0].decode()
            if _is_read_here(schema.field(name), meta):  # `field` knows no name that two columns have
                self._file.seek(value_of(meta, _DATA, I64))
                pages = self._file.read_buffer(value_of(meta, _COMPRESSED, I64))
                lists[name] = read_lists(pages, rows, schema.field(name).type)
        return lists


def _is_read_here(field: pa.Field, meta: Struct) -> bool:
    """True of lists of numbers where nothing can be missing, that are compressed by zstd and have no dictionary."""
    return (
        pa.types.is_list(field.type)
        and holds_arrays(field.type)
        and not (field.nullable or field.type.value_field.nullable)
        and _WIDTHS.get(value_of(meta, _TYPE, I32)) == field.type.value_type.bit_width
        and value_of(meta, _CODEC, I32) == _ZSTD
        and _DICTIONARY not in meta
    )
