"""Faults that cost more than themselves: each stays where it is, and is named."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from makers import IDS, make_entry
from test_capture import Capture, row
from tokenrecords import (
    append_jsonl,
    cumulative_tokens,
    entries_from_response,
    extract_token_fields,
    merge_stream,
    read_jsonl,
    read_response,
    response_to_output_items,
    scan_jsonl,
    write_jsonl,
)

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def capture(tmp_path: Path) -> Capture:
    return Capture(tmp_path)


BODY = {"type": "message", "role": "assistant", "content": 5, **IDS}
STUBBORN: dict[str, Any] = {
    "a list of a number": [1],
    "a body of a number": BODY,
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


def test_a_time_that_is_no_number_is_the_time_of_capture() -> None:
    payload = {"created": float("nan"), "choices": [{"message": IDS}]}
    (entry,) = entries_from_response(payload, rollout_id="r", model_call_id="c")
    assert entry.created_at > 1.7e9


def test_a_line_of_several_choices_is_captured_whole_or_not(capture: Capture) -> None:
    two = {"choices": [{"index": i, "message": IDS} for i in range(2)]}
    result = capture(row("c#1", [1], [9]), {"rollout_id": "r", "model_call_id": "c", "response": two})
    assert result.exit_code == 1
    assert [entry.model_call_id for entry in capture.records()] == ["c#1"]


@pytest.mark.parametrize("rollout", [".hidden", "...", "-x"])
def test_what_is_captured_is_read(capture: Capture, rollout: str) -> None:
    assert capture(row("a", [1], [2], rollout=rollout)).exit_code == 0
    assert [entry.rollout_id for entry in read_jsonl(capture.out)] == [rollout]


LINE = make_entry().to_json()
WHOLE = {
    "two records": LINE + LINE,
    "words behind": LINE + b" xx",
    "a wrong byte": LINE.replace(b'"model":""', b'"model":"\xff"'),
    "a wrong word": LINE.replace(b"null", b"nul", 1),
    "a comma": LINE[:-1] + b",}",
    "text": b"precious text",
}
TORN = {
    "half": LINE[: len(LINE) // 2],
    "one byte": b"{",
    "a character": '{"rollout_id":"é'.encode()[:-1],
    "zeros": b"\0" * 9,
    "zeros behind": LINE[:30] + b"\0" * 9,
}


@pytest.mark.parametrize("name", WHOLE)
def test_a_last_line_that_does_not_break_off_is_an_error_and_stays(tmp_path: Path, name: str) -> None:
    path = tmp_path / "r.tokens.jsonl"
    path.write_bytes(LINE + b"\n" + WHOLE[name])
    with scan_jsonl(path, on_error="skip") as reader:
        assert len(list(reader)) == 1
    assert [error.line for error in reader.errors] == [2]
    append_jsonl(path, [make_entry()])
    assert path.read_bytes() == b"\n".join([LINE, WHOLE[name], LINE, b""])


@pytest.mark.parametrize("name", TORN)
def test_a_last_line_that_breaks_off_is_torn(tmp_path: Path, name: str) -> None:
    path = tmp_path / "r.tokens.jsonl"
    path.write_bytes(LINE + b"\n" + TORN[name])
    with pytest.warns(UserWarning, match=f"the last {len(TORN[name])} bytes are a torn record"):
        assert len(read_jsonl(path)) == 1
    append_jsonl(path, [make_entry()])
    assert path.read_bytes() == b"\n".join([LINE, LINE, b""])


def chunk(content: str, **choice: Any) -> dict[str, Any]:
    return {"object": "chat.completion.chunk", "choices": [{"index": 0, "delta": {"content": content}, **choice}]}


def test_meta_info_grows_or_is_refused() -> None:
    def meta(*ids: int) -> dict[str, Any]:
        return {"meta_info": {"output_token_logprobs": [[-0.5, id_, None] for id_ in ids]}}

    grown = merge_stream([{**chunk("a", **meta(4)), "prompt_token_ids": [1]}, chunk("b", **meta(4, 5))])
    assert read_response(grown)[0].generation_token_ids == [4, 5]
    with pytest.raises(ValueError, match="chunk 1: output_token_logprobs does not go on"):
        merge_stream([chunk("a", **meta(4)), chunk("b", **meta(5))])


def test_a_hole_in_token_fields_of_a_delta_is_seen() -> None:
    def delta(content: str, ids: list[int] | None) -> dict[str, Any]:
        made = chunk(content)
        if ids is not None:
            log_probs = [-0.5] * len(ids)
            made["choices"][0]["delta"].update(
                prompt_token_ids=[1], generation_token_ids=ids, generation_log_probs=log_probs
            )
        return made

    whole = merge_stream([delta("a", [4]), delta("b", [5])])
    assert extract_token_fields(whole)["generation_token_ids"] == [4, 5]
    with pytest.raises(ValueError, match="chunk 1: generation_token_ids is missing"):
        merge_stream([delta("a", [4]), delta("z", None), delta("b", [5])])


def test_ids_of_chunks_stay_integers() -> None:
    parts = [np.array([4], np.int32), np.array([], float), np.array([5], np.uint64)]
    merged = merge_stream([chunk("a", token_ids=part) for part in parts])
    assert merged["choices"][0]["token_ids"].dtype == np.int32
    assert merged["choices"][0]["token_ids"].tolist() == [4, 5]


def test_two_tool_calls_without_an_index_are_refused() -> None:
    def call(id_: str) -> dict[str, Any]:
        made = chunk("")
        made["choices"][0]["delta"]["tool_calls"] = [{"id": id_, "function": {"name": "f", "arguments": "1"}}]
        return made

    with pytest.raises(ValueError, match="chunk 1: a second tool call without an index: 'b'"):
        merge_stream([call("a"), call("b")])


@pytest.mark.parametrize("prompt", [[1, 2], np.array([1, 2])])
def test_ids_that_were_assigned_are_not_rounded(prompt: Any) -> None:
    entry = make_entry(prompt_token_ids=prompt)
    for wrong, message in (
        ([3.5], r"\[0\] is 3.5: "),
        (np.array([3.5]), " has dtype float64"),
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


@pytest.mark.parametrize("payload", [{"output": [{"x": 1}], "choices": 5}, {**BODY, "content": "x", "choices": 5}])
def test_what_is_not_looked_at_does_not_matter(payload: Any) -> None:
    plain = {name: value for name, value in payload.items() if name not in IDS}
    assert len(response_to_output_items(plain)) == 1


def test_arrays_of_objects_and_bytes_in_a_response() -> None:
    def payload(ids: Any) -> dict[str, Any]:
        log_probs = [-0.5, -0.5]
        fields = {"prompt_token_ids": [1], "generation_token_ids": ids, "generation_log_probs": log_probs}
        return {"choices": [{"message": fields}]}

    assert read_response(payload(np.array([41, 2], object)))[0].generation_token_ids == [41, 2]
    with pytest.raises(ValueError, match=r"chat choice 0: generation_token_ids: .*bytes are not a token sequence"):
        read_response(payload(memoryview(b"ab")))


def test_odd_ids_stay_in_their_row_whatever_the_terminal(tmp_path: Path) -> None:
    path = tmp_path / "r.tokens.jsonl"
    write_jsonl(path, [make_entry(model_call_id="x\ny\x1b[31m")])
    command = [sys.executable, "-m", "tokenrecords", "show", path]
    done = subprocess.run(command, capture_output=True, env={"PYTHONIOENCODING": "ascii"}, check=True)
    lines = done.stdout.decode("ascii").splitlines()
    assert lines[1].split()[1] == r"x\ny\x1b[31m"
    assert len(lines) == 5


def test_a_torn_tail_is_one_line_of_the_command(tmp_path: Path) -> None:
    path = tmp_path / "r.tokens.jsonl"
    path.write_bytes(LINE + b"\n{")
    command = [sys.executable, "-m", "tokenrecords", "verify", "--json", path]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)["ok"]
    assert (
        done.stderr == f"warning: {path}: the last 1 bytes are a torn record, which was never acknowledged: left out\n"
    )
