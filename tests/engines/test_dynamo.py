"""NVIDIA Dynamo: `nvext.engine_data`."""

from support.payloads import TOKENS, dynamo, log_prob_entry, refused, tokens_of
from tokenrecords import read_response


def test_engine_data():
    assert tokens_of(read_response(dynamo())[0]) == TOKENS
    refused(dynamo(completion_token_ids=[41, 3]), "dynamo choice 0: nvext.engine_data.completion_token_ids and")
    two = [{"index": i, "message": {"content": "x"}} for i in range(2)]
    refused(dynamo(two), "dynamo choice 0: generation_token_ids is missing", "does not say which choice")
    own = {"engine_data": {"completion_token_ids": [9], "completion_logprobs": [-0.5]}}
    choices = [{"index": i, "message": {"content": "x"}, "nvext": own} for i in range(2)]
    payload = {"choices": choices, "nvext": {"engine_data": {"prompt_token_ids": [1]}}}
    assert [tokens_of(choice) for choice in read_response(payload)] == [([1], [9], [-0.5])] * 2


def test_choice_log_probs_may_lack_the_stop_token():
    shown = {"content": [log_prob_entry("o", -0.125)]}
    choice = {"index": 0, "message": {"content": "o"}, "logprobs": shown}
    assert tokens_of(read_response(dynamo([choice]))[0]) == TOKENS
    shown["content"].append(log_prob_entry("", -0.75))
    refused(dynamo([choice]), "dynamo choice 0", "disagree at position 1")


def test_without_engine_data():
    assert read_response({"choices": [{"message": {"content": "x"}}], "nvext": {"timing": {}}}) == []
