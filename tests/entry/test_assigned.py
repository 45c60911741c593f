"""Values that were assigned to the fields of a record, which pydantic does not check."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.factories import make_entry
from tokenrecords import cumulative_tokens
from tokenrecords.entry.assigned import wrong_types


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
