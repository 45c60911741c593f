"""Retries: which calls are alike."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from support.factories import call
from tokenrecords import build_chains
from tokenrecords.lineage.call import Call
from tokenrecords.lineage.paths import Terminal, find_paths

if TYPE_CHECKING:
    import pytest


def test_calls_with_the_same_prompt_and_other_parents_are_no_retries() -> None:
    entries = [
        call("a", [1], [2]),
        call("b", [1, 2, 3], [4], "a"),
        call("c", [1, 2, 3], [5], parent_resolution="unresolved"),
    ]
    build = build_chains(entries)
    assert (build.quarantined, build.notes.unresolved_retries) == ([], [])


def test_prompts_are_alike_in_any_dtype() -> None:
    for ids in ([7, 8], [-7, 8]):  # a negative id has no digest
        entries = [
            call(name, [1], [2 + n], prompt_token_ids=np.array(ids, dtype), digest=None, cum_len=None)
            for n, (name, dtype) in enumerate([("b", np.int64), ("a", np.int32)])
        ]
        build = build_chains(entries)
        assert (build.quarantined, build.notes.unresolved_retries) == (["b"], ["a", "b"])


def test_no_call_is_compared_with_each_of_the_retries_that_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    compared = 0

    def equals(a: Call, b: object) -> bool:
        nonlocal compared
        compared += 1
        return a is b

    monkeypatch.setattr(Call, "__eq__", equals)
    entries = [call(f"p{n}", [1, 2], [n]) for n in range(50)]
    entries += [call(f"q{n}", [1, 2, n, 9], [7], f"p{n}") for n in range(40)]
    build = build_chains(entries)
    assert build.quarantined == sorted(f"p{n}" for n in range(40, 50))
    assert compared < 50


def test_prompts_with_negative_ids_are_told_apart() -> None:
    entries = [
        call(name, [1], [2], prompt_token_ids=ids, digest=None, cum_len=None)
        for name, ids in (("a", [-7, 8]), ("b", [-7, 9]), ("c", [-7, 8]))
    ]
    build = build_chains(entries)
    assert (build.quarantined, build.notes.unresolved_retries) == (["c"], ["a", "c"])


def test_a_retry_that_is_kept_is_one_too() -> None:
    entries = [call("a", [1], [2]), call("b", [1], [3]), call("c", [1, 3, 4], [5], "b"), call("d", [9], [2])]
    calls = find_paths(entries, Terminal()).links.calls
    assert {each.id: (each.is_retry, each.quarantined) for each in calls} == {
        "a": (True, True),
        "b": (True, False),
        "c": (False, False),
        "d": (False, False),
    }
