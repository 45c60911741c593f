"""Fireworks: `raw_output` of a choice."""

from typing import Any

import pytest
from support.payloads import TOKENS, chunk, log_prob_entry, numbered, piece, refused, tokens_of, vllm_chat, vllm_choice
from tokenrecords import detect_dialect, merge_stream, read_response


def raw(**fields: Any) -> dict[str, Any]:
    own = {"prompt_token_ids": [1, 7], "completion_token_ids": [41, 2], "completion": "ok"}
    return {**own, "completion_logprobs": numbered([41, 2], [-0.125, -0.5]), **fields}


def chat(raw_output: Any, **choice: Any) -> dict[str, Any]:
    said = {"index": 0, "message": {"role": "assistant", "content": "ok"}, "finish_reason": "stop"}
    return {"object": "chat.completion", "choices": [{**said, "raw_output": raw_output, **choice}]}


def test_all_stands_in_the_raw_output():
    assert detect_dialect(chat(raw())) == "fireworks"
    assert tokens_of(read_response(chat(raw()))[0]) == TOKENS
    text = {"object": "text_completion", "choices": [{"index": 0, "text": "ok", "raw_output": raw()}]}
    assert tokens_of(read_response(text)[0]) == TOKENS


def test_log_probs_may_stand_on_the_choice_alone():
    payload = chat(raw(completion_logprobs=None), logprobs=numbered([41, 2], [-0.125, -0.5]))
    assert tokens_of(read_response(payload)[0]) == TOKENS


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"token_ids": [41, 3]}, "token_ids and raw_output.completion_token_ids disagree at position 1"),
        ({"prompt_token_ids": [1]}, "choices[].prompt_token_ids and raw_output.prompt_token_ids disagree"),
        (
            {"logprobs": {"content": [log_prob_entry("o", -0.125), log_prob_entry("k", -0.75)]}},
            "raw_output.completion_logprobs.content[].logprob and logprobs.content[].logprob disagree at position 1",
        ),
    ],
)
def test_the_choice_says_the_same(fields, message):
    refused(chat(raw(), **fields), f"fireworks choice 0: {message}")


def test_nothing_without_raw_output():
    assert detect_dialect(chat({})) == "chat"
    assert read_response(chat(None)) == []


def test_a_stream_says_it_once():
    assert merge_stream([chunk(piece("o")), chunk(piece("k", raw_output=raw()))])["choices"][0]["raw_output"] == raw()
    with pytest.raises(ValueError, match="chunk 1: a second raw_output disagrees"):
        merge_stream([chunk(piece("o", raw_output=raw())), chunk(piece("k", raw_output=raw(completion="o")))])


def test_empty_lists_of_the_raw_output_are_said():
    nothing = raw(completion_token_ids=[], completion_logprobs={"content": []})
    assert tokens_of(read_response(chat(nothing))[0]) == ([1, 7], [], [])
    assert tokens_of(read_response(chat(raw(prompt_token_ids=[])))[0]) == ([], [41, 2], [-0.125, -0.5])


@pytest.mark.parametrize("held", ["x", 5, [1], True])
def test_what_is_no_object_says_nothing(held):
    assert detect_dialect(chat(held)) == "chat"
    assert tokens_of(read_response(vllm_chat(vllm_choice(raw_output=held)))[0]) == TOKENS
