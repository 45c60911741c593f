"""vLLM: ids on the payload and the choice."""

from support.payloads import native_chat, refused, tokens_of, vllm_chat, vllm_choice
from tokenrecords import read_response


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
