"""The bytes that are written: those of orjson, read back equal."""

from __future__ import annotations

import io
import math
from typing import TYPE_CHECKING, Any

import numpy as np
import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.factories import make_entry, orjson_line
from support.twin import Twin, exact
from tokenrecords import ParentResolutionStatus, TokenEntry, append_jsonl, write_jsonl

if TYPE_CHECKING:
    from pathlib import Path

many = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def values(*, finite: bool) -> st.SearchStrategy[Any]:
    floats = st.floats(allow_nan=not finite, allow_infinity=not finite)
    leaves = st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | floats | st.text()
    return st.recursive(leaves, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=8)


INT_DTYPES = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]


def in_layout(array: np.ndarray, layout: str) -> np.ndarray:
    """The same values, otherwise in memory."""
    match layout:
        case "strided":
            wide = np.zeros((len(array), 3), array.dtype)
            wide[:, 1] = array
            return wide[:, 1]
        case "reversed":
            return array[::-1].copy()[::-1]
        case "swapped":
            return array.astype(array.dtype.newbyteorder())
        case "read-only":
            array = array.copy()
            array.flags.writeable = False
            return array
        case "unaligned":
            shifted = np.frombuffer(b"\0" + array.tobytes(), np.uint8)[1:]
            return shifted.view(array.dtype)
        case _:
            return array


@st.composite
def id_values(draw: st.DrawFn, size: int | None = None) -> Any:
    """A list of ids, or an array of any integer dtype."""
    bounds = {} if size is None else {"min_size": size, "max_size": size}
    kind = draw(st.sampled_from(["list", *INT_DTYPES]))
    limits = np.iinfo("int64" if kind == "list" else kind)
    usual = st.integers(0, min(150_000, int(limits.max)))
    ids = draw(st.lists(st.integers(int(limits.min), int(limits.max)) | usual, **bounds))
    return ids if kind == "list" else in_layout(np.array(ids, kind), draw(layouts))


layouts = st.sampled_from(["plain", "strided", "reversed", "swapped", "read-only", "unaligned"])


@st.composite
def log_prob_values(draw: st.DrawFn, size: int) -> Any:
    kind = draw(st.sampled_from(["list", "float16", "float32", "float64"]))
    width: Any = {"float16": 16, "float32": 32}.get(kind, 64)
    found = draw(st.lists(st.floats(width=width) | st.floats(-30, 0, width=width), min_size=size, max_size=size))
    return found if kind == "list" else in_layout(np.array(found, kind), draw(layouts))


@st.composite
def records(draw: st.DrawFn, *, finite: bool = False) -> TokenEntry:
    size = draw(st.integers(0, 6))
    json = values(finite=finite)
    fields = {
        "rollout_id": draw(st.text()),
        "model_call_id": draw(st.text()),
        "prompt_token_ids": draw(id_values()),
        "generation_token_ids": draw(id_values(size)),
        "generation_log_probs": draw(log_prob_values(size)),
        "created_at": draw(st.floats(allow_nan=False, allow_infinity=False)),
        "output_items": draw(st.lists(st.dictionaries(st.text(), json), max_size=3)),
        "parent_resolution": draw(st.sampled_from([None, *ParentResolutionStatus])),
    }
    if fields["parent_resolution"] == "resolved":
        fields |= {"parent_call_id": "p", "prompt_is_delta": draw(st.booleans())}
    if fields["output_items"]:
        fields["token_item_index"] = draw(st.none() | st.integers(0, len(fields["output_items"]) - 1))
    others = {"model": st.text(), "cum_len": st.none() | st.integers(0, 2**63), "routed_experts": json}
    fields |= draw(st.fixed_dictionaries({}, optional=others))
    extras = draw(st.dictionaries(st.text().filter(lambda name: name not in TokenEntry.model_fields), json, max_size=3))
    return TokenEntry.model_validate({**extras, **fields})


@many
@given(records())
def test_the_bytes_of_orjson(record: TokenEntry) -> None:
    line = record.to_json()
    assert line == orjson_line(record)
    assert record.as_lists().to_json() == line
    assert record.as_arrays().to_json() == line
    target = io.BytesIO()
    write_jsonl(target, [record, record])
    assert target.getvalue() == (line + b"\n") * 2


@many
@given(records(finite=True))
def test_what_is_written_is_read_back_equal(record: TokenEntry) -> None:
    line = record.to_json()
    assert TokenEntry.from_json(line) == record
    assert TokenEntry.model_validate_json(line) == record
    assert exact(TokenEntry.from_json(line, arrays=False)) == exact(Twin.model_validate_json(line))
    assert TokenEntry.from_json(line).to_json() == line


@many
@given(st.lists(st.floats() | st.floats(width=32)))
def test_floats_in_the_shortest_form(floats: list[float]) -> None:
    line = make_entry(x=floats).to_json()
    assert line == orjson_line(make_entry(x=floats))
    if all(map(math.isfinite, floats)):
        found = TokenEntry.from_json(line).model_extra["x"]  # type: ignore[index]
        assert [x.hex() for x in found] == [x.hex() for x in floats]


@many
@given(st.text(st.characters(codec="utf-8") | st.sampled_from('"\\/\b\f\n\r\t\0\x1f\x7f\u2028\ue000\uffff\U0001f600')))
def test_text(text: str) -> None:
    record = make_entry(model=text, x={text: text})
    assert record.to_json() == orjson_line(record)
    assert TokenEntry.from_json(record.to_json()) == record


def test_keys_are_sorted_by_their_bytes() -> None:
    names = ["\uffff", "\U0001f600", "a", "A", "", "é", "z", "aa", "a.", "\0"]
    record = make_entry(output_items=[dict.fromkeys(names, 1)], **dict.fromkeys(names, 1))
    line = record.to_json()
    assert line == orjson_line(record)
    found = orjson.loads(line)
    assert list(found) == sorted(found, key=str.encode)
    assert list(found["output_items"][0]) == sorted(names, key=str.encode)


def test_non_finite_log_probs_survive() -> None:
    for floats in ([math.nan, math.inf, -math.inf, -0.5], np.array([np.nan, np.inf, -np.inf, -0.5], np.float16)):
        record = make_entry(generation_token_ids=[1, 2, 3, 4], generation_log_probs=floats)
        line = record.to_json()
        assert b'"generation_log_probs":["NaN","Infinity","-Infinity",-0.5]' in line
        assert line == orjson_line(record)
        assert TokenEntry.from_json(line) == record
        assert exact(Twin.model_validate_json(line)) == exact(TokenEntry.from_json(line))


def test_other_non_finite_numbers_become_null() -> None:
    record = make_entry(output_items=[{"a": math.nan, "b": [math.inf]}], x={"c": -math.inf}, routed_experts=[math.nan])
    found = TokenEntry.from_json(record.to_json())
    assert found.output_items == [{"a": None, "b": [None]}]
    assert found.model_extra == {"x": {"c": None}}
    assert found.routed_experts == [None]


def test_the_largest_integers() -> None:
    record = make_entry(x=[2**64 - 1, -(2**63)], prompt_token_ids=[2**64 - 1, 0], cum_len=2**64 - 1)
    assert record.to_json() == orjson_line(record)
    assert TokenEntry.from_json(record.to_json()) == record


def test_one_entry_to_write(tmp_path: Path) -> None:
    for write in (write_jsonl, append_jsonl):
        with pytest.raises(TypeError, match=r"^entries is TokenEntry: several entries are needed; put it in a list"):
            write(tmp_path / "x.tokens.jsonl", make_entry())
    assert not list(tmp_path.iterdir())
