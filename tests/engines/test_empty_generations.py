"""Where nothing was generated no log-prob is missing; where the model said something, it is."""

from typing import Any

import pytest
from support.payloads import refused, tokens_of, vllm_chat, vllm_choice
from tokenrecords import read_response


def choice(content: Any, finish_reason: str = "stop", **said: Any) -> dict[str, Any]:
    message = {"role": "assistant", "content": content, **said}
    return vllm_chat(vllm_choice(0, [], [], message=message, logprobs=None, finish_reason=finish_reason))


EMPTY = [
    choice(""),
    choice(None, finish_reason="length"),
    choice("ok", finish_reason="abort"),
    {"type": "sample", "prompt_token_ids": [1, 7], "sequences": [{"tokens": [], "logprobs": None}]},
    {"prompt_ids": [[1, 7]], "completion_ids": [[]], "logprobs": None},
    {"text": "", "output_ids": [], "prompt_token_ids": [1, 7], "meta_info": {"completion_tokens": 0}},
    {"prompt_token_ids": [1, 7], "generation_token_ids": []},
]


@pytest.mark.parametrize("payload", EMPTY)
def test_nothing_was_generated(payload):
    assert tokens_of(read_response(payload)[0]) == ([1, 7], [], [])


@pytest.mark.parametrize(
    "payload",
    [
        choice("ok"),
        choice(None, tool_calls=[{"id": "a"}]),
        {"text": "ok", "output_ids": [], "prompt_token_ids": [1, 7], "meta_info": {}},
        {"prompt_token_ids": [1, 7], "generation_token_ids": [], "text": "ok"},
    ],
)
def test_the_model_said_something(payload):
    refused(payload, "choice 0: generation_log_probs is missing")


def test_the_list_of_ids_must_be_there():
    refused({"prompt_token_ids": [1, 7], "text": ""}, "flat choice 0: generation_token_ids is missing")
    refused(vllm_chat(vllm_choice(token_ids=None, logprobs=None, message={})), "generation_token_ids is missing")


def test_counts_are_compared_as_ever():
    refused({**choice(""), "usage": {"completion_tokens": 1}}, "0 generation_token_ids, but the engine counted 1")


WORDS = [{name: "x"} for name in ("reasoning", "reasoning_content", "refusal")]
WORDS += [{name: [{"id": "a"}]} for name in ("tool_calls", "function_call")]


@pytest.mark.parametrize("said", WORDS)
def test_words_beside_the_content(said):
    refused(choice("", **said), "choice 0: generation_log_probs is missing")
    assert len(read_response(choice("", **{name: value[:0] for name, value in said.items()}))) == 1


@pytest.mark.parametrize(
    ("item", "said"),
    [
        ({"type": "reasoning"}, {"summary": [{"type": "summary_text", "text": "x"}]}),
        ({"type": "function_call", "name": "f"}, {"arguments": "{}"}),
        ({"type": "message"}, {"content": [{"type": "refusal", "refusal": "x"}]}),
        ({"type": "message"}, {"content": [{"type": "output_text", "text": ""}, {"type": "output_text", "text": "x"}]}),
    ],
)
def test_items_that_say_something(item, said):
    ids = {"prompt_token_ids": [1, 7], "generation_token_ids": []}
    carrier = {"type": "message", "content": [{"type": "output_text", "text": ""}], **ids}
    assert len(read_response({"object": "response", "output": [item, carrier]})) == 1
    said = {"object": "response", "output": [{**item, **said}, carrier]}
    refused(said, "choice 0: generation_log_probs is missing")
