"""llama.cpp: its own completions, chats with an `id` in each entry, and mlx-lm's."""

import numpy as np
import pytest
from support.payloads import TOKENS, entries, refused, tokens_of
from tokenrecords import detect_dialect, read_response

ENTRIES = entries([41, 2], [-0.125, -0.5], "id")
COMPLETION = {"content": "ok", "tokens": [41, 2], "stop_type": "eos", "completion_probabilities": ENTRIES}


def chat(**logprobs):
    return {"object": "chat.completion", "choices": [{"index": 0, "message": {"content": "ok"}, "logprobs": logprobs}]}


def test_the_prompt_is_the_callers():
    assert detect_dialect(COMPLETION) == "llama-cpp"
    [choice] = read_response(COMPLETION, prompt_token_ids=[1, 7])
    assert (tokens_of(choice), choice.finish_reason) == (TOKENS, "eos")
    refused(COMPLETION, "llama-cpp choice 0: prompt_token_ids is missing")
    batch = [COMPLETION, {**COMPLETION, "tokens": None}]
    found = read_response(batch, prompt_token_ids=[[1, 7], [8]])
    assert [tokens_of(choice) for choice in found] == [TOKENS, ([8], *TOKENS[1:])]


def test_faults_of_a_completion():
    def bad(message, **fields):
        refused({**COMPLETION, **fields}, "llama-cpp choice 0: ", message, prompt_token_ids=[1, 7])

    bad("tokens and completion_probabilities[].id disagree at position 1", tokens=[41, 3])
    bad("3 generation_token_ids and 2 generation_log_probs", tokens=[41, 2, 3])
    bad("generation_log_probs is missing", completion_probabilities=None)
    bad("the engine counted 3", tokens_predicted=3)
    bad("2 prompt_token_ids, but the engine counted 4", tokens_evaluated=4)


def test_nothing_was_generated():
    empty = {"content": "", "tokens": [], "tokens_predicted": 0, "completion_probabilities": []}
    [choice] = read_response(empty, prompt_token_ids=[1])
    assert tokens_of(choice) == ([1], [], [])


def test_chats():
    assert detect_dialect(chat(content=ENTRIES)) == "llama-cpp-chat"
    assert tokens_of(read_response(chat(content=ENTRIES), prompt_token_ids=[1, 7])[0]) == TOKENS
    older = chat(tokens=[41, 2], token_logprobs=[-0.125, -0.5], top_logprobs=[{}, {}])
    assert tokens_of(read_response(older, prompt_token_ids=[1, 7])[0]) == TOKENS
    lost = [*ENTRIES[:1], {**ENTRIES[1], "id": None}]
    refused(chat(content=lost), "llama-cpp-chat choice 0: generation_token_ids[1] is null", prompt_token_ids=[1, 7])
    assert read_response(chat(content=entries([41], [-0.5], "x"))) == []
    assert read_response(chat(content=[{"id": "tok-1", "token": "x", "logprob": -0.5}])) == []


@pytest.mark.parametrize(
    ("fields", "dialect"),
    [
        ({"choices": [{"message": {}}]}, "chat"),
        ({"type": "x"}, "unknown"),
        ({"content": None}, "llama-cpp"),
        ({"tokens": None, "stop_type": "eos"}, "llama-cpp"),
    ],
)
def test_what_else_has_its_keys(fields, dialect):
    assert detect_dialect({"content": "ok", "tokens": [41], **fields}) == dialect


@pytest.mark.parametrize("key", ["tokens", "completion_probabilities", "tokens_predicted"])
def test_one_key_beside_the_content_is_the_sign(key):
    assert detect_dialect({"content": "ok", key: None}) == "llama-cpp"
    assert detect_dialect({"content": "ok"}) == detect_dialect({key: [41]}) == "unknown"


def test_no_ids_were_asked_for_where_something_was_said_or_counted():
    for said in ({"content": "ok"}, {"content": "", "tokens_predicted": 2}):
        body = {"tokens": [], "completion_probabilities": ENTRIES, **said}
        assert tokens_of(read_response(body, prompt_token_ids=[1, 7])[0]) == TOKENS


def test_answers_have_numbers():
    answers = [{**COMPLETION, "index": 1, "stop_type": "limit"}, {**COMPLETION, "index": 0}]
    found = read_response(answers, prompt_token_ids=[[1, 7], [8]])
    assert [(choice.index, choice.finish_reason) for choice in found] == [(0, "eos"), (1, "limit")]


def test_ids_in_an_array():
    payload = {**COMPLETION, "tokens": np.array([41, 2])}
    assert tokens_of(read_response(payload, prompt_token_ids=[1, 7])[0]) == TOKENS
