"""Tinker: sequences, and a prompt that only the caller knows."""

import pytest
from support.payloads import TOKENS, Model, refused, tokens_of
from tokenrecords import detect_dialect, read_response

SEQUENCE = {"tokens": [41, 2], "logprobs": [-0.125, -0.5], "stop_reason": "length"}


def test_sequences():
    other = {"tokens": [], "logprobs": [], "stop_reason": "stop"}
    payload = Model(type="sample", sequences=[Model(**SEQUENCE), other], topk_prompt_logprobs=[None, [[7, -0.1]]])
    assert detect_dialect(payload) == "tinker"
    found = read_response(payload, prompt_token_ids=[1, 7])
    assert [tokens_of(choice) for choice in found] == [TOKENS, ([1, 7], [], [])]
    assert [(choice.index, choice.finish_reason) for choice in found] == [(0, "length"), (1, "stop")]


def test_faults():
    for fields, message in (
        ({"logprobs": None}, "tinker choice 0: generation_log_probs is missing"),
        ({"logprobs": [-0.5]}, "2 generation_token_ids and 1 generation_log_probs"),
    ):
        refused({"sequences": [{**SEQUENCE, **fields}]}, message, prompt_token_ids=[1, 7])
    refused({"sequences": [SEQUENCE]}, "tinker choice 0: prompt_token_ids is missing")


@pytest.mark.parametrize(
    ("sequences", "dialect"), [("x", "unknown"), (5, "unknown"), ({"a": 1}, "unknown"), ((), "tinker"), ([], "tinker")]
)
def test_the_sign(sequences, dialect):
    assert detect_dialect({"sequences": sequences}) == dialect


def test_what_stands_beside_the_tokens_of_a_sequence():
    said = {
        "prompt_token_ids": [1],
        "sequences": ({**SEQUENCE, "generation_loss_mask": [1, 0], "weight_version": "5"},),
    }
    [choice] = read_response(said)
    assert (choice.generation_loss_mask, choice.extras) == ([1, 0], {"weight_version": "5"})
    refused({**said, "weight_version": "6"}, "tinker choice 0: sequences[].weight_version and weight_version disagree")
