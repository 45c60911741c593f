"""The main path of a rollout."""

from __future__ import annotations

from support.factories import call
from tokenrecords import build_chains


def test_the_main_path_starts_with_the_earliest_call_and_of_equal_ones_the_first_by_id() -> None:
    for created_at, main in ((1.0, "b"), (2.0, "a")):
        entries = [call("b", [1], [2], created_at=created_at), call("a", [9], [2], created_at=2.0)]
        for order in (entries, entries[::-1]):
            build = build_chains(order)
            assert build.main is not None
            assert build.main.call_ids == [main]


def test_an_empty_id_is_no_terminal_call() -> None:
    assert build_chains([call("a", [1], [2])], terminal_call_id="").notes.terminal_chain == ""
