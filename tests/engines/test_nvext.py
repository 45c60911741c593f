"""NVIDIA Dynamo's ids without the engine's data: each chunk of a stream brings those that are new."""

import pytest
from support.payloads import chunk, log_prob_entry, refused, tokens_of
from tokenrecords import merge_stream, read_response


def says(text, log_prob, ids, **more):
    """A chunk of one token, with the ids that are new."""
    choice = {"index": 0, "delta": {"content": text}, "logprobs": {"content": [log_prob_entry(text, log_prob)]}}
    return chunk(choice, nvext={"completion_token_ids": ids, **more})


def test_ids_of_the_prompt_and_the_generation():
    shown = {"content": [log_prob_entry("o", -0.125), log_prob_entry("k", -0.5)]}
    choice = {"index": 0, "message": {"content": "ok"}, "logprobs": shown}
    nvext = {"prompt_token_ids": [1, 7], "completion_token_ids": [41, 2]}
    assert tokens_of(read_response({"choices": [choice], "nvext": nvext})[0]) == ([1, 7], [41, 2], [-0.125, -0.5])
    nvext["engine_data"] = {"prompt_token_ids": [1, 8]}
    refused({"choices": [choice], "nvext": nvext}, "nvext.engine_data.prompt_token_ids and nvext.prompt_token_ids")


@pytest.mark.parametrize("ids", [[[41], [2]], [[41], [41]], [[41, 2], [41, 2, 9]]])
def test_a_chunk_has_what_is_new(ids):
    sent = [says("x", -0.5, ids[0]), says("y", -0.25, ids[1], prompt_token_ids=[1, 7])]
    merged = merge_stream(sent)
    assert merged["nvext"] == {"completion_token_ids": ids[0] + ids[1], "prompt_token_ids": [1, 7]}


def test_a_token_that_comes_twice_is_not_lost():
    merged = merge_stream([says("x", -0.5, [41], prompt_token_ids=[1]), says("x", -0.25, [41])])
    assert tokens_of(read_response(merged)[0]) == ([1], [41, 41], [-0.5, -0.25])


def test_a_chunk_that_was_lost():
    merged = merge_stream([says("x", -0.5, [41], prompt_token_ids=[1]), says("x", -0.25, None)])
    refused(merged, "1 generation_token_ids and 2 generation_log_probs")
