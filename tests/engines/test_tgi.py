"""TGI: `details`."""

import json

import pytest
from support.payloads import TOKENS, refused, tgi, tokens_of
from tokenrecords import detect_dialect, read_response


def test_tgi():
    [choice] = read_response(tgi())
    assert (tokens_of(choice), choice.finish_reason) == (TOKENS, "length")
    assert choice.output_items == [{"type": "message", "role": "assistant", "content": "ok"}]
    assert detect_dialect([tgi()]) == "tgi"
    assert tokens_of(read_response([tgi()])[0]) == TOKENS
    assert read_response({"generated_text": "ok", "details": None}) == []


@pytest.mark.parametrize(
    ("details", "message"),
    [
        ({"generated_tokens": 3}, "2 generation_token_ids, but the engine counted 3"),
        ({"prefill": []}, "prompt_token_ids is missing"),
        (
            {"tokens": [{"id": 41, "logprob": None}, {"id": 2, "logprob": -0.5}]},
            "generation_log_probs[0] is null",
        ),
        ({"tokens": [{"logprob": -0.125}, {"id": 2, "logprob": -0.5}]}, "generation_token_ids[0] is null"),
        ({"tokens": None}, "generation_token_ids is missing"),
    ],
)
def test_tgi_faults(details, message):
    refused(tgi(**details), "tgi choice 0: ", message)


def test_tgi_best_of():
    other = {
        **tgi()["details"],
        "generated_text": "no",
        "tokens": [{"id": 9, "logprob": -1.0}],
        "generated_tokens": 1,
    }
    choices = read_response(tgi(best_of_sequences=[other]))
    assert [tokens_of(choice) for choice in choices] == [TOKENS, ([1, 7], [9], [-1.0])]
    assert choices[1].output_items[0]["content"] == "no"
    assert len(read_response(tgi(best_of_sequences=[{**other, "prefill": []}]))) == 2
    other["prefill"] = [{"id": 1}, {"id": 8}]
    refused(
        tgi(best_of_sequences=[other]),
        "tgi choice 1: best_of_sequences[0].prefill and details.prefill disagree",
    )


def test_a_chunk_of_its_stream_is_not_its_answer():
    assert detect_dialect({"token": {"id": 1}, "generated_text": "ok", "details": None}) == "unknown"


@pytest.mark.parametrize("counted", [0, 1, 3])
def test_the_own_count(counted):
    refused(tgi(generated_tokens=counted), f"2 generation_token_ids, but the engine counted {counted}")
    assert len(read_response(tgi(generated_tokens=None))) == 1


def test_each_sequence_has_its_own_end():
    other = {**tgi()["details"], "generated_text": "no", "finish_reason": "eos_token"}
    found = read_response(tgi(best_of_sequences=[other]))
    assert [(choice.index, choice.finish_reason) for choice in found] == [(0, "length"), (1, "eos_token")]


def test_usage_is_not_asked():
    assert len(read_response({**tgi(), "usage": {"completion_tokens": 99}})) == 1


@pytest.mark.parametrize("many", [1, 20])
def test_log_probs_under_the_name_of_djl(many):
    tokens = [{"id": 41 + k, "text": "o", "log_prob": -0.5 - k} for k in range(many)]
    payload = {
        "generated_text": "o",
        "details": {"finish_reason": "length", "generated_tokens": many, "tokens": tokens},
    }
    for sent in (payload, json.dumps(payload).encode()):
        [choice] = read_response(sent, prompt_token_ids=[1])
        assert list(choice.generation_log_probs) == [-0.5 - k for k in range(many)]
    del tokens[0]["log_prob"]
    refused(payload, "generation_log_probs[0] is null", prompt_token_ids=[1])


def test_an_answer_without_a_word():
    payload = {**tgi(finish_reason=None), "generated_text": ""}
    assert detect_dialect(payload) == "tgi"
    [choice] = read_response(payload)
    assert (choice.output_items, choice.token_item_index, choice.finish_reason) == ([], None, None)


def test_the_prompt_of_the_answer_and_that_of_its_details():
    refused({**tgi(), "prompt_token_ids": [1, 8]}, "tgi choice 0: prompt_token_ids and details.prefill disagree")


def test_one_log_prob_that_is_missing_under_the_name_of_djl():
    tokens = [{"id": 41, "log_prob": -0.5}, {"id": 2}]
    refused(tgi(tokens=tokens), "tgi choice 0: generation_log_probs[1] is null")
