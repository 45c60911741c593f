"""Streams of Responses: the last event, or what the others said."""

import re
from typing import Any

import pytest
from support.payloads import TOKENS, native, native_item, tokens_of
from tokenrecords import merge_stream, read_response

WHOLE = {"id": "resp", "object": "response", "status": "completed", "output": [native_item()]}


def response(kind: str, **fields: Any) -> dict[str, Any]:
    return {"type": f"response.{kind}", "response": {**WHOLE, **fields}}


def item(kind: str, index: int, **fields: Any) -> dict[str, Any]:
    return {"type": f"response.output_item.{kind}", "output_index": index, "item": fields}


def delta(kind: str, text: str, index: int = 0, **fields: Any) -> dict[str, Any]:
    return {"type": f"response.{kind}.delta", "output_index": index, "delta": text, **fields}


CREATED = response("created", status="in_progress", output=[])
TEXT = [delta("output_text", word, content_index=0, logprobs=[]) for word in "ok"]


def test_the_last_event_is_the_whole():
    for end in ("completed", "incomplete"):
        merged = merge_stream([CREATED, *TEXT, response(end, status=end)])
        assert merged == {**WHOLE, "status": end}
    assert tokens_of(read_response(merged)[0]) == TOKENS


def test_deltas_alone():
    merged = merge_stream(
        [
            CREATED,
            delta("reasoning_summary_text", "h", summary_index=0),
            delta("reasoning_summary_text", "m", summary_index=0),
            delta("reasoning_text", "so", content_index=0),
            item("added", 2, type="message", id="msg", role="assistant", content=[]),
            *[{**part, "output_index": 2} for part in TEXT],
            delta("refusal", "no", 2, content_index=1),
            delta("function_call_arguments", "{", 1),
            delta("function_call_arguments", "}", 1),
        ]
    )
    assert merged["status"] == "in_progress"
    assert merged["output"] == [
        {
            "type": "reasoning",
            "content": [{"type": "reasoning_text", "text": "so"}],
            "summary": [{"type": "summary_text", "text": "hm"}],
        },
        {"type": "function_call", "arguments": "{}"},
        {
            "role": "assistant",
            "type": "message",
            "id": "msg",
            "content": [{"type": "output_text", "text": "ok"}, {"type": "refusal", "refusal": "no"}],
        },
    ]
    assert read_response(merged) == []


def test_tokens_that_only_earlier_events_said():
    done = item("done", 0, **native_item())
    for events in ([CREATED, *TEXT, done], [CREATED, done, response("completed", output=[{"type": "message"}])]):
        assert tokens_of(read_response(merge_stream(events))[0]) == TOKENS
    pieces = [
        {**TEXT[0], **native(generation_token_ids=[41], generation_log_probs=[-0.125])},
        {**TEXT[1], **native(generation_token_ids=[2], generation_log_probs=[-0.5])},
    ]
    for end in ([], [response("completed", output=[{"type": "message"}])]):
        assert tokens_of(read_response(merge_stream([CREATED, *pieces, *end]))[0]) == TOKENS


def test_faults():
    def refused(*events: Any, message: str) -> None:
        with pytest.raises(ValueError, match=message):
            read_response(merge_stream(events))

    done = item("done", 0, **native_item(generation_token_ids=[41, 3]))
    refused(CREATED, done, response("completed"), message=r"generation_token_ids of output\[0\] disagrees")
    refused(
        CREATED, done, response("completed", output=[{}, {}]), message="the tokens of 1 items, and the last event 2"
    )
    refused(CREATED, response("completed", id="other"), message="chunk 1: id 'other' of another response than 'resp'")
    failed = response("failed", error={"code": "server_error", "message": "it died"})
    refused(CREATED, failed, message=r"^chunk 1: the server sent an error: it died$")
    refused(CREATED, {"type": "error", "code": "x", "message": "no more"}, message="an error: no more")
    refused(CREATED, {**TEXT[0], "token_ids": [41]}, message="generation_log_probs is missing")
    for name in ("output[0].sampled_ids", "sampled_ids"):  # of an event of an item, and of one of the whole
        event = TEXT[0] if name.startswith("output") else response("completed", output=[])
        refused(CREATED, {**event, "sampled_ids": [41]}, message=rf" {re.escape(name)} is not read")
    assert merge_stream([CREATED, response("completed", id="other")], check_ids=False)["id"] == "other"


def test_what_an_item_is_where_no_event_says():
    merged = merge_stream([CREATED, delta("output_text", "ok", content_index=0)])
    assert merged["output"] == [
        {"role": "assistant", "type": "message", "content": [{"type": "output_text", "text": "ok"}]}
    ]
    merged = merge_stream([CREATED, delta("custom_tool_call_input", "x"), delta("mcp_call_arguments", "{}", 1)])
    assert merged["output"] == [{"type": "custom_tool_call", "input": "x"}, {"type": "mcp_call", "arguments": "{}"}]


def test_an_item_keeps_what_it_says_of_itself():
    merged = merge_stream([CREATED, item("added", 0, type="message", role="tool"), *TEXT])
    assert merged["output"][0]["role"] == "tool"


def test_what_an_event_says_at_the_end_is_said_once():
    entry = {"token": "token_id:41", "logprob": -0.5}
    deltas = [{**part, "logprobs": [entry]} for part in TEXT]
    done = {"type": "response.output_text.done", "output_index": 0, "content_index": 0, "text": "ok"}
    merged = merge_stream([CREATED, *deltas, {**done, "logprobs": [entry, entry]}])
    assert merged["output"][0]["content"] == [{"type": "output_text", "text": "ok", "logprobs": [entry, entry]}]
    finished = {"type": "response.function_call_arguments.done", "output_index": 0, "arguments": "{}"}
    merged = merge_stream([CREATED, delta("function_call_arguments", "{}"), finished])
    assert merged["output"][0]["arguments"] == "{}"
    assert merge_stream([CREATED, done])["output"] == [{}]


def test_events_without_a_number():
    events = [delta("output_text", "o"), delta("output_text", "k"), delta("output_text", "!", content_index=1)]
    [found] = merge_stream([CREATED, *events])["output"]
    assert [part["text"] for part in found["content"]] == ["ok", "!"]
    unplaced = [{**part, "output_index": None} for part in TEXT]
    found = merge_stream([CREATED, *unplaced, delta("function_call_arguments", "{}", 1)])["output"]
    assert [part["type"] for part in found] == ["message", "function_call"]


def test_a_failure_without_words_is_shown_whole():
    for error, said in (({"code": "x"}, r"{'code': 'x'}"), (None, "None"), ("dead", "dead")):
        with pytest.raises(ValueError, match=f"chunk 1: the server sent an error: {re.escape(said)}$"):
            merge_stream([CREATED, response("failed", error=error)])


def test_a_prompt_that_two_events_say_in_two_ways():
    events = [{**part, "prompt_token_ids": ids} for part, ids in zip(TEXT, ([1], [7]), strict=True)]
    with pytest.raises(ValueError, match="chunk 2: a second prompt_token_ids disagrees"):
        merge_stream([CREATED, *events])


def test_an_item_that_is_done_stays_as_it_ended():
    ended = item("done", 0, type="message", content=[{"type": "output_text", "text": "ok"}])
    again = item("added", 0, id="msg")
    [found] = merge_stream([CREATED, *TEXT, ended, again])["output"]
    assert found == {"type": "message", "content": [{"type": "output_text", "text": "ok"}], "id": "msg"}
