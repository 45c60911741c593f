"""Streams of TGI."""

import pytest
from support.payloads import TOKENS, tokens_of
from tokenrecords import detect_dialect, merge_stream, read_response


def token(index, id_, text, logprob, **fields):
    own = {"index": index, "generated_text": None, "details": None, "top_tokens": [[{"id": 9, "logprob": -0.1}]]}
    return {**own, "token": {"id": id_, "text": text, "logprob": logprob, "special": False}, **fields}


LAST = {"generated_text": "ok", "details": {"finish_reason": "length", "generated_tokens": 2}}
STREAM = [token(1, 41, "o", -0.125), token(2, 2, "k", -0.5, **LAST)]


def test_tokens_become_details():
    merged = merge_stream(STREAM)
    assert detect_dialect(merged) == "tgi"
    [choice] = read_response(merged, prompt_token_ids=[1, 7])
    assert (tokens_of(choice), choice.finish_reason) == (TOKENS, "length")
    assert choice.output_items[0]["content"] == "ok"


def test_a_stream_that_was_cut_off():
    [choice] = read_response(merge_stream([STREAM[0], token(2, 2, "k", -0.5)]), prompt_token_ids=[1, 7])
    assert (tokens_of(choice), choice.finish_reason) == (TOKENS, None)
    assert choice.output_items[0]["content"] == "ok"


def test_what_was_lost_or_went_wrong():
    with pytest.raises(ValueError, match="chunk 1: index 3 follows 1: a chunk is missing"):
        merge_stream([STREAM[0], token(3, 2, "k", -0.5)])
    with pytest.raises(ValueError, match="chunk 0: index 2 comes first: a chunk is missing"):
        merge_stream(STREAM[1:])
    uncounted = [{**part, "index": None} for part in STREAM[1:]]
    with pytest.raises(ValueError, match="1 generation_token_ids, but the engine counted 2"):
        read_response(merge_stream(uncounted), prompt_token_ids=[1, 7])
    with pytest.raises(ValueError, match="chunk 1: the server sent an error: Request failed during generation"):
        merge_stream([STREAM[0], {"error": "Request failed during generation", "error_type": "generation"}])


def test_a_token_that_says_nothing_is_not_lost():
    empty = {"index": 1, "token": {}}
    merged = merge_stream([empty, token(2, 2, "k", -0.5)])
    assert merged["details"]["tokens"] == [{}, {"id": 2, "text": "k", "logprob": -0.5, "special": False}]
    with pytest.raises(ValueError, match=r"generation_log_probs\[0\] is null"):
        read_response(merged, prompt_token_ids=[1, 7])


def test_the_first_index_is_0_or_1():
    assert len(merge_stream([token(0, 41, "o", -0.125), token(1, 2, "k", -0.5)])["details"]["tokens"]) == 2
    with pytest.raises(ValueError, match="chunk 1: index 1 follows 1: a chunk is missing"):
        merge_stream([STREAM[0], STREAM[0]])


def test_an_empty_text_and_the_details_of_several_events_stay():
    special = token(2, 2, "</s>", -0.5)
    special["token"]["special"] = True
    merged = merge_stream([STREAM[0], special])
    assert merged["generated_text"] == "o"
    early = token(1, 41, "o", -0.125, details={"seed": 1}, model_id="m")
    merged = merge_stream([early, token(2, 2, "k", -0.5, generated_text="", details={"generated_tokens": 2})])
    assert merged["generated_text"] == ""
    assert merged["details"] == {"seed": 1, "generated_tokens": 2, "tokens": merged["details"]["tokens"]}
    assert merged["model_id"] == "m"
    assert merge_stream([early, token(2, 2, "k", -0.5, model_id=None)])["model_id"] == "m"
