"""SGLang: `meta_info` of generate, and chats."""

import pytest
from support.payloads import TOKENS, log_prob_entry, numbered, refused, sglang_sample, tokens_of
from tokenrecords import detect_dialect, entries_from_response, read_response


def test_sglang_generate():
    [choice] = read_response(sglang_sample())
    assert (tokens_of(choice), choice.finish_reason) == (TOKENS, "length")
    batch = [sglang_sample(), sglang_sample(id="g2")]
    assert detect_dialect(batch) == "sglang-generate"
    assert [choice.index for choice in read_response(batch)] == [0, 1]
    entries = entries_from_response(batch, rollout_id="r", model_call_id="c")
    assert [(e.model_call_id, e.response_id) for e in entries] == [("c#0", "g1"), ("c#1", "g2")]


@pytest.mark.parametrize(
    ("meta", "message"),
    [
        ({"completion_tokens": 3}, "2 generation_token_ids, but the engine counted 3"),
        (
            {"output_token_logprobs": [[-0.125, 41, None]]},
            "2 generation_token_ids and 1 generation_log_probs",
        ),
        ({"output_token_logprobs": [[-0.1, 41, None], [-0.5, 3, None]]}, "disagree at position 1"),
        ({"output_token_logprobs": [[-0.1, 41, None], [None, 2, None]]}, "generation_log_probs[1] is null"),
        ({"output_token_logprobs": None}, "generation_log_probs is missing"),
        ({"input_token_logprobs": []}, "prompt_token_ids is missing"),
        ({"input_token_logprobs": [[-2.0, 7, None]]}, "prompt_token_ids is missing"),
        ({"prompt_tokens": 1}, "2 prompt_token_ids, but the engine counted 1"),
        ({"prompt_token_ids": [1, 8]}, "disagree at position 1"),
    ],
)
def test_sglang_generate_faults(meta, message):
    refused(sglang_sample(**meta), "sglang-generate choice 0: ", message)


def test_a_tail_of_the_prompt_is_not_the_prompt_even_unchecked():
    refused(
        sglang_sample(input_token_logprobs=[[-2.0, 7, None]]),
        "prompt_token_ids is missing",
        check_counts=False,
    )


def test_sglang_tail_beside_whole_prompt_ids():
    payload = sglang_sample(input_token_logprobs=[[-2.0, 7, None]], prompt_token_ids=[1, 7])
    assert tokens_of(read_response(payload)[0]) == TOKENS


def test_where_an_sglang_chat_says_the_prompt():
    choice = {"index": 0, "message": {"content": "x"}, "logprobs": numbered([9], [-0.5])}
    payload = {"object": "chat.completion", "choices": [choice], "prompt_token_ids": [1, 7]}
    assert detect_dialect(payload) == "sglang-chat"
    assert tokens_of(read_response(payload)[0]) == ([1, 7], [9], [-0.5])
    payload = {**payload, "prompt_token_ids": None}
    refused(payload, "sglang-chat choice 0: prompt_token_ids is missing")
    choice.update(prompt_token_ids=[1], token_ids=[9], logprobs={"content": [log_prob_entry("x", -0.5)]})
    assert detect_dialect(payload) == "sglang-chat"


def test_sglang_routes_of_several_choices_belong_to_none():
    choice = {"message": {"content": "x"}, "prompt_token_ids": [1], "token_ids": [2]}
    choice["logprobs"] = {"content": [log_prob_entry("x", -0.5)]}
    payload = {"object": "chat.completion", "choices": [{**choice, "index": 0}, {**choice, "index": 1}]}
    assert len(read_response(payload)) == 2
    payload["sglext"] = {"routed_experts": "AAAB"}
    refused(payload, "sglang-chat", "sglext does not say which choice")
    del payload["sglext"]
    payload["choices"][1]["sgl_ext"] = {"routed_experts": "AAAB"}
    assert [choice.routed_experts for choice in read_response(payload)] == [None, "AAAB"]
