"""Stamped records of a served response."""

from __future__ import annotations

import pytest
from support.factories import IDS
from support.payloads import native_chat
from tokenrecords import entries_from_response


def test_a_time_that_is_no_number_is_the_time_of_capture() -> None:
    payload = {"created": float("nan"), "choices": [{"message": IDS}]}
    (entry,) = entries_from_response(payload, rollout_id="r", model_call_id="c")
    assert entry.created_at > 1.7e9


def test_a_parent_that_is_no_entry() -> None:
    with pytest.raises(TypeError, match=r"^parent is str: a TokenEntry"):
        entries_from_response(native_chat(), rollout_id="r", model_call_id="c", parent="c0")
    with pytest.raises(TypeError, match=r"^parent_call_id can't be given: .* parent="):
        entries_from_response(native_chat(), rollout_id="r", model_call_id="c", parent_call_id="c0")
