"""Tinker: sequences, and a prompt that only the caller knows."""

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
