"""Chains as columns and back: nothing is lost, nothing wraps, nothing is copied."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.factories import bare, call, conversation, make_entry
from tokenrecords import (
    ChainBuild,
    RecordError,
    build_chains,
    build_rollouts,
    link_entries,
    pack_chains,
    write_jsonl,
)
from tokenrecords.arrow import CHAIN_SCHEMA, chains_from_arrow, chains_to_arrow, write_parquet
from tokenrecords.files import arrow as columns
from tokenrecords.training import arrow

if TYPE_CHECKING:
    from pathlib import Path

    from tokenrecords import Chain, TokenEntry


def fork(rollout: str = "r") -> list[TokenEntry]:
    """Two calls that continue one."""
    first = call("a", [1], [9, 8], rollout_id=rollout)
    return [first, *(call(name, [1, 9, 8, n], [7], "a", rollout_id=rollout) for name, n in (("b", 2), ("c", 3)))]


ROUTES = np.arange(6, dtype=np.int16).reshape(3, 2, 1)
ITEMS = [{"type": "message", "n": [1.5, None, "ü\0😀"]}, {"type": "reasoning"}]
CASES: dict[str, list[TokenEntry]] = {
    "nothing": [],
    "turns": conversation(),
    "deltas": conversation(deltas=True),
    "a fork": fork(),
    "no chain": [bare("c", [1, 2])],
    "one token": [bare("c", [], [5])],
    "masked": [bare("c", [1], [2, 3, 4], generation_loss_mask=[1, 0, 1])],
    "several rollouts": [*fork("r"), *fork("s")],
    "content": [bare("c", [1], [2], output_items=ITEMS, token_item_index=0, weight_version={"a": [7, None]})],
    "items without a version": [bare("c", [1], [2], output_items=ITEMS)],
    "versions": [bare("c", [1], [2], weight_version=0), bare("d", [1, 2, 3], [4], weight_version="7")],
    "no number": [bare("c", [1], [2], weight_version=float("inf"), output_items=[{"n": -float("inf")}])],
    "routes": [bare("c", [1], [2, 3], routed_experts="nrlre1:int8:1x1x1:AA==")],
    "nested routes": [bare("c", [1], [2, 3], routed_experts=ROUTES.tolist())],
    "an object of routes": [bare("c", [1], [2, 3], routed_experts={"data": "AA==", "dtype": "int8", "start": 1})],
    "surprising log-probs": [make_entry(generation_token_ids=[1, 2], generation_log_probs=[-0.0, -float("inf")])],
    "arrays": [entry.as_arrays("uint16") for entry in conversation()],
}


def shown(chain: Chain) -> Any:
    """All that a chain holds, to compare."""
    arrays = (chain.token_ids, chain.loss_mask, chain.log_probs, chain.spans)
    return (
        chain.rollout_id, chain.chain_id, chain.call_ids, chain.contents, *(array.tolist() for array in arrays),
        np.signbit(chain.log_probs).tolist(),
    )  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_a_table_gives_back_what_was_given(name: str) -> None:
    builds = list(build_rollouts(CASES[name]))
    for shared in ("once", "each"):
        table = chains_to_arrow(iter(builds), shared=shared)
        table.validate(full=True)
        assert table.schema.equals(CHAIN_SCHEMA, check_metadata=True)
        back = chains_from_arrow(table)
        given = [chain for build in builds for chain in (build.rows() if shared == "once" else build.chains)]
        for chain, made in zip(given, back, strict=True):
            assert shown(made) == shown(chain)
            assert [array.dtype for array in (made.token_ids, made.loss_mask, made.log_probs, made.spans)] == [
                np.int32, np.bool_, np.float64, np.int64
            ]  # fmt: skip
            assert made.output_items(arrays=False) == chain.output_items(arrays=False)
            assert made.weight_versions == chain.weight_versions


def test_the_schema() -> None:
    assert {field.name: str(field.type) for field in CHAIN_SCHEMA if field.name != "calls"} == {
        "rollout_id": "string",
        "chain_id": "string",
        "trainable": "bool",
        "reasons": "list<element: string not null>",
        "token_ids": "list<element: int32 not null>",
        "loss_mask": "list<element: uint8 not null>",
        "log_probs": "list<element: double not null>",
    }
    calls = CHAIN_SCHEMA.field("calls").type.value_field
    assert not any(field.nullable for field in (*CHAIN_SCHEMA, calls))
    assert {field.name: (str(field.type), field.nullable) for field in calls.type} == {
        "call_id": ("string", False),
        "start": ("int64", False),
        "end": ("int64", False),
        "own": ("int64", False),
        "weight_version": ("string", True),
        "routed_experts": ("string", True),
        "output_items": ("string", False),
        "token_item_index": ("int64", True),
    }
    assert not CHAIN_SCHEMA.metadata


def test_a_row_is_trainable_where_it_is_the_main_chain_of_a_rollout_that_is() -> None:
    sound, forked, ended = conversation(), fork("s"), fork("t")
    table = chains_to_arrow(build_rollouts([*forked, *sound, *ended], terminal_call_ids={"t": "c"}))
    rows = table.select(["rollout_id", "chain_id", "trainable", "reasons"]).to_pylist()
    assert [tuple(row.values()) for row in rows] == [
        ("s", "main", False, ["several_chains"]),
        ("s", "branch-0", False, ["several_chains"]),
        ("r", "main", True, []),
        ("t", "main", True, []),
        ("t", "branch-0", False, []),
    ]
    chains = chains_from_arrow(table.filter(table["trainable"]))
    assert [chain.call_ids for chain in chains] == [["c0", "c1", "c2"], ["a", "c"]]
    assert [chain.loss_mask.sum() for chain in chains] == [6, 3]


def test_a_shared_token_carries_loss_in_one_row_or_in_each() -> None:
    builds = [build_chains(fork())]
    once, each = chains_to_arrow(builds), chains_to_arrow(builds, shared="each")
    assert once["loss_mask"].to_pylist() == [[0, 1, 1, 0, 1], [0, 0, 0, 0, 1]]
    assert each["loss_mask"].to_pylist() == [[0, 1, 1, 0, 1], [0, 1, 1, 0, 1]]
    # In batches of their own they carry it as often as the table says; in one batch, once.
    apart = [pack_chains([chain]).loss_mask.sum() for chain in chains_from_arrow(once)]
    assert apart == [3, 1]
    assert pack_chains(chains_from_arrow(each)).loss_mask.tolist() == [bool(n) for n in (0, 1, 1, 0, 1, 0, 0, 0, 0, 1)]


def test_arrays_of_routes_become_text() -> None:
    given = build_chains([bare("c", [1], [2, 3], routed_experts=ROUTES)])
    table = chains_to_arrow([given])
    [[found]] = table["calls"].to_pylist()
    assert found["routed_experts"].startswith("nrlre1:int16:3x2x1:")
    [chain] = chains_from_arrow(table)
    routes = chain.routed_experts()
    assert routes is not None
    np.testing.assert_array_equal(routes, ROUTES)
    assert routes.dtype == np.int16


def test_the_arrays_are_views_of_the_table() -> None:
    table = chains_to_arrow(build_rollouts([*fork("r"), *fork("s")]))
    for name in ("token_ids", "loss_mask", "log_probs"):
        [chunk] = table[name].chunks
        buffer = np.frombuffer(chunk.values.buffers()[1], np.uint8)
        for chain in chains_from_arrow(table):
            assert np.shares_memory(getattr(chain, name), buffer)
            assert not getattr(chain, name).flags.writeable


@pytest.mark.parametrize(("ids", "least", "most"), [("int64", -(2**63), 2**63 - 1), ("uint64", 0, 2**64 - 1)])
def test_wide_ids(ids: Any, least: int, most: int) -> None:
    build = build_chains([bare("c", [least, most], [1])])
    table = chains_to_arrow([build], ids=ids)
    assert table.schema.field("token_ids").type.value_type == ids
    [chain] = chains_from_arrow(table)
    assert chain.token_ids.tolist() == [least, most, 1]


class Odd:
    """What JSON does not have."""


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"prompt_token_ids": [1, 2**40]}, "token_ids[1] is 1099511627776: it does not fit int32"),
        ({"routed_experts": ROUTES.astype(np.uint16)}, "routed_experts has dtype uint16: nrlre1 holds int8"),
        ({"weight_version": Odd()}, "Unable to serialize unknown type: <class 'tests.training.test_arrow.Odd'>"),
    ],
)  # fmt: skip
def test_what_no_column_holds(fields: dict[str, Any], message: str) -> None:
    build = build_chains([make_entry(**fields)])
    with pytest.raises(ValueError, match=rf"^chain 'main' of rollout 'r' can't be written: .*{re.escape(message)}"):
        chains_to_arrow([build])


def test_arguments_are_checked() -> None:
    build = build_chains(conversation())
    with pytest.raises(ValueError, match=r"^ids is 'int16': one of int32, int64, uint64 is needed$"):
        chains_to_arrow([build], ids="int16")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"^shared is 'none': it must be 'once' or 'each'$"):
        chains_to_arrow([], shared="none")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"^builds holds Chain: a ChainBuild is needed$"):
        chains_to_arrow(build.chains)  # type: ignore[arg-type]


def test_a_lone_surrogate_costs_no_tokens() -> None:
    build = build_chains([bare("c", [1], [2], output_items=[{"text": "a\ud800"}])])
    with pytest.warns(
        UserWarning, match=r"^model call 'c' of rollout 'r': lone surrogates in output_items were written"
    ):
        [chain] = chains_from_arrow(chains_to_arrow([build]))
    assert chain.contents[0].items == [{"text": "a\ufffd"}]


def replaced(table: pa.Table, name: str, column: Any) -> pa.Table:
    return table.set_column(table.schema.get_field_index(name), name, column)


@pytest.mark.parametrize(
    ("name", "column", "message"),
    [
        ("rollout_id", pa.array([None]), "rollout_id is null: a value is needed"),
        ("calls", pa.array([None]), "calls is null: a value is needed"),
        ("token_ids", pa.array([[1.5]]), "token_ids is an array of dtype float64: token ids must be integers"),
        ("token_ids", pa.array([[1, None]]), "token_ids[1] is None: token ids must be integers, got NoneType"),
        ("loss_mask", pa.array([[0, 2]], pa.list_(pa.uint8())), "loss_mask[1] is 2: a mask must hold 0 and 1"),
        ("loss_mask", pa.array([[True]]), "loss_mask has 1 values: 3 are needed, one for each token id"),
        ("loss_mask", pa.array([[True] * 4]), "loss_mask has 4 values: 3 are needed, one for each token id"),
        ("log_probs", pa.array([[0.5]]), "log_probs has 1 values: 3 are needed, one for each token id"),
        ("log_probs", pa.array([["a"]]), "log_probs[0] is 'a': log-probs must be numbers, got str"),
    ],
)  # fmt: skip
def test_a_row_that_holds_no_chain(name: str, column: Any, message: str) -> None:
    one = chains_to_arrow([build_chains([make_entry()])])
    with pytest.raises(ValueError, match=f"^row 0: {re.escape(message)}"):
        chains_from_arrow(replaced(one, name, column))


def test_a_bad_row_is_counted_from_the_beginning() -> None:
    two = pa.concat_tables([chains_to_arrow([build_chains([make_entry()])])] * 2)
    with pytest.raises(ValueError, match=r"^row 1: log_probs is null: a value is needed$"):
        chains_from_arrow(replaced(two, "log_probs", pa.array([[0.0, 0.0, -0.5], None])))


def test_a_missing_column() -> None:
    table = chains_to_arrow([build_chains([make_entry()])])
    with pytest.raises(ValueError, match=r"^the table has no column calls: the columns of CHAIN_SCHEMA are needed$"):
        chains_from_arrow(table.drop(["calls"]))


def test_what_other_programs_make_of_a_table() -> None:
    given = build_chains(conversation())
    table = chains_to_arrow([given])
    for name, type_ in {
        "rollout_id": pa.large_string(),
        "token_ids": pa.large_list(pa.int64()),
        "loss_mask": pa.list_(pa.bool_()),
        "log_probs": pa.large_list(pa.float32()),
    }.items():
        table = replaced(table, name, table[name].cast(type_))
    table = table.append_column("reward", pa.array([1.0]))
    for form in (table, table.to_batches()[0], pa.concat_tables([table, table]).slice(1)):
        [chain] = chains_from_arrow(form)
        assert shown(chain) == shown(given.chains[0])


def test_many_ids_become_several_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrow, "MOST", 12)
    table = chains_to_arrow([build_chains(conversation(1)), *(build_chains(fork(name)) for name in "rs")])
    assert table["token_ids"].num_chunks == 3
    assert [len(ids) for ids in table["token_ids"].to_pylist()] == [3, 5, 5, 5, 5]
    with pytest.raises(ValueError, match=r"it has 15 ids and \d+ bytes of text: a column holds 12$"):
        chains_to_arrow([build_chains(conversation(5))])
    monkeypatch.setattr(arrow, "MOST", 400)
    with pytest.raises(ValueError, match=r"it has 3 ids and 4\d\d bytes of text: a column holds 400$"):
        chains_to_arrow([build_chains([make_entry(weight_version="x" * 400)])])


def test_long_texts_become_several_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (arrow, columns):
        monkeypatch.setattr(module, "MOST", 400)
    long = {"weight_version": "x" * 300}
    table = chains_to_arrow(build_rollouts(make_entry(rollout_id=name, **long) for name in "rs"))
    assert [chunk.to_pylist() for chunk in table["rollout_id"].chunks] == [["r"], ["s"]]
    # All texts of a chain are in one row.
    first, second = make_entry(**long), make_entry(model_call_id="d", prompt_token_ids=[1, 2, 3], **long)
    with pytest.raises(ValueError, match=r"it has 4 ids and 6\d\d bytes of text: a column holds 400$"):
        chains_to_arrow([build_chains(link_entries([first, second]))])


@pytest.mark.parametrize("type_", [pa.int8(), pa.int32(), pa.int64()])
def test_a_mask_of_other_integers_is_one(type_: pa.DataType) -> None:
    given = build_chains(conversation())
    table = chains_to_arrow([given])
    [chain] = chains_from_arrow(replaced(table, "loss_mask", table["loss_mask"].cast(pa.list_(type_))))
    assert shown(chain) == shown(given.chains[0])


def test_a_row_without_calls_is_a_chain_that_nobody_generated() -> None:
    table = chains_to_arrow([build_chains(conversation())])
    empty = pa.array([[]], CHAIN_SCHEMA.field("calls").type)
    [chain] = chains_from_arrow(replaced(table, "calls", empty))
    assert (chain.call_ids, chain.spans.shape, chain.spans.dtype, chain.contents) == ([], (0, 2), np.int64, [])


def test_parquet_keeps_the_chains(tmp_path: Path) -> None:
    builds = list(build_rollouts([*fork("r"), *fork("s")]))
    pq.write_table(chains_to_arrow(builds), tmp_path / "chains.parquet")
    back = pq.read_table(tmp_path / "chains.parquet")
    assert back.schema.equals(CHAIN_SCHEMA)
    assert list(map(shown, chains_from_arrow(back))) == [shown(chain) for build in builds for chain in build.rows()]


@pytest.mark.parametrize("ending", [".tokens.jsonl", ".tokens.jsonl.gz", ".tokens.jsonl.zst", ".parquet"])
def test_rollouts_are_built_of_files_of_each_kind(tmp_path: Path, ending: str) -> None:
    for name in "rs":
        write = write_parquet if ending == ".parquet" else write_jsonl
        write(tmp_path / f"{name}{ending}", fork(name))
    want = [shown(chain) for name in "rs" for chain in build_chains(fork(name)).chains]
    for source in (tmp_path, [tmp_path / f"r{ending}", str(tmp_path / f"s{ending}")]):
        builds: list[ChainBuild] = list(build_rollouts(source))
        assert [shown(chain) for build in builds for chain in build.chains] == want


def test_a_file_that_holds_no_record_is_an_error_that_names_it(tmp_path: Path) -> None:
    write_jsonl(tmp_path / "a.tokens.jsonl", fork())
    (tmp_path / "b.parquet").write_bytes(b"PAR1")
    with pytest.raises(RecordError, match=r"b\.parquet:1: "):
        build_rollouts([tmp_path / "a.tokens.jsonl", tmp_path / "b.parquet"])
    (tmp_path / "c.jsonl").write_bytes(b'{"response": {}, "rollout_id": "r"}\n')
    with pytest.raises(ValueError, match=r"c\.jsonl:1: "):
        build_rollouts(tmp_path / "c.jsonl")
