"""Exceptions as one line."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError
from support.factories import make_entry
from tokenrecords.entry.errors import one_line


@pytest.mark.parametrize(
    ("fields", "starts"),
    [
        ({"prompt_token_ids": [1, "x"], "created_at": "noon"}, ["prompt_token_ids: 1: Input", "created_at: Input"]),
        ({"schema_version": 9}, ["schema_version is 9"]),
        ({"model": None}, ["model: Input"]),
    ],
)
def test_each_fault_has_its_field_and_position(fields: dict[str, Any], starts: list[str]) -> None:
    with pytest.raises(ValidationError) as caught:
        make_entry(**fields)
    faults = one_line(caught.value).split("; ")
    assert [fault[: len(start)] for fault, start in zip(faults, starts, strict=True)] == starts


def test_lines_are_joined() -> None:
    assert one_line(ValueError("one\n  two")) == "one two"
