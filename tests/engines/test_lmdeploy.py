"""LMDeploy: pairs beside `output_ids`, wherever they stand."""

import numpy as np
import pytest
from support.payloads import TOKENS, duos, refused, sglang_sample, tokens_of
from tokenrecords import detect_dialect, read_response

PAIRS = duos([41, 2], [-0.125, -0.5])


def chat(**choice):
    own = {"index": 0, "message": {"content": "ok"}, "output_ids": [41, 2], "output_token_logprobs": PAIRS}
    return {"object": "chat.completion", "prompt_token_ids": [1, 7], "choices": [{**own, **choice}]}


@pytest.mark.parametrize("ids", [[41, 2], (41, 2), np.array([41, 2]), None])
def test_a_chat(ids):
    payload = chat(output_ids=ids, output_token_logprobs=[tuple(pair) for pair in PAIRS])
    assert detect_dialect(payload) == "lmdeploy-chat"
    assert tokens_of(read_response(payload)[0]) == TOKENS


@pytest.mark.parametrize(
    ("choice", "message"),
    [
        ({"output_ids": [41, 3]}, "output_ids and output_token_logprobs disagree at position 1"),
        ({"output_token_logprobs": PAIRS[:1]}, "2 generation_token_ids and 1 generation_log_probs"),
        ({"output_token_logprobs": None}, "generation_log_probs is missing"),
        ({"output_token_logprobs": [[None, 41], [-0.5, 2]]}, "generation_log_probs[0] is null"),
        ({"output_token_logprobs": [None, [-0.5, 2]]}, "generation_log_probs[0] is null"),
    ],
)
def test_faults_of_a_chat(choice, message):
    refused(chat(**choice), "lmdeploy-chat choice 0: ", message)


def test_ids_of_a_message_are_not_in_its_item():
    entries = [{"token": "o", "logprob": -0.125}, {"token": "k", "logprob": -0.5}]
    said = {"content": "ok", "gen_tokens": [41, 2]}
    payload = chat(message=said, output_ids=None, output_token_logprobs=None, logprobs={"content": entries})
    [choice] = read_response(payload)
    assert tokens_of(choice) == TOKENS
    assert choice.output_items == [{"type": "message", "role": "assistant", "content": "ok"}]


def test_messages():
    body = {"type": "message", "role": "assistant", "content": [{"type": "text", "text": "ok"}], "stop_reason": "end"}
    body |= {"output_ids": [41, 2], "output_token_logprobs": PAIRS, "usage": {"output_tokens": 2}}
    assert detect_dialect(body) == "lmdeploy-messages"
    [choice] = read_response(body, prompt_token_ids=[1, 7])
    assert (tokens_of(choice), choice.finish_reason) == (TOKENS, "end")
    refused(body, "lmdeploy-messages choice 0: prompt_token_ids is missing")
    body["usage"]["output_tokens"] = 3
    refused(body, "2 generation_token_ids, but the engine counted 3", prompt_token_ids=[1, 7])
    assert len(read_response(body, prompt_token_ids=[1, 7], check_counts=False)) == 1


def test_generate_is_told_from_sglang_by_its_pairs():
    sample = {"text": "ok", "output_ids": [41, 2], "meta_info": {"output_token_logprobs": PAIRS}}
    assert detect_dialect(sample) == detect_dialect([sample, sample]) == "lmdeploy-generate"
    found = read_response([sample, sample], prompt_token_ids=[[1, 7], [8]])
    assert [tokens_of(choice)[0] for choice in found] == [[1, 7], [8]]
    aborted = {"text": "", "output_ids": [], "prompt_token_ids": [1], "meta_info": {"finish_reason": {"type": "abort"}}}
    found = read_response([{**sample, "prompt_token_ids": [1]}, aborted])
    assert [tokens_of(choice)[1] for choice in found] == [[41, 2], []]
    assert detect_dialect(sglang_sample()) == "sglang-generate"


def test_routes_of_a_message_stand_on_the_body():
    body = {"type": "message", "role": "assistant", "content": [], "output_ids": [41], "routed_experts": [[[0]]]}
    body["output_token_logprobs"] = [[-0.5, 41]]
    for prompt in ({}, {"prompt_token_ids": [1]}):
        [choice] = read_response({**body, **prompt}, prompt_token_ids=[1])
        assert choice.routed_experts == [[[0]]]


@pytest.mark.parametrize("name", ["output_ids", "output_token_logprobs", "gen_tokens"])
def test_a_key_that_holds_null_is_no_sign(name):
    body = {"type": "message", "role": "assistant", "content": []}
    for held, chat_dialect, dialect in ((None, "chat", "messages"), ([], "lmdeploy-chat", "lmdeploy-messages")):
        assert detect_dialect({"choices": [{"message": {}, name: held}]}) == chat_dialect
        assert detect_dialect({"choices": [{"message": {name: held}}]}) == chat_dialect
        assert detect_dialect({**body, name: held}) == dialect


def test_one_pair_at_either_end_is_the_sign():
    for entries in ([PAIRS[0], None], [None, PAIRS[1]]):
        sample = {"text": "ok", "output_ids": [41, 2], "meta_info": {"output_token_logprobs": entries}}
        assert detect_dialect(sample) == "lmdeploy-generate"


def test_an_entry_that_is_too_short():
    refused(chat(output_token_logprobs=[[-0.125, 41], [-0.5]], output_ids=None), "generation_token_ids[1] is null")
    refused(chat(output_token_logprobs=[[-0.125, 41], []], output_ids=None), "generation_log_probs[1] is null")


def test_each_place_of_the_ids_is_compared():
    refused(chat(gen_tokens=[41, 3]), "lmdeploy-chat choice 0: output_ids and gen_tokens disagree at position 1")
    refused(chat(gen_tokens=[41, 3], output_ids=None), "gen_tokens and output_token_logprobs disagree at position 1")


def test_any_choice_is_a_sign():
    assert detect_dialect({"choices": [{"message": {}}, {"message": {}, "output_ids": []}]}) == "lmdeploy-chat"
    assert detect_dialect({"choices": [{"message": {}}, {"message": {"gen_tokens": []}}]}) == "lmdeploy-chat"


def test_ids_are_a_sign_of_a_chat_alone():
    assert detect_dialect({"choices": [{"text": "x", "output_ids": [41]}]}) == "vllm-completions"
    assert detect_dialect({"choices": [{"output_ids": [41]}]}) == "unknown"
    meta = {"output_token_logprobs": PAIRS}
    assert detect_dialect({"choices": [{"message": {}}], "meta_info": meta}) != "lmdeploy-generate"


def test_what_a_body_says_itself_is_the_better_place():
    body = {"type": "message", "role": "assistant", "content": [], "output_ids": [41], "prompt_token_ids": [1]}
    body |= {"output_token_logprobs": [[-0.10000000149011612, 41]], "generation_log_probs": [-0.1]}
    assert read_response(body)[0].generation_log_probs == [-0.1]


def test_a_count_of_none_is_a_count():
    body = {"type": "message", "role": "assistant", "content": [], "output_ids": [41], "prompt_token_ids": [1]}
    body |= {"output_token_logprobs": [[-0.5, 41]], "usage": {"output_tokens": 0}}
    refused(body, "lmdeploy-messages choice 0: 1 generation_token_ids, but the engine counted 0")
