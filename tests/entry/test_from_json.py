"""One record from JSON and to JSON, of subclasses too."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError, computed_field, field_validator
from support.factories import FIELDS, make_entry, orjson_line
from tokenrecords import TokenEntry


def test_from_json_takes_text_and_bytes() -> None:
    line = make_entry(model="é").to_json()
    for data in (line, bytearray(line), line.decode(), b" \n" + line + b"\r\n"):
        assert TokenEntry.from_json(data) == make_entry(model="é")
    assert TokenEntry.from_json(line, dtype="uint16").prompt_token_ids.dtype == np.uint16  # type: ignore[union-attr]
    with pytest.raises(ValueError, match=r"prompt_token_ids\[1\] is 300: it does not fit int8"):
        TokenEntry.from_json(make_entry(prompt_token_ids=[1, 300]).to_json(), dtype="int8")
    with pytest.raises(ValidationError):
        TokenEntry.from_json(line[:-1])
    with pytest.raises(ValidationError):
        TokenEntry.from_json("\ud800")


@pytest.mark.parametrize("data", [5, None, 1.5, {}, [123, 125]])
def test_from_json_takes_nothing_else(data: Any) -> None:
    with pytest.raises(TypeError):
        TokenEntry.from_json(data)


class Short(TokenEntry):
    """A subclass that looks at the arrays."""

    limit: int = 3

    @field_validator("prompt_token_ids")
    @classmethod
    def _is_short(cls, ids: Any) -> Any:
        assert len(ids) <= 3
        return ids

    @computed_field  # type: ignore[prop-decorator]
    @property
    def length(self) -> int:
        return len(self.prompt_token_ids)


def test_subclasses() -> None:
    record = Short.model_validate({**FIELDS, "prompt_token_ids": np.arange(3)})
    line = record.to_json()
    assert line == orjson_line(record)
    assert b'"length":3' in line
    assert b'"limit":3' in line
    found = Short.from_json(line)
    assert type(found) is Short
    assert isinstance(found.prompt_token_ids, np.ndarray)
    assert found.prompt_token_ids.dtype == np.int32
    assert found.as_lists().prompt_token_ids == [0, 1, 2]
    assert type(Short.from_json(line, arrays=False).prompt_token_ids) is list
    with pytest.raises(ValidationError):
        Short.from_json(make_entry(prompt_token_ids=[1, 2, 3, 4]).to_json())
    record.prompt_token_ids = [1, 2, 3, 4]
    with pytest.raises(ValueError, match="prompt_token_ids"):
        record.to_json()


@pytest.mark.parametrize("name", ["prompt_token_ids", "generation_token_ids", "generation_log_probs"])
@pytest.mark.parametrize("text", [None, "null", "{}", '"x"', "5", "[[1]]", "[null]"])
def test_an_array_that_is_none_is_named(name: str, text: str | None) -> None:
    members = [f'"{key}":{json.dumps(value) if key != name else text}' for key, value in FIELDS.items()]
    data = "{" + ",".join(member for member in members if member != f'"{name}":None') + "}"
    with pytest.raises(ValidationError, match=name):
        TokenEntry.from_json(data)
