"""vLLM: ids on the payload and the choice."""

import pytest
from support.payloads import native_chat, refused, tokens_of, vllm_chat, vllm_choice
from tokenrecords import detect_dialect, read_response


def test_empty_generation_is_present():
    payload = vllm_chat(vllm_choice(0, [], []))
    assert tokens_of(read_response(payload)[0]) == ([1, 7], [], [])
    payload = native_chat(generation_token_ids=[], generation_log_probs=[])
    assert tokens_of(read_response(payload)[0]) == ([1, 7], [], [])


def test_missing_prompt_ids():
    refused({**vllm_chat(), "prompt_token_ids": None}, "vllm-chat choice 0: prompt_token_ids is missing")


def test_candidates_and_prompt_log_probs_never_pass_for_sampled_ones():
    candidates = [{"token": "token_id:41", "logprob": -0.125}]
    payload = vllm_chat(
        vllm_choice(0, logprobs={"content": None, "top_logprobs": [candidates]}),
        prompt_logprobs=[None, {"7": {"logprob": -1.0, "rank": 1, "decoded_token": "a"}}],
    )
    refused(payload, "generation_log_probs is missing")


def test_candidates_of_a_text_completion_never_pass_for_sampled_ones():
    logprobs = {"tokens": ["o"], "token_logprobs": None, "top_logprobs": [{"o": -0.1}]}
    choice = {"index": 0, "text": "o", "token_ids": [41], "prompt_token_ids": [1], "logprobs": logprobs}
    payload = {"object": "text_completion", "choices": [choice]}
    refused(payload, "vllm-completions choice 0: generation_log_probs is missing")


def test_a_text_completion_says_the_prompt_on_each_choice():
    choice = {"text": "ok", "logprobs": {"tokens": ["o", "k"], "token_logprobs": [-0.125, -0.5]}}
    choices = [{**choice, "index": k, "token_ids": [41, 2], "prompt_token_ids": [k]} for k in range(2)]
    found = read_response({"object": "text_completion", "choices": choices})
    assert [tokens_of(served) for served in found] == [([k], [41, 2], [-0.125, -0.5]) for k in range(2)]


def test_routes_stand_on_the_choice():
    assert read_response(vllm_chat(vllm_choice(routed_experts="k05VTVBZ")))[0].routed_experts == "k05VTVBZ"


@pytest.mark.parametrize(
    ("payload", "dialect"),
    [
        (vllm_chat(vllm_choice(token_ids=None, logprobs=None)), "vllm-chat"),
        (vllm_chat(vllm_choice(logprobs=None), prompt_token_ids=None), "vllm-chat"),
        (vllm_chat(vllm_choice(token_ids=None), prompt_token_ids=None), "vllm-chat"),
        (vllm_chat(vllm_choice(token_ids=None, logprobs=None), prompt_token_ids=None), "chat"),
        ({"request_id": "r", "choices": [{"index": 0}]}, "vllm-generate"),
        ({"choices": [{"index": 0, "token_ids": [1]}]}, "vllm-generate"),
        ({"choices": [{"index": 0}]}, "unknown"),
        ({"request_id": "r"}, "unknown"),
    ],
)
def test_ids_or_a_request_id_are_the_sign(payload, dialect):
    assert detect_dialect(payload) == dialect


def test_the_tokens_of_a_generate_are_counted():
    payload = {"request_id": "r", "prompt_token_ids": [1, 7], "choices": [vllm_choice(message=None)]}
    del payload["choices"][0]["message"]
    assert detect_dialect(payload) == "vllm-generate"
    refused(
        {**payload, "usage": {"completion_tokens": 3}}, "vllm-generate choice 0: 2 generation_token_ids", "counted 3"
    )


def test_ids_of_any_choice_are_a_sign():
    assert detect_dialect({"choices": [{"message": {}}, {"message": {}, "token_ids": []}]}) == "vllm-chat"
