"""Ids that nobody reads are an error that names their key; what speaks of no token is none."""

from typing import Any

import numpy as np
import pytest
from support.holders import Array
from support.payloads import Model, refused, vllm_chat, vllm_choice
from tokenrecords import read_response


def chat(message: Any = None, **choice: Any) -> dict[str, Any]:
    """A chat without any ids but those that are given."""
    said = {"role": "assistant", "content": "x", **(message or {})}
    return {"object": "chat.completion", "choices": [{"index": 0, "message": said, **choice}]}


UNREAD = {
    "choices[0].newext.sampled_ids": chat(newext={"sampled_ids": [41]}),
    "choices[0].newext.ids": chat(newext={"ids": (41, 2)}),
    "choices[0].message.sampled_token_ids": chat({"sampled_token_ids": [41]}),
    "choices[0].logprobs.sampled_ids": chat(logprobs={"sampled_ids": [41], "content": None}),
    "engine_tokens": {**chat(), "engine_tokens": [[41], [2]]},
    "ext.token_id_list": {**chat(), "ext": Model(token_id_list=[41])},
    "promptTokenIds": {**chat(), "promptTokenIds": [41]},
    "out[1].ids": {"out": [{}, {"ids": np.array([41])}]},
    "out.ids": {"out": {"ids": Array(np.array([41]))}},
    "rows.out_ids": {"rows": {"out_ids": [np.array([41]), np.array([2])]}},
    "x_ids": {**chat(), "x_ids": "ngtok1:i32:AQAAAA=="},
    "sampled_tokens": {**chat(), "sampled_tokens": ["token_id:41"]},
    "results[0].tokens": {"results": [{"text": "x", "tokens": [41]}]},
    "request.input_ids": {**chat(), "request": {"input_ids": [1]}},
    "usage.completion_token_ids": {**chat(), "usage": {"completion_token_ids": [41]}},
    "choices[0].tokens[]": chat(tokens=[{"id": 41, "logprob": -0.5}, {"id": 2, "logprob": -0.5}]),
    "out_tokens[]": {"out_tokens": [Model(token_id=41, logprob=-0.5)]},
    "output[0].sampled_ids": {"object": "response", "output": [{"type": "message", "content": [], "sampled_ids": [4]}]},
    "sampled_ids": {"type": "message", "role": "assistant", "content": [], "sampled_ids": [4]},
}


@pytest.mark.parametrize("path", UNREAD)
def test_the_path_is_named(path):
    refused(UNREAD[path], f": no token ids were found, and {path} is not read: ")


CALL = {"id": "a", "type": "function", "function": {"name": "f", "arguments": {"ids": [1, 2]}}}
SPEAKS_OF_NO_TOKEN = {
    "arguments": chat({"tool_calls": [CALL]}),
    "content": chat({"content": [{"type": "text", "text": "x", "ids": [1]}]}),
    "tool results": {
        "object": "response",
        "output": [
            {"type": "function_call", "arguments": {"ids": [1]}},
            {"type": "function_call_output", "output": {"ids": [1]}},
            {"type": "file_search_call", "results": [{"ids": [1]}]},
        ],
    },
    "a tool's input": {
        "type": "message",
        "role": "assistant",
        "content": [{"type": "tool_use", "input": {"ids": [1]}}],
    },
    "usage": {**chat(), "usage": {"prompt_tokens": 3, "completion_tokens_details": {"audio_tokens": [0]}}},
    "tools": {**chat(), "tools": [{"function": {"parameters": {"ids": [1]}}}], "logit_bias": {"50256": -100}},
    "blocks": {**chat(), "kv_transfer_params": {"remote_block_ids": [1, 2], "remote_engine_id": "e"}},
    "other ids": {**chat(), "stop_token_ids": [2], "bad_words_ids": [[1]], "session_ids": [1], "request_ids": [4]},
    "candidates": chat(logprobs={"content": [{"token": "x", "logprob": -1, "top_logprobs": [{"token_ids": [1]}]}]}),
    "an entry's candidates": chat(logprobs={"content": [{"token": "x", "top_token_ids": [1], "bytes": [120]}]}),
    "prompt log-probs": {**chat(), "prompt_logprobs": [None, {"7": {"token_ids": [1]}}]},
    "candidates of a batch": {**chat(), "logprob_token_ids": [[1, 2]]},
    "counts": {**chat(), "num_tokens": [3], "total_tokens": [4], "cached_tokens": [0], "usage": {"a_tokens": [1]}},
    "ids of other things": {**chat(), **{f"{name}_ids": [1] for name in ("file", "image", "page", "worker", "row")}},
    "documents": {"results": [{"index": 0, "document": {"ids": [1]}}]},
    "results of tools": chat(tool_results=[{"ids": [1]}]),
    "objects without an id": chat(tokens=[{"id": 41}, {"text": "x"}, 5]),
    "embeddings": {"object": "list", "data": [{"embedding": [1, 2]}], "usage": {"prompt_tokens": 3}},
    "an echoed request": {**chat(), "generation_settings": {"preserved_tokens": [1]}},
    "no integers": {**chat(), "a_ids": ["a"], "b_ids": [True], "c_ids": [], "d_ids": None, "e_ids": [0.5], "f_ids": 3},
}


@pytest.mark.parametrize("name", SPEAKS_OF_NO_TOKEN)
def test_no_false_alarm(name):
    assert read_response(SPEAKS_OF_NO_TOKEN[name]) == []


def test_a_missing_field_names_what_is_not_read():
    payload = vllm_chat(vllm_choice(token_ids=None, logprobs=None), ext={"sampled_ids": [41]})
    refused(payload, "vllm-chat choice 0: generation_token_ids is missing, and ext.sampled_ids is not read")


def test_what_is_read_is_not_named():
    payload = vllm_chat(vllm_choice(logprobs=None), copies={"prompt_ids": [1, 7], "rows_of_ids": [[1, 7], [41, 2]]})
    with pytest.raises(ValueError, match=r"generation_log_probs is missing$"):
        read_response(payload)
    models = Model(**vllm_chat(Model(**vllm_choice(logprobs=None))))
    with pytest.raises(ValueError, match=r"generation_log_probs is missing$"):
        read_response(models)


def test_nothing_is_looked_for_where_tokens_were_read():
    assert len(read_response(vllm_chat(ext={"sampled_ids": [9]}))) == 1


def test_depth_is_no_fault():
    deep: Any = {"ids": [1]}
    for _ in range(5000):
        deep = {"x": deep}
    assert read_response({"x": deep}) == []


def test_an_array_of_no_ids_is_none():
    assert read_response({**chat(), "x_ids": np.empty(0, np.int64)}) == []
    assert read_response({**chat(), "x_ids": [np.empty(0, np.int64), []]}) == []


def test_a_key_that_is_empty_or_no_text():
    refused({"": {"x_ids": [41]}}, "and x_ids is not read")
    refused({"a": {"": [{"x_ids": [41]}]}}, "and a.[0].x_ids is not read")
    assert read_response({**chat(), "x": {7: [1], "y": {8: {"a_ids": []}}}}) == []
    assert read_response({**chat(), 7: {"x_ids": [41]}}) == []


def test_of_several_rows_each_must_be_read():
    payload = vllm_chat(vllm_choice(logprobs=None), copies={"rows_of_ids": [[1, 7], [9]]})
    refused(payload, "generation_log_probs is missing, and copies.rows_of_ids is not read")


def test_depth_is_looked_into():
    held: Any = {"x_ids": [41]}
    for _ in range(15):
        held = {"x": [held]}
    refused({**chat(), "x": held}, ".x_ids is not read")


OTHER_THINGS = [
    *("session", "request", "conversation", "thread", "trace", "span", "user", "message", "call", "tool", "batch"),
    *("sample", "group", "task", "job", "row", "item", "file", "vector_store", "document", "doc", "source", "citation"),
    *("page", "chunk", "node", "image", "frame", "audio", "video", "object", "class", "label", "expert", "layer"),
    *("lora", "adapter", "slot", "worker", "rank", "gpu", "device", "cache", "type", "position"),
]


@pytest.mark.parametrize("name", OTHER_THINGS)
def test_ids_of_other_things_are_none_of_tokens(name):
    assert read_response({**chat(), f"{name}_ids": [1], f"my_{name}_ids": [1]}) == []
    refused({**chat(), f"x{name}_ids": [1]}, f"x{name}_ids is not read")
    refused({**chat(), f"{name}_ids_of": {"ids": [1]}}, f"{name}_ids_of.ids is not read")


@pytest.mark.parametrize(
    "name",
    [
        *("block_ids", "stop_token_ids", "bad_words_ids", "eos_token_ids", "bos_token_ids", "pad_token_ids"),
        *("special_token_ids", "suppress_tokens", "suppressed_tokens", "allowed_token_ids", "banned_token_ids"),
        *("preserved_tokens", "forced_token_ids", "cached_tokens", "num_tokens", "n_tokens", "max_tokens"),
        *("min_tokens", "total_tokens", "top_tokens", "topk_token_ids", "topn_tokens", "candidate_ids"),
        *("candidates_token_ids", "logprob_token_ids", "prompt_cached_tokens"),
    ],
)
def test_tokens_that_nobody_generated(name):
    assert read_response({**chat(), name: [1], "x": {name: [[1]]}}) == []


@pytest.mark.parametrize(
    "name",
    [
        *("content", "text", "generated_text", "reasoning", "reasoning_content", "reasoning_details", "refusal"),
        *("tool_calls", "function_call", "arguments", "tool_results", "annotations", "audio", "summary", "document"),
        *("tools", "tool_choice", "logit_bias", "instructions", "error", "timings", "embedding"),
        *("sampling_params", "generation_settings", "parameters"),
        *("prompt_logprobs", "top_logprobs", "topk_prompt_logprobs", "completion_probabilities", "top_tokens"),
    ],
)
def test_what_was_said_asked_or_counted_holds_no_tokens(name):
    assert read_response({**chat(), "x": {name: {"ids": [1]}}}) == []
    assert read_response({"object": "response", "output": [{"type": "message", "x": {name: [{"ids": [1]}]}}]}) == []


@pytest.mark.parametrize("name", ["input", "output", "outputs", "action", "code", "queries", "results"])
def test_what_an_item_holds_of_a_tool(name):
    item = {"type": "x_call", name: {"ids": [1]}}
    assert read_response({"object": "response", "output": [item]}) == []
    assert read_response({**chat(), "input": [{"x": item}]}) == []
    refused({**chat(), "x": {name: {"ids": [1]}}}, f"x.{name}.ids is not read")


@pytest.mark.parametrize(
    "name", ["ids", "x_ids", "tokens", "out_tokens", "token_id", "tokenIds", "token_id_list", "tokenid_x", "XTokenIds"]
)
def test_keys_that_speak_of_tokens(name):
    refused({**chat(), name: [1]}, f" {name} is not read")
    for held in ([], ["a"], [1.5], 5, "ab", {"a": 1}, [None], None, [[]]):
        assert read_response({**chat(), name: held}) == [], held


@pytest.mark.parametrize("name", ["hidden", "tokenizer", "token", "id", "tokens_of", "idsx"])
def test_keys_that_speak_of_none(name):
    assert read_response({**chat(), name: [1]}) == []


@pytest.mark.parametrize(
    ("held", "path"),
    [
        ({"logprobs": Model(sampled_ids=[41])}, "logprobs.sampled_ids"),
        ({"x_ids": [[], [41]]}, "x_ids"),
        ({"x_ids": [[41], None]}, "x_ids"),
        ({"x_ids": np.array([41], np.uint32)}, "x_ids"),
        ({"out_tokens": [{"tokenId": 41}]}, "out_tokens[]"),
        ({"y": ({"x_ids": [41]},)}, "y[0].x_ids"),
    ],
)
def test_other_holders_of_ids(held, path):
    refused({"x": held}, f"x.{path} is not read")


def test_the_deepest_place_that_is_looked_into():
    def below(depth: int) -> Any:
        return {"x": below(depth - 1)} if depth else {"x_ids": [41]}

    refused(below(32), ".x.x_ids is not read")
    assert read_response(below(33)) == []


@pytest.mark.parametrize(
    "copies",
    [
        {"x_ids": np.array([41, 2])},
        {"x_ids": [np.array([1, 7]), np.array([41, 2])]},
        {"x_ids": [[1, 7], None]},
        {"x_ids": (np.array([1, 7]), None)},
    ],
)
@pytest.mark.parametrize("convert", [list, np.array])
def test_copies_of_what_is_read_are_not_named(copies, convert):
    payload = vllm_chat(vllm_choice(token_ids=convert([41, 2]), logprobs=None), prompt_token_ids=convert([1, 7]))
    with pytest.raises(ValueError, match=r"generation_log_probs is missing$"):
        read_response({**payload, "copies": copies})


def test_a_number_among_rows_is_not_read():
    payload = vllm_chat(vllm_choice(logprobs=None), copies={"rows_of_ids": [[1, 7], 5]})
    refused(payload, "generation_log_probs is missing, and copies.rows_of_ids is not read")


def test_what_stands_inside_of_log_probs_are_candidates():
    assert read_response(chat(logprobs={"entries": [{"ids": [1]}], "best": {"token_ids": [1]}})) == []


@pytest.mark.parametrize("ids", [[1], [1, 7, 41], [7], [1, 8]])
def test_a_part_of_what_is_read_is_not_the_whole(ids):
    payload = vllm_chat(vllm_choice(logprobs=None), copies={"x_ids": ids})
    refused(payload, "generation_log_probs is missing, and copies.x_ids is not read")


def test_a_tensor_of_what_is_read_is_not_named():
    tensor = {"name": "output_ids", "data": [41, 2]}
    with pytest.raises(ValueError, match=r"generation_log_probs is missing$"):
        read_response(vllm_chat(vllm_choice(logprobs=None), outputs=[tensor]))
