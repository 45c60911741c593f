"""Rows of a finished run as records, and files of calls that are not records."""

from __future__ import annotations

import gzip
import json
import re
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from support.command import Capture, row, run
from tokenrecords import build_chains, entries_from_rollout, link_entries, read_jsonl
from tokenrecords.capture.rollouts import is_capture_file
from tokenrecords.capture.served import CallReader, read_calls
from tokenrecords.entry.model import origin

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


def item(prompt: Any, generation: Sequence[int], **more: Any) -> dict[str, Any]:
    log_probs = [-0.5] * len(generation)
    ids = {"prompt_token_ids": prompt, "generation_token_ids": list(generation), "generation_log_probs": log_probs}
    return {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "x"}], **ids, **more}


def finished(*items: dict[str, Any], response: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    items = items or (item([1, 2], [3]), {"type": "function_call_output", "output": "4"}, item([1, 2, 3, 4], [5, 6]))
    body = {"id": "resp-last", "created_at": 7.0, "model": "m", "object": "response", "output": list(items)}
    return {
        "_ng_task_index": 3,
        "_ng_rollout_index": 1,
        "response": {**body, **(response or {})},
        "reward": 0.5,
        **more,
    }


def test_each_carrier_of_a_row_is_a_call() -> None:
    first, last = entries_from_rollout(finished())
    assert (first.rollout_id, last.rollout_id) == ("3-1", "3-1")
    assert (first.model_call_id, first.parent_call_id, first.response_id) == ("call-0", None, None)
    assert (last.model_call_id, last.parent_call_id, last.response_id) == ("call-1", "call-0", "resp-last")
    assert (first.created_at, first.model, last.model_extra) == (7.0, "m", {"finish_reason": None, "reward": 0.5})
    build = build_chains([last, first], terminal_response_id="resp-last")
    assert build.trainable
    assert build.main is not None
    assert build.main.token_ids.tolist() == [1, 2, 3, 4, 5, 6]


@pytest.mark.parametrize("own", [None, 7, ["resp-last"]])
def test_a_response_id_that_is_no_text_is_none(own: Any) -> None:
    assert [entry.response_id for entry in entries_from_rollout(finished(response={"id": own}))] == [None, None]


def test_routes_and_what_stands_before_a_carrier_are_kept() -> None:
    thought = {"type": "reasoning", "summary": []}
    routed = item([1], [2], routed_experts=[[[7]], [[8]]])
    [entry] = entries_from_rollout(finished(thought, routed))
    assert entry.routed_experts == [[[7]], [[8]]]
    assert (len(entry.output_items), entry.token_item_index) == (2, 1)


@pytest.mark.parametrize(
    ("fields", "rollout_id"),
    [
        ({}, "3-1"),
        ({"_ng_attempt_index": 0}, "3-1"),
        ({"_ng_attempt_index": None}, "3-1"),
        ({"_ng_attempt_index": 2}, "3-1-a2"),
        ({"_ng_task_index": "t"}, "t-1"),
        ({"_ng_rollout_index": 0}, "3-0"),
        ({"_ng_rollout_id": "named", "_ng_attempt_index": 2}, "named"),
        ({"_ng_rollout_id": None}, "3-1"),
    ],
)
def test_the_rollout_is_named_as_the_run_names_it(fields: dict[str, Any], rollout_id: str) -> None:
    assert {entry.rollout_id for entry in entries_from_rollout(finished(**fields))} == {rollout_id}


def test_what_the_run_masked_is_not_trainable() -> None:
    entries = entries_from_rollout(finished(mask_sample=True))
    assert build_chains(entries).reasons == ["masked"]
    assert build_chains(entries_from_rollout(finished(mask_sample=False, reward=None))).trainable
    assert build_chains([entry.model_copy() for entry in link_entries(entries)]).reasons == ["masked"]


def test_a_row_without_tokens_has_no_records() -> None:
    assert entries_from_rollout(finished({"type": "message", "role": "assistant", "content": []})) == []


@pytest.mark.parametrize(
    ("wrong", "error", "message"),
    [
        ([], TypeError, "row is list: a mapping is needed"),
        ({"_ng_task_index": 1, "_ng_rollout_index": 1}, ValueError, "response is missing"),
        (
            finished(response={"output": None}),
            TypeError,
            "payload is NoneType: a mapping with a list of items, or the list, ",
        ),
        ({**finished(), "response": "text"}, TypeError, "response is str: a mapping is needed"),
        ({**finished(), "_ng_task_index": None}, ValueError, "_ng_task_index is missing: a row names its rollout"),
        ({"response": {"output": []}}, ValueError, "_ng_task_index is missing: a row names its rollout"),
        (finished(_ng_rollout_id=7), ValueError, "_ng_rollout_id is int: a string is needed"),
        (finished(item([1], [2], generation_log_probs=None)), ValueError, "call-0: "),
    ],
)
def test_a_row_that_is_none_is_refused(wrong: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=f"^{message}"):
        entries_from_rollout(wrong)


@pytest.mark.parametrize("long", [False, True])
def test_capture_takes_a_finished_run(tmp_path: Path, *, long: bool) -> None:
    """Long lists of ids become arrays without an object for each: the same records come out."""
    prompt = list(range(500 if long else 2))
    lines = [
        finished(item(prompt, [3]), item([*prompt, 3, 4], [5])),
        finished(_ng_rollout_index=2, response={"output": []}, mask_sample=True),
        finished(item(prompt, [9]), _ng_rollout_index=0, numbers=list(range(400))),
    ]
    capture = Capture(tmp_path)
    result = capture(*lines)
    assert result.exit_code == 1
    assert "2: the rollout carries no token ids" in result.stderr
    first, last = read_jsonl(capture.out / "3-1.tokens.jsonl")
    assert isinstance(first.prompt_token_ids, np.ndarray)
    assert (last.prompt_token_ids.tolist(), last.parent_call_id, last.response_id) == (
        [*prompt, 3, 4],
        "call-0",
        "resp-last",
    )
    [other] = read_jsonl(capture.out / "3-0.tokens.jsonl")
    assert (other.prompt_token_ids.tolist(), other.reward) == (prompt, 0.5)


def write(path: Path, *rows: Any) -> Path:
    path.write_text("".join(json.dumps(each) + "\n" for each in rows))
    return path


def test_verify_and_show_take_a_finished_run(tmp_path: Path) -> None:
    bad = {**finished(), "_ng_task_index": None}
    path = write(tmp_path / "rollouts.jsonl", finished(), bad, finished(_ng_rollout_index=2))
    result = run("verify", path, "--json")
    report = json.loads(result.stdout)
    assert (result.exit_code, report["records"], report["counts"]) == (1, 4, {"unreadable_line": 1})
    assert [(each["path"], each["line"]) for each in report["findings"]] == [(str(path), 2)]
    shown = run("show", path, "--terminal-response", "resp-last")
    assert shown.exit_code == 1
    assert [line.split()[:2] for line in shown.stdout.splitlines()[1:5]] == [
        ["3-1", "call-0"], ["3-1", "call-1"], ["3-2", "call-0"], ["3-2", "call-1"],
    ]  # fmt: skip
    assert shown.stdout.count("terminal delivered") == 2
    assert shown.stderr.splitlines() == [
        f"{path}:2: _ng_task_index is missing: a row names its rollout",
        "1 line left out",
    ]


def test_the_calls_of_an_observability_capture_are_of_the_rollout_that_the_file_names(tmp_path: Path) -> None:
    rows = [
        {name: value for name, value in row(call, prompt, ids, dialect="chat").items() if name != "rollout_id"}
        for call, prompt, ids in (("a", [1], [2]), ("b", [1, 2, 3], [4]))
    ]
    for each in rows:
        each["response"].pop("created", None)
    path = write(
        tmp_path / "5-0.capture.jsonl",
        {**rows[0], "started_at": 50.0},
        {**rows[1], "started_at": 51.5},
        {"response": None},
    )
    assert is_capture_file(path)
    result = run("capture", path, "--out", tmp_path / "out")
    assert (result.exit_code, result.stderr.splitlines()[0]) == (
        1,
        f"{path}:3: response is NoneType, dict | list | str is needed",
    )
    first, last = read_jsonl(tmp_path / "out" / "5-0.tokens.jsonl")
    assert (first.rollout_id, last.parent_call_id, first.created_at, last.created_at) == ("5-0", "a", 50.0, 51.5)
    packed = tmp_path / "6-0.capture.jsonl.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    reader = CallReader([packed])
    assert [(entry.rollout_id, origin(entry)) for entry in reader] == [
        ("6-0", (str(packed), 1)),
        ("6-0", (str(packed), 2)),
    ]
    assert [error.line for error in reader.errors] == [3]


def test_a_call_of_such_a_file_that_says_its_rollout_is_of_that(tmp_path: Path) -> None:
    path = write(tmp_path / "5-0.capture.jsonl", row("a", [1], [2], "own"))
    assert [entry.rollout_id for entry in CallReader([path])] == ["own"]


def test_errors_come_before_the_records_of_later_lines(tmp_path: Path) -> None:
    path = write(
        tmp_path / "rows.jsonl", row("a", [1], [2], "r"), {}, row("a", [1], [2], "s"), row("b", [1], [2], "r"), {}
    )
    reader = CallReader([path])
    known = [((origin(entry) or ("", 0))[1], [error.line for error in reader.errors]) for entry in reader]
    assert known == [(1, []), (3, [2]), (4, [2])]
    assert [error.line for error in reader.errors] == [2, 5]


def test_lists_of_a_row_that_are_no_tokens_stay_lists(tmp_path: Path) -> None:
    path = write(tmp_path / "rows.jsonl", finished(item(list(range(400)), [3]), reward={"token_ids": list(range(400))}))
    [entry] = CallReader([path])
    assert isinstance(entry.prompt_token_ids, np.ndarray)
    assert entry.reward == {"token_ids": list(range(400))}


def test_other_files_are_read_as_records(tmp_path: Path) -> None:
    record = {"rollout_id": "r", "model_call_id": "c", "prompt_token_ids": [1], "generation_token_ids": [2]}
    record |= {"generation_log_probs": [-0.5], "response": "an extra field"}
    path = write(tmp_path / "records.jsonl", record)
    assert [entry.response for entry in CallReader([path])] == ["an extra field"]
    served = write(tmp_path / "r.tokens.jsonl", finished())
    reader = CallReader([served])
    assert (list(reader), len(reader.errors)) == ([], 1)
    for text in (b"", b"\n\n", b"7\n", b"[]\n", b"\xff\n", b"{\n"):
        path.write_bytes(text)
        reader = CallReader([path])
        assert list(reader) == []
        assert len(reader.errors) == bool(text.strip())


def test_a_mark_or_an_empty_line_before_the_first_call_is_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    for before in ("\ufeff", "\n", " \n\n"):
        path.write_text(before + json.dumps(row("a", [1], [2])) + "\n", encoding="utf-8")
        assert [entry.model_call_id for entry in CallReader([path])] == ["a"]


def test_the_error_of_a_call_has_its_place(tmp_path: Path) -> None:
    path = write(tmp_path / "rows.jsonl", row("a", [1], [2]), {})
    with pytest.raises(ValueError, match=rf"^{re.escape(str(path))}:2: response is missing$"):
        list(read_calls([path]))


@pytest.mark.parametrize("value", [0.0, None, False, [0.5, 0]])
def test_what_the_run_decided_is_kept_as_it_is(value: Any) -> None:
    for name in ("reward", "mask_sample"):
        entries = entries_from_rollout(finished(**{name: value}))
        assert [(entry.model_extra or {})[name] for entry in entries] == [value, value]
    bare = finished()
    del bare["reward"]
    assert all(not {"reward", "mask_sample"} & (entry.model_extra or {}).keys() for entry in entries_from_rollout(bare))


@pytest.mark.parametrize("index", ["_ng_task_index", "_ng_rollout_index"])
def test_one_index_alone_is_no_finished_row(tmp_path: Path, index: str) -> None:
    path = write(tmp_path / "rows.jsonl", row("a", [1], [2], **{index: 0}))
    assert [(entry.rollout_id, entry.model_call_id) for entry in CallReader([path])] == [("r", "a")]


def test_an_empty_name_of_a_rollout_is_not_another(tmp_path: Path) -> None:
    reader = CallReader([write(tmp_path / "rows.jsonl", finished(_ng_rollout_id=""))])
    assert list(reader) == []
    assert [str(error) for error in reader.errors] == [
        f"{tmp_path / 'rows.jsonl'}:1: rollout_id '' can't name a file: letters, digits, '.', '_' and '-' can"
    ]
