"""What the page holds of a rollout, read back out of it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from support.factories import bare, call, conversation, delta
from support.page import Page
from tokenrecords import stamp_lineage, verify
from tokenrecords.report import write_report

if TYPE_CHECKING:
    from pathlib import Path

    from tokenrecords import TokenEntry


@pytest.fixture
def page_of(tmp_path: Path) -> Any:
    def make(entries: list[TokenEntry], **options: Any) -> Page:
        write_report(entries, tmp_path / "page.html", **options)
        return Page(tmp_path / "page.html")

    return make


def kinds(page: Page) -> list[tuple[str, int, str, list[str], str]]:
    return [(c["id"], c["depth"], c["kind"], c["marks"], c["failure"]) for c in page.details()["calls"]]


def test_calls_stand_as_a_tree_with_what_each_is(page_of: Any) -> None:
    entries = [
        call("a", [1], [2], response_id="x"),
        call("again", [1], [3]),
        call("b", [1, 2, 3], [4], "a"),
        call("c", [1, 2, 3, 4], [5, 6], "b"),
        call("d", [1, 2, 9], [5, 6], "a", response_id="y"),
        call("e", [1, 2, 9], [7], "a", response_id="y"),
        call("f", [7], [8], parent_resolution="unresolved"),
        call("g", [1, 2, 5], [8], "gone"),
        call("none", [1], []),
        call("a", [1], [9]),
    ]
    page = page_of(entries, terminal_call_ids={"r": "c"})
    assert kinds(page) == [
        ("a", 0, "root", ["main", "retry"], ""),
        ("b", 1, "resolved", ["main"], ""),
        ("c", 1, "resolved", ["main", "terminal"], ""),
        ("d", 1, "resolved", ["sample"], ""),
        ("e", 1, "resolved", ["sample"], ""),
        ("g", 1, "resolved", [], "found by its ids"),
        ("again", 0, "root", ["quarantined", "retry"], ""),
        ("f", 0, "fragment", [], "parent_unresolved"),
    ]
    details = page.details()
    assert details["left_out"] == [["none", "generated nothing"], ["a", "duplicate_call_id_conflict"]]
    named = {chain["name"]: (details["calls"][chain["call"]]["id"], chain["ids"]) for chain in details["chains"]}
    assert named == {
        "main": ("c", 6),
        "branch-0": ("f", 2),
        "branch-1": ("d", 5),
        "branch-2": ("e", 4),
        "branch-3": ("g", 4),
    }


def test_two_calls_of_one_response_and_other_prompts_are_no_samples(page_of: Any) -> None:
    page = page_of([call("a", [1], [2], response_id="x"), call("b", [3], [2], response_id="x")])
    assert [marks for _, _, _, marks, _ in kinds(page)] == [["main"], []]


def test_calls_in_a_row_stand_at_one_depth(page_of: Any) -> None:
    page = page_of(conversation(1_200))
    assert {depth for _, depth, *_ in kinds(page)} == {0}
    assert page.details()["calls"][7]["parent"] == 6


def test_what_a_call_says_of_itself(page_of: Any) -> None:
    entry = call("a", [1], [2], response_id="resp-1", created_at=1.5, model="m")
    entry = entry.model_copy(update={"output_items": [{"type": "message", "content": [{"text": "hi"}]}]})
    entry.__pydantic_extra__ = {"weight_version": 7}
    [told] = page_of([entry]).details()["calls"]
    assert told == {
        "id": "a",
        "parent": None,
        "depth": 0,
        "start": 0,
        "prompt": 1,
        "length": 2,
        "kind": "root",
        "failure": "",
        "marks": ["main"],
        "model": "m",
        "version": "7",
        "response": "resp-1",
        "created": 1.5,
        "digest": entry.digest,
        "text": "[message]\nhi",
        "stored": {"ids": "int32", "log_probs": "float32", "mask": False},
    }


@pytest.mark.parametrize("created", [0.0, -1.0, math.nan, math.inf, 1e13])
def test_a_time_that_is_none_is_not_told(page_of: Any, created: float) -> None:
    assert page_of([call("a", [1], [2], created_at=created)]).details()["calls"][0]["created"] is None


@pytest.mark.parametrize("deltas", [False, True])
def test_each_id_is_there_once_and_sequences_come_back_whole(page_of: Any, deltas: bool) -> None:
    page = page_of(conversation(3, deltas=deltas))
    calls = page.details()["calls"]
    assert [(c["start"], c["prompt"], c["length"]) for c in calls] == [(0, 1, 3), (3, 4, 6), (6, 7, 9)]
    assert page.sequence("c2") == (
        [100, 200, 300, 101, 201, 301, 102, 202, 302],
        [None, -0.5, -0.625] * 3,
        [True] * 9,
    )
    assert page.rows[0]["ids"] == 9


def test_a_mask_and_a_fork_come_back(page_of: Any) -> None:
    entries = [
        bare("a", [1, 2], [3, 4, 5], generation_loss_mask=[1, 0, 1]),
        bare("b", [1, 2, 3, 4, 5, 6], [7]),
        bare("c", [1, 2, 3, 4, 5], [8, 9]),
    ]
    for entry, parent in zip(entries, (None, "a", "a"), strict=True):
        stamp_lineage(entry, parent, "resolved" if parent else "root")
    page = page_of(entries)
    assert page.sequence("b") == (
        [1, 2, 3, 4, 5, 6, 7],
        [None, None, -0.5, -0.625, -0.75, None, -0.5],
        [True, True, True, False, True, True, True],
    )
    assert page.sequence("c")[0] == [1, 2, 3, 4, 5, 8, 9]
    assert page.rows[0]["ids"] == 9
    assert page.rows[0]["generated"] == 6


@pytest.mark.parametrize(
    ("ids", "stored"),
    [
        ([0, 2**31 - 1], "int32"),
        ([-(2**31), 5], "int32"),
        ([0, 2**31], "int64"),
        ([-(2**31) - 1, 5], "int64"),
        ([2**63 - 1, 5], "int64"),
        ([2**63, 2**64 - 1], "uint64"),
    ],
)
def test_ids_of_any_size_come_back(page_of: Any, ids: list[int], stored: str) -> None:
    page = page_of([bare("a", [ids[0]], [ids[1]])])
    assert page.details()["calls"][0]["stored"]["ids"] == stored
    assert page.sequence("a")[0] == ids


def test_log_probs_of_any_kind_come_back(page_of: Any) -> None:
    values = [-0.1, math.nan, math.inf, -math.inf, 0.25]
    page = page_of([bare("a", [1], [1] * 5).model_copy(update={"generation_log_probs": values})])
    assert page.details()["calls"][0]["stored"]["log_probs"] == "float32"
    np.testing.assert_array_equal(page.sequence("a")[1][1:], np.float32(values).astype(float))
    page = page_of([bare("a", [1], [1, 2]).model_copy(update={"generation_log_probs": [-1e300, -0.1]})])
    assert page.details()["calls"][0]["stored"]["log_probs"] == "float64"
    assert page.sequence("a")[1][1:] == [-1e300, -0.1]


def test_a_row_says_what_the_rollout_comes_to(page_of: Any) -> None:
    first = bare("a", [1, 2], [3, 4], model="m", generation_loss_mask=[1, 0], weight_version=3)
    second = bare("b", [1, 2, 3, 4, 5], [6], model="n", weight_version="4\u202e")
    stamp_lineage(first, None, "root")
    stamp_lineage(second, "a", "resolved")
    third = call("c", [1], [2], digest=None)
    third.rollout_id = "s"
    page = page_of([first, second, third, call("d", [9], [], parent_resolution=None)])
    assert page.rows == [
        {
            "id": "r",
            "calls": 3,
            "ids": 6,
            "generated": 3,
            "trained": 2,
            "models": ["m", "n"],
            "versions": ["3", r"4\u202e"],
            "reasons": [],
            "codes": ["empty_generation", "no_resolution"],
            "error": 0,
            "warning": 1,
            "info": 1,
        },
        {
            "id": "s",
            "calls": 1,
            "ids": 2,
            "generated": 1,
            "trained": 1,
            "models": [],
            "versions": [],
            "reasons": [],
            "codes": ["no_digest"],
            "error": 0,
            "warning": 0,
            "info": 1,
        },
    ]


def test_nothing_of_a_rollout_that_is_not_trainable_counts_as_trained_on(page_of: Any) -> None:
    page = page_of([call("a", [1], [2]), call("b", [9], [2])])
    assert page.rows[0]["reasons"] == ["several_roots", "several_chains"]
    assert page.rows[0]["trained"] == 0


def test_findings_say_what_and_where_in_the_sequence(page_of: Any) -> None:
    first, second = conversation(2)
    second.generation_log_probs = [-0.5, math.nan]
    second.cum_len = 7
    told = page_of([first, second]).details()["findings"]
    assert told == [
        {
            "severity": "error",
            "code": code,
            "message": message,
            "id": "c1",
            "call": 1,
            "position": position,
            "where": "",
        }
        for code, message, position in (
            ("log_prob_not_finite", "generation_log_probs[1] is nan: it is not finite", 5),
            ("cum_len_mismatch", "cum_len is 7, its sequence has 6 ids", None),
        )
    ]
    assert [each["message"] for each in told] == [finding.message for finding in verify([first, second]).findings]


def test_a_finding_of_a_delta_prompt_stands_behind_what_its_parent_has(page_of: Any) -> None:
    first, second = conversation(2)
    cut = delta(second, 3).model_copy(update={"prompt_token_ids": [8, -1], "digest": None, "cum_len": None})
    found = {each["code"]: each["position"] for each in page_of([first, cut]).details()["findings"]}
    assert found == {"id_negative": 4, "no_digest": None}


def test_a_rollout_of_nothing_readable_is_there(page_of: Any) -> None:
    broken = call("a", [1], [2])
    broken.prompt_token_ids = None  # type: ignore[assignment]
    page = page_of([broken])
    assert page.details()["calls"] == []
    assert page.details()["left_out"] == [["a", "record_unreadable"]]
    assert page.rows[0]["reasons"] == ["unresolved_parents", "nothing_to_train"]


def test_weights_of_version_0_are_named(page_of: Any) -> None:
    page = page_of([call("a", [1], [2], weight_version=0)])
    assert page.details()["calls"][0]["version"] == "0"
    assert page.rows[0]["versions"] == ["0"]


def test_one_fork_is_one_step_in(page_of: Any) -> None:
    page = page_of([call("a", [1], [2]), call("b", [1, 2, 3], [4], "a"), call("c", [1, 2, 5], [6], "a")])
    assert [each["depth"] for each in page.details()["calls"]] == [0, 1, 1]


def test_calls_without_a_response_are_no_samples_of_one(page_of: Any) -> None:
    entries = [call("a", [1], [2], response_id="", digest="d\n"), call("b", [1], [3], response_id="")]
    page = page_of(entries)
    assert all("sample" not in marks for _, _, _, marks, _ in kinds(page))
    assert page.details()["calls"][0]["digest"] == r"d\n"
