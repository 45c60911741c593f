"""`TokenEntry`: its fields, its rules, and what becomes of a value that is no array."""

import base64
import collections
import decimal
import enum
import fractions
import itertools
import json
import pickle
import re
import zlib
from typing import get_args, get_type_hints

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from support.factories import DELTA, make_entry
from support.twin import Plain
from tokenrecords import ParentResolutionStatus, TokenEntry, stamp_lineage
from tokenrecords.entry.model import origin, set_origin

ARRAY_FIELDS = ("prompt_token_ids", "generation_token_ids", "generation_log_probs")
REQUIRED = {"rollout_id": "r", "model_call_id": "c"} | {name: [] for name in ARRAY_FIELDS}


def test_fields_stand_in_their_order():
    assert list(TokenEntry.model_fields) == list(Plain.model_fields)
    assert list(TokenEntry(**REQUIRED).model_dump()) == list(Plain.model_fields)
    assert list(TokenEntry(**dict(reversed(REQUIRED.items()))).model_dump()) == list(Plain.model_fields)


def test_defaults():
    assert TokenEntry(**REQUIRED).model_dump() == Plain(**REQUIRED).model_dump()
    for name, value in TokenEntry(**REQUIRED).model_dump().items():
        assert type(value) is type(getattr(Plain(**REQUIRED), name))


def test_an_output_items_list_for_each_entry():
    assert TokenEntry(**REQUIRED).output_items is not TokenEntry(**REQUIRED).output_items


@pytest.mark.parametrize("name", REQUIRED)
def test_required_fields(name):
    with pytest.raises(ValidationError) as caught:
        TokenEntry(**{key: value for key, value in REQUIRED.items() if key != name})
    assert [(error["type"], error["loc"]) for error in caught.value.errors()] == [("missing", (name,))]


def test_annotations():
    hints = get_type_hints(TokenEntry)
    for name, field in Plain.model_fields.items():
        if name in ARRAY_FIELDS:
            assert field.annotation in get_args(hints[name])
        elif name != "output_items":
            assert hints[name] == field.annotation
    assert TokenEntry.model_config["extra"] == "allow"


def test_extra_fields_are_kept():
    entry = make_entry(prompt_token_id=[1], note=None)
    assert entry.model_extra == {"prompt_token_id": [1], "note": None}
    assert entry.note is None
    assert list(entry.model_dump())[-2:] == ["prompt_token_id", "note"]
    assert TokenEntry.model_validate_json(entry.model_dump_json()) == entry


RULES = [
    ({"schema_version": 2}, "schema_version is 2, but this reader understands up to 1"),
    ({"schema_version": 99}, "99.* understands up to 1"),
    ({"schema_version": 0}, "schema_version is 0, below the supported minimum 1"),
    ({"schema_version": -1}, "-1, below the supported minimum 1"),
    ({"generation_token_ids": [3, 4]}, "same length, got 2 and 1"),
    ({"generation_log_probs": []}, "same length, got 1 and 0"),
    ({"generation_token_ids": np.arange(3)}, "same length, got 3 and 1"),
    ({"generation_log_probs": np.zeros(2)}, "same length, got 1 and 2"),
    ({"token_item_index": 0}, "token_item_index 0 is outside output_items, which has 0"),
    ({"token_item_index": 2, "output_items": [{}, {}]}, "token_item_index 2 is outside output_items, which has 2"),
    ({"token_item_index": -1, "output_items": [{}]}, "token_item_index -1 is outside output_items, which has 1"),
    ({"parent_resolution": "resolved"}, "'resolved': it requires parent_call_id, got None"),
    ({"parent_resolution": "resolved", "parent_call_id": ""}, "'resolved': it requires parent_call_id, got ''"),
    ({"parent_resolution": "root", "parent_call_id": "p"}, "'root': it cannot carry parent_call_id, got 'p'"),
    ({"parent_resolution": "root", "parent_call_id": ""}, "'root': it cannot carry parent_call_id, got ''"),
    ({"parent_resolution": "unresolved", "parent_call_id": "p"}, "'unresolved': it cannot carry parent_call_id"),
    ({"prompt_is_delta": True}, "delta prompt .*got None and None"),
    ({"prompt_is_delta": True, "parent_call_id": "p"}, "delta prompt .*got None and 'p'"),
    ({"prompt_is_delta": True, "parent_resolution": "root"}, "delta prompt .*got 'root' and None"),
    ({"prompt_is_delta": True, "parent_resolution": "unresolved"}, "delta prompt .*got 'unresolved' and None"),
    ({**DELTA, "parent_call_id": None}, "requires parent_call_id"),
    ({**DELTA, "parent_call_id": ""}, "requires parent_call_id"),
]


@pytest.mark.parametrize(("changes", "message"), RULES)
def test_rules(changes, message):
    with pytest.raises(ValidationError, match=message) as caught:
        make_entry(**changes)
    assert [(error["type"], error["loc"]) for error in caught.value.errors()] == [("value_error", ())]


def test_the_first_broken_rule_is_reported():
    with pytest.raises(ValidationError, match="understands up to"):
        make_entry(schema_version=2, generation_log_probs=[], parent_resolution="resolved")
    with pytest.raises(ValidationError, match="same length"):
        make_entry(generation_log_probs=[], token_item_index=3, parent_resolution="resolved")


@pytest.mark.parametrize(
    "changes",
    [
        {"schema_version": 1},
        {"schema_version": True},
        {"generation_token_ids": [], "generation_log_probs": []},
        {"token_item_index": 0, "output_items": [{}]},
        {"token_item_index": 1, "output_items": [{}, {}]},
        {"token_item_index": True, "output_items": [{}, {}]},
        {"parent_call_id": "p"},
        {"parent_call_id": ""},
        {"parent_resolution": "resolved", "parent_call_id": "p"},
        {"parent_resolution": "root"},
        {"parent_resolution": ParentResolutionStatus.UNRESOLVED},
        DELTA,
        {"cum_len": -1, "digest": "zz"},
        {"prompt_token_ids": [2**64, -1]},
        {"generation_log_probs": [0.5]},
    ],
)
def test_what_no_rule_forbids(changes):
    entry = make_entry(**changes)
    assert {name: getattr(entry, name) for name in changes} == changes


def test_the_validator_has_its_name():
    assert "_refuse_a_newer_record" in TokenEntry.__pydantic_decorators__.model_validators


def test_a_subclass_can_replace_the_validator():
    class Open(TokenEntry):
        def _refuse_a_newer_record(self):
            return self

    assert Open(**REQUIRED, schema_version=9).schema_version == 9


def test_assignment_and_updates_are_not_validated():
    entry = make_entry()
    entry.schema_version = 9
    entry.generation_log_probs = "anything"
    assert entry.model_copy(update={"prompt_is_delta": True, "prompt_token_ids": None}).prompt_token_ids is None


def test_the_status_becomes_its_enum():
    entry = make_entry(parent_resolution="root")
    assert entry.parent_resolution is ParentResolutionStatus.ROOT
    with pytest.raises(ValidationError, match="parent_resolution"):
        make_entry(parent_resolution="ROOT")


LAX = [
    (["7", " 8 ", "1_000", "-3"], [7, 8, 1_000, -3]),
    ([1.0, 2.0**40], [1, 2**40]),
    ([True, False], [1, 0]),
    ([np.int64(3), np.bool_(True), np.float32(2.0), np.array(5)], [3, 1, 2, 5]),
    ([b"7"], [7]),
    ([decimal.Decimal(3)], [3]),
    ([2**64, -(2**70)], [2**64, -(2**70)]),
    (["18446744073709551616"], [2**64]),
]


@pytest.mark.parametrize(("given_", "kept"), LAX)
def test_lax_ids(given_, kept):
    for kind in (list, tuple, collections.deque, iter, lambda items: np.array([*items, None], object)[:-1]):
        ids = make_entry(prompt_token_ids=kind(given_)).prompt_token_ids
        assert ids == kept
        assert type(ids) is list
        assert all(type(id_) is int for id_ in ids)


def test_lax_log_probs():
    given_ = ["-0.5", -1, True, np.float32(-0.1), "nan", "-Infinity", decimal.Decimal("-0.25")]
    log_probs = make_entry(generation_token_ids=[0] * 7, generation_log_probs=given_).generation_log_probs
    assert str(log_probs) == "[-0.5, -1.0, 1.0, -0.10000000149011612, nan, -inf, -0.25]"
    assert all(type(value) is float for value in log_probs)


@pytest.mark.parametrize("value", [[1.5], [None], ["x"], [[1]], [float("nan")], [float("inf")], ["1.5"], [1j]])
def test_what_lax_mode_refuses(value):
    with pytest.raises(ValidationError) as caught:
        make_entry(prompt_token_ids=[0, *value])
    assert [error["loc"] for error in caught.value.errors()] == [("prompt_token_ids", 1)]


class Color(enum.IntEnum):
    RED = 1


class Int(int):
    __slots__ = ()


class Float(float):
    __slots__ = ()


def test_subclasses_become_plain_numbers():
    for ids in ([Int(3)], [Int(3), 1], [Color.RED], [True], [1, True]):
        assert {type(id_) for id_ in make_entry(prompt_token_ids=ids).prompt_token_ids} == {int}
    for log_probs in ([Float(-0.5)], [np.float64(-0.5)], [-0.5, Float(-1.0)], [1, -0.5]):
        entry = make_entry(generation_token_ids=[0] * len(log_probs), generation_log_probs=log_probs)
        assert {type(value) for value in entry.generation_log_probs} == {float}


numbers = st.one_of(
    st.integers(),
    st.integers(-(2**70), 2**70),
    st.booleans(),
    st.floats(),
    st.floats(-1e6, 1e6).map(round).map(float),
)
odd = st.one_of(
    numbers,
    st.none(),
    st.text(max_size=3),
    st.integers().map(str),
    st.floats().map(str),
    st.binary(max_size=2),
    st.decimals(),
    st.fractions(),
    st.sampled_from([Color.RED, Int(3), Float(2.0), Float(-0.5), 1j, [1], (), {}, {"a": 1}, object, 10**5000]),
    st.integers(-128, 127).map(np.int8),
    st.integers(0, 2**64 - 1).map(np.uint64),
    st.floats(width=32).map(np.float32),
    st.floats().map(np.float64),
    st.booleans().map(np.bool_),
    st.integers(0, 9).map(np.array),
)
lists = st.one_of(
    st.lists(st.integers(0, 2**20)), st.lists(st.floats()), st.lists(numbers), st.lists(odd), st.lists(numbers | odd)
)
containers = st.sampled_from(
    [list, tuple, collections.deque, iter, collections.UserList, lambda items: (x for x in items)]
)


def result(model, values, **options):
    """The fields that a model makes of the values, with their types; or what it reports."""
    try:
        entry = model.model_validate({**REQUIRED, **values}, **options)
    except ValidationError as error:
        return [
            (found["type"], found["loc"], found["msg"], repr_of(found["input"]), str(found.get("ctx")))
            for found in error.errors(include_url=False)
            if found["loc"]  # not what the rules of the whole entry say
        ]
    return [(name, type(value := getattr(entry, name)), [(type(x), repr_of(x)) for x in value]) for name in values]


def repr_of(value):
    try:
        return repr(value)
    except ValueError:  # more digits than Python prints
        return hex(value) if isinstance(value, int) else type(value).__name__


@given(lists, st.sampled_from(ARRAY_FIELDS), containers, st.booleans())
def test_lists_are_read_as_pydantic_reads_them(items, name, container, strict):
    def values():  # anew for each model: an iterator is read once
        twins = {"generation_token_ids": [0] * len(items), "generation_log_probs": [0.0] * len(items)}
        return {**twins, name: container(items)}

    assert normal(result(TokenEntry, values(), strict=strict)) == normal(result(Plain, values(), strict=strict))


def normal(found):
    """Without the addresses that a repr may hold."""
    return re.sub(r"0x[0-9a-f]+", "0x", str(found)).replace("Plain", "TokenEntry")


@given(st.lists(st.one_of(st.integers(), st.floats(), st.text(max_size=3), st.none(), st.booleans())))
def test_json_lists_are_read_as_pydantic_reads_them(items):
    text = json.dumps({**REQUIRED, "prompt_token_ids": items})
    outcomes = []
    for model in (TokenEntry, Plain):
        try:
            outcomes.append(model.model_validate_json(text).prompt_token_ids)
        except ValidationError as error:
            outcomes.append([(e["type"], e["loc"], e["msg"], repr(e["input"])) for e in error.errors()])
    assert outcomes[0] == outcomes[1]


def test_every_container_becomes_a_list_of_its_own():
    items = [1, 2]
    for value in (
        items, (1, 2), {1, 2}, frozenset(items), iter(items), (x for x in items), map(int, items), range(1, 3),
        collections.deque(items), {1: 0, 2: 0}.keys(), {0: 1, 1: 2}.values(), collections.UserList(items),
        itertools.chain(items),
    ):  # fmt: skip
        ids = make_entry(prompt_token_ids=value).prompt_token_ids
        assert type(ids) is list
        assert ids == items
        assert ids is not value
    log_probs = [-0.5]
    assert make_entry(generation_log_probs=log_probs).generation_log_probs is not log_probs


@pytest.mark.parametrize(
    "value", ["12", b"12", None, 5, 1.5, {1: 2}, {"dtype": "int32", "shape": [1], "data": "AQAAAA=="}, "AQAAAAIAAAA="]
)
def test_what_is_no_list(value):
    for name in ARRAY_FIELDS:
        with pytest.raises(ValidationError) as caught:
            make_entry(**{name: value})
        assert [(error["type"], error["loc"]) for error in caught.value.errors()] == [("list_type", (name,))]


def test_fractions_are_no_ids():
    with pytest.raises(ValidationError):
        make_entry(prompt_token_ids=[fractions.Fraction(1, 2)])


def test_every_bad_field_is_reported():
    with pytest.raises(ValidationError) as caught:
        make_entry(prompt_token_ids=[1, "x"], generation_token_ids=np.zeros(1), generation_log_probs=None)
    assert [error["loc"] for error in caught.value.errors()] == [
        ("prompt_token_ids", 1),
        ("generation_token_ids",),
        ("generation_log_probs",),
    ]


# A root with one extra field, pickled when the package was one folder of files: `tokenrecords.entry` was a module.
_EARLIER_PICKLE = (
    r"""c-n1JO>Yx15KTycDv&g!6(EW@hf9<+n~%M5K|Mr@P~nO!XLmNXx>+x_w@MF4aNvM65=acchrhy4!QQN*6!68KHy?g8Z$34Do-}IZ"""
    r"""!JbuDkZFjNj?Dlvt8WNf?>zXrG=9*_&-9V{c*IyNBg<H6bxb5+!`U@xBUMI=I<~Y*Q&m_dW5T*7Y;RNyDT{cT?y!jPZix}r2)nsf"""
    r"""o7}RJfeSG7p8AXW;tt^H8Zyw_y2`iQiw3{tOVygWDl6~1`1O0&6UUBrG$3ZM%|Tm3OMK{n+*7l#@xj=w$~v3LEQYNMdZ5ANDl_2O"""
    r"""F0mD9;JysEbWy7gc5<%WnD$*Q@qScnSPE_i4ZIi2H5g0yYL$fHbUYqTMnMoJ!(@CO%vV7ePWUXE2h;f~oJ>dYZ07J_HV#JNXgZuv"""
    r"""lF@mRgh?_92p?5HIaVqye7_`W`1nnUUhcuSmfONOov^8uvh;;637<wPvob4oV@hPU2Ayk}SrYBPoZf(~-E~mIv;R7)wtVtGtlX0u"""
    r"""Pp*w82S4psV~NL=($X*|zUB1Qiw}w1y4(+is|>Njjw{R*d7erS71(1ezlph{6gfGq=H>ojGgB7abp^R4gHH~k5(#N+m;t}4->5HM"""
    r"""h%<2{T4Erci)W%EdZPOsPY*I2-D@Yb3ttwi!5<M*FKY"""
)


def test_pickles_of_the_earlier_layout_load():
    entry = pickle.loads(zlib.decompress(base64.b85decode(_EARLIER_PICKLE)))
    assert entry == stamp_lineage(make_entry(note="kept"), None, "root")
    assert type(entry.parent_resolution) is ParentResolutionStatus


def test_where_an_entry_was_read_does_not_count():
    entry = make_entry()
    set_origin(entry, "a.jsonl", 3)
    assert entry == make_entry()


def test_what_was_made_here_was_read_nowhere():
    class Sub(TokenEntry):
        _seen: int = 3

    assert origin(make_entry()) is None
    assert origin(Sub(**REQUIRED)) is None


def test_an_empty_dtype_is_none_of_integers():
    for refused in (lambda: make_entry().as_arrays(""), lambda: TokenEntry.from_json(make_entry().to_json(), dtype="")):
        with pytest.raises(TypeError):
            refused()


def test_log_probs_are_read_as_wide_as_they_are_written_or_half_of_it():
    line = make_entry().to_json()
    with pytest.raises(TypeError, match="log_prob_dtype is float16: it must be float32 or float64"):
        TokenEntry.from_json(line, log_prob_dtype="float16")
    assert TokenEntry.from_json(line).generation_log_probs.dtype == np.float64


def test_a_status_is_a_plain_text_for_other_formats():
    status = make_entry(parent_resolution="root").json_values()["parent_resolution"]
    assert (type(status), status) == (str, "root")
