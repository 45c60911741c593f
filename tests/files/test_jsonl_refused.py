"""Records that could not be read back are refused, and nothing is written."""

from __future__ import annotations

import io
import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from pydantic import ValidationError
from support.factories import make_entry, orjson_line
from tokenrecords import ParentResolutionStatus, TokenEntry, append_jsonl, write_jsonl

if TYPE_CHECKING:
    from pathlib import Path


def changed(**values: Any) -> TokenEntry:
    """A record with values that were assigned, which pydantic does not check."""
    record = make_entry(model_call_id="call-7")
    for name, value in values.items():
        setattr(record, name, value)
    return record


class Loop(list):  # type: ignore[type-arg]
    def __init__(self) -> None:
        super().__init__([self])


REFUSED = {
    "schema_version": {"schema_version": 9},
    "schema_version ": {"schema_version": 0},
    "generation_log_probs": {"generation_log_probs": []},
    "generation_token_ids": {"generation_token_ids": np.arange(2)},
    "parent_call_id": {"parent_resolution": ParentResolutionStatus.RESOLVED},
    "parent_call_id ": {"parent_resolution": ParentResolutionStatus.ROOT, "parent_call_id": "p"},
    "delta prompt": {"prompt_is_delta": True},
    "token_item_index": {"token_item_index": 0},
    "created_at": {"created_at": math.nan},
    "created_at ": {"created_at": -math.inf},
    "created_at  ": {"created_at": "noon"},
    "created_at   ": {"created_at": None},
    "x": {"x": 2**64},
    "x ": {"x": [{"a": -(2**63) - 1}]},
    "cum_len": {"cum_len": 2**64},
    "prompt_token_ids": {"prompt_token_ids": [2**64]},
    "prompt_token_ids ": {"prompt_token_ids": [1.5]},
    "prompt_token_ids  ": {"prompt_token_ids": None},
    "prompt_token_ids   ": {"prompt_token_ids": np.zeros(2)},
    "prompt_token_ids    ": {"prompt_token_ids": np.zeros((2, 2), int)},
    "prompt_token_ids     ": {"prompt_token_ids": np.zeros(2, bool)},
    "generation_log_probs ": {"generation_log_probs": ["x"]},
    "generation_log_probs  ": {"generation_log_probs": np.zeros(1, complex)},
    "model ": {"model": None},
    "x   ": {"x": {"\ud800": 1}},
    "x    ": {"x": object()},
    "x     ": {"x": np.arange(3)},
    "x      ": {"x": [np.int64(3)]},
    "x       ": {"x": b"\xff"},
    "x        ": {"x": Loop()},
    "output_items": {"output_items": [{"a": {"b": object()}}]},
    "output_items ": {"output_items": [1]},
    "output_items  ": {"output_items": None},
    "output_items   ": {"output_items": [{"a": np.arange(2)}]},
    "rollout_id": {"rollout_id": 5},
    "model_call_id": {"model_call_id": None},
    "parent_resolution": {"parent_resolution": "other"},
    "digest": {"digest": 5},
    "routed_experts": {"routed_experts": np.zeros((1, 1, 1))},
    "routed_experts ": {"routed_experts": object()},
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused_is_named_and_nothing_is_written(tmp_path: Path, name: str) -> None:
    bad = changed(**REFUSED[name])
    with pytest.raises(ValueError, match=r"can't be written") as info:
        bad.to_json()
    message = str(info.value)
    assert name.strip() in message
    assert repr(bad.model_call_id) in message
    assert repr(bad.rollout_id) in message
    assert "\n" not in message

    path = tmp_path / "old.tokens.jsonl"
    write_jsonl(path, [make_entry()])
    old = path.read_bytes()
    target = io.BytesIO()
    for write in (write_jsonl, append_jsonl):
        with pytest.raises(ValueError, match=r"can't be written"):
            write(path, iter([make_entry(), bad]))
        with pytest.raises(ValueError, match=r"can't be written"):
            write(tmp_path / "new.tokens.jsonl", [make_entry(), bad])
    with pytest.raises(ValueError, match=r"can't be written"):
        write_jsonl(target, [make_entry(), bad])
    assert target.getvalue() == b""
    assert path.read_bytes() == old
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


def test_an_extra_name_that_is_no_text() -> None:
    record = make_entry()
    record.model_extra["\ud800"] = 1  # type: ignore[index]
    with pytest.raises(ValueError, match=r"can't be written") as info:
        record.to_json()
    assert "'c'" in str(info.value)


def test_a_record_without_its_fields_is_refused() -> None:
    with pytest.raises(ValueError, match="model_call_id"):
        TokenEntry.model_construct(rollout_id="r").to_json()


def test_what_pydantic_takes_is_written_as_it_takes_it() -> None:
    record = changed(prompt_token_ids=("7", 8.0), created_at="5", cum_len="3", generation_log_probs=[-1])
    found = TokenEntry.from_json(record.to_json(), arrays=False)
    assert (found.prompt_token_ids, found.generation_log_probs) == ([7, 8], [-1.0])
    assert (found.created_at, found.cum_len) == (5.0, 3)
    assert record.prompt_token_ids == ("7", 8.0)  # writing does not change it


def nested(kinds: str, leaf: Any) -> Any:
    """`leaf` inside one list or object for each letter, the first outside."""
    for kind in reversed(kinds):
        leaf = [leaf] if kind == "l" else {"a": leaf}
    return leaf


def in_field(field: str, kinds: str, leaf: Any) -> TokenEntry:
    """A record that holds `kinds` of lists and objects, itself counted as the first."""
    skipped = 3 if field == "output_items" else 1
    value = nested(kinds[skipped:], leaf)
    return make_entry(**{field: [{"a": value}] if field == "output_items" else value})


def is_read(record: TokenEntry) -> bool:
    try:
        TokenEntry.model_validate_json(orjson_line(record))
    except ValidationError:
        return False
    return True


def can_be_written(record: TokenEntry) -> bool:
    try:
        record.to_json()
    except ValueError:
        return False
    return True


@pytest.mark.parametrize("field", ["x", "output_items", "routed_experts"])
@pytest.mark.parametrize("leaf", [0, "a", [], {}])
def test_as_deep_as_a_reader_reads(field: str, leaf: Any) -> None:
    inside = 1 if leaf in ([], {}) else 0
    for kinds in ("l", "d", "ld", "lld"):
        for depth in range(190, 210):
            record = in_field(field, (kinds * depth)[: depth - inside], leaf)
            written = can_be_written(record)
            if depth <= 200:
                assert written
                assert TokenEntry.from_json(record.to_json()) == record
            else:  # a reader may let an empty list pass one deeper
                assert not written or is_read(record), (kinds, depth)
            if not inside:
                assert written == (depth <= 200)


@pytest.mark.parametrize("field", ["x", "output_items", "routed_experts"])
def test_too_deep_is_said_with_call_and_field(field: str) -> None:
    with pytest.raises(ValueError, match=rf"'c' .*{field}: .*200"):
        in_field(field, "l" * 205, 0).to_json()


def test_far_too_deep() -> None:
    for depth in (300, 2000, 100_000):
        with pytest.raises(ValueError, match=r"x: .*|nested"):
            changed(x=nested("l" * depth, 0)).to_json()
