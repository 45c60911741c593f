"""LiteLLM: what it sweeps into `provider_specific_fields`."""

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
