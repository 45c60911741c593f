"""Records as columns and back: nothing is lost, nothing wraps, nothing is copied."""

import copy
import math
import re

import numpy as np
import pyarrow as pa
import pytest
from support.factories import bare, conversation, make_entry
from tokenrecords import TokenEntry
from tokenrecords.arrow import RECORD_SCHEMA, from_arrow, to_arrow
from tokenrecords.files import arrow

NAN, INF = math.nan, math.inf
EVERY = {
    "schema_version": 1,
    "rollout_id": "rollout ü",
    "model_call_id": "call",
    "model": "m",
    "prompt_token_ids": np.array([1, 2**31 - 1], np.int32),
    "generation_token_ids": [-5, 0, 7, 8],
    "generation_log_probs": [NAN, INF, -INF, -0.0],
    "routed_experts": "nrlre1:int8:1x1x1:AA==",
    "output_items": [{"type": "message", "content": [{"text": "a", "n": [1, None, NAN, True, {}]}]}, {}],
    "token_item_index": 1,
    "response_id": "",
    "created_at": 1.5,
    "parent_call_id": "p",
    "cum_len": 6,
    "digest": "d",
    "parent_resolution": "resolved",
    "continuation_fingerprint": "f",
    "continuation_context_len": -1,
    "continuation_context_digest": "cd",
    "parent_resolution_reason": "why",
    "fingerprint_version": 2,
    "prompt_is_delta": True,
    "prefix_requested": True,
    "prefix_supplied": True,
}
CASES = {
    "every field": [make_entry(**EVERY)],
    "defaults": [make_entry()],
    "empty": [bare("c", [], [])],
    "lists and arrays": [make_entry(), make_entry().as_arrays()],
    "extras of some": [
        make_entry(),
        make_entry(reward=NAN, tags={"a": [INF, None, 2**70]}),
        make_entry(extra_fields=1),
    ],
    "an extra that is null": [make_entry(reward=None)],
    "a mask": [make_entry(generation_loss_mask=[True])],
    "routes in lists": [make_entry(routed_experts=[[[1, 2]]]), make_entry(routed_experts={"a": 1}), make_entry()],
    "routes that are text of JSON": [make_entry(routed_experts="[1]")],
    "deltas": conversation(deltas=True),
    "text beyond ASCII": [make_entry(model="模型", output_items=[{"text": "\0 \u2028 😀"}])],
    "created at no time": [make_entry(created_at=NAN), make_entry(created_at=-INF)],
    "no records": [],
}


@pytest.mark.parametrize("name", CASES)
def test_a_table_gives_back_what_was_given(name):
    entries = CASES[name]
    assert from_arrow(to_arrow(entries)) == entries
    assert to_arrow(entries).schema.equals(RECORD_SCHEMA, check_metadata=True)


def test_every_field_is_tried():
    assert set(EVERY) == set(TokenEntry.model_fields)
    assert [name for name in RECORD_SCHEMA.names if name != "extra_fields"] == list(TokenEntry.model_fields)
    for name, field in TokenEntry.model_fields.items():
        if not field.is_required():
            assert EVERY[name] != field.default or name == "schema_version", name


def test_the_sign_of_zero_is_kept():
    [entry] = from_arrow(to_arrow([make_entry(generation_log_probs=[-0.0])]))
    assert np.signbit(entry.generation_log_probs).tolist() == [True]


def test_the_schema():
    lines = str(RECORD_SCHEMA.field("prompt_token_ids")), str(RECORD_SCHEMA.field("generation_log_probs"))
    assert lines == (
        "pyarrow.Field<prompt_token_ids: list<element: int32 not null> not null>",
        "pyarrow.Field<generation_log_probs: list<element: double not null> not null>",
    )
    assert RECORD_SCHEMA.field("output_items").type == pa.json_()
    names = [field.name for field in RECORD_SCHEMA if pa.types.is_dictionary(field.type)]
    assert names == ["model", "parent_resolution", "parent_resolution_reason"]
    assert not RECORD_SCHEMA.metadata


@pytest.mark.parametrize(("ids", "least", "most"), [("int64", -(2**63), 2**63 - 1), ("uint64", 0, 2**64 - 1)])
def test_wide_ids(ids, least, most):
    entries = [make_entry(prompt_token_ids=[least, most]), make_entry()]
    table = to_arrow(entries, ids=ids)
    assert table.schema.field("prompt_token_ids").type.value_type == ids
    assert from_arrow(table) == entries


@pytest.mark.parametrize(
    ("ids", "held", "message"),
    [
        ("int32", [1, 2**40], "prompt_token_ids[1] is 1099511627776: it does not fit int32"),
        ("int32", np.array([2**31]), "prompt_token_ids[0] is 2147483648: it does not fit int32"),
        ("int64", [2**63], "prompt_token_ids[0] is 9223372036854775808: it does not fit int64"),
        ("uint64", [0, -1], "prompt_token_ids[1] is -1: it does not fit uint64"),
        ("uint64", np.array([0, -1], np.int32), "prompt_token_ids[1] is -1: it does not fit uint64"),
    ],
)
def test_an_id_that_does_not_fit(ids, held, message):
    call = "model call 'c' of rollout 'r' can't be written: "
    with pytest.raises(ValueError, match=f"^{re.escape(call + message)}$"):
        to_arrow([make_entry(), make_entry(prompt_token_ids=held)], ids=ids)


@pytest.mark.parametrize("dtype", ["int8", "uint16", "int64", ">i4", "uint64"])
def test_ids_of_other_dtypes_that_fit(dtype):
    table = to_arrow([make_entry(prompt_token_ids=np.array([1, 100], dtype)[::-1])])
    assert table["prompt_token_ids"].to_pylist() == [[100, 1]]


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_narrow_log_probs_are_widened(dtype):
    entry = make_entry(generation_log_probs=np.array([-0.1], dtype))
    assert to_arrow([entry])["generation_log_probs"].to_pylist() == [[float(np.array(-0.1, dtype))]]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"cum_len": 2**63}, "cum_len is 9223372036854775808: it does not fit int64"),
        ({"fingerprint_version": -(2**63) - 1}, "fingerprint_version is -9223372036854775809: it does not fit int64"),
        ({"reward": object}, "reward: Unable to serialize unknown type: <class 'type'> (it is type)"),
    ],
)  # fmt: skip
def test_what_no_column_holds(fields, message):
    call = "model call 'c' of rollout 'r' can't be written: "
    with pytest.raises(ValueError, match=f"^{re.escape(call + message)}$"):
        to_arrow([make_entry(**fields)])


def test_an_assigned_value_is_validated():
    entry = make_entry()
    entry.generation_log_probs = []
    with pytest.raises(ValueError, match=r"model call 'c' of rollout 'r' can't be written: .*same length, got 1 and 0"):
        to_arrow([entry])


def test_integers_at_the_ends_of_their_column():
    entries = [make_entry(cum_len=2**63 - 1, continuation_context_len=-(2**63))]
    assert from_arrow(to_arrow(entries)) == entries


def test_an_array_of_routes_becomes_its_text():
    routes = np.arange(3, dtype=np.int8).reshape(3, 1, 1)
    [entry] = from_arrow(to_arrow([make_entry(routed_experts=routes)]))
    assert entry.routed_experts == "nrlre1:int8:3x1x1:AAEC"


def test_a_lone_surrogate_becomes_a_replacement():
    entry = make_entry(model="a\ud83d", output_items=[{"text": "\ud83d"}], reason="\udc00")
    message = "model call 'c' of rollout 'r': lone surrogates in model, output_items, reason were written as U+FFFD"
    with pytest.warns(UserWarning, match=f"^{re.escape(message)}$"):
        [read] = from_arrow(to_arrow([entry]))
    assert (read.model, read.output_items, read.reason) == ("a\ufffd", [{"text": "\ufffd"}], "\ufffd")
    with pytest.raises(ValueError, match=r"^model call 'c' of rollout '\\ud83d' can't be written: "):
        to_arrow([make_entry(rollout_id="\ud83d")])


@pytest.mark.parametrize("given", [make_entry(), "path", {"a": 1}])
def test_several_entries_are_needed(given):
    with pytest.raises(TypeError, match=r"^entries is \w+: several entries are needed"):
        to_arrow(given)


def test_other_things_are_refused():
    with pytest.raises(TypeError, match=r"^entries holds dict: a TokenEntry is needed$"):
        to_arrow([{}])
    with pytest.raises(ValueError, match=r"^ids is 'int16': one of int32, int64, uint64 is needed$"):
        to_arrow([], ids="int16")


def test_arrays_are_views_of_the_table():
    table = to_arrow([bare("a", [1, 2], [3]), bare("b", [4], [5, 6])])
    for name in ("prompt_token_ids", "generation_token_ids", "generation_log_probs"):
        buffer = table[name].chunk(0).values.buffers()[1]
        for entry in from_arrow(table):
            array = getattr(entry, name)
            start = array.__array_interface__["data"][0]
            assert buffer.address <= start < start + array.nbytes <= buffer.address + buffer.size
            assert not array.flags.writeable
    entries = from_arrow(table)
    del table, buffer
    assert [entry.prompt_token_ids.tolist() for entry in entries] == [[1, 2], [4]]


def test_a_deep_copy_lets_go_of_the_table():
    [entry] = from_arrow(to_arrow([make_entry()]))
    copied = copy.deepcopy(entry)
    assert copied == entry
    assert copied.prompt_token_ids.flags.owndata
    assert copied.prompt_token_ids.flags.writeable


def test_a_slice_of_a_table():
    entries = conversation(5)
    table = to_arrow(entries)
    assert from_arrow(table.slice(1, 3)) == entries[1:4]
    assert from_arrow(table.to_batches()[0].slice(2)) == entries[2:]


@pytest.mark.parametrize("limit", ["ids", "text"])
def test_what_is_too_much_for_one_chunk_goes_into_several(monkeypatch, limit):
    texts = limit == "text"
    entries = [
        make_entry(
            model_call_id=f"call-{i}",
            prompt_token_ids=range(1 if texts else 20),
            output_items=[{"text": "x" * 30 * texts}],
            model=f"m{i % 3}",
        )
        for i in range(7)
    ]
    monkeypatch.setattr(arrow, "MOST", 100 if texts else 45)
    table = to_arrow(entries)
    assert [len(batch) for batch in table.to_batches()] == [2, 2, 2, 1]
    assert from_arrow(table) == entries
    assert from_arrow(pa.concat_tables([table, table])) == entries * 2
    assert {tuple(chunk.dictionary.to_pylist()) for chunk in table["model"].chunks} == {("m0", "m1", "m2")}


def test_generated_ids_count_too(monkeypatch):
    monkeypatch.setattr(arrow, "MOST", 45)
    entries = [bare("c", [1], range(20)) for _ in range(3)]
    assert [len(batch) for batch in to_arrow(entries).to_batches()] == [2, 1]


def test_a_record_that_no_column_holds(monkeypatch):
    monkeypatch.setattr(arrow, "MOST", 45)
    message = "model call 'c' of rollout 'r' can't be written: it has 46 ids and 2 bytes of text: a column holds 45"
    with pytest.raises(ValueError, match=f"^{message}$"):
        to_arrow([bare("c", range(46))])
    message = "model call 'c' of rollout 'r' can't be written: it has 2 ids and 46 bytes of text: a column holds 45"
    with pytest.raises(ValueError, match=f"^{message}$"):
        to_arrow([make_entry(model="m" * 46)])


def test_what_no_record_has_beside_its_fields_is_null():
    assert to_arrow([make_entry(), make_entry(reward=1.0)])["extra_fields"].to_pylist() == [None, '{"reward":1.0}']


def changed(entries, name, column):
    """A table of the records with another column of that name."""
    table = to_arrow(entries)
    return table.set_column(table.schema.get_field_index(name), name, column)


@pytest.mark.parametrize(
    ("name", "type_"),
    [
        ("prompt_token_ids", pa.large_list(pa.int64())),
        ("prompt_token_ids", pa.list_(pa.uint16())),
        ("generation_log_probs", pa.large_list(pa.float64())),
        ("rollout_id", pa.large_string()),
        ("model", pa.string()),
        ("model", pa.string_view()),
        ("output_items", pa.string()),
        ("output_items", pa.large_string()),
        ("output_items", pa.binary()),
    ],
)
def test_columns_as_other_programs_hand_them_on(name, type_):
    entries = [make_entry(model="m", output_items=[{"a": 1}])]
    plain = to_arrow(entries)[name].to_pylist()
    [entry] = from_arrow(changed(entries, name, pa.array(plain, type_)))
    assert entry == entries[0]
    assert isinstance(entry.prompt_token_ids, np.ndarray)
    assert isinstance(entry.generation_log_probs, np.ndarray)


def test_items_as_structs():
    entries = [make_entry(output_items=[{"type": "message"}])]
    assert from_arrow(changed(entries, "output_items", pa.array([[{"type": "message"}]]))) == entries


def test_columns_that_are_missing_or_new():
    entries = [make_entry(), make_entry()]
    table = to_arrow(entries).select(["rollout_id", "model_call_id", *arrow.ARRAY_FIELDS])
    assert from_arrow(table) == entries
    more = table.append_column("reward", pa.array([1.5, None]))
    assert from_arrow(more) == [make_entry(reward=1.5), make_entry()]
    message = "the table has no column prompt_token_ids: the columns of RECORD_SCHEMA are needed"
    with pytest.raises(ValueError, match=f"^{message}$"):
        from_arrow(table.drop_columns("prompt_token_ids"))


@pytest.mark.parametrize(
    ("name", "column", "message"),
    [
        ("prompt_token_ids", pa.array([[1], None]), "row 1: prompt_token_ids: Field required"),
        ("prompt_token_ids", pa.array([[1], [1, None]]), "row 1: prompt_token_ids: 1: Input should be a valid integer"),
        ("prompt_token_ids", pa.array([[1], [1.5]]), "row 0: prompt_token_ids: "),
        (
            "generation_log_probs",
            pa.array([[1.0], []]),
            "row 1: generation_token_ids and generation_log_probs must have",
        ),
        ("output_items", pa.array(["[]", "[1"]), "row 1: output_items is not JSON: EOF while parsing"),
        ("output_items", pa.array(["[]", "1"]), "row 1: output_items: Input should be a valid list"),
        ("extra_fields", pa.array([None, "[]"]), "row 1: extra_fields is list: a JSON object is needed"),
        ("schema_version", pa.array([1, 2]), "row 1: schema_version is 2, but this reader understands up to 1"),
    ],
)
def test_a_row_that_holds_no_record(name, column, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}"):
        from_arrow(changed([make_entry(), make_entry()], name, column))


def test_a_null_beside_other_rows_costs_its_own_row_alone():
    table = changed([make_entry()] * 3, "prompt_token_ids", pa.array([[1, 2], None, [1, 2]], pa.list_(pa.int32())))
    made = list(arrow.made_of(table))
    assert made[::2] == [make_entry()] * 2
    assert isinstance(made[1], ValueError)


def test_columns_win_over_extra_fields():
    [entry] = from_arrow(changed([make_entry()], "extra_fields", pa.array(['{"model":"other","reward":1}'])))
    assert (entry.model, entry.reward) == ("", 1)
