"""Chains as columns: Arrow tables of what rollouts became, and chains that look into a table's buffers."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
from pydantic_core import from_json, to_json

from tokenrecords.entry.errors import one_line
from tokenrecords.entry.fields import routes_to_json
from tokenrecords.entry.json_line import mending
from tokenrecords.files.arrow import MOST, Row, column_values, id_type, in_chunks, list_of, to_batch
from tokenrecords.tokens.arrays import Fault, as_dtype, id_array, log_prob_array, mask_array
from tokenrecords.tokens.names import ROUTED_EXPERTS
from tokenrecords.training.chain import Chain, Content
from tokenrecords.training.chains import MAIN, ChainBuild
from tokenrecords.training.loss import check_shared

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from tokenrecords.files.arrow import IdType
    from tokenrecords.tokens.arrays import MaskArray
    from tokenrecords.training.loss import Shared

_CALLS: Final = "calls"
_IDS, _MASK, _LOG_PROBS = "token_ids", "loss_mask", "log_probs"
_TEXTS: Final = ("weight_version", "output_items", ROUTED_EXPERTS)  # of a call, as JSON
_NESTED: Final = ("[", "{")  # no text of routes begins so


def chain_schema(ids: IdType = "int32") -> pa.Schema:
    """The schema of all chains, with ids of this type.

    Raises:
        ValueError: `ids` is not such a type.
    """
    token_ids = list_of(id_type(ids))
    always = partial(pa.field, nullable=False)
    call = pa.struct(
        [
            always("call_id", pa.string()),
            *(always(name, pa.int64()) for name in ("start", "end", "own")),
            pa.field("weight_version", pa.string()),
            pa.field(ROUTED_EXPERTS, pa.string()),
            always("output_items", pa.string()),
            pa.field("token_item_index", pa.int64()),
        ]
    )
    return pa.schema(
        [
            always("rollout_id", pa.string()),
            always("chain_id", pa.string()),
            always("trainable", pa.bool_()),
            always("reasons", list_of(pa.string())),
            always(_IDS, token_ids),
            always(_MASK, list_of(pa.uint8())),  # Arrow's bools are bits, and would have to be copied
            always(_LOG_PROBS, list_of(pa.float64())),
            always(_CALLS, list_of(call)),
        ]
    )


CHAIN_SCHEMA: Final = chain_schema()


def chains_to_arrow(builds: Iterable[ChainBuild], *, ids: IdType = "int32", shared: Shared = "once") -> pa.Table:
    """The chains of rollouts as a table of `CHAIN_SCHEMA`, a row each.

    Args:
        builds: As `build_rollouts` gives them. `trainable` is True in the row of the main chain of a rollout that is;
            `reasons` in each of a rollout's rows.
        ids: The type of all ids: "int32", "int64" or "uint64". Tables that are used together must have the same one.
        shared: Where a sampled token carries loss that several chains of a rollout hold: "once", in the first of them,
            so that rows may be packed in different batches; or in "each".

    Returns:
        A table of one chunk, or of more where ids or texts are too many for one.

    Raises:
        ValueError: An id that does not fit its column, routes that are not int8, int16 or int32, a value that JSON does
            not have, or an unknown `shared`.
        TypeError: `builds` holds something else.

    >>> from tokenrecords import TokenEntry, build_rollouts
    >>> call = TokenEntry(rollout_id="r", model_call_id="c", prompt_token_ids=[1, 2], generation_token_ids=[3],
    ...                   generation_log_probs=[-0.5], parent_resolution="root")
    >>> chains_to_arrow(build_rollouts([call])).select(["chain_id", "trainable", "token_ids"]).to_pylist()
    [{'chain_id': 'main', 'trainable': True, 'token_ids': [1, 2, 3]}]
    """
    schema = chain_schema(ids)
    rows = _rows(builds, np.dtype(ids), shared)
    return pa.Table.from_batches([to_batch(chunk, schema) for chunk in in_chunks(rows, MOST)], schema)


def _rows(builds: Iterable[ChainBuild], dtype: np.dtype[Any], shared: Shared) -> Iterator[Row]:
    check_shared(shared)
    for build in builds:
        if not isinstance(build, ChainBuild):
            raise TypeError(f"builds holds {type(build).__name__}: a ChainBuild is needed")
        for chain in build.rows() if shared == "once" else build.chains:
            is_trainable = build.trainable and chain.chain_id == MAIN
            try:
                yield _row(chain, {"trainable": is_trainable, "reasons": build.reasons}, dtype)
            except ValueError as error:
                of = f"chain {chain.chain_id!r} of rollout {chain.rollout_id!r}"
                raise ValueError(f"{of} can't be written: {one_line(error)}") from error


def _row(chain: Chain, about: Mapping[str, Any], dtype: np.dtype[Any]) -> Row:
    calls = [
        {"call_id": call_id, "start": start, "end": end, **_written(chain.rollout_id, call_id, content)}
        for call_id, (start, end), content in zip(chain.call_ids, chain.spans.tolist(), chain.contents, strict=True)
    ]
    try:
        token_ids = as_dtype(chain.token_ids, dtype)
    except Fault as fault:
        raise fault.error(_IDS) from None
    values = {
        "rollout_id": chain.rollout_id.encode(),
        "chain_id": chain.chain_id,
        **about,
        _IDS: token_ids,
        _MASK: chain.loss_mask,
        _LOG_PROBS: chain.log_probs,
        _CALLS: calls,
    }
    text = sum(len(value) for call in calls for value in call.values() if isinstance(value, bytes))
    if len(chain) > MOST or text > MOST:
        raise ValueError(f"it has {len(chain):,} ids and {text:,} bytes of text: a column holds {MOST:,}")
    return Row(values, len(chain), text)


def _written(rollout_id: str, call_id: str, content: Content) -> dict[str, Any]:
    """The content of a call, its texts as bytes."""
    fields = {
        "rollout_id": rollout_id,
        "model_call_id": call_id,
        "weight_version": content.weight_version,
        "output_items": content.items,
        ROUTED_EXPERTS: routes_to_json(content.routed_experts),
    }
    return {**mending(_as_texts, fields), "token_item_index": content.token_item_index, "own": content.own}


def _as_texts(fields: dict[str, Any]) -> dict[str, bytes | None]:
    """The values that have columns of text; text of routes is not JSON."""
    routes = fields[ROUTED_EXPERTS]
    texts = {name: None if fields[name] is None else to_json(fields[name]) for name in _TEXTS}
    return {**texts, ROUTED_EXPERTS: routes.encode()} if isinstance(routes, str) else texts


def chains_from_arrow(table: pa.Table | pa.RecordBatch) -> list[Chain]:
    """The chains of a table, as `chains_to_arrow` gives it or as another program hands it on.

    Lists and texts may be large ones, ids of any integer type, masks bools; other columns are passed over.

    Returns:
        A chain for each row. Its `token_ids`, `loss_mask` and `log_probs` are read-only views of the table's buffers,
        which they keep alive.

    Raises:
        ValueError: A column is missing, or a row holds no chain.

    >>> from tokenrecords import TokenEntry, build_rollouts, pack_chains
    >>> call = TokenEntry(rollout_id="r", model_call_id="c", prompt_token_ids=[1, 2], generation_token_ids=[3],
    ...                   generation_log_probs=[-0.5], parent_resolution="root")
    >>> table = chains_to_arrow(build_rollouts([call]))
    >>> pack_chains(chains_from_arrow(table.filter(table["trainable"]))).input_ids
    array([1, 2, 3])
    """
    for name in _NEEDED:
        if name not in table.schema.names:
            raise ValueError(f"the table has no column {name}: the columns of CHAIN_SCHEMA are needed")
    columns = [column_values(table.column(name), as_arrays=name in _JUDGES) for name in _NEEDED]
    chains = []
    for row, values in enumerate(zip(*columns, strict=True)):
        try:
            chains.append(_chain(*values))
        except ValueError as error:
            raise ValueError(f"row {row}: {one_line(error)}") from error
    return chains


def _chain(rollout_id: Any, chain_id: Any, *values: Any) -> Chain:
    *arrays, calls = values
    for name, value in zip(_NEEDED, (rollout_id, chain_id, *values), strict=True):
        if value is None:
            raise ValueError(f"{name} is null: a value is needed")
    held: dict[str, Any] = {}
    for (name, judge), value in zip(_JUDGES.items(), arrays, strict=True):
        try:
            held[name] = judge(value)
        except Fault as fault:
            raise ValueError(fault.of(name)) from None
        if len(held[name]) != len(held[_IDS]):
            raise ValueError(
                f"{name} has {len(held[name])} values: {len(held[_IDS])} are needed, one for each token id"
            )
    return Chain(
        rollout_id=rollout_id,
        chain_id=chain_id,
        call_ids=[call["call_id"] for call in calls],
        spans=np.array([(call["start"], call["end"]) for call in calls], np.int64).reshape(-1, 2),
        contents=[_content(call) for call in calls],
        **held,
    )


def _content(call: dict[str, Any]) -> Content:
    version, items, routes = (call[name] for name in _TEXTS)
    is_nested = routes is not None and routes.startswith(_NESTED)
    return Content(
        items=from_json(items),
        token_item_index=call["token_item_index"],
        routed_experts=from_json(routes) if is_nested else routes,
        weight_version=None if version is None else from_json(version),
        own=call["own"],
    )


def _mask(value: Any) -> MaskArray:
    """A mask, without a copy where its bytes are 0 and 1."""
    if isinstance(value, np.ndarray) and value.dtype == np.uint8 and value.max(initial=0) <= 1:
        return value.view(np.bool_)
    return mask_array(value)


_JUDGES: Final[dict[str, Callable[[Any], Any]]] = {_IDS: id_array, _MASK: _mask, _LOG_PROBS: log_prob_array}
_NEEDED: Final = ("rollout_id", "chain_id", *_JUDGES, _CALLS)
