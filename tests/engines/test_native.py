"""Native token fields: on items, bodies and messages."""

import pytest
from support.payloads import native, native_item, refused
from tokenrecords import detect_dialect, read_response


def test_responses_and_messages():
    item = native_item()
    reasoning = {"type": "reasoning", "summary": []}
    payload = {"object": "response", "output": [reasoning, item], "status": "completed"}
    [choice] = read_response(payload)
    assert (choice.token_item_index, choice.finish_reason) == (1, "completed")
    assert choice.output_items == [reasoning, {"type": "message", "role": "assistant", "content": []}]
    payload["incomplete_details"] = {"reason": "max_output_tokens"}
    assert read_response(payload)[0].finish_reason == "max_output_tokens"
    refused({"object": "response", "output": [item, item]}, "responses choice 0: multiple output items")
    refused({"object": "response", "output": [item], "choices": [{"message": native()}]}, "multiple output items")
    item["generation_log_probs"] = None
    refused({"object": "response", "output": [item]}, "responses choice 0: generation_log_probs is missing")
    body = {
        "type": "message",
        "role": "assistant",
        "content": [{"type": "text", "text": "a"}],
        "stop_reason": "max_tokens",
    }
    assert read_response(body) == []
    [choice] = read_response({**body, **native()})
    assert (choice.token_item_index, choice.finish_reason) == (0, "max_tokens")
    refused({**body, **native(prompt_token_ids=None)}, "messages choice 0: prompt_token_ids is missing")


def test_native_fields_of_two_choices():
    choices = [{"index": i, "message": {"content": "x", **native()}} for i in (1, 0)]
    assert [choice.index for choice in read_response({"choices": choices})] == [0, 1]


def test_log_probs_and_routes_alone_are_no_tokens():
    for name, value in (("generation_log_probs", [-0.5]), ("routed_experts", "x")):
        assert read_response({"choices": [{"message": {"content": "x", name: value}}]}) == []
        assert read_response({"object": "response", "output": [{"type": "message", name: value}]}) == []


def test_usage_of_a_responses_payload_may_sum_several_calls():
    item = native_item()
    payload = {"object": "response", "output": [item], "usage": {"input_tokens": 99, "output_tokens": 99}}
    assert len(read_response(payload)) == 1


@pytest.mark.parametrize(
    ("payload", "dialect"),
    [
        ({"output": [{"type": "message"}]}, "responses"),
        ({"object": "response"}, "responses"),
        ({"object": "response", "choices": [{"message": {}}]}, "chat"),
        ({"output": [{"type": "message"}], "choices": [{"message": {}}]}, "chat"),
        ({"output": [native_item()], "choices": [{"message": {}}]}, "responses"),
        ({"type": "message", "role": "assistant", "content": []}, "messages"),
        ({"type": "message", "role": "user", "content": []}, "unknown"),
    ],
)
def test_the_signs(payload, dialect):
    assert detect_dialect(payload) == dialect


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"status": "completed", "stop_reason": "end_turn"}, "end_turn"),
        ({"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}, "max_output_tokens"),
        ({"status": "completed", "incomplete_details": None}, "completed"),
        ({}, None),
    ],
)
def test_why_it_ended(fields, reason):
    [choice] = read_response({"object": "response", "output": [native_item()], **fields})
    assert choice.finish_reason == reason


def test_the_item_that_carries_the_tokens_is_named():
    reasoning = {"type": "reasoning", "summary": []}
    [choice] = read_response({"object": "response", "output": [reasoning, native_item(), reasoning]})
    assert (choice.token_item_index, len(choice.output_items)) == (1, 3)


def test_usage_of_a_messages_payload_may_sum_several_calls():
    body = {**native_item(), "usage": {"prompt_tokens": 99, "completion_tokens": 99}}
    assert len(read_response(body)) == 1
    assert len(read_response({"object": "response", "output": [native_item()], "usage": {"completion_tokens": 9}})) == 1


@pytest.mark.parametrize("name", ["env_mask", "tool_mask", "loss_mask", "response_mask", "generation_loss_mask"])
def test_the_mask_of_a_row(name):
    [choice] = read_response(native(**{name: [1, 0]}))
    assert choice.generation_loss_mask == [1, 0]
    refused(native(**{name: [0, 0, 1, 1]}), "flat choice 0: 2 generation_token_ids and 4 generation_loss_mask")


@pytest.mark.parametrize("name", ["choices", "output", "outputs", "sequences"])
def test_a_row_has_nothing_of_an_engines_answer(name):
    assert detect_dialect(native(**{name: None})) == ("vllm-generate" if name == "choices" else "flat")
    assert detect_dialect(native(**{name: []})) != "flat"


def test_a_message_beside_the_items_that_carries_nothing():
    payload = {"object": "response", "output": [native_item()], "choices": [{"message": {"content": "x"}}]}
    assert len(read_response(payload)) == 1
