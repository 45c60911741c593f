"""Entries as JSON: the same bytes whatever holds the values, and read back equal."""

import base64
import json
import sys
import warnings
from typing import Any

import numpy as np
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ValidationError, field_serializer
from pydantic_core import PydanticSerializationError
from support.factories import make_entry
from support.twin import Plain
from tokenrecords import TokenEntry

NAN, INF = float("nan"), float("inf")
NAMES = {"prompt_token_ids", "generation_token_ids", "generation_log_probs"}


def both(entry):
    """The entry as JSON text, after a look that its dump for JSON says the same."""
    text = entry.model_dump_json()
    assert json.loads(text) == entry.model_dump(mode="json")
    assert orjson.loads(orjson.dumps(entry.model_dump(mode="json"))) == json.loads(text)
    return text


def test_the_smallest_entry():
    assert both(make_entry()) == (
        '{"schema_version":1,"rollout_id":"r","model_call_id":"c","model":"","prompt_token_ids":[1,2],'
        '"generation_token_ids":[3],"generation_log_probs":[-0.5],"routed_experts":null,"output_items":[],'
        '"token_item_index":null,"response_id":null,"created_at":0.0,"parent_call_id":null,"cum_len":null,'
        '"digest":null,"parent_resolution":null,"continuation_fingerprint":"","continuation_context_len":0,'
        '"continuation_context_digest":"","parent_resolution_reason":"","fingerprint_version":null,'
        '"prompt_is_delta":false,"prefix_requested":false,"prefix_supplied":false}'
    )


ids = st.sampled_from([np.dtype(code).newbyteorder(order) for code in "bBhHiIlLqQ" for order in "<>"]).flatmap(
    lambda dtype: st.lists(st.integers(int(np.iinfo(dtype).min), int(np.iinfo(dtype).max))).map(
        lambda values: np.array(values, dtype)
    )
)
log_probs = st.sampled_from([(16, "<f2"), (16, ">f2"), (32, "<f4"), (32, ">f4"), (64, "<f8"), (64, ">f8")]).flatmap(
    lambda width: st.lists(st.floats(width=width[0])).map(lambda values: np.array(values, width[1]))
)


@given(ids, log_probs, st.sampled_from([1, 2, -1]))
def test_arrays_give_the_json_of_their_lists(prompt, probs, step):
    entry = make_entry(
        prompt_token_ids=prompt[::step], generation_token_ids=np.arange(len(probs)), generation_log_probs=probs
    )
    text = both(entry)
    assert text == both(entry.as_lists())
    assert TokenEntry.model_validate_json(text) == entry
    assert TokenEntry.model_validate(json.loads(text)) == entry


@given(st.lists(st.integers(-(2**63), 2**64 - 1)), st.lists(st.floats(allow_nan=False, allow_infinity=False)))
def test_lists_give_the_json_of_pydantic(prompt, probs):
    values = make_entry(
        prompt_token_ids=prompt, generation_token_ids=[0] * len(probs), generation_log_probs=probs
    ).model_dump()
    assert both(TokenEntry(**values)) == Plain(**values).model_dump_json()


def test_large_ints_are_written_in_full():
    text = make_entry(prompt_token_ids=[2**64, -(2**70)]).model_dump_json()
    assert f'"prompt_token_ids":[{2**64},{-(2**70)}]' in text
    assert TokenEntry.model_validate_json(text).prompt_token_ids == [2**64, -(2**70)]


@pytest.mark.parametrize("hold", [list, np.array, lambda v: np.array(v, "f4"), lambda v: np.array(v, ">f2")])
def test_non_finite_log_probs(hold):
    entry = make_entry(generation_token_ids=[0] * 4, generation_log_probs=hold([NAN, INF, -INF, -0.5]))
    assert '"generation_log_probs":["NaN","Infinity","-Infinity",-0.5]' in both(entry)
    read = TokenEntry.model_validate_json(entry.model_dump_json())
    assert str(read.generation_log_probs) == "[nan, inf, -inf, -0.5]"
    assert read == entry
    assert TokenEntry(**entry.model_dump(mode="json")) == entry


def test_finite_log_probs_whose_sum_is_not():
    values = [1.7e308, 1.7e308, -1.7e308]
    entry = make_entry(generation_token_ids=[0] * 3, generation_log_probs=values)
    assert json.loads(both(entry))["generation_log_probs"] == values


def test_opposite_infinities_do_not_cancel():
    entry = make_entry(generation_token_ids=[0] * 2, generation_log_probs=[INF, -INF])
    assert json.loads(both(entry))["generation_log_probs"] == ["Infinity", "-Infinity"]


def test_only_log_probs_are_written_as_text():
    text = make_entry(created_at=NAN, note=[INF]).model_dump_json()
    assert '"NaN"' not in text
    assert '"Infinity"' not in text


def test_numbers_are_written_as_pydantic_writes_them():
    values = [-0.0, -1e-7, 1e22, -0.1, -1.0, 5e-324]
    entry = make_entry(generation_token_ids=[0] * len(values), generation_log_probs=values)
    text = both(entry).split('"generation_log_probs":')[1].split("]")[0]
    assert text == Plain(**entry.model_dump()).model_dump_json().split('"generation_log_probs":')[1].split("]")[0]
    assert text.startswith("[-0.0,")


def test_a_part_of_an_entry():
    entry = make_entry(prompt_token_ids=np.arange(2), generation_log_probs=[NAN])
    assert entry.model_dump_json(include={"prompt_token_ids"}) == '{"prompt_token_ids":[0,1]}'
    assert entry.model_dump(mode="json", include={"generation_log_probs"}) == {"generation_log_probs": ["NaN"]}
    assert NAMES.isdisjoint(json.loads(entry.model_dump_json(exclude=NAMES)))


def test_values_assigned_without_validation_are_written_or_refused_clearly():
    entry = make_entry()
    entry.generation_log_probs = (-0.5, NAN)
    assert entry.model_dump(mode="json")["generation_log_probs"] == [-0.5, "NaN"]
    entry.generation_log_probs = ["x"]
    assert entry.model_dump(mode="json")["generation_log_probs"] == ["x"]


def test_what_can_not_be_written_is_named_with_its_call():
    entry = make_entry(rollout_id="a rollout", model_call_id="a call")
    entry.x = object()
    message = r"^model call 'a call' of rollout 'a rollout' can't be written: x: .* \(it is object\)$"
    with pytest.raises(ValueError, match=message):
        entry.to_json()


@pytest.mark.parametrize("mode", ["validation", "serialization"])
def test_json_schema(mode):
    mine, plain = (model.model_json_schema(mode=mode) for model in (TokenEntry, Plain))
    probs = mine["properties"]["generation_log_probs"]
    if mode == "serialization":
        assert probs["items"] == {"anyOf": [{"type": "number"}, {"enum": ["NaN", "Infinity", "-Infinity"]}]}
        probs["items"] = {"type": "number"}
    assert mine["properties"] == plain["properties"]
    assert mine["required"] == plain["required"]
    assert mine["additionalProperties"] is True
    assert mine["$defs"]["ParentResolutionStatus"]["enum"] == ["root", "resolved", "unresolved"]


ROUTES = [np.dtype(code).newbyteorder(order) for code in ("i1", "i2", "i4") for order in "<>"]


def routes_json(value):
    entry = make_entry(routed_experts=value)
    text = json.loads(both(entry))["routed_experts"]
    assert entry.model_dump()["routed_experts"] is value
    return text


@pytest.mark.parametrize("dtype", ROUTES, ids=str)
def test_routes_become_their_string(dtype):
    array = np.arange(24).reshape(2, 3, 4).astype(dtype)
    array[0, 0, 0] = -2
    for value in (
        array, np.asfortranarray(array), array[:, ::-1], array[::2], array.transpose(2, 0, 1), array[:0], array[..., :1]
    ):  # fmt: skip
        magic, name, shape, data = routes_json(value).split(":")
        assert magic == "nrlre1"
        assert name == dtype.newbyteorder("=").name
        assert shape == "x".join(map(str, value.shape))
        little = np.frombuffer(base64.b64decode(data, validate=True), np.dtype(name).newbyteorder("<"))
        assert little.reshape(value.shape).tolist() == value.tolist()


def test_a_known_route():
    assert routes_json(np.array([[[0, 1]]], np.int16)) == "nrlre1:int16:1x1x2:AAABAA=="
    assert routes_json(np.array([[[0, 258]]], ">i4")) == "nrlre1:int32:1x1x2:AAAAAAIBAAA="


@pytest.mark.parametrize("dtype", ["u1", "u2", "i8", "f4", "f8", "bool", "O", "U1"])
def test_routes_of_another_dtype(dtype):
    entry = make_entry(routed_experts=np.zeros((1, 1, 1), dtype))
    for dump in (entry.model_dump_json, lambda: entry.model_dump(mode="json")):
        with pytest.raises(
            PydanticSerializationError, match=r"routed_experts (has dtype|is ndarray of \S+: routes must be integers)"
        ):
            dump()


@pytest.mark.parametrize("shape", [(), (2,), (1, 2), (1, 1, 1, 1)])
def test_routes_of_another_shape(shape):
    entry = make_entry(routed_experts=np.zeros(shape, np.int8))
    for dump in (entry.model_dump_json, lambda: entry.model_dump(mode="json")):
        with pytest.raises(
            PydanticSerializationError,
            match=r"routed_experts has shape .*: 3 dimensions \(tokens, layers, top_k\) are needed",
        ):
            dump()


@pytest.mark.parametrize(
    "value",
    [b"\x00\xff", b"", bytearray(b"ab"), memoryview(b"ab")],
    ids=["bytes", "no bytes", "bytearray", "memoryview"],
)
def test_raw_bytes_are_refused_by_name(value):
    entry = make_entry(routed_experts=value)
    assert entry.routed_experts is value
    for dump in (entry.model_dump_json, lambda: entry.model_dump(mode="json")):
        with pytest.raises(PydanticSerializationError, match=f"routed_experts is {type(value).__name__}"):
            dump()


@pytest.mark.parametrize(
    "value", ["nrlre1:int16:1x1x2:AAABAA==", [[[0, 1]]], 42, None, {"a": [1]}, "text", [1.5, True]]
)
def test_other_routes_are_kept_as_they_are(value):
    entry = make_entry(routed_experts=value)
    assert entry.routed_experts == value
    assert json.loads(both(entry))["routed_experts"] == value
    dumped = entry.model_dump()["routed_experts"]
    assert dumped == value
    assert (dumped is entry.routed_experts) is not isinstance(value, list | dict)  # what may change is copied


def test_an_interrupt_is_never_a_value_error() -> None:
    """pydantic takes whatever our own code raises inside its serializer for an error of the value."""
    entry = make_entry(routed_experts=np.zeros((3, 1, 2), np.int8), note={"a": [1]}).as_arrays()
    calls = 0

    def interrupt(frame: Any, event: str, _: Any) -> None:
        nonlocal calls
        if event == "call" and "tokenrecords" in frame.f_code.co_filename:
            calls += 1
            if calls == at:
                raise KeyboardInterrupt

    whole = entry.to_json()
    for at in range(1, 40):
        calls = 0
        sys.setprofile(interrupt)
        try:
            line = entry.to_json()
        except KeyboardInterrupt:
            continue
        finally:
            sys.setprofile(None)
        assert (line, calls < at) == (whole, True)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"prompt_token_ids": [], "generation_token_ids": [], "generation_log_probs": []},
        {"prompt_token_ids": [2**64, -(2**70)]},
        {"generation_log_probs": [NAN]},
        {"generation_log_probs": [-INF]},
        {"note": {"b": [1], "a": None}, "another": "x"},
        {"prompt_token_ids": np.arange(3)},
        {"routed_experts": np.zeros((1, 1, 1), np.int8), "output_items": [{"z": 1, "a": [NAN]}], "token_item_index": 0},
    ],
)
def test_a_dump_of_lists_is_pydantics(changes):
    entry = make_entry(**{"generation_token_ids": [7], "generation_log_probs": [-0.5], **changes})
    dump, plain = entry.model_dump(mode="json"), BaseModel.model_dump(entry, mode="json")
    assert str(dump) == str(plain)
    assert type(dump["parent_resolution"]) is type(plain["parent_resolution"])


@pytest.mark.parametrize("name", ["prompt_token_ids", "generation_token_ids", "generation_log_probs", "output_items"])
def test_a_dump_shares_nothing_with_the_entry(name):
    entry = make_entry()
    before = entry.model_copy(deep=True)
    entry.model_dump(mode="json")[name].append(None)
    assert entry == before


@pytest.mark.parametrize(
    "assigned", [{"prompt_token_ids": [True]}, {"generation_token_ids": [np.int64(5)]}, {"generation_log_probs": [1]}]
)
def test_a_dump_of_what_was_assigned_is_pydantics(assigned):
    entry = make_entry(generation_token_ids=[7], generation_log_probs=[-0.5])
    for name, value in assigned.items():
        setattr(entry, name, value)
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        outcomes = [
            attempt(lambda dump=dump: str(dump(entry, mode="json")))
            for dump in (TokenEntry.model_dump, BaseModel.model_dump)
        ]
    assert outcomes[0] == outcomes[1]
    texts = [str(warning.message) for warning in warned]
    assert texts[: len(texts) // 2] == texts[len(texts) // 2 :]


def attempt(function):
    try:
        return function()
    except ValueError as error:
        return str(error)


def test_an_entry_that_lacks_fields_is_dumped_as_pydantic_does():
    entry = TokenEntry.model_construct(rollout_id="r")
    assert entry.model_dump(mode="json") == BaseModel.model_dump(entry, mode="json")


def test_a_subclass_may_write_its_lists_in_its_own_way():
    class Counted(TokenEntry):
        @field_serializer("prompt_token_ids")
        def _count(self, ids):
            return len(ids)

    entry = Counted(**make_entry(prompt_token_ids=[5, 6]).model_dump())
    assert entry.model_dump(mode="json")["prompt_token_ids"] == 2


@pytest.mark.parametrize("name", ["rollout_id", "model_call_id", "parent_call_id", "response_id", "digest"])
def test_half_a_character_in_a_name_is_an_error(name):
    with pytest.raises(ValueError, match=r"^model call .* of rollout .* can't be written: "):
        make_entry(**{name: "a\ud800"}).to_json()


def test_half_characters_are_warned_of_where_the_record_is_written():
    entry = make_entry(zeal="\ud800", model="\ud800", a="\ud800")
    with pytest.warns(UserWarning, match=r": lone surrogates in a, model, zeal were written as U\+FFFD$") as caught:
        entry.to_json()
    assert [warning.filename for warning in caught] == [__file__]


def test_a_mask_of_bools_is_written_as_bools():
    for mask in ([True], np.array([True]), (True,)):
        line = json.loads(make_entry(generation_loss_mask=mask).to_json())
        assert line["generation_loss_mask"] == [True]
        assert type(line["generation_loss_mask"][0]) is bool


def test_a_number_beyond_float32_is_infinite_there_without_a_warning():
    class Entry(TokenEntry):
        """Read by pydantic alone."""

    text = make_entry(generation_log_probs=[-1e300]).to_json()
    for model in (TokenEntry, Entry):
        log_probs = model.from_json(text, log_prob_dtype="float32").generation_log_probs
        assert (log_probs.dtype, log_probs.tolist()) == (np.float32, [-INF])


@pytest.mark.parametrize(
    "text", [{"a": 1, "b": "x\ud800"}, {"b": "x\ud800", "a": 1}, ["a", "x\ud800"], [["x\ud800"], 1]]
)
def test_half_a_character_beside_whole_ones_is_replaced(text):
    with pytest.warns(UserWarning, match="lone surrogates in note"):
        line = make_entry(note=text).to_json()
    assert line.count("x\ufffd".encode()) == 1


@pytest.mark.parametrize(
    ("mask", "written"),
    [
        (None, None),
        ([1, np.int64(0)], [1, 0]),
        (("x",), ["x"]),
        ([1, "x"], [1, "x"]),
    ],
)
def test_a_mask_is_written_as_what_it_holds(mask, written):
    line = make_entry(generation_loss_mask=mask).to_json()
    assert f'"generation_loss_mask":{json.dumps(written, separators=(",", ":"))}'.encode() in line


def test_a_mask_that_json_does_not_have_is_named():
    with pytest.raises(ValueError, match="can't be written: generation_loss_mask"):
        make_entry(generation_loss_mask=np.array([[1]])).to_json()


@pytest.mark.parametrize("when", [NAN, INF, -INF])
def test_a_time_that_is_not_finite_is_not_written(when):
    with pytest.raises(ValueError, match=f"created_at is {when}: JSON has no such number"):
        make_entry(created_at=when).to_json()


def test_numbers_of_numpy_that_are_not_finite_are_texts_too():
    entry = make_entry()
    entry.generation_log_probs = [np.float64("nan")]
    assert entry.model_dump(mode="json")["generation_log_probs"] == ["NaN"]


def test_what_lacks_its_names_is_refused_all_the_same():
    for write in (TokenEntry.to_json, TokenEntry.json_values):
        with pytest.raises(ValueError, match=r"^model call None of rollout 'r' can't be written: ") as refused:
            write(TokenEntry.model_construct(rollout_id="r"))
        assert isinstance(refused.value.__cause__, ValidationError)
