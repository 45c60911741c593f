"""Choices of any engine: their indexes, the engine's own counts, and what is refused whole."""

import numpy as np
import pytest
from support.payloads import TOKENS, Model, native, refused, tokens_of, vllm_chat, vllm_choice
from tokenrecords import detect_dialect, entries_from_response, read_response


def test_choices_come_in_order_of_index():
    payload = vllm_chat(vllm_choice(1, [9], [-1.0]), vllm_choice(0))
    assert [choice.index for choice in read_response(payload)] == [0, 1]
    assert [choice.generation_token_ids for choice in read_response(payload)] == [[41, 2], [9]]


def test_duplicate_index():
    refused(vllm_chat(vllm_choice(1), vllm_choice(1)), "vllm-chat choice 1: duplicate choice index 1")


def test_choices_without_any_index_are_numbered():
    payload = vllm_chat(vllm_choice(None), vllm_choice(None, [9], [-1.0]))
    assert [choice.index for choice in read_response(payload)] == [0, 1]


def test_one_index_missing():
    refused(vllm_chat(vllm_choice(0), vllm_choice(None)), "vllm-chat choice 1: index is missing")


@pytest.mark.parametrize("index", ["0", True, -1, 0.0])
def test_index_of_the_wrong_type(index):
    refused(vllm_chat(vllm_choice(index)), "index is", "it must be a non-negative integer")


def test_one_choice_of_two_lost_its_ids():
    payload = vllm_chat(vllm_choice(0), vllm_choice(1))
    payload["choices"][1].update(token_ids=None, logprobs=None)
    refused(payload, "vllm-chat choice 1: generation_token_ids is missing")


@pytest.mark.parametrize("lost", [None, "x", 5])
def test_a_choice_that_is_none(lost):
    refused(vllm_chat(lost), "generation_token_ids is missing")


def test_prompt_ids_without_a_choice():
    refused({**vllm_chat(), "choices": []}, "vllm-chat choice 0: generation_token_ids is missing")


def test_a_chunk_of_a_stream():
    refused(
        {"choices": [{"index": 0, "delta": {"content": "o"}, "token_ids": [41]}]},
        "choices[0].delta",
        "merge_stream",
    )


def test_chunks_are_named() -> None:
    chunks = [{"object": "chat.completion.chunk", "choices": [{"index": 0, "delta": {"content": "x"}}]}] * 2
    with pytest.raises(ValueError, match="merge_stream joins the chunks"):
        read_response(chunks)


def test_a_list_is_read_where_an_engine_sends_lists():
    refused([vllm_chat()], "unknown: a list of 1 payloads")
    refused([vllm_chat()], "vllm-chat: a list of 1 payloads", dialect="vllm-chat")
    assert read_response([], dialect="vllm-chat") == []
    with pytest.raises(TypeError, match="mapping"):
        read_response([[vllm_chat()]])


def test_unknown_dialects():
    assert detect_dialect({"error": "overloaded"}) == "unknown"
    assert read_response({"error": "overloaded"}) == []
    assert read_response({}) == []
    assert read_response([]) == []
    refused(vllm_chat(), "dialect is 'vllm': one of", dialect="vllm")
    for wrong in (None, "text", 5):
        with pytest.raises(TypeError, match="mapping"):
            read_response(wrong)


def test_pydantic_models():
    ids = np.array([1, 7])
    choice = Model(**vllm_choice())
    for payload in (
        Model(**vllm_chat(), x=1),
        vllm_chat(choice),
        Model(choices=[choice], prompt_token_ids=ids),
    ):
        assert tokens_of(read_response(payload)[0]) == TOKENS
    assert read_response(Model(choices=[choice], prompt_token_ids=ids))[0].prompt_token_ids is ids
    item = Model(type="message", **native())
    assert tokens_of(read_response({"object": "response", "output": [item]})[0]) == TOKENS


@pytest.mark.parametrize("counted", ["3", {}, [], 2.5])
@pytest.mark.parametrize("name", ["prompt_tokens", "completion_tokens"])
def test_counts_that_are_no_numbers(name, counted):
    refused(vllm_chat(usage={name: counted}), "but the engine counted")


@pytest.mark.parametrize(
    ("counts", "message"),
    [
        ({"completion_tokens": 3}, "vllm-chat choice 0: 2 generation_token_ids, but the engine counted 3"),
        ({"completion_tokens": 0}, "vllm-chat choice 0: 2 generation_token_ids, but the engine counted 0"),
        ({"prompt_tokens": 3}, "vllm-chat choice 0: 2 prompt_token_ids, but the engine counted 3"),
    ],
)
def test_usage(counts, message):
    refused(vllm_chat(usage=counts), message)
    assert len(read_response(vllm_chat(usage=counts), check_counts=False)) == 1
    assert (
        len(entries_from_response(vllm_chat(usage=counts), rollout_id="r", model_call_id="c", check_counts=False)) == 1
    )


def test_usage_of_several_choices():
    choices = (vllm_choice(0), vllm_choice(1, [9], [-1.0]))
    assert len(read_response(vllm_chat(*choices, usage={"prompt_tokens": 2, "completion_tokens": 3}))) == 2
    refused(
        vllm_chat(*choices, usage={"completion_tokens": 4}),
        "vllm-chat choices 0 to 1: 3 generation_token_ids",
    )
    refused(vllm_chat(*choices, usage={"prompt_tokens": 3}), "4 prompt_token_ids, but the engine counted 3")


def test_usage_of_several_prompts():
    logprobs = {"tokens": ["a"], "token_logprobs": [-0.5]}
    choices = [
        {"index": i, "text": "a", "token_ids": [9], "prompt_token_ids": prompt, "logprobs": logprobs}
        for i, prompt in enumerate([[1, 7], [1, 7], [8], [8]])
    ]
    payload = {
        "object": "text_completion",
        "choices": choices,
        "usage": {"prompt_tokens": 3, "completion_tokens": 4},
    }
    assert [choice.prompt_token_ids for choice in read_response(payload)] == [[1, 7], [1, 7], [8], [8]]
    payload["usage"]["prompt_tokens"] = 4
    refused(payload, "vllm-completions choices 0 to 3: 6 prompt_token_ids, but the engine counted 4")
