"""Output items of served choices."""

from copy import deepcopy
from types import MappingProxyType

import pytest
from support.payloads import log_prob_entry, native, native_item, sglang_sample, vllm_chat, vllm_choice
from tokenrecords import read_response


def test_output_items_hold_no_token_arrays():
    block = {"type": "output_text", "text": "ok", "logprobs": [log_prob_entry("ok", -0.5)]}
    item = {"type": "message", "content": [block], "token_ids": [41], "meta_info": {"x": 1}, **native()}
    [choice] = read_response({"object": "response", "output": [item]})
    assert choice.output_items == [{"type": "message", "content": [{"type": "output_text", "text": "ok"}]}]
    assert "logprobs" in block
    call = {"type": "tool_use", "input": {"token_ids": [1], "logprobs": True}}
    body = {"type": "message", "role": "assistant", "content": [call], **native()}
    assert read_response(body)[0].output_items[0]["content"] == [call]


def test_no_item_where_there_is_no_content():
    for text in ({}, {"text": None}, {"text": ""}):
        payload = {**sglang_sample(), **text}
        payload = payload if text else {k: v for k, v in payload.items() if k != "text"}
        [choice] = read_response(payload)
        assert (choice.output_items, choice.token_item_index) == ([], None)


PRIVATE = [
    *("prompt_token_ids", "generation_token_ids", "generation_log_probs", "routed_experts"),
    *("token_ids", "completion_token_ids", "output_ids", "output_token_logprobs", "input_token_logprobs"),
    *("logprobs", "prompt_logprobs", "top_logprobs", "token_logprobs", "completion_logprobs"),
    *("meta_info", "nvext", "engine_data", "sglext", "sgl_ext"),
    *("token_id", "gen_tokens", "sampling_mask", "indexer_topk", "generation_loss_mask"),
]


@pytest.mark.parametrize("name", PRIVATE)
def test_each_private_field_is_left_out_at_each_level(name):
    held = {"text": "ok", name: [1, 0]}
    fields = {"content": [held], "provider_specific_fields": held, "annotations": [held]}
    [choice] = read_response({"object": "response", "output": [{name: [1, 0], **native_item(**fields)}]})
    assert choice.output_items == [
        {
            "type": "message",
            "role": "assistant",
            "content": [{"text": "ok"}],
            "provider_specific_fields": {"text": "ok"},
            "annotations": [held],  # the model's own words
        }
    ]


def test_a_null_is_kept_beside_what_is_left_out():
    [choice] = read_response(vllm_chat(vllm_choice(message={"content": "x", "logprobs": None, "token_ids": [1]})))
    assert choice.output_items[0] == {"type": "message", "role": "assistant", "content": "x", "logprobs": None}


@pytest.mark.parametrize(("text", "items"), [("ok", 1), ("", 0), (None, 0), (5, 0)])
def test_a_text_is_one_item(text, items):
    [choice] = read_response({**sglang_sample(), "text": text})
    assert len(choice.output_items) == items
    assert choice.token_item_index == (0 if items else None)
    completion = {"index": 0, "text": text, "token_ids": [], "prompt_token_ids": [1], "logprobs": {"tokens": []}}
    [choice] = read_response({"object": "text_completion", "choices": [completion]})
    assert (len(choice.output_items), choice.token_item_index) == (items, 0 if items else None)


@pytest.mark.parametrize(
    ("said", "reason"), [({"type": "stop", "matched": 2}, "stop"), ("length", "length"), (3, "3"), (None, None)]
)
def test_why_a_generation_ended_is_a_word(said, reason):
    assert read_response(sglang_sample(finish_reason=said))[0].finish_reason == reason
    assert read_response(vllm_chat(vllm_choice(finish_reason=said)))[0].finish_reason == reason


def test_parts_without_private_fields_are_the_same_objects():
    block, swept = {"text": "ok", "logprobs": None}, {"reasoning": "x"}
    item = native_item(content=[block], provider_specific_fields=swept)
    [choice] = read_response({"object": "response", "output": [item]})
    assert choice.output_items[0]["content"][0] is block
    assert choice.output_items[0]["provider_specific_fields"] is swept


def test_the_words_of_a_reason():
    for said, reason in ((MappingProxyType({"type": "stop"}), "stop"), ("", ""), (0, "0"), ({"type": None}, None)):
        assert read_response(vllm_chat(vllm_choice(finish_reason=said)))[0].finish_reason == reason


def test_items_of_the_caller_stay_as_they_are():
    block = {"type": "output_text", "text": "ok", "logprobs": [log_prob_entry("ok", -0.5)]}
    thought = {"type": "reasoning", "content": [block], "provider_specific_fields": {"token_ids": [41]}}
    payload = {"object": "response", "output": [thought, native_item(content=[block])]}
    before = deepcopy(payload)
    [choice] = read_response(payload)
    assert [item["content"] for item in choice.output_items] == [[{"type": "output_text", "text": "ok"}]] * 2
    assert choice.output_items[0]["provider_specific_fields"] == {}
    assert payload == before
