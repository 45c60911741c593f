"""What is taken as several entries."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest
from support.factories import make_entry
from tokenrecords import build_chains, expand_deltas, group_by_rollout, verify


@pytest.mark.parametrize(
    ("function", "wrong"),
    [
        *itertools.product([verify, group_by_rollout, expand_deltas, build_chains], [make_entry(), {"r": []}, b"{}"]),
        *itertools.product([group_by_rollout, expand_deltas, build_chains], ["r.tokens.jsonl", Path("r")]),
    ],
)
def test_what_is_no_collection_of_entries(function: Any, wrong: Any) -> None:
    with pytest.raises(TypeError, match=rf"^entries is {type(wrong).__name__}: several entries are needed"):
        function(wrong)


@pytest.mark.parametrize(
    ("wrong", "hint"),
    [
        (make_entry(), "; put it in a list"),
        ({"r": []}, "; its values may be"),
        ("r.tokens.jsonl", "; read_jsonl gives them"),
        (Path("r"), "; read_jsonl gives them"),
        (b"{}", ""),
    ],
)
def test_what_may_help_is_said(wrong: Any, hint: str) -> None:
    with pytest.raises(TypeError, match=f"several entries are needed{hint}$"):
        group_by_rollout(wrong)


def test_entries_are_grouped_by_rollout_in_their_order() -> None:
    entries = [make_entry(rollout_id=rollout, model_call_id=name) for rollout, name in ("sa", "rb", "sc", "ra")]
    groups = group_by_rollout(iter(entries))
    assert list(groups.items()) == [("s", [entries[0], entries[2]]), ("r", [entries[1], entries[3]])]
    assert group_by_rollout([]) == {}
