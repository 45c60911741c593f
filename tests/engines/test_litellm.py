"""LiteLLM: what it sweeps into `provider_specific_fields`."""

import pytest
from support.payloads import TOKENS, log_prob_entry, native, refused, tokens_of
from tokenrecords import detect_dialect, read_response


def test_litellm_on_the_message():
    message = {"content": "ok", "provider_specific_fields": {"token_ids": [41, 2], "refusal": None}}
    choice = {
        "index": 0,
        "message": message,
        "logprobs": {"content": [log_prob_entry("o", -0.125), log_prob_entry("k", -0.5)]},
    }
    payload = {"object": "chat.completion", "prompt_token_ids": [1, 7], "choices": [choice]}
    assert detect_dialect(payload) == "litellm"
    [read] = read_response(payload)
    assert tokens_of(read) == TOKENS
    assert read.output_items[0]["provider_specific_fields"] == {"refusal": None}
    choice["provider_specific_fields"] = {"token_ids": [41, 3]}
    refused(payload, "litellm choice 0", "disagree at position 1")
    choice["provider_specific_fields"] = {"stop_reason": None, "token_ids": None}
    message["provider_specific_fields"] = {"x": 1}
    refused(payload, "litellm choice 0: generation_token_ids is missing")


def test_litellm_native_fields_swept_off_the_message():
    message = {"content": "ok", "provider_specific_fields": native()}
    payload = {"object": "chat.completion", "choices": [{"index": 0, "message": message}]}
    assert tokens_of(read_response(payload)[0]) == TOKENS


SWEPT = {
    "native": native(),
    "meta_info": {
        "meta_info": {
            "prompt_token_ids": [1, 7],
            "output_token_logprobs": [[-0.125, 41, None], [-0.5, 2, None]],
        }
    },
}


@pytest.mark.parametrize("name", SWEPT)
@pytest.mark.parametrize("on_message", [False, True])
def test_the_places_of_each_engine_are_read(name, on_message):
    swept = {"provider_specific_fields": {**SWEPT[name], "sglext": {"routed_experts": "AAAB"}}}
    message = {"content": "ok", **(swept if on_message else {})}
    choice = {"index": 0, "message": message, **({} if on_message else swept)}
    payload = {"object": "chat.completion", "choices": [choice]}
    assert detect_dialect(payload) == "litellm"
    [served] = read_response(payload)
    assert (tokens_of(served), served.routed_experts) == (TOKENS, "AAAB")


def test_two_places_that_disagree_are_named():
    message = {"content": "ok", "provider_specific_fields": native()}
    choice = {"index": 0, "message": message, "provider_specific_fields": native(generation_token_ids=[41, 3])}
    refused(
        {"object": "chat.completion", "choices": [choice]},
        "provider_specific_fields.generation_token_ids and provider_specific_fields.generation_token_ids disagree",
    )


def test_swept_fields_say_more_than_those_of_sglang():
    swept = {"provider_specific_fields": {"x": 1}, "meta_info": {"x": 1}}
    payload = {"object": "chat.completion", "choices": [{"index": 0, "message": {"content": "ok"}, **swept}]}
    assert detect_dialect(payload) == "litellm"


def test_what_was_swept_off_says_of_the_making():
    message = {"content": "ok", "provider_specific_fields": {**native(), "weight_version": "5"}}
    payload = {"choices": [{"index": 0, "message": message, "provider_specific_fields": {"ng_x": 1}}]}
    assert read_response(payload)[0].extras == {"weight_version": "5", "ng_x": 1}
    payload["weight_version"] = "6"
    refused(payload, "provider_specific_fields.weight_version and weight_version disagree")


def test_a_clipped_prompt_in_a_second_place_is_compared_too():
    def meta(*ids):
        entries = [[-0.125, 41, None], [-0.5, 2, None]]
        return {"input_token_logprobs": [[None, id_, None] for id_ in ids], "output_token_logprobs": entries}

    choice = {"index": 0, "message": {"content": "x"}, "meta_info": meta(1, 0)}
    choice["provider_specific_fields"] = {"meta_info": meta(1, 0)}
    payload = {"prompt_token_ids": [1, 7], "choices": [choice]}
    assert tokens_of(read_response(payload)[0]) == TOKENS
    choice["provider_specific_fields"] = {"meta_info": meta(2, 7)}
    refused(payload, "provider_specific_fields.meta_info.input_token_logprobs disagree at position 0")


def test_what_was_swept_off_a_choice_of_lmdeploy():
    pairs = {"output_ids": [41, 2], "output_token_logprobs": [[-0.125, 41], [-0.5, 2]], "token_ids": [41, 2]}
    choice = {"index": 0, "message": {"content": "x"}, "provider_specific_fields": pairs}
    payload = {"prompt_token_ids": [1, 7], "choices": [choice]}
    assert tokens_of(read_response(payload)[0]) == TOKENS
    pairs["output_ids"] = [41, 3]
    own = "provider_specific_fields.token_ids and provider_specific_fields.output_ids"
    refused(payload, f"litellm choice 0: {own} disagree at position 1")
    pairs["generation_token_ids"] = [40, 2]
    best = "provider_specific_fields.generation_token_ids and provider_specific_fields.token_ids"
    refused(payload, f"litellm choice 0: {best} disagree at position 0")
