"""Values that were assigned to the fields of a record, which pydantic does not check."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.factories import make_entry
from tokenrecords import TokenEntry, cumulative_tokens
from tokenrecords.entry.assigned import loss_mask_of, wrong_types


@pytest.mark.parametrize("prompt", [[1, 2], np.array([1, 2])])
def test_ids_that_were_assigned_are_not_rounded(prompt: Any) -> None:
    entry = make_entry(prompt_token_ids=prompt)
    for wrong, message in (
        ([3.5], r"\[0\] is 3.5: "),
        (np.array([3.5]), " is an array of dtype float64: token ids must be integers"),
        ([None], r"\[0\] is None"),
    ):
        entry.generation_token_ids = wrong
        with pytest.raises(TypeError, match=rf"^generation_token_ids{message}"):
            entry.as_arrays()
        if isinstance(prompt, np.ndarray):
            with pytest.raises(TypeError, match=rf"^generation_token_ids{message}"):
                cumulative_tokens(entry)


@pytest.mark.parametrize("wrong", [[None], ["-1"], [True]])
def test_log_probs_that_were_assigned_are_not_guessed(wrong: Any) -> None:
    entry = make_entry()
    entry.generation_log_probs = wrong
    with pytest.raises(TypeError, match=r"^generation_log_probs\[0\] is "):
        entry.as_arrays()


def test_log_probs_wider_than_any_field_that_were_assigned_are_not_written() -> None:
    entry = make_entry()
    entry.generation_log_probs = np.array([-0.5], np.longdouble)
    with pytest.raises(ValueError, match="generation_log_probs: log-probs must be float16, float32 or float64"):
        entry.to_json()


def test_ids_of_two_dimensions_that_were_assigned_are_not_written() -> None:
    entry = make_entry()
    entry.prompt_token_ids = np.array([[1, 2]], np.int32)
    with pytest.raises(ValueError, match=r"prompt_token_ids: .*: one dimension is needed, got 2"):
        entry.to_json()


def test_a_flag_is_no_number_but_a_time_may_be_whole() -> None:
    entry = make_entry()
    entry.created_at = 5
    assert wrong_types(entry) == {}
    entry.prompt_is_delta = 1
    assert wrong_types(entry) == {"prompt_is_delta": 1}


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("generation_log_probs", [-0.5, -0.5], "same length, got 1 and 2"),
        ("token_item_index", 0, "token_item_index 0 is outside output_items"),
        ("schema_version", 2, "understands up to 1"),
        ("prompt_is_delta", True, "a delta prompt"),
        ("model", None, "model: Input"),
        ("response_id", 5, "response_id: Input"),
        ("prefix_requested", "x", "prefix_requested: Input"),
        ("output_items", [5], "output_items: 0: Input"),
    ],
)
def test_what_was_assigned_against_a_rule_is_not_written(name: str, value: Any, message: str) -> None:
    entry = make_entry()
    setattr(entry, name, value)
    for write in (entry.to_json, entry.json_values):
        with pytest.raises(ValueError, match=f"can't be written: .*{message}"):
            write()


def test_loss_masks_are_of_the_extra_fields() -> None:
    assert loss_mask_of(make_entry()) is None
    assert loss_mask_of(make_entry(generation_loss_mask=[1])) == [1]
    assert loss_mask_of(TokenEntry.model_construct()) is None


def test_a_field_that_is_missing_is_of_a_wrong_type() -> None:
    missing = wrong_types(TokenEntry.model_construct(rollout_id="r", output_items=[]))
    assert missing.keys() >= {"model_call_id"}
    assert "digest" not in missing
    entry = make_entry()
    del entry.digest
    assert wrong_types(entry).keys() == {"digest"}
