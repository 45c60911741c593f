"""SGLang: `meta_info` of generate, and chats."""

import pytest
from support.payloads import TOKENS, log_prob_entry, numbered, refused, sglang_sample, tokens_of
from tokenrecords import detect_dialect, entries_from_response, read_response


def test_sglang_generate():
    [choice] = read_response(sglang_sample())
    assert (tokens_of(choice), choice.finish_reason) == (TOKENS, "length")
    batch = [sglang_sample(), sglang_sample(id="g2")]
    assert detect_dialect(batch) == "sglang-generate"
    assert [choice.index for choice in read_response(batch)] == [0, 1]
    entries = entries_from_response(batch, rollout_id="r", model_call_id="c")
    assert [(e.model_call_id, e.response_id) for e in entries] == [("c#0", "g1"), ("c#1", "g2")]


@pytest.mark.parametrize(
    ("meta", "message"),
    [
        ({"completion_tokens": 3}, "2 generation_token_ids, but the engine counted 3"),
        (
            {"output_token_logprobs": [[-0.125, 41, None]]},
            "2 generation_token_ids and 1 generation_log_probs",
        ),
        ({"output_token_logprobs": [[-0.1, 41, None], [-0.5, 3, None]]}, "disagree at position 1"),
        ({"output_token_logprobs": [[-0.1, 41, None], [None, 2, None]]}, "generation_log_probs[1] is null"),
        ({"output_token_logprobs": None}, "generation_log_probs is missing"),
        ({"input_token_logprobs": []}, "prompt_token_ids is missing"),
        ({"input_token_logprobs": [[-2.0, 7, None]]}, "prompt_token_ids is missing"),
        ({"prompt_tokens": 1}, "2 prompt_token_ids, but the engine counted 1"),
        ({"prompt_token_ids": [1, 8]}, "disagree at position 1"),
    ],
)
def test_sglang_generate_faults(meta, message):
    refused(sglang_sample(**meta), "sglang-generate choice 0: ", message)


def test_a_tail_of_the_prompt_is_not_the_prompt_even_unchecked():
    refused(
        sglang_sample(input_token_logprobs=[[-2.0, 7, None]]),
        "prompt_token_ids is missing",
        check_counts=False,
    )


def test_sglang_tail_beside_whole_prompt_ids():
    payload = sglang_sample(input_token_logprobs=[[-2.0, 7, None]], prompt_token_ids=[1, 7])
    assert tokens_of(read_response(payload)[0]) == TOKENS


def test_where_an_sglang_chat_says_the_prompt():
    choice = {"index": 0, "message": {"content": "x"}, "logprobs": numbered([9], [-0.5])}
    payload = {"object": "chat.completion", "choices": [choice], "prompt_token_ids": [1, 7]}
    assert detect_dialect(payload) == "sglang-chat"
    assert tokens_of(read_response(payload)[0]) == ([1, 7], [9], [-0.5])
    payload = {**payload, "prompt_token_ids": None}
    refused(payload, "sglang-chat choice 0: prompt_token_ids is missing")
    choice.update(prompt_token_ids=[1], token_ids=[9], logprobs={"content": [log_prob_entry("x", -0.5)]})
    assert detect_dialect(payload) == "sglang-chat"


def test_sglang_routes_of_several_choices_belong_to_none():
    choice = {"message": {"content": "x"}, "prompt_token_ids": [1], "token_ids": [2]}
    choice["logprobs"] = {"content": [log_prob_entry("x", -0.5)]}
    payload = {"object": "chat.completion", "choices": [{**choice, "index": 0}, {**choice, "index": 1}]}
    assert len(read_response(payload)) == 2
    payload["sglext"] = {"routed_experts": "AAAB"}
    refused(payload, "sglang-chat", "sglext does not say which choice")
    del payload["sglext"]
    payload["choices"][1]["sgl_ext"] = {"routed_experts": "AAAB"}
    assert [choice.routed_experts for choice in read_response(payload)] == [None, "AAAB"]


def sglang_chat(**more):
    meta = {"prompt_token_ids": [1, 7], "output_token_logprobs": [[-0.125, 41, None], [-0.5, 2, None]]}
    choice = {"index": 0, "message": {"content": "ok"}, "meta_info": {**meta, **more.pop("meta", {})}, **more}
    return {"object": "chat.completion", "choices": [choice]}


def test_the_meta_info_of_a_chat_says_it_all():
    assert detect_dialect(sglang_chat()) == "sglang-chat"
    assert tokens_of(read_response(sglang_chat())[0]) == TOKENS
    refused(sglang_chat(meta={"completion_tokens": 3}), "sglang-chat choice 0: 2 generation_token_ids", "counted 3")
    refused(sglang_chat(meta={"prompt_tokens": 3}), "sglang-chat choice 0: 2 prompt_token_ids", "counted 3")


@pytest.mark.parametrize("name", ["sglext", "sgl_ext"])
def test_routes_stand_beside_the_choice_or_on_it(name):
    routes = {name: {"routed_experts": "AAAB"}}
    for payload in (sglang_chat(**routes), {**sglang_chat(), **routes}, {**sglang_sample(), **routes}):
        assert read_response(payload)[0].routed_experts == "AAAB"
    two = sglang_chat()
    two["choices"].append({**two["choices"][0], "index": 1})
    refused({**two, **routes}, f"choice 0: routed_experts is missing: {name} does not say which choice")


def test_routes_stand_in_the_meta_info_or_beside_it():
    assert read_response(sglang_chat(meta={"routed_experts": "AAAB"}))[0].routed_experts == "AAAB"
    assert read_response(sglang_sample(routed_experts="AAAB"))[0].routed_experts == "AAAB"
    assert read_response({**sglang_sample(), "routed_experts": "AAAB"})[0].routed_experts == "AAAB"
    refused(
        {**sglang_sample(routed_experts="AAAB"), "routed_experts": "AAAC"}, "routed_experts and meta_info", "disagree"
    )


def test_ids_alone_are_a_sign_of_generate():
    sample = {"output_ids": [41, 2], "prompt_token_ids": [1, 7]}
    assert detect_dialect(sample) == "sglang-generate"
    refused(sample, "sglang-generate choice 0: generation_log_probs is missing")
    assert detect_dialect({**sample, "choices": []}) != "sglang-generate"


@pytest.mark.parametrize("counted", [0, 1, 3])
def test_the_own_counts_of_each_sample(counted):
    refused(
        [sglang_sample(), sglang_sample(completion_tokens=counted)],
        f"choice 1: 2 generation_token_ids, but the engine counted {counted}",
    )


def test_samples_may_be_numbered():
    batch = [{**sglang_sample(id="a"), "index": 1}, {**sglang_sample(id="b"), "index": 0}]
    assert [(choice.index, choice.response_id) for choice in read_response(batch)] == [(0, "b"), (1, "a")]


def test_usage_of_a_generate_is_not_asked():
    assert len(read_response({**sglang_sample(), "usage": {"completion_tokens": 99}})) == 1
