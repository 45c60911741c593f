"""NVIDIA Dynamo: `nvext.engine_data`."""

import pytest
from support.payloads import TOKENS, dynamo, log_prob_entry, native_chat, refused, tokens_of, vllm_chat, vllm_choice
from tokenrecords import detect_dialect, read_response


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


def test_routes_stand_in_the_engine_data_or_beside_it():
    engine = {"prompt_token_ids": [1, 7], "completion_token_ids": [41, 2], "routed_experts": "AAAB"}
    assert read_response(dynamo(engine=engine))[0].routed_experts == "AAAB"
    assert read_response(dynamo(routed_experts="AAAB"))[0].routed_experts == "AAAB"
    refused(dynamo(engine=engine, routed_experts="AAAC"), "routed_experts and nvext.routed_experts disagree")


def test_the_ids_may_stand_beside_the_engine_data():
    payload = dynamo(engine={"prompt_token_ids": [1, 7]}, completion_token_ids=[41, 2])
    assert tokens_of(read_response(payload)[0]) == TOKENS


def test_a_choice_is_a_sign_too():
    own = {"engine_data": {"completion_token_ids": [9]}}
    payload = {"choices": [{"index": 0, "message": {"content": "x"}, "nvext": own}]}
    assert detect_dialect(payload) == "dynamo"
    payload["choices"][0]["provider_specific_fields"] = {"x": 1}
    assert detect_dialect(payload) == "dynamo"


def test_choice_log_probs_of_another_number_are_not_the_engines():
    shown = {"content": [log_prob_entry(word, -0.125) for word in "okay"]}
    choice = {"index": 0, "message": {"content": "okay"}, "logprobs": shown}
    assert tokens_of(read_response(dynamo([choice]))[0]) == TOKENS


@pytest.mark.parametrize("place", [{}, {"engine_data": {}}])
@pytest.mark.parametrize(
    ("key", "name"),
    [
        ("completion_token_ids", "generation_token_ids"),
        ("completion_logprobs", "generation_log_probs"),
        ("routed_experts", "routed_experts"),
    ],
)
def test_values_of_one_choice_on_a_payload_of_two(key, name, place):
    nvext = {"engine_data": {key: [1]}} if place else {key: [1]}
    payload = {**native_chat(), "nvext": nvext}
    payload["choices"] = [{**payload["choices"][0], "index": k} for k in range(2)]
    refused(payload, f"choice 0: {name} is missing: nvext does not say which choice its {key} belongs to")


def test_the_message_is_the_better_place():
    payload = native_chat(generation_log_probs=[-0.1, -0.5])
    nvext = {"nvext": {"engine_data": {"completion_logprobs": [-0.10000000149011612, -0.5]}}}
    for both in ({**payload, **nvext}, {"choices": [{**payload["choices"][0], **nvext}]}):
        assert read_response(both)[0].generation_log_probs == [-0.1, -0.5]


def test_two_prompts_that_disagree_are_named():
    payload = {**dynamo(), "prompt_token_ids": [1, 8]}
    refused(payload, "nvext.engine_data.prompt_token_ids and prompt_token_ids disagree at position 1")


def test_one_list_of_another_number_takes_the_others_with_it():
    for entries, numbers in (([-0.125], [-0.25, -0.75]), ([-0.25, -0.75], [-0.125])):
        shown = {"content": [log_prob_entry("o", number) for number in entries], "token_logprobs": numbers}
        choice = {"index": 0, "message": {"content": "o"}, "logprobs": shown}
        assert tokens_of(read_response(dynamo([choice]))[0]) == TOKENS
    nothing = {"completion_token_ids": [], "completion_logprobs": [], "prompt_token_ids": [1, 7]}
    choice = {"index": 0, "message": {"content": "o"}, "logprobs": {"content": [log_prob_entry("o", -0.125)]}}
    assert tokens_of(read_response(dynamo([choice], engine=nothing))[0]) == ([1, 7], [], [])


def test_what_a_choice_says_is_better_than_what_the_payload_says():
    def said(value):
        return {"nvext": {"engine_data": {"completion_logprobs": [value], "completion_token_ids": [41]}}}

    payload = {**said(-0.10000000149011612), "prompt_token_ids": [1]}
    payload["choices"] = [{"index": 0, "message": {"content": "x"}, **said(-0.1)}]
    assert read_response(payload)[0].generation_log_probs == [-0.1]


def test_the_last_choice_alone_is_a_sign():
    choices = [{"index": 0, "message": {}}, {"index": 1, "message": {}, "nvext": {"timing": 1}}]
    assert detect_dialect({"choices": choices}) == "dynamo"


def test_what_the_engine_says_of_its_weights_is_named_with_its_place():
    payload = dynamo(engine={"prompt_token_ids": [1, 7], "completion_token_ids": [41, 2], "weight_version": "5"})
    assert read_response(payload)[0].extras == {"weight_version": "5"}
    payload["nvext"]["weight_version"] = "6"
    refused(payload, "nvext.weight_version and nvext.engine_data.weight_version disagree")


@pytest.mark.parametrize("held", ["x", 5, [1], True])
def test_what_is_no_object_says_nothing(held):
    for nvext in (held, {"engine_data": held}):
        assert tokens_of(read_response(vllm_chat(nvext=nvext))[0]) == TOKENS
        assert tokens_of(read_response(vllm_chat(vllm_choice(nvext=nvext)))[0]) == TOKENS
        assert len(read_response(vllm_chat(vllm_choice(0), vllm_choice(1), nvext=nvext))) == 2


@pytest.mark.parametrize("place", ["nvext", "engine_data"])
def test_an_empty_list_belongs_to_one_choice_as_well(place):
    said = {"completion_token_ids": []}
    nvext = said if place == "nvext" else {"engine_data": said}
    why = "nvext does not say which choice its completion_token_ids belongs to"
    refused(vllm_chat(vllm_choice(0), vllm_choice(1), nvext=nvext), f"generation_token_ids is missing: {why}")
