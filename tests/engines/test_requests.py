"""What each engine must be asked for its tokens, and what the answer shows because of it."""

from typing import Any

import pytest
from tokenrecords.engines.requests import ASKS, ENDPOINTS, Ask, asking, is_true, merged

IDS = {"return_token_ids": True}
SCORED = {"return_token_ids": True, "logprobs": True}
TEXT = {"return_token_ids": True, "logprobs": 0}
LMDEPLOY = {"return_token_ids": True, "return_logprob": True}
RESPONSES = {"enable_response_messages": True, "include": ["message.output_text.logprobs"]}
GENERATE = {"sampling_params": {"logprobs": 0}}
INPUTS = {"return_input_ids": True, "return_output_ids": True, "logprobs": True}
SGLANG = {"return_logprob": True, "return_prompt_token_ids": True}
TGI = {"parameters": {"details": True, "decoder_input_details": True}}
DYNAMO = {"logprobs": True, "nvext": {"extra_fields": ["engine_data", "prompt_token_ids"]}}
# What a request that asks for nothing must say, whole and streamed.
ASKED: dict[str, dict[str, tuple[Any, Any]]] = {
    engine: {
        "chat": (SCORED, SCORED),
        "completions": (TEXT, TEXT),
        "responses": (RESPONSES, RESPONSES),
        "messages": (IDS, IDS),
        "vllm-generate": (GENERATE, GENERATE),
    }
    for engine in ("vllm", "litellm")
} | {
    "sglang": {"chat": (SCORED, INPUTS), "completions": (TEXT, TEXT), "generate": (SGLANG, SGLANG)},
    "lmdeploy": dict.fromkeys(("chat", "messages", "generate"), (LMDEPLOY, LMDEPLOY)),
    "llama-cpp": {
        "chat": ({"logprobs": True}, {"logprobs": True}),
        "completion": ({"return_tokens": True, "n_probs": 1},) * 2,
    },
    "together": {"chat": ({"logprobs": 1, "echo": True}, {"logprobs": 1})},
    "dynamo": {"chat": (DYNAMO, DYNAMO)},
    "tgi": {"generate": (TGI, TGI)},
}


def changed(asks: Any, request: dict[str, Any], *, streamed: bool = False) -> dict[str, Any]:
    return asking(asks, request, streamed=streamed)[0]


def test_what_each_engine_is_asked_for() -> None:
    found = {
        engine: {
            endpoint: tuple(changed(asks, {}, streamed=streamed) for streamed in (False, True))
            for endpoint, asks in endpoints.items()
        }
        for engine, endpoints in ASKS.items()
    }
    assert found == ASKED
    assert {endpoint for endpoints in ASKS.values() for endpoint in endpoints} == set(ENDPOINTS.values())


def test_a_request_that_asks_itself_is_not_changed() -> None:
    for engine, endpoints in ASKS.items():
        for endpoint, asks in endpoints.items():
            for streamed in (False, True):
                request = changed(asks, {}, streamed=streamed)
                assert asking(asks, request, streamed=streamed) == ({}, []), (engine, endpoint)


def test_what_a_request_says_beside_it_stays() -> None:
    held = {"sampling_params": {"top_p": 0.5, "logprobs": None}}
    assert changed(ASKS["vllm"]["vllm-generate"], held) == {"sampling_params": {"top_p": 0.5, "logprobs": 0}}
    assert held == {"sampling_params": {"top_p": 0.5, "logprobs": None}}
    for wrong in (None, 5, "x", []):
        assert changed(ASKS["vllm"]["vllm-generate"], {"sampling_params": wrong}) == GENERATE
    assert changed(ASKS["tgi"]["generate"], {"parameters": {"details": True, "n": 2}}) == {
        "parameters": {"details": True, "n": 2, "decoder_input_details": True}
    }


def test_a_list_keeps_what_the_request_names() -> None:
    asks = ASKS["vllm"]["responses"]
    assert changed(asks, {"include": ["a"], "enable_response_messages": 1}) == {
        "include": ["a", "message.output_text.logprobs"]
    }
    assert changed(asks, {"include": "a"})["include"] == ["message.output_text.logprobs"]
    several = Ask(("include",), ["a", "b"], {})
    assert several.is_met_by(["b", "c", "a"])
    assert not several.is_met_by(["a"])
    assert not several.is_met_by("ab")


@pytest.mark.parametrize(
    ("least", "said", "is_met"),
    [
        *[(0, 0, True), (0, 5, True), (0, -1, False), (0, False, False), (0, True, True), (0, None, False)],
        *[(0, "1", False), (1, 0, False), (1, 1, True), (1, 2, True), (1, True, True)],
    ],
)
def test_a_least_number(least, said, is_met):
    assert Ask(("n_probs",), least, {}).is_met_by(said) is is_met


def test_the_asks_that_are_missing_are_given_in_order() -> None:
    asks = ASKS["vllm"]["chat"]
    ids, log_probs, top = asks
    assert asking(asks, {}, streamed=False)[1] == [ids, log_probs]
    assert asking(asks, {"top_logprobs": None}, streamed=False)[1] == [ids, log_probs, top]
    assert asking(asks, {"return_token_ids": True}, streamed=False)[1] == [log_probs]


def test_what_several_show_is_shown_together() -> None:
    assert merged([{"a": None}, {"b": {"x": None}}, {"b": {"y": None}}]) == {"a": None, "b": {"x": None, "y": None}}
    # Where one shows the whole member, nothing within it is told apart.
    for shown in ([{"a": None}, {"a": {"x": None}}], [{"a": {"x": None}}, {"a": None}]):
        assert merged(shown) == {"a": None}
    assert merged([]) == {}


def test_a_proxy_shows_ids_on_the_choice_and_what_it_swept_off() -> None:
    ids = {"token_ids": None, "prompt_token_ids": None}
    assert merged(ask.shown for ask in ASKS["litellm"]["chat"]) == {
        "prompt_token_ids": None,
        "choices": {**ids, "provider_specific_fields": ids, "logprobs": None},
    }
    assert merged(ask.shown for ask in ASKS["vllm"]["chat"]) == {
        "prompt_token_ids": None,
        "choices": {**ids, "logprobs": None},
    }


@pytest.mark.parametrize("word", ["1", "t", "true", "y", "yes", "on", "T", "True", "ON"])
def test_words_for_true(word):
    assert is_true(word)
    assert not is_true(f"{word} ")
    for other in ("0", "f", "false", "n", "no", "off", "", "2", 0, 2, [], ["1"]):
        assert not is_true(other)


@pytest.mark.parametrize(
    ("engine", "endpoint", "request_", "streamed", "shown"),
    [
        ("tgi", "generate", {"parameters": {"details": True}}, False, {"details": {"prefill": None}}),
        ("tgi", "generate", {"parameters": {"decoder_input_details": True}}, False, {"details": None}),
        ("sglang", "chat", {"return_input_ids": True, "logprobs": True}, True, {"sglext": {"output_ids": None}}),
        ("sglang", "chat", {"return_output_ids": True, "logprobs": True}, True, {"sglext": {"input_ids": None}}),
        (
            "sglang",
            "generate",
            {"return_prompt_token_ids": True},
            False,
            {"meta_info": {"input_token_logprobs": None, "output_token_logprobs": None}},
        ),
    ],
)
def test_what_is_shown_because_of_one_ask(engine, endpoint, request_, streamed, shown):
    _, added = asking(ASKS[engine][endpoint], request_, streamed=streamed)
    assert merged(ask.shown for ask in added) == shown


def test_what_is_shown_in_an_event_as_well():
    lmdeploy = merged(ask.shown for ask in ASKS["lmdeploy"]["messages"])
    messages = merged(ask.shown for ask in ASKS["vllm"]["messages"])
    responses = merged(ask.shown for ask in ASKS["vllm"]["responses"])
    for holder in ("message", "response", "delta", "item"):
        assert "output_ids" in lmdeploy[holder]
        assert "generation_token_ids" in messages[holder]
        assert "output_messages" in responses[holder]
    for holder in ("choices", "meta_info"):
        assert lmdeploy[holder] == dict.fromkeys(("prompt_token_ids", "output_ids", "output_token_logprobs"))
    text = {"logprobs": None, "part": {"logprobs": None}, "content": {"logprobs": None}}
    assert responses["output"] == responses["response"]["output"] == text
    assert text.items() <= responses["item"].items()


def test_an_endpoint_and_its_stream():
    assert ENDPOINTS["/generate"] == ENDPOINTS["/generate_stream"] == "generate"
