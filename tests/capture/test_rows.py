"""What a line of `capture` says beside its response."""

from __future__ import annotations

import json
import time
from typing import Any

import numpy as np
import pytest
from support.command import Capture, row
from support.payloads import chunk, native_item, piece, sglang_sample, tgi, vllm_chat, vllm_choice
from tokenrecords import ParentResolutionStatus
from tokenrecords.capture.rows import Reading

ROOT, RESOLVED, UNRESOLVED = ParentResolutionStatus
BARE = {**vllm_chat(), "prompt_token_ids": None}
STREAM = [chunk(piece("o", [41]), prompt_token_ids=[1, 7]), chunk(piece("k", [2]))]


def line(response: Any, call: str = "a", **fields: Any) -> dict[str, Any]:
    return {"rollout_id": "r", "model_call_id": call, "response": response, **fields}


@pytest.mark.parametrize(
    "fields",
    [
        {"prompt_token_ids": [1, 7]},
        {"request": {"input_ids": [1, 7]}},
        {"request": {"prompt": [1, 7]}},
        {"request": {"prompt": [[1, 7]]}},
        {"request": {"token_ids": [1, 7], "prompt": "hi"}},
        {"request": {"input_ids": [1, 7]}, "prompt_token_ids": [1, 7]},
    ],
)
def test_the_prompt_that_was_sent(capture: Capture, fields: dict[str, Any]) -> None:
    assert capture(line(BARE, **fields)).exit_code == 0
    assert capture.records()[0].prompt_token_ids == [1, 7]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({}, "prompt_token_ids is missing"),
        ({"request": {"prompt": "hi"}}, "prompt_token_ids is missing"),
        ({"request": {"prompt": ["hi", [1]]}}, "prompt_token_ids is missing"),
        ({"request": {"prompt": [1]}, "prompt_token_ids": [2]}, "prompt_token_ids and request.prompt disagree"),
        ({"prompt_token_ids": "17"}, "is str: a list"),
    ],
)
def test_prompts_that_are_none(capture: Capture, fields: dict[str, Any], message: str) -> None:
    assert capture(line(BARE, **fields)).exit_code == 1
    assert message in capture.result.stderr


def test_a_prompt_that_is_not_what_the_engine_ran_on(capture: Capture) -> None:
    assert capture(line(vllm_chat(), prompt_token_ids=[1, 8])).exit_code == 1
    assert f"{capture.source}:1: vllm-chat choice 0: prompt_token_ids and the caller's" in capture.result.stderr


def sse(chunks: list[Any]) -> str:
    return "".join(f"data: {json.dumps(part)}\n\n" for part in chunks) + "data: [DONE]\n\n"


def sample(ids: list[int], reason: Any) -> dict[str, Any]:
    entries = [[{41: -0.125, 2: -0.5}[i], i, None] for i in ids]
    return sglang_sample(output_token_logprobs=entries, completion_tokens=len(ids), finish_reason=reason) | {
        "output_ids": ids
    }


def without_reason(part: dict[str, Any]) -> dict[str, Any]:
    return {**part, "meta_info": {key: value for key, value in part["meta_info"].items() if key != "finish_reason"}}


TOKEN = {"index": 1, "token": {"id": 41, "text": "o", "logprob": -0.125, "special": False}}
LAST = {**TOKEN, "index": 2, "token": {"id": 2, "text": "k", "logprob": -0.5}, "generated_text": "ok", "details": {}}
RESPONSE = {"object": "response", "id": "x", "output": [native_item()]}


def event(kind: str, **fields: Any) -> dict[str, Any]:
    return {"type": f"response.{kind}", "response": {**RESPONSE, **fields}}


STREAMS: dict[str, Any] = {
    "text": sse(STREAM),
    "one line of text": json.dumps(vllm_chat()),
    "a chunk alone": json.dumps(chunk(piece("ok", [41, 2]), prompt_token_ids=[1, 7])),
    "a list": STREAM,
    "a list of lines": [f"data: {json.dumps(part)}" for part in STREAM],
    "sglang": [sample([41], None), sample([41, 2], {"type": "stop"})],
    "sglang without a reason": [without_reason(sample([41], None)), without_reason(sample([41, 2], None))],
    "tgi": [TOKEN, LAST],
    "responses": [event("created", output=[]), event("completed")],
    "no stream: sglang": [sample([41, 2], {"type": "stop"})],
    "no stream: tgi": [tgi()],
}  # fmt: skip


@pytest.mark.parametrize("name", STREAMS)
def test_streams_are_joined(capture: Capture, name: str) -> None:
    fields = {"prompt_token_ids": [1, 7]} if name == "tgi" else {}
    assert capture(line(STREAMS[name], **fields)).exit_code == 0, capture.result.stderr
    assert [(e.prompt_token_ids, e.generation_token_ids) for e in capture.records()] == [([1, 7], [41, 2])]


def test_a_broken_stream_is_a_bad_line(capture: Capture) -> None:
    lines = [line(sse([*STREAM, {"error": {"message": "engine dead"}}])), line("{torn", "b"), line(STREAM, "c")]
    assert capture(*lines).exit_code == 1
    assert f"{capture.source}:1: chunk 2: the server sent an error: engine dead" in capture.result.stderr
    assert f"{capture.source}:2: a line of the stream is not JSON" in capture.result.stderr
    assert [entry.model_call_id for entry in capture.records()] == ["c"]


def test_ids_that_nobody_reads(capture: Capture) -> None:
    bare = {"object": "chat.completion", "choices": [{"message": {"content": "x"}, "newext": {"sampled_ids": [1]}}]}
    assert capture(line(bare)).exit_code == 1
    assert (
        f"{capture.source}:1: chat: no token ids were found, and choices[0].newext.sampled_ids" in capture.result.stderr
    )


def test_the_weights_that_sampled_it(capture: Capture) -> None:
    assert capture(line(vllm_chat(), weight_version="5"), line(sglang_sample(weight_version="6"), "b")).exit_code == 0
    assert [entry.weight_version for entry in capture.records()] == ["5", "6"]


USER, ASSISTANT = {"role": "user", "content": "hi"}, {"role": "assistant", "content": "ok"}


def test_a_request_without_words_of_the_model_is_a_root(capture: Capture) -> None:
    capture(
        row("first", [1], [2]),
        row("title", [7, 7], [8], request={"messages": [USER]}),
        row("lost", [9, 9], [8], request={"messages": [USER, ASSISTANT, USER]}),
        row("empty", [6, 6], [8], request={"messages": []}),
        row("named", [5, 5], [8], request={"messages": [USER]}, parent_call_id="first"),
    )
    assert [(call, status) for call, _, status, _ in capture.parents()] == [
        ("first", ROOT),
        ("title", ROOT),
        ("lost", UNRESOLVED),
        ("empty", UNRESOLVED),
        ("named", UNRESOLVED),
    ]


def test_counts_need_not_be_compared(capture: Capture) -> None:
    counted = line(vllm_chat(usage={"completion_tokens": 9}))
    assert capture(counted).exit_code == 1
    assert capture(counted, flags=("--no-check-counts",)).exit_code == 0


def test_choices_may_be_rollouts(capture: Capture) -> None:
    two = line(vllm_chat(vllm_choice(0), vllm_choice(1)))
    assert capture(two, line(vllm_chat(), "b"), flags=("--choices", "rollouts")).exit_code == 0
    assert sorted(path.name for path in capture.out.iterdir()) == [
        "r.choice-0.tokens.jsonl",
        "r.choice-1.tokens.jsonl",
        "r.tokens.jsonl",
    ]
    assert [entry.model_call_id for entry in capture.records("r.choice-1")] == ["a"]
    assert capture(two, flags=("--choices", "samples", "--overwrite")).exit_code == 2


def test_two_versions_of_the_weights_must_agree(capture: Capture) -> None:
    assert capture(line(vllm_chat(weight_version="5"), weight_version=5)).exit_code == 0
    assert capture(line(vllm_chat(weight_version="5"), weight_version="6"), flags=("--overwrite",)).exit_code == 1
    assert "weight_version is '6', and that of the response is '5'" in capture.result.stderr


@pytest.mark.parametrize(
    "error", [{"error": {"message": "engine dead"}}, {"object": "error", "message": "engine dead"}]
)
def test_what_the_server_said_of_its_fault(capture: Capture, error: Any) -> None:
    assert capture(line(error)).exit_code == 1
    assert f"{capture.source}:1: the server sent an error: engine dead" in capture.result.stderr


@pytest.mark.parametrize(
    "fields",
    [
        {"request": {"input_ids": "ngtok1:i32:AQAAAAcAAAA="}},
        {"request": {"input_ids": ["ngtok1:i32:AQAAAAcAAAA="]}},
        {"prompt_token_ids": [1, 7], "request": {"input_ids": [[1, 7]]}},
    ],
)
def test_a_prompt_in_a_list_or_an_envelope(capture: Capture, fields: Any) -> None:
    bare = {**vllm_chat(), "prompt_token_ids": None}
    assert capture(line(bare, **fields)).exit_code == 0, capture.result.stderr
    assert [entry.prompt_token_ids for entry in capture.records()] == [[1, 7]]


def test_an_empty_prompt_says_no_ids(capture: Capture) -> None:
    assert capture(line(vllm_chat(), request={"prompt": []})).exit_code == 0
    assert [entry.prompt_token_ids for entry in capture.records()] == [[1, 7]]


def test_a_beginning_that_is_no_time_is_none(capture: Capture) -> None:
    assert capture(line(vllm_chat(created=None), started_at=float("nan"))).exit_code == 0
    assert capture.records()[0].created_at > 1.7e9


def test_the_time_of_capture_is_in_milliseconds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "time", lambda: 7.12345)
    assert Reading().now == 7.123


def read(response: Any, **fields: Any) -> list[Any]:
    return Reading(now=9.0).entries(line(response, **fields))


TWO = (vllm_choice(0), vllm_choice(1))


@pytest.mark.parametrize(
    ("said", "began", "at"),
    [
        ({"created": None, "created_at": 7.0}, 5.0, 7.0),
        ({"created": 0}, 5.0, 5.0),
        ({"created": 0}, "1970-01-01T00:00:05Z", 5.0),
        ({"created": None}, 0, 9.0),
        ({"created": None}, None, 9.0),
        ({"created": 7}, 5.0, 7.0),
    ],
)
def test_when_a_call_was_made(said: Any, began: Any, at: float) -> None:
    assert [entry.created_at for entry in read(vllm_chat(*TWO, **said), started_at=began)] == [at, at]


@pytest.mark.parametrize("version", [5, 0, "", "5"])
def test_the_version_of_the_row_is_that_of_each_choice(version: Any) -> None:
    for own in (None, str(version)):
        entries = read(vllm_chat(*TWO, weight_version=own), weight_version=version)
        assert [entry.weight_version for entry in entries] == [version, version]
        assert {type(entry.weight_version) for entry in entries} == {type(version)}
    with pytest.raises(ValueError, match=rf"^weight_version is {version!r}, and that of the response is 0\.5$"):
        read(vllm_chat(weight_version=0.5), weight_version=version)
    with pytest.raises(ValueError, match=r"^weight_version is 1, and that of the response is 0$"):
        read(vllm_chat(weight_version=0), weight_version=1)


def test_a_parent_that_a_row_names() -> None:
    for named, status in ((None, ROOT), ("", None), ("p", None)):
        entries = read(vllm_chat(*TWO), parent_call_id=named)
        assert [(entry.parent_call_id, entry.parent_resolution) for entry in entries] == [(named, status)] * 2
    assert read(vllm_chat())[0].parent_resolution is None
    with pytest.raises(ValueError, match=r"^parent_call_id is int, str is needed$"):
        read(vllm_chat(), parent_call_id=5)


@pytest.mark.parametrize(
    ("messages", "is_root"),
    [([USER, ASSISTANT], False), ([ASSISTANT], False), ([5, USER], True), ([USER, 5], True), ({"role": "user"}, False)],
)
def test_what_starts_a_conversation(messages: Any, is_root: bool) -> None:
    [entry] = read(vllm_chat(), request={"messages": messages})
    assert entry.parent_resolution == (ROOT if is_root else None)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"prompt_token_ids": [], "request": {"input_ids": [1]}}, "prompt_token_ids and request.input_ids disagree"),
        (
            {"prompt_token_ids": [1], "request": {"input_ids": [1], "token_ids": [2]}},
            "prompt_token_ids and request.token_ids disagree",
        ),
        ({"request": {"prompt": [1], "prompt_token_ids": [2]}}, "request.prompt and request.prompt_token_ids disagree"),
    ],
)
def test_prompts_that_disagree(fields: Any, message: str) -> None:
    with pytest.raises(ValueError, match=f"^{message}$"):
        read(BARE, **fields)


@pytest.mark.parametrize("kind", ["int32", "uint32"])
def test_prompts_in_arrays(kind: str) -> None:
    for prompt in (np.array([1, 7], kind), [np.array([1, 7], kind)]):
        assert list(read(BARE, request={"input_ids": prompt})[0].prompt_token_ids) == [1, 7]
    for other in (np.array([0.5]), np.array([True]), np.array(["a"])):
        assert list(read(vllm_chat(), request={"prompt": other})[0].prompt_token_ids) == [1, 7]
