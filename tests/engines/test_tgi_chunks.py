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
