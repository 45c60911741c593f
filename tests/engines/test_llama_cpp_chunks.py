"""Streams of llama.cpp's completions."""

import pytest
from support.payloads import TOKENS, entries, tokens_of
from tokenrecords import detect_dialect, merge_stream, read_response


def piece(text, ids, log_probs, **fields):
    own = {"content": text, "tokens": ids, "stop": False, "completion_probabilities": entries(ids, log_probs, "id")}
    return {"index": 0, **own, **fields}


LAST = {"index": 0, "content": "", "tokens": [], "stop": True, "stop_type": "limit", "tokens_predicted": 2}
STREAM = [piece("o", [41], [-0.125]), piece("k", [2], [-0.5]), LAST]


def test_pieces():
    merged = merge_stream(STREAM)
    assert detect_dialect(merged) == "llama-cpp"
    [choice] = read_response(merged, prompt_token_ids=[1, 7])
    assert (tokens_of(choice), choice.finish_reason) == (TOKENS, "limit")
    assert choice.output_items[0]["content"] == "ok"


def test_faults():
    with pytest.raises(ValueError, match="1 generation_token_ids, but the engine counted 2"):
        read_response(merge_stream(STREAM[1:]), prompt_token_ids=[1, 7])
    with pytest.raises(ValueError, match="chunk 1: no chunk of an answer of /completion"):
        merge_stream([STREAM[0], {"choices": []}])
    with pytest.raises(ValueError, match="chunk 1: a second prompt_token_ids disagrees"):
        merge_stream([piece("o", [41], [-0.1], prompt_token_ids=[1]), piece("o", [41], [-0.1], prompt_token_ids=[2])])


def test_several_prompts():
    merged = merge_stream([piece("a", [41], [-0.5]), piece("b", [2], [-1.0], index=1), piece("c", [9], [-2.0])])
    found = read_response(merged, prompt_token_ids=[[1], [7]])
    assert [tokens_of(choice) for choice in found] == [([1], [41, 9], [-0.5, -2.0]), ([7], [2], [-1.0])]


def test_one_answer_is_no_list():
    merged = merge_stream(STREAM)
    assert (merged["content"], merged["tokens"], merged["stop"]) == ("ok", [41, 2], True)
    merged = merge_stream([{key: value for key, value in part.items() if key != "index"} for part in STREAM])
    assert merged["tokens"] == [41, 2]


def test_a_null_leaves_what_was_said():
    merged = merge_stream([piece("o", [41], [-0.5], prompt_token_ids=[1], model="m"), {**LAST, "model": None}])
    assert (merged["prompt_token_ids"], merged["model"]) == ([1], "m")
    merged = merge_stream([piece("o", [41], [-0.5], model=None), LAST])
    assert merged["model"] is None


def test_a_chunk_has_a_text_or_ids():
    merged = merge_stream([STREAM[0], {"index": 0, "tokens": [2]}])
    assert merged["tokens"] == [41, 2]
