"""Native token fields: on items, bodies and messages."""

from support.payloads import native, native_item, refused
from tokenrecords import read_response


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
