"""Records as columns: Arrow tables from records, and records that look into a table's buffers."""

from __future__ import annotations

import itertools
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
from pydantic_core import from_json, to_json

from tokenrecords.entry.entries import several
from tokenrecords.entry.errors import one_line
from tokenrecords.entry.json_line import mending
from tokenrecords.entry.model import TokenEntry, unwritable
from tokenrecords.tokens.arrays import Fault, as_dtype, id_array, log_prob_array
from tokenrecords.tokens.names import ARRAY_FIELDS, ID_FIELDS, LOG_PROBS, ROUTED_EXPERTS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

IdType: TypeAlias = Literal["int32", "int64", "uint64"]
_ID_TYPES: Final = ("int32", "int64", "uint64")

EXTRA: Final = "extra_fields"
_ITEMS: Final = "output_items"
_JSON: Final = (_ITEMS, EXTRA)
MOST: Final = 2**31 - 1  # the offsets of Arrow's lists and texts are int32

_TEXT, _NAME = pa.string(), pa.dictionary(pa.int32(), pa.string())


def record_schema(ids: IdType = "int32") -> pa.Schema:
    """The schema of all records, with ids of this type.

    Raises:
        ValueError: `ids` is not such a type.
    """
    token_ids = list_of(id_type(ids))
    always = partial(pa.field, nullable=False)
    return pa.schema(
        [
            always("schema_version", pa.int64()),
            always("rollout_id", _TEXT),
            always("model_call_id", _TEXT),
            always("model", _NAME),
            *(always(name, token_ids) for name in ID_FIELDS),
            always(LOG_PROBS, list_of(pa.float64())),
            pa.field(ROUTED_EXPERTS, _TEXT),
            always(_ITEMS, pa.json_()),
            pa.field("token_item_index", pa.int64()),
            pa.field("response_id", _TEXT),
            always("created_at", pa.float64()),
            pa.field("parent_call_id", _TEXT),
            pa.field("cum_len", pa.int64()),
            pa.field("digest", _TEXT),
            pa.field("parent_resolution", _NAME),
            always("continuation_fingerprint", _TEXT),
            always("continuation_context_len", pa.int64()),
            always("continuation_context_digest", _TEXT),
            always("parent_resolution_reason", _NAME),
            pa.field("fingerprint_version", pa.int64()),
            *(always(name, pa.bool_()) for name in ("prompt_is_delta", "prefix_requested", "prefix_supplied")),
            pa.field(EXTRA, pa.json_()),
        ]
    )


def id_type(ids: IdType) -> pa.DataType:
    """The Arrow type of ids, by name.

    Raises:
        ValueError: `ids` is not such a type.
    """
    if ids not in _ID_TYPES:
        raise ValueError(f"ids is {ids!r}: one of {', '.join(_ID_TYPES)} is needed")
    return pa.type_for_alias(ids)


def list_of(type_: pa.DataType) -> pa.DataType:
    """Lists of this type without a null in them."""
    return pa.list_(pa.field("element", type_, nullable=False))


RECORD_SCHEMA: Final = record_schema()
_FIELDS: Final = tuple(TokenEntry.model_fields)


class Row(NamedTuple):
    """A record on its way into columns.

    Attributes:
        values: By column: arrays, and else what Arrow takes.
        ids: The larger number of its ids, prompt or generation.
        text: The most bytes that a text of it may take.
    """

    values: dict[str, Any]
    ids: int
    text: int


def to_arrow(entries: Iterable[TokenEntry], *, ids: IdType = "int32") -> pa.Table:
    """Records as a table of `RECORD_SCHEMA`.

    Args:
        entries: The records; they may come from a generator.
        ids: The type of all ids: "int32", "int64" or "uint64". Files that are read together must have the same one.

    Returns:
        A table of one chunk, or of more where ids or texts are too many for one.

    Raises:
        ValueError: An entry that could not be read back, or an id or integer that does not fit its column.
        TypeError: `entries` holds something else.

    >>> entry = TokenEntry(rollout_id="r", model_call_id="c", prompt_token_ids=[1, 2], generation_token_ids=[3],
    ...                    generation_log_probs=[-0.5])
    >>> to_arrow([entry])["prompt_token_ids"].to_pylist()
    [[1, 2]]
    """
    schema = record_schema(ids)
    batches = [to_batch(rows, schema) for rows in in_chunks(as_rows(entries, ids), MOST)]
    return pa.Table.from_batches(batches, schema).unify_dictionaries()


def as_rows(entries: Iterable[TokenEntry], ids: IdType) -> Iterator[Row]:
    """The records, ready for the columns; raises as `to_arrow`."""
    dtype = np.dtype(ids)
    for entry in several(entries):
        if not isinstance(entry, TokenEntry):
            raise TypeError(f"entries holds {type(entry).__name__}: a TokenEntry is needed")
        fields = entry.json_values()
        try:
            yield mending(partial(_row, dtype=dtype), fields)
        except ValueError as error:
            raise unwritable(entry, error) from error


def _row(fields: dict[str, Any], *, dtype: np.dtype[Any]) -> Row:
    values = {name: fields[name] for name in _FIELDS}
    extra = {name: value for name, value in fields.items() if name not in values}
    if not isinstance(values[ROUTED_EXPERTS], str | None):  # routes that are not text have no column
        extra[ROUTED_EXPERTS], values[ROUTED_EXPERTS] = values[ROUTED_EXPERTS], None
    values[_ITEMS] = to_json(values[_ITEMS])
    values[EXTRA] = to_json(extra) if extra else None
    text = 0
    for name, value in values.items():
        if isinstance(value, str):
            values[name] = value = value.encode()  # noqa: PLW2901 - fails here, not where it is one of many
        elif isinstance(value, int) and not -(2**63) <= value < 2**63:
            raise ValueError(f"{name} is {value}: it does not fit int64")
        if isinstance(value, bytes):
            text = max(text, len(value))
    for name in ID_FIELDS:
        try:
            values[name] = as_dtype(id_array(values[name]), dtype)
        except Fault as fault:
            raise fault.error(name) from None
    values[LOG_PROBS] = log_prob_array(values[LOG_PROBS])
    row = Row(values, max(len(values[name]) for name in ID_FIELDS), text)
    if row.ids > MOST or row.text > MOST:
        raise ValueError(f"it has {row.ids:,} ids and {row.text:,} bytes of text: a column holds {MOST:,}")
    return row


def in_chunks(rows: Iterable[Row], most: int) -> Iterator[list[Row]]:
    """The rows in lists, each of no more ids than `most`, or of one row; none of more text than a column can hold."""
    held: list[Row] = []
    ids = text = 0
    for row in rows:
        if held and (ids + row.ids > most or text + row.text > MOST):
            yield held
            held, ids, text = [], 0, 0
        held.append(row)
        ids += row.ids
        text += row.text
    if held:
        yield held


def to_batch(rows: Sequence[Row], schema: pa.Schema) -> pa.RecordBatch:
    """The rows as columns."""
    columns = []
    for field in schema:
        values = [row.values[field.name] for row in rows]
        columns.append(_lists(values, field.type) if holds_arrays(field.type) else _plain(values, field.type))
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def holds_arrays(type_: pa.DataType) -> bool:
    """True of lists of integers or floats."""
    if not (pa.types.is_list(type_) or pa.types.is_large_list(type_)):
        return False
    # Bools are bits in Arrow.
    return bool(pa.types.is_integer(type_.value_type) or pa.types.is_floating(type_.value_type))


def _plain(values: list[Any], type_: pa.DataType) -> pa.Array:
    if isinstance(type_, pa.JsonType):
        return pa.ExtensionArray.from_storage(type_, pa.array(values, type_.storage_type))
    if pa.types.is_dictionary(type_):
        return pa.array(values, type_.value_type).dictionary_encode()
    return pa.array(values, type_)


def _lists(arrays: list[Any], type_: pa.DataType) -> pa.Array:
    """The arrays as one column; their elements are copied once."""
    offsets = np.zeros(len(arrays) + 1, np.int32)
    np.cumsum([len(array) for array in arrays], out=offsets[1:])
    values = np.empty(offsets[-1], type_.value_type.to_pandas_dtype())
    for array, (start, end) in zip(arrays, itertools.pairwise(offsets.tolist()), strict=True):
        values[start:end] = array
    return pa.ListArray.from_arrays(pa.array(offsets), pa.array(values), type=type_)


def from_arrow(table: pa.Table | pa.RecordBatch) -> list[TokenEntry]:
    """The records of a table, as `to_arrow` gives it or as another program hands it on.

    Lists and texts may be large ones, ids of any integer type, JSON columns text; a column that the schema has not is
    an extra field.

    Returns:
        Records whose ids and log-probs are read-only arrays of shape `(n,)`: views of the table's buffers, which they
        keep alive.

    Raises:
        ValueError: A column is missing, or a row holds no record.

    >>> entry = TokenEntry(rollout_id="r", model_call_id="c", prompt_token_ids=[1, 2], generation_token_ids=[3],
    ...                    generation_log_probs=[-0.5])
    >>> from_arrow(to_arrow([entry])) == [entry]
    True
    """
    entries: list[TokenEntry] = []
    for row, made in enumerate(made_of(table)):
        if isinstance(made, ValueError):
            raise ValueError(f"row {row}: {one_line(made)}") from made
        entries.append(made)
    return entries


def made_of(table: pa.Table | pa.RecordBatch) -> Iterator[TokenEntry | ValueError]:
    """The record of each row, or what is wrong with it.

    Raises:
        ValueError: A column is missing.
    """
    names = table.schema.names
    for name, field in TokenEntry.model_fields.items():
        if field.is_required() and name not in names:
            raise ValueError(f"the table has no column {name}: the columns of RECORD_SCHEMA are needed")
    columns = [column_values(table.column(name), as_arrays=name in ARRAY_FIELDS) for name in names]
    for values in zip(*columns, strict=True):
        try:
            yield _entry({name: value for name, value in zip(names, values, strict=True) if value is not None})
        except ValueError as error:
            yield error


def _entry(values: dict[str, Any]) -> TokenEntry:
    for name in _JSON:
        if isinstance(value := values.get(name), str | bytes):
            try:
                values[name] = from_json(value)
            except ValueError as error:
                raise ValueError(f"{name} is not JSON: {error}") from None
    extra = values.pop(EXTRA, {})
    if not isinstance(extra, dict):
        raise ValueError(f"{EXTRA} is {type(extra).__name__}: a JSON object is needed")
    return TokenEntry.model_validate({**extra, **values})


def column_values(column: pa.ChunkedArray | pa.Array, *, as_arrays: bool) -> Iterator[Any]:
    """The values of a column, None where there is none; of lists of numbers, arrays over them, if that is asked for."""
    chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
    read: Callable[[pa.Array], Iterable[Any]] = _views if as_arrays else _objects
    return itertools.chain.from_iterable(map(read, chunks))


def _objects(chunk: pa.Array) -> list[Any]:
    if pa.types.is_dictionary(chunk.type):
        chunk = chunk.dictionary_decode()
    objects: list[Any] = chunk.to_pylist()
    return objects


def _views(chunk: pa.Array) -> Iterable[Any]:
    """Arrays over the elements of each row."""
    if not holds_arrays(chunk.type) or chunk.values.null_count:
        return _objects(chunk)  # the validator says what is wrong with each
    values = chunk.values.to_numpy(zero_copy_only=True)
    places = itertools.pairwise(chunk.offsets.to_pylist())
    there = chunk.is_valid().to_pylist()
    return (values[start:end] if is_there else None for (start, end), is_there in zip(places, there, strict=True))
