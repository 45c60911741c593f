"""What `tokenrecords capture` makes of lines: records of rollouts, and faults by line."""

from __future__ import annotations

import json
from typing import Any

import pytest
from support.command import Capture, row
from support.factories import IDS, bare
from support.payloads import native_item, sglang_sample, token_fields, vllm_chat, vllm_choice
from tokenrecords import ParentResolutionStatus, TokenEntry, compute_digest, read_jsonl
from tokenrecords.capture import rollouts

ROOT, RESOLVED, UNRESOLVED = ParentResolutionStatus


def test_a_call_becomes_a_record(capture: Capture) -> None:
    assert capture(row("a", [1, 2], [3])).exit_code == 0
    (entry,) = capture.records()
    assert entry.model_dump(exclude_defaults=True) == {
        "rollout_id": "r",
        "model_call_id": "a",
        "model": "m",
        "prompt_token_ids": [1, 2],
        "generation_token_ids": [3],
        "generation_log_probs": [-0.5],
        "output_items": [{"type": "message", "role": "assistant", "content": "x"}],
        "token_item_index": 0,
        "response_id": "resp-a",
        "created_at": 5.0,
        "cum_len": 3,
        "digest": compute_digest([1, 2, 3]),
        "parent_resolution": ROOT,
        "finish_reason": None,
    }


def test_where_no_parent_is_said_the_longest_prefix_is_it(capture: Capture) -> None:
    capture(
        row("a", [1], [2]),
        row("b", [1, 2, 3], [4]),
        row("c", [1, 2, 3, 4, 5], [6]),
        row("again", [1], [9]),
        row("lost", [7, 7], [7]),
    )
    assert capture.parents() == [
        ("a", None, ROOT, ""),
        ("b", "a", RESOLVED, ""),
        ("c", "b", RESOLVED, ""),
        ("again", None, ROOT, ""),
        ("lost", None, UNRESOLVED, "no_prefix_parent"),
    ]


def test_a_parent_that_is_said_is_checked(capture: Capture) -> None:
    capture(
        row("a", [1], [2]),
        row("b", [1, 2, 3], [4], parent_call_id="a"),
        row("c", [1, 2, 9], [4], parent_call_id="b"),
        row("d", [1, 2, 3], [4], parent_call_id="never"),
        row("e", [1, 2, 3], [4], parent_call_id=None),
    )
    assert capture.parents() == [
        ("a", None, ROOT, ""),
        ("b", "a", RESOLVED, ""),
        ("c", None, UNRESOLVED, "prefix_mismatch"),
        ("d", None, UNRESOLVED, "prefix_mismatch"),
        ("e", None, ROOT, ""),
    ]


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 0, 2)])
def test_the_order_of_the_lines_does_not_matter(capture: Capture, order: tuple[int, ...]) -> None:
    lines = [row("a", [1, 2], [3]), row("b", [1, 2, 3, 4], [5]), row("c", [1, 2, 3, 4, 5, 6], [7])]
    assert capture(*(lines[place] for place in order)).exit_code == 0
    found = {call: (parent, status) for call, parent, status, _ in capture.parents()}
    assert found == {"a": (None, ROOT), "b": ("a", RESOLVED), "c": ("b", RESOLVED)}
    assert [entry.model_call_id for entry in capture.records()] == ["abc"[place] for place in order]


def test_what_can_not_be_written_is_nobodys_parent(capture: Capture) -> None:
    large = row("b", [1, 2, 3], [4])
    large["response"]["choices"][0]["message"]["x"] = 2**70
    assert capture(row("a", [1], [2]), row("c", [1, 2, 3, 4, 5], [6]), large).exit_code == 1
    assert f"{capture.source}:3: model call 'b' of rollout 'r' can't be written" in capture.result.stderr
    assert capture.parents() == [("a", None, ROOT, ""), ("c", "a", RESOLVED, "")]


def test_records_that_are_there_may_be_parents_and_stay_as_they_are(capture: Capture) -> None:
    capture(row("b", [1, 2, 3], [4]))
    before = (capture.out / "r.tokens.jsonl").read_bytes()
    capture(row("a", [1], [2]), row("c", [1, 2, 3, 4, 5], [6]), flags=("--append",))
    assert (capture.out / "r.tokens.jsonl").read_bytes().startswith(before)
    assert [found[:3] for found in capture.parents()][2] == ("c", "b", RESOLVED)


def test_each_record_is_serialised_once(capture: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    made = []
    to_json = TokenEntry.to_json
    monkeypatch.setattr(TokenEntry, "to_json", lambda entry: made.append(entry.model_call_id) or to_json(entry))
    capture(row("a", [1], [2]), row("b", [1, 2, 3], [4]))
    assert made == ["a", "b"]


def test_rollouts_do_not_mix(capture: Capture) -> None:
    capture(row("a", [1], [2]), row("a", [1, 2, 3], [4], rollout="s"), row("b", [1, 2, 5], [6]))
    assert capture.parents("s") == [("a", None, ROOT, "")]
    assert capture.parents() == [("a", None, ROOT, ""), ("b", "a", RESOLVED, "")]


FAULTS = {
    "no tokens": ({"rollout_id": "r", "model_call_id": "a", "response": {}}, "the response carries no token ids"),
    "torn JSON": ('{"rollout_id": "r"', "the body is not JSON: EOF while parsing"),
    "no object": ([1], "an object is needed, got list"),
    "no call id": ({"rollout_id": "r", "response": row("a", [1], [2])["response"]}, "model_call_id is missing"),
    "rollout id of another type": ({**row("a", [1], [2]), "rollout_id": 7}, "rollout_id is int, str is needed"),
    "parent of another type": (row("a", [1], [2], parent_call_id=7), "parent_call_id is int, str is needed"),
    "unequal lengths": (
        {**row("a", [1], [2]), "response": {"output": [token_fields([1], [2], [])]}},
        "responses choice 0: 1 generation_token_ids and 0 generation_log_probs",
    ),
    "negative id": (row("a", [1, -9], [2]), "chat choice 0: prompt_token_ids[1] is -9: token ids must be non-neg"),
    "text for an id": (row("a", ["x"], [2]), "chat choice 0: prompt_token_ids[0] is 'x': token ids must be integers"),
    "a path": (row("a", [1], [2], rollout="../x"), "rollout_id '../x' can't name a file"),
    "the directory": (row("a", [1], [2], rollout=".."), "rollout_id '..' can't name a file"),
    "this directory": (row("a", [1], [2], rollout="."), "rollout_id '.' can't name a file"),
    "empty": (row("a", [1], [2], rollout=""), "rollout_id '' can't name a file"),
    "a line break": (row("a", [1], [2], rollout="r\n"), "rollout_id 'r\\n' can't name a file"),
    "too long": (row("a", [1], [2], rollout="r" * 243), "rollout_id is too long for a file name: 243 characters"),
}  # fmt: skip


@pytest.mark.parametrize(("line", "reason"), FAULTS.values(), ids=FAULTS)
def test_a_bad_line_is_reported_and_the_others_are_written(capture: Capture, line: Any, reason: str) -> None:
    result = capture(row("first", [1], [2]), "", line, row("last", [1, 2, 3], [4]))
    assert result.exit_code == 1
    assert f"{capture.source}:3: {reason}" in result.stderr
    assert "1 line left out" in result.stderr
    assert [entry.model_call_id for entry in capture.records()] == ["first", "last"]
    assert [path.name for path in capture.out.iterdir()] == ["r.tokens.jsonl"]


STUBBORN: dict[str, Any] = {
    "a list of a number": [1],
    "a body of a number": native_item(content=5),
    "choices of a number": {"output": [{"x": 1}], "choices": 5},
    "candidates of a number": {
        "prompt_ids": [[1]], "completion_ids": [[1]], "logprobs": [[[-0.1]]], "logprob_token_ids": [[5]],
    },
    "a large extra": {"choices": [{"message": {"x": 2**70, **IDS}}]},
    "large routes": {"choices": [{"message": {**IDS, "routed_experts": [2**65]}}]},
}  # fmt: skip


@pytest.mark.parametrize("name", STUBBORN)
def test_a_stubborn_line_costs_itself_alone(capture: Capture, name: str) -> None:
    line = {"rollout_id": "r", "model_call_id": "x", "response": STUBBORN[name]}
    result = capture(row("a", [1], [2]), line, row("b", [1, 2, 3], [4]))
    assert result.exit_code == 1
    assert f"{capture.source}:2: " in result.stderr
    assert [entry.model_call_id for entry in capture.records()] == ["a", "b"]


def test_a_line_of_several_choices_is_captured_whole_or_not(capture: Capture) -> None:
    two = {"choices": [{"index": i, "message": IDS} for i in range(2)]}
    result = capture(row("c#1", [1], [9]), {"rollout_id": "r", "model_call_id": "c", "response": two})
    assert result.exit_code == 1
    assert [entry.model_call_id for entry in capture.records()] == ["c#1"]


def test_a_call_id_seen_before_counts_once_or_is_reported(capture: Capture) -> None:
    result = capture(row("a", [1], [2]), row("a", [1], [2]), row("a", [1], [3]))
    assert result.exit_code == 1
    assert result.stderr.splitlines()[0] == f"{capture.source}:3: model call 'a' was seen before with other tokens"
    assert [entry.generation_token_ids for entry in capture.records()] == [[2]]


def test_a_file_that_is_there_is_refused(capture: Capture) -> None:
    capture(row("a", [1], [2]))
    before = (capture.out / "r.tokens.jsonl").read_bytes()
    result = capture(row("x", [1], [2], rollout="other"), row("b", [1, 2, 3], [4]))
    assert result.exit_code == 2
    assert "--append or --overwrite" in result.stderr
    assert (capture.out / "r.tokens.jsonl").read_bytes() == before
    assert not (capture.out / "other.tokens.jsonl").exists()


def test_append_goes_on_where_the_file_ends(capture: Capture) -> None:
    capture(row("a", [1], [2]))
    assert capture(row("a", [1], [2]), row("b", [1, 2, 3], [4]), flags=("--append",)).exit_code == 0
    assert capture.parents() == [("a", None, ROOT, ""), ("b", "a", RESOLVED, "")]
    assert capture(row("a", [1], [9]), flags=("--append",)).exit_code == 1
    assert len(capture.records()) == 2
    assert "0 calls of 0 rollouts" in capture(row("a", [1], [2]), flags=("--append",)).stdout
    assert capture.result.stdout.rstrip().endswith(", 1 there already")


def test_overwrite_starts_again(capture: Capture) -> None:
    capture(row("a", [1], [2]))
    assert capture(row("b", [1, 2, 3], [4]), flags=("--overwrite",)).exit_code == 0
    assert capture.parents() == [("b", None, ROOT, "")]


TWO = vllm_chat(vllm_choice(0, [41], [-0.5]), vllm_choice(1, [42, 2], [-0.5, -1.0]))


def test_any_dialect_is_taken_and_each_choice_is_a_call(capture: Capture) -> None:
    assert capture({"rollout_id": "r", "model_call_id": "a", "response": TWO}).exit_code == 0
    calls = [(entry.model_call_id, entry.generation_token_ids) for entry in capture.records()]
    assert calls == [("a#0", [41]), ("a#1", [42, 2])]
    assert [e.parent_resolution for e in capture.records()] == [ROOT, ROOT]


def test_the_dialect_can_be_said(capture: Capture) -> None:
    line = {"rollout_id": "r", "model_call_id": "a", "response": TWO}
    assert capture(line, flags=("--dialect", "vllm-chat")).exit_code == 0
    assert capture(line, flags=("--dialect", "vlm", "--overwrite")).exit_code == 2
    assert capture(line, flags=("--dialect", "tgi", "--overwrite")).exit_code == 1


def test_the_time_of_capture_stands_in_for_none(capture: Capture) -> None:
    line = row("a", [1], [2])
    line["response"]["created"] = 0
    capture(line)
    assert capture.records()[0].created_at > 1.7e9


def test_a_bom_is_no_fault(capture: Capture) -> None:
    assert capture("\ufeff" + json.dumps(row("a", [1], [2]))).exit_code == 0


def test_a_bom_on_a_later_line_is_a_fault(capture: Capture) -> None:
    assert capture(row("a", [1], [2]), "\ufeff" + json.dumps(row("b", [3], [4]))).exit_code == 1
    assert f"{capture.source}:2: the body is not JSON" in capture.result.stderr
    assert [entry.model_call_id for entry in capture.records()] == ["a"]


@pytest.mark.parametrize("rollout", [".hidden", "...", "-x"])
def test_what_is_captured_is_read(capture: Capture, rollout: str) -> None:
    assert capture(row("a", [1], [2], rollout=rollout)).exit_code == 0
    assert [entry.rollout_id for entry in read_jsonl(capture.out)] == [rollout]


def test_the_longest_name(capture: Capture) -> None:
    rollout = "r" * (255 - len(".tokens.jsonl"))
    assert capture(row("a", [1], [2], rollout=rollout)).exit_code == 0
    assert len(capture.records(rollout)) == 1


def test_the_same_ids_with_other_log_probs_are_another_call(capture: Capture) -> None:
    again = row("a", [1], [2])
    again["response"]["choices"][0]["message"]["generation_log_probs"] = [-0.75]
    result = capture(row("a", [1], [2]), again)
    assert (result.exit_code, len(capture.records())) == (1, 1)
    assert "model call 'a' was seen before with other tokens" in result.stderr


def test_a_response_may_be_a_list(capture: Capture) -> None:
    batch = [sglang_sample(), sglang_sample()]
    assert capture({"rollout_id": "r", "model_call_id": "a", "response": batch}).exit_code == 0
    assert [entry.model_call_id for entry in capture.records()] == ["a#0", "a#1"]


def test_faults_are_told_in_the_order_of_the_lines(capture: Capture) -> None:
    assert capture(row("a\ud800", [1], [2]), "{torn", row("c", [1], [2])).exit_code == 1
    places = [text.removeprefix(str(capture.source)).split(": ")[0] for text in capture.result.stderr.splitlines()]
    assert places[:2] == [":1", ":2"]
    assert [entry.model_call_id for entry in capture.records()] == ["c"]


def test_calls_that_are_known_are_counted_and_the_earlier_ones_left_as_they_are() -> None:
    earlier = bare("a", [1], [2])
    captured = rollouts.Capture(lambda _: [earlier])
    lines = [json.dumps(row(call, prompt, [4])).encode() for call, prompt in [("b", [1, 2, 3])] * 3]
    for _ in captured.read(lines, "x"):
        pass
    assert captured.known == 2
    [(_, [entry], _)] = captured.linked()
    assert (entry.parent_call_id, entry.parent_resolution) == ("a", RESOLVED)
    assert earlier == bare("a", [1], [2])


def test_the_bytes_of_each_line_are_said() -> None:
    lines = [json.dumps(row("a", [1], [2])).encode() + b"\n", b"\n", b"{bad\n"]
    assert list(rollouts.Capture(lambda _: ()).read(lines, "x")) == [len(line) for line in lines]


def read(captured: rollouts.Capture, path: str, *lines: Any) -> None:
    for _ in captured.read([json.dumps(line).encode() for line in lines], path):
        pass


def test_a_file_names_the_rollout_of_its_own_calls_alone() -> None:
    captured = rollouts.Capture(lambda _: ())
    unnamed = {name: value for name, value in row("a", [1], [2]).items() if name != "rollout_id"}
    read(captured, "dir.capture.jsonl/5-0.capture.jsonl", unnamed)
    read(captured, "calls.jsonl", unnamed)
    assert [rollout for rollout, _, _ in captured.linked()] == ["5-0"]
    assert [str(bad) for bad in captured.faults()] == ["calls.jsonl:1: rollout_id is missing"]


def test_a_rollout_of_which_nothing_can_be_written_is_none() -> None:
    captured = rollouts.Capture(lambda _: ())
    read(captured, "x", row("a\ud800", [1], [2]), {"rollout_id": "r"}, row("b", [1], [2], "s"), [])
    assert [rollout for rollout, _, _ in captured.linked()] == ["s"]
    assert [bad.line for bad in captured.faults()] == [1, 2, 4]
    assert captured.bad[0].line == 2


def test_a_bad_name_is_said_before_a_bad_response() -> None:
    captured = rollouts.Capture(lambda _: ())
    read(captured, "x", {"rollout_id": "a/b", "model_call_id": "c", "response": 5})
    [bad] = captured.faults()
    assert bad.reason.startswith("rollout_id 'a/b' can't name a file: ")
