"""Streams of Anthropic Messages, with a server's ids on their events."""

import json
import re
from typing import Any

import pytest
from support.payloads import tokens_of
from tokenrecords import detect_dialect, merge_stream, read_response

START = {"id": "m1", "type": "message", "role": "assistant", "content": [], "model": "m", "prompt_token_ids": [1, 7]}


def delta(index: int, piece: dict[str, Any], ids: list[int] | None = None) -> dict[str, Any]:
    event = {"type": "content_block_delta", "index": index, "delta": piece}
    return event if ids is None else {**event, "output_ids": ids, "output_token_logprobs": [[-i / 8, i] for i in ids]}


def block(index: int, **fields: Any) -> dict[str, Any]:
    return {"type": "content_block_start", "index": index, "content_block": fields}


STREAM = [
    {"type": "message_start", "message": {**START, "usage": {"input_tokens": 2, "output_tokens": 0}}},
    {"type": "ping"},
    block(0, type="thinking", thinking=""),
    delta(0, {"type": "thinking_delta", "thinking": "h"}, [41]),
    delta(0, {"type": "thinking_delta", "thinking": "m"}, [2]),
    delta(0, {"type": "signature_delta", "signature": "s"}),
    block(1, type="text", text=""),
    delta(1, {"type": "text_delta", "text": "ok"}, [5, 6]),
    delta(1, {"type": "citations_delta", "citation": {"ids": [1]}}),
    block(2, type="tool_use", id="t", name="f", input={}),
    delta(2, {"type": "input_json_delta", "partial_json": '{"a":'}),
    delta(2, {"type": "input_json_delta", "partial_json": "1}"}, [9]),
    {"type": "content_block_stop", "index": 2},
    {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 5}},
    {"type": "message_stop"},
]


@pytest.mark.parametrize("form", ["dicts", "text"])
def test_blocks_and_ids(form):
    text = "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in STREAM)
    merged = merge_stream(STREAM if form == "dicts" else text)
    assert merged["content"] == [
        {"type": "thinking", "thinking": "hm", "signature": "s"},
        {"type": "text", "text": "ok", "citations": [{"ids": [1]}]},
        {"type": "tool_use", "id": "t", "name": "f", "input": {"a": 1}},
    ]
    assert (merged["id"], merged["usage"]) == ("m1", {"input_tokens": 2, "output_tokens": 5})
    assert detect_dialect(merged) == "lmdeploy-messages"
    [choice] = read_response(merged)
    assert tokens_of(choice) == ([1, 7], [41, 2, 5, 6, 9], [-41 / 8, -2 / 8, -5 / 8, -6 / 8, -9 / 8])
    assert choice.finish_reason == "tool_use"


def test_native_fields():
    def said(holder: dict[str, Any], id_: int) -> dict[str, Any]:
        return {**holder, "generation_token_ids": [id_], "generation_log_probs": [-0.5]}

    inside = delta(0, said({"type": "text_delta", "text": "o"}, 41))
    beside = said(delta(0, {"type": "text_delta", "text": "k"}), 2)
    merged = merge_stream([STREAM[0], inside, beside])
    assert detect_dialect(merged) == "messages"
    assert tokens_of(read_response(merged)[0]) == ([1, 7], [41, 2], [-0.5, -0.5])


def test_without_ids():
    bare = [{key: value for key, value in event.items() if not key.startswith("output")} for event in STREAM[1:]]
    merged = merge_stream([{"type": "message_start", "message": {**START, "prompt_token_ids": None}}, *bare])
    assert read_response(merged) == []


def test_faults():
    def refused(*events: Any, message: str) -> None:
        with pytest.raises(ValueError, match=message):
            read_response(merge_stream(events))

    refused(*STREAM[:4], *STREAM[5:], message="4 generation_token_ids, but the engine counted 5")
    uneven = {**STREAM[3], "output_token_logprobs": []}
    refused(*STREAM[:3], uneven, message="chunk 3: 1 generation_token_ids and 0 generation_log_probs")
    refused(STREAM[0], {"type": "message_start", "message": {**START, "id": "m2"}}, message="'m2' .* than 'm1'")
    overloaded = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    refused(STREAM[0], overloaded, message=r"^chunk 1: the server sent an error: Overloaded$")
    unknown = {**delta(0, {"type": "text_delta", "text": "x"}), "sampled_ids": [41]}
    bare = {"type": "message_start", "message": {**START, "prompt_token_ids": None}}
    refused(bare, unknown, message="sampled_ids is not read")


def test_a_count_before_the_first_token_is_none_of_the_whole():
    merged = merge_stream(STREAM[:5])
    assert merged["usage"] == {"input_tokens": 2}
    assert tokens_of(read_response(merged)[0])[1] == [41, 2]


def test_blocks_stand_in_the_order_of_their_indexes():
    texts = [block(index, type="text", text=str(index)) for index in (10, 2, 0)]
    assert [part["text"] for part in merge_stream([STREAM[0], *texts])["content"]] == ["0", "2", "10"]


def test_a_count_that_is_null_leaves_the_one_before():
    merged = merge_stream([*STREAM[:5], {"type": "message_delta", "delta": {}, "usage": {"input_tokens": None}}])
    assert merged["usage"] == {"input_tokens": 2}


def test_arguments_that_were_cut_off():
    merged = merge_stream([*STREAM[:1], STREAM[9], STREAM[10]])
    assert merged["content"][0]["input"] == '{"a":'
    deep = "[" * 100_000
    merged = merge_stream([STREAM[0], STREAM[9], delta(2, {"type": "input_json_delta", "partial_json": deep})])
    assert merged["content"][0]["input"] == deep


def test_a_block_goes_on_from_what_it_begins_with():
    block = {"type": "text", "text": "o", "citations": [{"n": 1}]}
    delta = {"type": "text_delta", "text": "k"}
    cited = {"type": "citations_delta", "citation": {"n": 2}}
    events = [{"type": "content_block_delta", "index": 0, "delta": part} for part in (delta, cited)]
    merged = merge_stream([{"type": "content_block_start", "index": 0, "content_block": block}, *events])
    assert merged["content"] == [{"type": "text", "text": "ok", "citations": [{"n": 1}, {"n": 2}]}]


def test_an_id_that_sorts_before_is_another():
    for one, two in (("m1", "m2"), ("m2", "m1")):
        starts = [{"type": "message_start", "message": {**START, "id": id_}} for id_ in (one, two)]
        with pytest.raises(ValueError, match=f"chunk 1: id '{two}' of another response than '{one}'"):
            merge_stream(starts)


def test_a_count_of_0_is_a_count():
    merged = merge_stream([STREAM[0], {"type": "message_delta", "delta": {}, "usage": {"output_tokens": 0}}])
    assert merged["usage"] == {"input_tokens": 2, "output_tokens": 0}


def test_a_block_whose_text_is_empty_has_one():
    merged = merge_stream([STREAM[0], block(0, type="text"), delta(0, {"type": "text_delta", "text": ""})])
    assert merged["content"] == [{"type": "text", "text": ""}]


@pytest.mark.parametrize("name", ["text", "thinking", "signature", "partial_json"])
@pytest.mark.parametrize("wrong", [[], [1], {"a": 1}, 5], ids=repr)
def test_a_piece_that_is_no_text(name, wrong):
    with pytest.raises(ValueError, match=f"chunk 1: {name} of a block must be text, got {re.escape(repr(wrong))}"):
        merge_stream([STREAM[0], delta(0, {name: wrong})])
