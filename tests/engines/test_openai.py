"""OpenAI log-probs: an entry a token, ids in words."""

import pytest
from support.payloads import TOKENS, native_chat, refused, tokens_of, vllm_chat, vllm_choice
from tokenrecords import entries_from_response, read_response


def test_ids_as_words():
    payload = native_chat(generation_token_ids=["token_id:41", "token_id:2"])
    assert tokens_of(read_response(payload)[0]) == TOKENS


@pytest.mark.parametrize("words", [["41", "2"], ["token_id:41", "w"], ["token_id:x", "token_id:2"], ["token_id:", "2"]])
def test_words_that_are_no_ids(words):
    for name in ("prompt_token_ids", "generation_token_ids"):
        payload = native_chat(**{name: words})
        refused(payload, f"chat choice 0: {name}[")
        with pytest.raises(ValueError, match="chat choice 0"):
            entries_from_response(payload, rollout_id="r", model_call_id="c")


@pytest.mark.parametrize("logprobs", [{"content": None}, None])
def test_log_probs_that_were_not_sent(logprobs):
    refused(vllm_chat(vllm_choice(0, logprobs=logprobs)), "vllm-chat choice 0: generation_log_probs is missing")


def test_no_log_probs_are_needed_where_nothing_was_generated():
    payload = vllm_chat(vllm_choice(0, [], [], logprobs={"content": None}))
    assert tokens_of(read_response(payload)[0]) == ([1, 7], [], [])


@pytest.mark.parametrize("entry", [None, {"token": "token_id:2"}, "x", 5, {"token": "token_id:2", "logprob": None}])
def test_log_prob_entry_that_holds_none(entry):
    payload = vllm_chat()
    payload["choices"][0]["logprobs"]["content"][1] = entry
    refused(payload, "vllm-chat choice 0: generation_log_probs[1] is null")


def test_words_and_token_ids_that_mix():
    payload = vllm_chat()
    payload["choices"][0]["logprobs"]["content"][1]["token"] = "w"
    refused(payload, "token_ids and logprobs.content[].token disagree at position 1")
    del payload["choices"][0]["token_ids"]
    refused(payload, "generation_token_ids[1] is null")
