"""Reading records: how they arrive, and what is a record and what is none."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError
from support.factories import THREE, call_ids, line, raw
from support.twin import Twin, exact
from tokenrecords import RecordError, TokenEntry, read_jsonl

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("ids", "dtype"),
    [
        ([], "int32"),
        ([0], "int32"),
        ([-(2**31), 2**31 - 1], "int32"),
        ([2**31], "int64"),
        ([-(2**31) - 1], "int64"),
        ([-(2**63), 2**63 - 1], "int64"),
        ([2**63, 0], "uint64"),
        ([2**64 - 1], "uint64"),
        ([2**64], None),
        ([-1, 2**63], None),
        ([-(2**63) - 1], None),
    ],
)
def test_the_narrowest_dtype(ids: list[int], dtype: str | None) -> None:
    text = str(ids)
    # The second reads an escaped key, which the fast path leaves to pydantic.
    for data in (raw(prompt_token_ids=text), raw(prompt_token_ids=text, **{"\\u0061": "1"})):
        (found,) = read_jsonl(data)
        if dtype is None:
            assert found.prompt_token_ids == ids
            assert type(found.prompt_token_ids) is list
        else:
            assert isinstance(found.prompt_token_ids, np.ndarray)
            assert found.prompt_token_ids.dtype == dtype
            assert found.prompt_token_ids.shape == (len(ids),)
            assert found.prompt_token_ids.tolist() == ids
            assert found.prompt_token_ids.flags.writeable
        assert isinstance(found.generation_token_ids, np.ndarray)
        assert found.generation_token_ids.dtype == np.int32


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", ">i4"])
@pytest.mark.parametrize("odd", [False, True])
def test_a_wanted_dtype(dtype: str, odd: bool) -> None:
    limits = np.iinfo(dtype)
    wanted = [int(limits.min), 5, int(limits.max)]
    five = '"5"' if odd else "5"
    text = f"[{wanted[0]},{five},{wanted[2]}]"
    (found,) = read_jsonl(raw(prompt_token_ids=text), dtype=dtype)
    for name, ids in (("prompt_token_ids", wanted), ("generation_token_ids", [3])):
        array = getattr(found, name)
        assert array.dtype == np.dtype(dtype)
        assert array.tolist() == ids
    for beyond in (limits.min - 1, limits.max + 1):
        data = raw(generation_token_ids=f"[{five},{beyond}]", generation_log_probs="[0,0]")
        with pytest.raises(RecordError) as info:
            read_jsonl(line() + data, dtype=dtype)
        assert f"generation_token_ids[1] is {beyond}" in info.value.reason
        assert str(np.dtype(dtype)) in info.value.reason
        assert info.value.line == 2


def test_log_probs_are_float64_unless_asked() -> None:
    for data in (line(), line(prompt_token_ids=["1"])):
        (wide,), (narrow,) = read_jsonl(data), read_jsonl(data, log_prob_dtype="float32")
        assert wide.generation_log_probs.dtype == np.float64  # type: ignore[union-attr]
        assert narrow.generation_log_probs.dtype == np.float32  # type: ignore[union-attr]
        assert wide == narrow


def float32_of(text: str) -> float:
    """The float32 nearest to the number, the even one of two."""
    exact_value = Fraction(text)
    near = np.float32(float(text))
    candidates = [near, np.nextafter(near, np.float32(-np.inf)), np.nextafter(near, np.float32(np.inf))]
    return float(min(candidates, key=lambda x: (abs(Fraction(float(x)) - exact_value), int(x.view(np.uint32)) & 1)))


DOUBLE_ROUNDED = "1.00000005960464477540"  # just above half-way; half-way once it is float64


def test_the_example_is_rounded_twice_through_float64() -> None:
    assert float32_of(DOUBLE_ROUNDED) != np.float32(float(DOUBLE_ROUNDED))


def test_float32_is_rounded_once() -> None:
    (found,) = read_jsonl(raw(generation_log_probs=f"[{DOUBLE_ROUNDED}]"), log_prob_dtype="float32")
    assert found.generation_log_probs.tolist() == [float32_of(DOUBLE_ROUNDED)]  # type: ignore[union-attr]


@pytest.mark.parametrize(
    "changes",
    [{"prompt_token_ids": '["1",2]'}, {"\\u0061": "1"}, {"generation_log_probs": f'["{DOUBLE_ROUNDED}"]'}],
    ids=["odd id", "escaped key", "string"],
)
def test_float32_is_rounded_from_float64_where_pydantic_reads_the_line(changes: dict[str, str]) -> None:
    data = raw(**{"generation_log_probs": f"[{DOUBLE_ROUNDED}]", **changes})
    (found,) = read_jsonl(data, log_prob_dtype="float32")
    assert found.generation_log_probs.dtype == np.float32  # type: ignore[union-attr]
    assert found.generation_log_probs.tolist() == [np.float32(float(DOUBLE_ROUNDED))]  # type: ignore[union-attr]


@settings(deadline=None, max_examples=300)
@given(st.floats(2.0**-20, 2.0**20, width=32), st.integers(-3, 3), st.booleans())
def test_float32_near_half_way(low: float, units: int, negative: bool) -> None:
    high = float(np.nextafter(np.float32(low), np.float32(np.inf)))
    half_way = (Fraction(low) + Fraction(high)) / 2
    digits = 60
    number = round(half_way * 10**digits) + units
    text = f"{'-' if negative else ''}{number // 10**digits}.{number % 10**digits:0{digits}}"
    (found,) = read_jsonl(raw(generation_log_probs=f"[{text}]"), log_prob_dtype="float32")
    assert found.generation_log_probs.tolist() == [float32_of(text)]  # type: ignore[union-attr]


@pytest.mark.parametrize("odd", [False, True])
def test_float32_overflows_without_a_warning(odd: bool) -> None:
    text = '["1e39",-1e39]' if odd else "[1e39,-1e39]"
    data = raw(generation_token_ids="[1,2]", generation_log_probs=text)
    (found,) = read_jsonl(data, log_prob_dtype="float32")
    assert found.generation_log_probs.tolist() == [np.inf, -np.inf]  # type: ignore[union-attr]


# What a record may look like

ARRAYS = ("prompt_token_ids", "generation_token_ids", "generation_log_probs")
ODD = {
    "strings": raw(prompt_token_ids='["7","-3"," 5 ","1_0"]', generation_log_probs='["-0.25"]', created_at='"5"'),
    "floats": raw(prompt_token_ids="[1.0,1e3,-0.0,1E+2]", generation_token_ids="[-0]", schema_version="1.0"),
    "booleans": raw(prompt_token_ids="[true,false]", generation_log_probs="[true]", prompt_is_delta="0"),
    "constants": raw(generation_token_ids="[1,2,3]", generation_log_probs="[NaN,Infinity,-Infinity]"),
    "quoted constants": raw(generation_token_ids="[1,2,3]", generation_log_probs='["NaN","Infinity","-Infinity"]'),
    "other quoted constants": raw(generation_token_ids="[1,2,3]", generation_log_probs='["nan","inf","-inf"]'),
    "integers": raw(generation_token_ids="[1,2,3]", generation_log_probs="[-0,-7,123456789012345678901234567890]"),
    "floats at the ends": raw(generation_token_ids="[1,2,3]", generation_log_probs="[1e400,-1e400,1e-400]"),
    "integers beyond every float": raw(
        generation_log_probs="[1" + "0" * 310 + "]", prompt_token_ids="[" + "1" * 400 + "]"
    ),
    "nulls": raw(routed_experts="null", token_item_index="null", response_id="null", parent_resolution="null"),
    "duplicate keys": raw()[:-2] + b',"prompt_token_ids":[9],"model":"a","model":"b","x":1,"x":2}\n',
    "escaped keys": raw().replace(b'"prompt_token_ids"', b'"prompt\\u005ftoken_ids"'),
    "an escaped key twice": raw()[:-2] + b',"prompt\\u005ftoken_ids":[9]}\n',
    "escapes": raw(model='"\\"\\\\\\/\\b\\f\\n\\r\\t\\u00e9\\ud83d\\ude00]}"', output_items='[{"a\\"]":"[\\\\"}]'),
    "order": raw(generation_log_probs="[0]", model='"m"', prompt_token_ids="[1]")[:-2] + b',"rollout_id":"z"}\n',
    "extras": raw(x='{"prompt_token_ids":[1,[2,{"a":"]"}]]}', y="NaN", z="1e400", big="123456789012345678901234567890"),
    "white space": b" \t{ " + b" ,\t".join(raw()[1:-2].split(b',"')).replace(b" ,\t", b' ,\t"') + b"\r } \t\r\n",
    "white space in arrays": raw(prompt_token_ids="[ 1 ,\t2\r, 3 ]", generation_log_probs="[ -0.5\t]"),
    "unicode": raw(model='"é😀\u2028"', **{"a b é": "1"}),
    "empty arrays": raw(prompt_token_ids="[]", generation_token_ids="[ ]", generation_log_probs="[]"),
}


@pytest.mark.parametrize("name", ODD)
def test_what_pydantic_takes(name: str) -> None:
    data = ODD[name]
    twin = Twin.model_validate_json(data)
    assert exact(TokenEntry.model_validate_json(data)) == exact(twin)
    for threads in (1, 2):
        (found,) = read_jsonl(data, threads=threads)
        assert exact(found) == exact(twin)
        (lists,) = read_jsonl(data, threads=threads, arrays=False)
        assert exact(lists) == exact(twin)
        assert all(type(getattr(lists, name)) is list for name in ARRAYS)
        held = [getattr(found, name) for name in ARRAYS]
        assert all(isinstance(values, np.ndarray) or max(values) >= 2**64 for values in held)


REFUSED = {
    "no object": b"[]",
    "no JSON": b"nonsense",
    "cut": raw()[:40],
    "a zero byte": raw()[:-1] + b"\0",
    "a missing field": raw().replace(b'"rollout_id":"r",', b""),
    "a missing array": raw().replace(b'"generation_log_probs":[-0.5]', b'"x":1'),
    "a null array": raw(prompt_token_ids="null"),
    "a null id": raw(prompt_token_ids="[null]"),
    "a fraction": raw(prompt_token_ids="[1.5]"),
    "a nested id": raw(prompt_token_ids="[[1]]"),
    "an infinite id": raw(prompt_token_ids="[1e400]"),
    "NaN as an id": raw(prompt_token_ids="[NaN]"),
    "a leading zero": raw(prompt_token_ids="[01]"),
    "a comma at the end": raw(prompt_token_ids="[1,]"),
    "two commas": raw(prompt_token_ids="[1,,2]"),
    "a word": raw(generation_log_probs='["x"]'),
    "unequal lengths": raw(generation_token_ids="[1,2]"),
    "a newer record": raw(schema_version="2"),
    "an older record": raw(schema_version="0"),
    "no parent": raw(parent_resolution='"resolved"'),
    "a parent of a root": raw(parent_resolution='"root"', parent_call_id='"p"'),
    "a delta of nothing": raw(prompt_is_delta="true"),
    "an index outside": raw(token_item_index="0"),
    "wrong UTF-8": raw(model='"a"').replace(b'"a"', b'"\xff"'),
    "a lone surrogate": raw(model='"\\ud800"'),
    "a control character": raw(model='"\x01"'),
    "too deep": raw(x="[" * 201 + "0" + "]" * 201),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_pydantic_refuses(name: str) -> None:
    bad = REFUSED[name].rstrip(b"\n") + b"\n"
    for model in (Twin, TokenEntry):
        with pytest.raises(ValidationError):
            model.model_validate_json(bad)
    for arrays in (True, False):
        with pytest.raises(RecordError) as info:
            read_jsonl(line() + bad + line(), arrays=arrays)
        assert (info.value.path, info.value.line, info.value.offset) == ("<bytes>", 2, len(line()))
        assert info.value.reason
        assert "\n" not in info.value.reason


def test_a_byte_order_mark_only_starts_a_file(path: Path) -> None:
    bom = b"\xef\xbb\xbf"
    path.write_bytes(bom + THREE)
    assert call_ids(read_jsonl([path, path])) == ["a", "b", "c"] * 2
    assert call_ids(read_jsonl(bom + line(model_call_id="a").rstrip())) == ["a"]
    assert read_jsonl(bom) == []
    with pytest.raises(RecordError) as info:
        read_jsonl(bom + line() + bom + line())
    assert (info.value.line, info.value.offset) == (2, 3 + len(line()))
    with pytest.raises(RecordError):
        read_jsonl(bom + bom + line())


@pytest.mark.parametrize("gap", [b"\n", b"\r\n", b" \t\r\n", b"\n\n\n"])
def test_blank_lines(gap: bytes) -> None:
    data = gap + gap.join(THREE.splitlines(keepends=True)) + gap
    assert call_ids(read_jsonl(data)) == ["a", "b", "c"]
    assert call_ids(read_jsonl(data.rstrip(b"\n"))) == ["a", "b", "c"]
    assert read_jsonl(gap) == []


def test_line_breaks_of_windows() -> None:
    assert call_ids(read_jsonl(THREE.replace(b"\n", b"\r\n"))) == ["a", "b", "c"]
