"""Served responses of every dialect: the given cases, decisions on doubtful payloads, and mutated twins."""

import copy
import json
import time
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict
from support.holders import Array
from support.payloads import native_chat
from support.places import DATA
from tokenrecords import ParentResolutionStatus, TokenEntry, stamp_lineage
from tokenrecords.engines.dialects import READERS, detect_dialect
from tokenrecords.engines.response import ServedChoice, entries_from_response, read_response
from tokenrecords.engines.stream import merge_stream

CASES = json.loads((DATA / "dialects.json").read_text())
FIELDS = ("index", "prompt_token_ids", "generation_token_ids", "generation_log_probs", "routed_experts")


def tokens(choices: list[ServedChoice]) -> list[dict[str, Any]]:
    return [{name: getattr(choice, name) for name in FIELDS} for choice in choices]


def plain(choice: ServedChoice) -> tuple[Any, ...]:
    return tuple(list(getattr(choice, name)) for name in FIELDS[1:4])


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_given_case(case):
    if "error" in case:
        with pytest.raises(ValueError, match=r".") as caught:
            read_response(merge_stream(case["chunks"]) if "chunks" in case else case["payload"])
        assert case["error"] in str(caught.value)
        assert case["dialect"] in str(caught.value)
        return
    payload = merge_stream(case["chunks"]) if "chunks" in case else case["payload"]
    before = copy.deepcopy(payload)
    if "content" in case:
        assert [choice["message"]["content"] for choice in payload["choices"]] == case["content"]
    assert detect_dialect(payload) == case["dialect"]
    assert tokens(read_response(payload)) == case["choices"]
    assert tokens(read_response(payload, dialect=case["dialect"])) == case["choices"]
    assert payload == before


@pytest.mark.parametrize("line", (DATA / "served_responses.jsonl").read_text().splitlines())
def test_real_response(line):
    served = json.loads(line)
    expected = served["expected"]
    [entry] = entries_from_response(
        served["response"],
        rollout_id=served["rollout_id"],
        model_call_id=served["model_call_id"],
        parent=None,
    )
    assert entry.token_item_index == expected["token_item_index"]
    assert [item["type"] for item in entry.output_items] == expected["output_item_types"]
    assert (entry.cum_len, entry.digest) == (expected["cum_len"], expected["digest"])


def entry_of(token: Any, logprob: Any, **more: Any) -> dict[str, Any]:
    return {"token": token, "logprob": logprob, "bytes": None, "top_logprobs": [], **more}


def vllm_choice(index: Any = 0, ids: Any = (41, 2), log_probs: Any = (-0.125, -0.5), **more: Any) -> dict[str, Any]:
    ids = list(ids)
    return {
        "index": index,
        "finish_reason": "stop",
        "token_ids": ids,
        "message": {"role": "assistant", "content": "ok"},
        "logprobs": {"content": [entry_of(f"token_id:{i}", lp) for i, lp in zip(ids, log_probs, strict=True)]},
        **more,
    }


def vllm_chat(*choices: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {
        "id": "chatcmpl-9",
        "object": "chat.completion",
        "created": 1700000000,
        "model": "m",
        "prompt_token_ids": [1, 7],
        "choices": list(choices) or [vllm_choice()],
        **more,
    }


def native(**fields: Any) -> dict[str, Any]:
    own = {
        "prompt_token_ids": [1, 7],
        "generation_token_ids": [41, 2],
        "generation_log_probs": [-0.125, -0.5],
    }
    return {**own, **fields}


def sglang_sample(**meta: Any) -> dict[str, Any]:
    own = {
        "id": "g1",
        "prompt_tokens": 2,
        "completion_tokens": 2,
        "finish_reason": {"type": "length", "length": 2},
        "input_token_logprobs": [[None, 1, None], [-2.0, 7, None]],
        "output_token_logprobs": [[-0.125, 41, None], [-0.5, 2, None]],
    }
    return {"text": "ok", "output_ids": [41, 2], "meta_info": {**own, **meta}}


def dynamo(choices: Any = None, engine: Any = None, **nvext: Any) -> dict[str, Any]:
    engine = engine or {"prompt_token_ids": [1, 7], "completion_token_ids": [41, 2]}
    return {
        "object": "chat.completion",
        "choices": choices or [{"index": 0, "message": {"role": "assistant", "content": "ok"}}],
        "nvext": {"engine_data": {"completion_logprobs": [-0.125, -0.5], **engine}, **nvext},
    }


def tgi(**details: Any) -> dict[str, Any]:
    own = {
        "finish_reason": "length",
        "generated_tokens": 2,
        "prefill": [{"id": 1, "text": "<s>", "logprob": None}, {"id": 7, "text": "a", "logprob": -3.0}],
        "tokens": [{"id": 41, "text": "o", "logprob": -0.125}, {"id": 2, "text": "k", "logprob": -0.5}],
    }
    return {"generated_text": "ok", "details": {**own, **details}}


def refused(payload: Any, *words: str, **options: Any) -> None:
    with pytest.raises(ValueError, match=r".") as caught:
        read_response(payload, **options)
    for word in words:
        assert word in str(caught.value)


TWO = [(([1, 7]), [41, 2], [-0.125, -0.5])]


def test_choices_come_in_order_of_index():
    payload = vllm_chat(vllm_choice(1, [9], [-1.0]), vllm_choice(0))
    assert [choice.index for choice in read_response(payload)] == [0, 1]
    assert [choice.generation_token_ids for choice in read_response(payload)] == [[41, 2], [9]]


def test_duplicate_index():
    refused(vllm_chat(vllm_choice(1), vllm_choice(1)), "vllm-chat choice 1: duplicate choice index 1")


def test_choices_without_any_index_are_numbered():
    payload = vllm_chat(vllm_choice(None), vllm_choice(None, [9], [-1.0]))
    assert [choice.index for choice in read_response(payload)] == [0, 1]


def test_one_index_missing():
    refused(vllm_chat(vllm_choice(0), vllm_choice(None)), "vllm-chat choice 1: index is missing")


@pytest.mark.parametrize("index", ["0", True, -1, 0.0])
def test_index_of_the_wrong_type(index):
    refused(vllm_chat(vllm_choice(index)), "index must be a non-negative integer")


def test_one_choice_of_two_lost_its_ids():
    payload = vllm_chat(vllm_choice(0), vllm_choice(1))
    payload["choices"][1].update(token_ids=None, logprobs=None)
    refused(payload, "vllm-chat choice 1: generation_token_ids is missing")


@pytest.mark.parametrize("lost", [None, "x", 5])
def test_a_choice_that_is_none(lost):
    refused(vllm_chat(lost), "generation_token_ids is missing")


def test_prompt_ids_without_a_choice():
    refused({**vllm_chat(), "choices": []}, "vllm-chat choice 0: generation_token_ids is missing")


def test_a_chunk_of_a_stream():
    refused(
        {"choices": [{"index": 0, "delta": {"content": "o"}, "token_ids": [41]}]},
        "choices[0].delta",
        "merge_stream",
    )


def test_a_list_is_read_where_an_engine_sends_lists():
    refused([vllm_chat()], "unknown: a list of 1 payloads")
    refused([vllm_chat()], "vllm-chat: a list of 1 payloads", dialect="vllm-chat")
    assert read_response([], dialect="vllm-chat") == []
    with pytest.raises(TypeError, match="mapping"):
        read_response([[vllm_chat()]])


@pytest.mark.parametrize("counted", ["3", {}, [], 2.5])
@pytest.mark.parametrize("name", ["prompt_tokens", "completion_tokens"])
def test_counts_that_are_no_numbers(name, counted):
    refused(vllm_chat(usage={name: counted}), "but the engine counted")


def test_unknown_dialects():
    assert detect_dialect({"error": "overloaded"}) == "unknown"
    assert read_response({"error": "overloaded"}) == []
    assert read_response({}) == []
    assert read_response([]) == []
    refused(vllm_chat(), "dialect must be one of", dialect="vllm")
    for wrong in (None, "text", 5):
        with pytest.raises(TypeError, match="mapping"):
            read_response(wrong)


def test_empty_generation_is_present():
    payload = vllm_chat(vllm_choice(0, [], []))
    assert plain(read_response(payload)[0]) == ([1, 7], [], [])
    assert plain(read_response({"choices": [{"message": native(generation_token_ids=[], generation_log_probs=[])}]})[0])


@pytest.mark.parametrize("logprobs", [{"content": None}, None])
def test_log_probs_that_were_not_sent(logprobs):
    refused(vllm_chat(vllm_choice(0, logprobs=logprobs)), "vllm-chat choice 0: generation_log_probs is missing")


def test_no_log_probs_are_needed_where_nothing_was_generated():
    payload = vllm_chat(vllm_choice(0, [], [], logprobs={"content": None}))
    assert plain(read_response(payload)[0]) == ([1, 7], [], [])


def test_missing_prompt_ids():
    refused({**vllm_chat(), "prompt_token_ids": None}, "vllm-chat choice 0: prompt_token_ids is missing")


def test_ids_as_words():
    message = {"content": "x", **native(generation_token_ids=["token_id:41", "token_id:2"])}
    assert plain(read_response({"choices": [{"message": message}]})[0]) == TWO[0]


@pytest.mark.parametrize("words", [["41", "2"], ["token_id:41", "w"], ["token_id:x", "token_id:2"], ["token_id:", "2"]])
def test_words_that_are_no_ids(words):
    for name in ("prompt_token_ids", "generation_token_ids"):
        payload = {"choices": [{"message": {"content": "x", **native(**{name: words})}}]}
        refused(payload, f"chat choice 0: {name}[")
        with pytest.raises(ValueError, match="chat choice 0"):
            entries_from_response(payload, rollout_id="r", model_call_id="c")


@pytest.mark.parametrize(
    ("bad", "why"),
    [
        (True, "not a token id"),
        (1.0, "not a token id"),
        ("7", "not a token id"),
        (None, "is null"),
        (-9, "token ids must be non-negative, got -9"),
        (2**64, "below 2**64"),
        ([7], "not a token id"),
    ],
)
@pytest.mark.parametrize("name", ["prompt_token_ids", "generation_token_ids"])
def test_what_is_no_token_id(name, bad, why):
    payload = {"choices": [{"message": {"content": "x", **native(**{name: [1, bad]})}}]}
    refused(payload, f"chat choice 0: {name}[1] is", why)


@pytest.mark.parametrize("bad", ["12", {"a": 1}, 5, {1, 2}, b"12", np.ones((1, 2), dtype=int)])
def test_fields_that_are_no_lists(bad):
    for name in ("prompt_token_ids", "generation_token_ids", "generation_log_probs"):
        payload = {"choices": [{"message": {"content": "x", **native(**{name: bad})}}]}
        refused(payload, f"chat choice 0: {name} (message.{name}) must be a list or an array")


def test_large_ids_stay():
    payload = {"choices": [{"message": {"content": "x", **native(prompt_token_ids=[2**64 - 1, 0])}}]}
    assert read_response(payload)[0].prompt_token_ids == [2**64 - 1, 0]


def test_non_finite_log_probs():
    payload = {"choices": [{"message": {"content": "x", **native(generation_log_probs=["NaN", "-Infinity"])}}]}
    [choice] = read_response(payload)
    assert np.isnan(choice.generation_log_probs[0])
    assert choice.generation_log_probs[1] == float("-inf")
    held = [float("nan"), float("-inf")]
    payload = {"choices": [{"message": {"content": "x", **native(generation_log_probs=held)}}]}
    assert read_response(payload)[0].generation_log_probs is held


@pytest.mark.parametrize(
    ("bad", "why"),
    [("-0.5", "not a number"), (False, "not a number"), (None, "is null"), ([-0.5], "not a number")],
)
def test_what_is_no_log_prob(bad, why):
    payload = {"choices": [{"message": {"content": "x", **native(generation_log_probs=[-0.125, bad])}}]}
    refused(payload, "chat choice 0: generation_log_probs[1] is", why)


@pytest.mark.parametrize("entry", [None, {"token": "token_id:2"}, "x", 5, {"token": "token_id:2", "logprob": None}])
def test_log_prob_entry_that_holds_none(entry):
    payload = vllm_chat()
    payload["choices"][0]["logprobs"]["content"][1] = entry
    refused(payload, "vllm-chat choice 0: generation_log_probs[1] is null")


def test_candidates_and_prompt_log_probs_never_pass_for_sampled_ones():
    candidates = [{"token": "token_id:41", "logprob": -0.125}]
    payload = vllm_chat(
        vllm_choice(0, logprobs={"content": None, "top_logprobs": [candidates]}),
        prompt_logprobs=[None, {"7": {"logprob": -1.0, "rank": 1, "decoded_token": "a"}}],
    )
    refused(payload, "generation_log_probs is missing")
    payload = {
        "object": "text_completion",
        "choices": [{"index": 0, "text": "o", "token_ids": [41], "prompt_token_ids": [1]}],
    }
    payload["choices"][0]["logprobs"] = {
        "tokens": ["o"],
        "token_logprobs": None,
        "top_logprobs": [{"o": -0.1}],
    }
    refused(payload, "vllm-completions choice 0: generation_log_probs is missing")


def test_prompt_ids_on_choice_and_payload():
    assert len(read_response(vllm_chat(vllm_choice(prompt_token_ids=[1, 7])))) == 1
    refused(
        vllm_chat(vllm_choice(prompt_token_ids=[1, 8])),
        "vllm-chat choice 0: prompt_token_ids and choices[].prompt_token_ids disagree at position 1",
    )
    refused(vllm_chat(vllm_choice(prompt_token_ids=[1])), "disagree at position 1")


def test_native_and_engine_fields():
    message = {"role": "assistant", "content": "ok", **native()}
    agreeing = vllm_chat(vllm_choice(message=message))
    assert detect_dialect(agreeing) == "chat"
    assert plain(read_response(agreeing)[0]) == TWO[0]
    message["generation_token_ids"] = [41, 3]
    refused(agreeing, "chat choice 0: message.generation_token_ids and token_ids disagree at position 1")


def test_routes_in_two_places():
    message = {"content": "x", **native(routed_experts="AA")}
    assert len(read_response({"choices": [{"message": message, "routed_experts": "AA"}]})) == 1
    refused(
        {"choices": [{"message": message, "routed_experts": "BB"}]},
        "chat choice 0: message.routed_experts and routed_experts disagree",
    )
    message["routed_experts"] = np.zeros((1, 1, 1), dtype=int)
    assert len(read_response({"choices": [{"message": message, "routed_experts": [[[0]]]}]})) == 1
    refused({"choices": [{"message": message, "routed_experts": [[[1]]]}]}, "disagree")


def test_log_probs_agree_at_float32_precision():
    entries = [entry_of("o", -0.1), entry_of("k", -0.5)]
    meta = {"output_token_logprobs": [[-0.10000000149011612, 41, None], [-0.5, 2, None]]}
    choice = {"index": 0, "message": {"content": "ok"}, "prompt_token_ids": [1, 7], "meta_info": meta}
    payload = {"object": "chat.completion", "choices": [{**choice, "logprobs": {"content": entries}}]}
    assert read_response(payload)[0].generation_log_probs == [-0.10000000149011612, -0.5]
    entries[0]["logprob"] = -0.1001
    refused(payload, "sglang-chat choice 0", "disagree at position 0")


def test_words_and_token_ids_that_mix():
    payload = vllm_chat()
    payload["choices"][0]["logprobs"]["content"][1]["token"] = "w"
    refused(payload, "token_ids and logprobs.content[].token disagree at position 1")
    del payload["choices"][0]["token_ids"]
    refused(payload, "generation_token_ids[1] is null")


@pytest.mark.parametrize(
    ("counts", "message"),
    [
        ({"completion_tokens": 3}, "vllm-chat choice 0: 2 generation_token_ids, but the engine counted 3"),
        ({"completion_tokens": 0}, "vllm-chat choice 0: 2 generation_token_ids, but the engine counted 0"),
        ({"prompt_tokens": 3}, "vllm-chat choice 0: 2 prompt_token_ids, but the engine counted 3"),
    ],
)
def test_usage(counts, message):
    refused(vllm_chat(usage=counts), message)
    assert len(read_response(vllm_chat(usage=counts), check_counts=False)) == 1
    assert (
        len(entries_from_response(vllm_chat(usage=counts), rollout_id="r", model_call_id="c", check_counts=False)) == 1
    )


def test_usage_of_several_choices():
    choices = (vllm_choice(0), vllm_choice(1, [9], [-1.0]))
    assert len(read_response(vllm_chat(*choices, usage={"prompt_tokens": 2, "completion_tokens": 3}))) == 2
    refused(
        vllm_chat(*choices, usage={"completion_tokens": 4}),
        "vllm-chat choices 0 to 1: 3 generation_token_ids",
    )
    refused(vllm_chat(*choices, usage={"prompt_tokens": 3}), "4 prompt_token_ids, but the engine counted 3")


def test_usage_of_several_prompts():
    logprobs = {"tokens": ["a"], "token_logprobs": [-0.5]}
    choices = [
        {"index": i, "text": "a", "token_ids": [9], "prompt_token_ids": prompt, "logprobs": logprobs}
        for i, prompt in enumerate([[1, 7], [1, 7], [8], [8]])
    ]
    payload = {
        "object": "text_completion",
        "choices": choices,
        "usage": {"prompt_tokens": 3, "completion_tokens": 4},
    }
    assert [choice.prompt_token_ids for choice in read_response(payload)] == [[1, 7], [1, 7], [8], [8]]
    payload["usage"]["prompt_tokens"] = 4
    refused(payload, "vllm-completions choices 0 to 3: 6 prompt_token_ids, but the engine counted 4")


def test_usage_of_a_responses_payload_may_sum_several_calls():
    item = {"type": "message", "role": "assistant", "content": [], **native()}
    payload = {"object": "response", "output": [item], "usage": {"input_tokens": 99, "output_tokens": 99}}
    assert len(read_response(payload)) == 1


def test_sglang_generate():
    [choice] = read_response(sglang_sample())
    assert (plain(choice), choice.finish_reason) == (TWO[0], "length")
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
    assert plain(read_response(payload)[0]) == TWO[0]


def test_where_an_sglang_chat_says_the_prompt():
    choice = {"index": 0, "message": {"content": "x"}, "logprobs": numbered([9], [-0.5])}
    payload = {"object": "chat.completion", "choices": [choice], "prompt_token_ids": [1, 7]}
    assert detect_dialect(payload) == "sglang-chat"
    assert plain(read_response(payload)[0]) == ([1, 7], [9], [-0.5])
    payload = {**payload, "prompt_token_ids": None}
    refused(payload, "sglang-chat choice 0: prompt_token_ids is missing")
    choice.update(prompt_token_ids=[1], token_ids=[9], logprobs={"content": [entry_of("x", -0.5)]})
    assert detect_dialect(payload) == "sglang-chat"


def test_sglang_routes_of_several_choices_belong_to_none():
    choice = {"message": {"content": "x"}, "prompt_token_ids": [1], "token_ids": [2]}
    choice["logprobs"] = {"content": [entry_of("x", -0.5)]}
    payload = {"object": "chat.completion", "choices": [{**choice, "index": 0}, {**choice, "index": 1}]}
    assert len(read_response(payload)) == 2
    payload["sglext"] = {"routed_experts": "AAAB"}
    refused(payload, "sglang-chat", "sglext does not say which choice")
    del payload["sglext"]
    payload["choices"][1]["sgl_ext"] = {"routed_experts": "AAAB"}
    assert [choice.routed_experts for choice in read_response(payload)] == [None, "AAAB"]


def test_dynamo():
    assert plain(read_response(dynamo())[0]) == TWO[0]
    refused(dynamo(completion_token_ids=[41, 3]), "dynamo choice 0: nvext.engine_data.completion_token_ids and")
    two = [{"index": i, "message": {"content": "x"}} for i in range(2)]
    refused(dynamo(two), "dynamo choice 0: generation_token_ids is missing", "does not say which choice")
    own = {"engine_data": {"completion_token_ids": [9], "completion_logprobs": [-0.5]}}
    choices = [{"index": i, "message": {"content": "x"}, "nvext": own} for i in range(2)]
    payload = {"choices": choices, "nvext": {"engine_data": {"prompt_token_ids": [1]}}}
    assert [plain(choice) for choice in read_response(payload)] == [([1], [9], [-0.5])] * 2


def test_dynamo_choice_log_probs_may_lack_the_stop_token():
    shown = {"content": [entry_of("o", -0.125)]}
    choice = {"index": 0, "message": {"content": "o"}, "logprobs": shown}
    assert plain(read_response(dynamo([choice]))[0]) == TWO[0]
    shown["content"].append(entry_of("", -0.75))
    refused(dynamo([choice]), "dynamo choice 0", "disagree at position 1")


def test_dynamo_without_engine_data():
    assert read_response({"choices": [{"message": {"content": "x"}}], "nvext": {"timing": {}}}) == []


def test_tgi():
    [choice] = read_response(tgi())
    assert (plain(choice), choice.finish_reason) == (TWO[0], "length")
    assert choice.output_items == [{"type": "message", "role": "assistant", "content": "ok"}]
    assert detect_dialect([tgi()]) == "tgi"
    assert plain(read_response([tgi()])[0]) == TWO[0]
    assert read_response({"generated_text": "ok", "details": None}) == []


@pytest.mark.parametrize(
    ("details", "message"),
    [
        ({"generated_tokens": 3}, "2 generation_token_ids, but the engine counted 3"),
        ({"prefill": []}, "prompt_token_ids is missing"),
        (
            {"tokens": [{"id": 41, "logprob": None}, {"id": 2, "logprob": -0.5}]},
            "generation_log_probs[0] is null",
        ),
        ({"tokens": [{"logprob": -0.125}, {"id": 2, "logprob": -0.5}]}, "generation_token_ids[0] is null"),
        ({"tokens": None}, "generation_token_ids is missing"),
    ],
)
def test_tgi_faults(details, message):
    refused(tgi(**details), "tgi choice 0: ", message)


def test_tgi_best_of():
    other = {
        **tgi()["details"],
        "generated_text": "no",
        "tokens": [{"id": 9, "logprob": -1.0}],
        "generated_tokens": 1,
    }
    choices = read_response(tgi(best_of_sequences=[other]))
    assert [plain(choice) for choice in choices] == [TWO[0], ([1, 7], [9], [-1.0])]
    assert choices[1].output_items[0]["content"] == "no"
    assert len(read_response(tgi(best_of_sequences=[{**other, "prefill": []}]))) == 2
    other["prefill"] = [{"id": 1}, {"id": 8}]
    refused(
        tgi(best_of_sequences=[other]),
        "tgi choice 1: best_of_sequences[0].prefill and details.prefill disagree",
    )


def test_litellm_on_the_message():
    message = {"content": "ok", "provider_specific_fields": {"token_ids": [41, 2], "refusal": None}}
    choice = {
        "index": 0,
        "message": message,
        "logprobs": {"content": [entry_of("o", -0.125), entry_of("k", -0.5)]},
    }
    payload = {"object": "chat.completion", "prompt_token_ids": [1, 7], "choices": [choice]}
    assert detect_dialect(payload) == "litellm"
    [read] = read_response(payload)
    assert plain(read) == TWO[0]
    assert read.output_items[0]["provider_specific_fields"] == {"refusal": None}
    choice["provider_specific_fields"] = {"token_ids": [41, 3]}
    refused(payload, "litellm choice 0", "disagree at position 1")
    choice["provider_specific_fields"] = {"stop_reason": None, "token_ids": None}
    message["provider_specific_fields"] = {"x": 1}
    refused(payload, "litellm choice 0: generation_token_ids is missing")


def test_litellm_native_fields_swept_off_the_message():
    message = {"content": "ok", "provider_specific_fields": native()}
    payload = {"object": "chat.completion", "choices": [{"index": 0, "message": message}]}
    assert plain(read_response(payload)[0]) == TWO[0]


@pytest.mark.parametrize(
    ("payload", "message"),
    [
        ({"prompt_ids": [[1]], "completion_ids": [[2]], "logprobs": None}, "generation_log_probs is missing"),
        ({"prompt_ids": [[1]], "completion_ids": [[2]]}, "generation_log_probs is missing"),
        ({"prompt_ids": [[1]], "logprobs": [[-0.5]]}, "trl choice 0: generation_token_ids is missing"),
        ({"completion_ids": [[1]], "logprobs": [[-0.5]]}, "trl choice 0: generation_log_probs is missing"),
        ({"prompt_ids": [[1], [2]], "completion_ids": [[3]] * 3}, "3 completion_ids for 2 prompt_ids"),
        ({"prompt_ids": [[1], [2]], "completion_ids": []}, "0 completion_ids for 2 prompt_ids"),
        ({"prompt_ids": [], "completion_ids": [[3]]}, "1 completion_ids for 0 prompt_ids"),
        ({"prompt_ids": [[1]], "completion_ids": [[2]], "logprobs": []}, "1 completion_ids and 0 logprobs"),
        (
            {"prompt_ids": [[1]], "completion_ids": [[2]], "logprobs": [[None]]},
            "generation_log_probs[0] is null",
        ),
        (
            {"prompt_ids": [[1]], "completion_ids": [[2, 3]], "logprobs": [[-1.0]]},
            "2 generation_token_ids and 1",
        ),
        (
            {"prompt_ids": 5, "completion_ids": [[2]], "logprobs": [[-1.0]]},
            "prompt_ids must be a list of lists",
        ),
        ({"prompt_ids": [1], "completion_ids": [2], "logprobs": [[-1.0]]}, "must be a list"),
        (
            {"prompt_ids": [[1]], "completion_ids": [[2]], "logprobs": [[[-1.0]]]},
            "generation_log_probs is missing",
        ),
    ],
)
def test_trl_faults(payload, message):
    refused(payload, "trl", message)


def test_trl_candidates_are_found_by_id():
    payload = {
        "prompt_ids": [[1]],
        "completion_ids": [[2, 3]],
        "logprobs": [[[-0.1, -0.2], [-0.3, -0.4]]],
        "logprob_token_ids": [[[2, 9], [8, 3]]],
    }
    assert read_response(payload)[0].generation_log_probs == [-0.1, -0.4]
    payload["logprob_token_ids"][0][1] = [8, 7]
    refused(payload, "trl choice 0: generation_log_probs[1] is null")


def test_responses_and_messages():
    item = {"type": "message", "role": "assistant", "content": [], **native()}
    reasoning = {"type": "reasoning", "summary": []}
    payload = {"object": "response", "output": [reasoning, item], "status": "completed"}
    [choice] = read_response(payload)
    assert (choice.token_item_index, choice.finish_reason) == (1, "completed")
    assert choice.output_items == [reasoning, {"type": "message", "role": "assistant", "content": []}]
    payload["incomplete_details"] = {"reason": "max_output_tokens"}
    assert read_response(payload)[0].finish_reason == "max_output_tokens"
    refused({"object": "response", "output": [item, item]}, "responses choice 0: multiple output items")
    refused({"object": "response", "output": [item], "choices": [{"message": native()}]}, "multiple output items")
    item["generation_log_probs"] = None
    refused({"object": "response", "output": [item]}, "responses choice 0: generation_log_probs is missing")
    body = {
        "type": "message",
        "role": "assistant",
        "content": [{"type": "text", "text": "a"}],
        "stop_reason": "max_tokens",
    }
    assert read_response(body) == []
    [choice] = read_response({**body, **native()})
    assert (choice.token_item_index, choice.finish_reason) == (0, "max_tokens")
    refused({**body, **native(prompt_token_ids=None)}, "messages choice 0: prompt_token_ids is missing")


def test_native_fields_of_two_choices():
    choices = [{"index": i, "message": {"content": "x", **native()}} for i in (1, 0)]
    assert [choice.index for choice in read_response({"choices": choices})] == [0, 1]


def test_log_probs_and_routes_alone_are_no_tokens():
    for name, value in (("generation_log_probs", [-0.5]), ("routed_experts", "x")):
        assert read_response({"choices": [{"message": {"content": "x", name: value}}]}) == []
        assert read_response({"object": "response", "output": [{"type": "message", name: value}]}) == []


def test_lists_and_arrays_stay_what_they_are():
    for convert in (list, np.array):
        held = {name: convert(values) for name, values in native().items()}
        [choice] = read_response({"choices": [{"message": {"content": "x", **held}}]})
        for name, values in held.items():
            assert getattr(choice, name) is values
        [choice] = read_response({"object": "response", "output": [{"type": "message", **held}]})
        assert choice.prompt_token_ids is held["prompt_token_ids"]


@pytest.mark.parametrize("name", ["prompt_token_ids", "generation_token_ids"])
def test_arrays_that_hold_no_ids(name):
    scores = {"choices": [{"message": {"content": "x", **native(generation_log_probs=np.array([True, False]))}}]}
    refused(scores, "generation_log_probs must be numbers, got ndarray of bool")
    masked = np.ma.masked_array([1, 2], [True, False])
    refused({"choices": [{"message": {"content": "x", **native(**{name: masked})}}]}, f"{name}: ", "masked array")
    for array in (np.array([1.0, 2.0]), np.array([True, False])):
        refused(
            {"choices": [{"message": {"content": "x", **native(**{name: array})}}]},
            f"{name} must be integers",
        )
    refused(
        {"choices": [{"message": {"content": "x", **native(**{name: np.array([1, -2])})}}]},
        f"{name}[1] is -2",
    )


def test_arrays_in_two_places():
    payload = vllm_chat(vllm_choice(token_ids=np.array([41, 2], dtype=np.uint32)), prompt_token_ids=np.array([1, 7]))
    assert plain(read_response(payload)[0]) == TWO[0]
    payload["choices"][0]["prompt_token_ids"] = [1, 8]
    refused(payload, "disagree at position 1")
    payload["choices"][0]["prompt_token_ids"] = np.array([1, 7, 8])
    refused(payload, "disagree at position 2")
    payload["choices"][0].update(prompt_token_ids=None, token_ids=np.array([41, 3]))
    refused(payload, "disagree at position 1")


class Model(BaseModel):
    model_config = ConfigDict(extra="allow", arbitrary_types_allowed=True)


def test_pydantic_models():
    ids = np.array([1, 7])
    choice = Model(**vllm_choice())
    for payload in (
        Model(**vllm_chat(), x=1),
        vllm_chat(choice),
        Model(choices=[choice], prompt_token_ids=ids),
    ):
        assert plain(read_response(payload)[0]) == TWO[0]
    assert read_response(Model(choices=[choice], prompt_token_ids=ids))[0].prompt_token_ids is ids
    item = Model(type="message", **native())
    assert plain(read_response({"object": "response", "output": [item]})[0]) == TWO[0]


def test_output_items_hold_no_token_arrays():
    block = {"type": "output_text", "text": "ok", "logprobs": [entry_of("ok", -0.5)]}
    item = {"type": "message", "content": [block], "token_ids": [41], "meta_info": {"x": 1}, **native()}
    [choice] = read_response({"object": "response", "output": [item]})
    assert choice.output_items == [{"type": "message", "content": [{"type": "output_text", "text": "ok"}]}]
    assert "logprobs" in block
    call = {"type": "tool_use", "input": {"token_ids": [1], "logprobs": True}}
    body = {"type": "message", "role": "assistant", "content": [call], **native()}
    assert read_response(body)[0].output_items[0]["content"] == [call]


def test_no_item_where_there_is_no_content():
    for text in ({}, {"text": None}, {"text": ""}):
        payload = {**sglang_sample(), **text}
        payload = payload if text else {k: v for k, v in payload.items() if k != "text"}
        [choice] = read_response(payload)
        assert (choice.output_items, choice.token_item_index) == ([], None)


def entries(payload: Any, **options: Any) -> list[TokenEntry]:
    return entries_from_response(payload, rollout_id="r", model_call_id="c", **options)


def test_entry_of_one_choice():
    [entry] = entries(vllm_chat(), parent=None, weight_version="7")
    assert (entry.model_call_id, entry.model, entry.response_id, entry.created_at) == (
        "c",
        "m",
        "chatcmpl-9",
        1700000000.0,
    )
    assert (entry.finish_reason, entry.weight_version) == ("stop", "7")
    assert (entry.parent_resolution, entry.parent_call_id, entry.cum_len) == (
        ParentResolutionStatus.ROOT,
        None,
        4,
    )


@pytest.mark.parametrize("created", [{}, {"created": 0}, {"created": None}])
def test_time_of_capture(created):
    payload = {k: v for k, v in vllm_chat().items() if k != "created"}
    [entry] = entries({**payload, **created})
    assert abs(entry.created_at - time.time()) < 60
    assert entries({**payload, **created}, created_at=5.0, model="other")[0].created_at == 5.0


def test_entries_of_several_choices():
    payload = vllm_chat(vllm_choice(1, [9], [-1.0], finish_reason="length"), vllm_choice(0))
    found = entries(payload)
    assert [(e.model_call_id, e.finish_reason) for e in found] == [("c#0", "stop"), ("c#1", "length")]
    assert all(e.parent_resolution is None and e.digest for e in found)


def test_no_entries_without_tokens():
    assert entries({"choices": [{"message": {"content": "x"}}]}) == []


@pytest.mark.parametrize("convert", [list, np.array])
@pytest.mark.parametrize("delta", [False, True])
def test_parent(convert, delta):
    [first] = entries(vllm_chat(), parent=None, delta=delta)
    assert not first.prompt_is_delta
    longer = vllm_chat(prompt_token_ids=convert([1, 7, 41, 2, 5]))
    [second] = entries_from_response(longer, rollout_id="r", model_call_id="d", parent=first, delta=delta)
    assert (second.parent_call_id, second.parent_resolution) == ("c", ParentResolutionStatus.RESOLVED)
    assert (second.cum_len, second.prompt_is_delta) == (7, delta)
    assert list(second.prompt_token_ids) == ([5] if delta else [1, 7, 41, 2, 5])
    longest = vllm_chat(prompt_token_ids=convert([1, 7, 41, 2, 5, 41, 2, 6]))
    [third] = entries_from_response(longest, rollout_id="r", model_call_id="e", parent=second, delta=delta)
    assert (third.parent_call_id, third.cum_len) == ("d", 10)
    whole = stamp_lineage(
        third.model_copy(update={"prompt_token_ids": [1, 7, 41, 2, 5, 41, 2, 6], "prompt_is_delta": False}),
        "d",
    )
    assert whole.digest == entries(longest)[0].digest
    for other in ([1, 7, 41], [1, 7, 41, 3, 5, 41, 2, 6]):
        [apart] = entries(vllm_chat(prompt_token_ids=convert(other)), parent=second, delta=delta)
        assert (apart.parent_resolution, apart.parent_resolution_reason) == ("unresolved", "prefix_mismatch")
        assert (apart.parent_call_id, list(apart.prompt_token_ids)) == (None, other)


def test_delta_parent_without_digest():
    [first] = entries(vllm_chat(), parent=None)
    lost = first.model_copy(update={"prompt_is_delta": True, "digest": None})
    [entry] = entries(vllm_chat(prompt_token_ids=[1, 7, 41, 2, 5]), parent=lost)
    assert entry.parent_resolution_reason == "prefix_mismatch"


@pytest.mark.parametrize("bad", [-9, None])
def test_entry_of_a_prompt_with_a_bad_id(bad):
    payload = {"choices": [{"message": {"content": "x", **native(prompt_token_ids=[1, bad])}}]}
    with pytest.raises(ValueError, match=r"chat choice 0: prompt_token_ids\[1\] is"):
        entries(payload)
    with pytest.raises(ValueError, match="string"):
        entries(vllm_chat(), model=["m"])


def test_arguments_of_entries_from_response():
    with pytest.raises(ValueError, match="requires parent"):
        entries(vllm_chat(), delta=True)
    with pytest.raises(TypeError, match="digest is read"):
        entries(vllm_chat(), digest="x")


# --- the property: two sources that must agree --------------------------------------------------------------

IDS = st.lists(st.integers(0, 200_000), min_size=1, max_size=5)
CHOICE = IDS.flatmap(
    lambda ids: st.tuples(st.just(ids), st.lists(st.floats(-9, 0, width=32), min_size=len(ids), max_size=len(ids)))
)
SAMPLES = st.tuples(IDS, st.lists(CHOICE, min_size=1, max_size=3))


def usage_of(prompt: list[int], samples: list[Any]) -> dict[str, int]:
    return {"prompt_tokens": len(prompt), "completion_tokens": sum(len(ids) for ids, _ in samples)}


def chat_of(prompt: list[int], samples: list[Any], choice_of: Any, **head: Any) -> dict[str, Any]:
    choices = [
        {"index": i, "message": {"role": "assistant", "content": "x"}, **choice_of(ids, log_probs)}
        for i, (ids, log_probs) in enumerate(samples)
    ]
    return {"object": "chat.completion", "choices": choices, "usage": usage_of(prompt, samples), **head}


def words(ids: list[int], log_probs: list[float]) -> dict[str, Any]:
    return {"content": [entry_of(f"token_id:{i}", lp) for i, lp in zip(ids, log_probs, strict=True)]}


def numbered(ids: list[int], log_probs: list[float]) -> dict[str, Any]:
    return {"content": [entry_of("x", lp, token_id=i) for i, lp in zip(ids, log_probs, strict=True)]}


def pairs(ids: list[int], log_probs: list[float]) -> list[list[Any]]:
    return [[lp, i, None] for i, lp in zip(ids, log_probs, strict=True)]


def fields(prompt: list[int], ids: list[int], log_probs: list[float]) -> dict[str, Any]:
    return {"prompt_token_ids": prompt, "generation_token_ids": ids, "generation_log_probs": log_probs}


def sound_payloads(prompt: list[int], samples: list[Any]) -> dict[str, Any]:
    """A sound payload of each dialect, wherever the engine can with each id said twice."""
    ids, log_probs = samples[0]
    return {
        "vllm-chat": chat_of(
            prompt, samples, lambda i, lp: {"token_ids": i, "logprobs": words(i, lp)}, prompt_token_ids=prompt
        ),
        "vllm-completions": {
            "object": "text_completion",
            "usage": usage_of(prompt, samples),
            "choices": [
                {
                    "index": k,
                    "text": "x",
                    "token_ids": i,
                    "prompt_token_ids": prompt,
                    "logprobs": {"tokens": [f"token_id:{n}" for n in i], "token_logprobs": lp},
                }
                for k, (i, lp) in enumerate(samples)
            ],
        },
        "vllm-generate": {
            "request_id": "r",
            "prompt_token_ids": prompt,
            "choices": [{"index": k, "token_ids": i, "logprobs": words(i, lp)} for k, (i, lp) in enumerate(samples)],
        },
        "sglang-generate": [
            {
                "text": "x",
                "output_ids": i,
                "meta_info": {
                    "prompt_tokens": len(prompt),
                    "completion_tokens": len(i),
                    "input_token_logprobs": pairs(prompt, [-1.0] * len(prompt)),
                    "output_token_logprobs": pairs(i, lp),
                },
            }
            for i, lp in samples
        ],
        "sglang-chat": chat_of(
            prompt,
            samples,
            lambda i, lp: {
                "prompt_token_ids": prompt,
                "token_ids": i,
                "meta_info": {"output_token_logprobs": pairs(i, lp), "completion_tokens": len(i)},
                "logprobs": numbered(i, lp),
            },
        ),
        "dynamo": chat_of(
            prompt,
            samples[:1],
            lambda i, lp: {"logprobs": words(i, lp)},
            nvext={
                "engine_data": {
                    "prompt_token_ids": prompt,
                    "completion_token_ids": ids,
                    "completion_logprobs": log_probs,
                }
            },
        ),
        "tgi": {
            "generated_text": "x",
            "details": {
                "generated_tokens": len(ids),
                "prefill": [{"id": i, "logprob": None} for i in prompt],
                "tokens": [{"id": i, "logprob": lp} for i, lp in zip(ids, log_probs, strict=True)],
            },
        },
        "litellm": chat_of(
            prompt,
            samples,
            lambda i, lp: {"provider_specific_fields": {"token_ids": i}, "logprobs": words(i, lp)},
            prompt_token_ids=prompt,
        ),
        "trl": {
            "prompt_ids": [prompt],
            "completion_ids": [i for i, _ in samples],
            "logprobs": [lp for _, lp in samples],
        },
        "chat": chat_of(
            prompt,
            samples,
            lambda i, lp: {
                "message": {"content": "x", **fields(prompt, i, lp)},
                "token_ids": i,
                "logprobs": words(i, lp),
            },
            prompt_token_ids=prompt,
        ),
        "responses": {
            "object": "response",
            "output": [{"type": "message", "content": [], **fields(prompt, ids, log_probs)}],
        },
        "messages": {"type": "message", "role": "assistant", "content": [], **fields(prompt, ids, log_probs)},
    }


# Where each dialect says something twice: the path, and whether a change of one value there can be seen.
TWINS: dict[str, list[tuple[tuple[Any, ...], bool]]] = {
    "vllm-chat": [(("choices", 0, "token_ids"), True), (("choices", 0, "logprobs", "content"), False)],
    "vllm-completions": [
        (("choices", 0, "token_ids"), True),
        (("choices", 0, "logprobs", "tokens"), True),
        (("choices", 0, "logprobs", "token_logprobs"), False),
    ],
    "vllm-generate": [(("choices", 0, "token_ids"), True), (("choices", 0, "logprobs", "content"), False)],
    "sglang-generate": [
        ((0, "output_ids"), True),
        ((0, "meta_info", "output_token_logprobs"), False),
        ((0, "meta_info", "input_token_logprobs"), False),
    ],
    "sglang-chat": [
        (("choices", 0, "token_ids"), True),
        (("choices", 0, "meta_info", "output_token_logprobs"), False),
        (("choices", 0, "logprobs", "content"), False),
    ],
    "dynamo": [
        (("nvext", "engine_data", "completion_token_ids"), True),
        (("nvext", "engine_data", "completion_logprobs"), True),
        (("nvext", "engine_data", "prompt_token_ids"), False),
    ],
    "tgi": [(("details", "tokens"), False)],
    "litellm": [
        (("choices", 0, "provider_specific_fields", "token_ids"), True),
        (("choices", 0, "logprobs", "content"), False),
    ],
    "trl": [(("completion_ids", 0), False), (("logprobs", 0), False)],
    "chat": [
        (("choices", 0, "message", "prompt_token_ids"), True),
        (("choices", 0, "message", "generation_token_ids"), True),
        (("choices", 0, "message", "generation_log_probs"), True),
        (("choices", 0, "token_ids"), True),
        (("choices", 0, "logprobs", "content"), False),
        (("prompt_token_ids",), True),
    ],
    "responses": [
        (("output", 0, "generation_token_ids"), False),
        (("output", 0, "generation_log_probs"), False),
    ],
    "messages": [(("generation_token_ids",), False), (("generation_log_probs",), False)],
}
COUNTS: dict[str, list[tuple[Any, ...]]] = {
    **{
        name: [("usage", "completion_tokens"), ("usage", "prompt_tokens")]
        for name in ("vllm-chat", "vllm-completions", "sglang-chat", "dynamo", "litellm", "chat")
    },
    "sglang-generate": [(0, "meta_info", "completion_tokens"), (0, "meta_info", "prompt_tokens")],
    "tgi": [("details", "generated_tokens")],
}


def unshared(payload: Any) -> Any:
    """A copy in which no two places share a list, as deepcopy would keep it."""
    return json.loads(json.dumps(payload))


def at(payload: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        payload = payload[key]
    return payload


def check_mutated(payload: Any, expected: list[Any]) -> None:
    try:
        found = read_response(payload)
    except ValueError:
        return
    assert [plain(choice) for choice in found] == expected


@pytest.mark.parametrize("dialect", sorted(TWINS))
@settings(max_examples=150, deadline=None)
@given(sample=SAMPLES, data=st.data())
def test_a_mutated_source_gives_equal_tokens_or_an_error(dialect, sample, data):
    payload = unshared(sound_payloads(*sample)[dialect])
    assert detect_dialect(payload) == dialect
    expected = [plain(choice) for choice in read_response(payload)]
    several = dialect not in ("dynamo", "tgi", "responses", "messages")
    assert expected == [(sample[0], *choice) for choice in (sample[1] if several else sample[1][:1])]
    path, twin = data.draw(st.sampled_from(TWINS[dialect]))
    values, holder = at(payload, path), at(payload, path[:-1])
    place = data.draw(st.integers(0, len(values) - 1))
    mutation = data.draw(st.sampled_from(["drop", "null", "hole", "shorten", "repeat", *(["change"] if twin else [])]))
    if mutation == "drop" and isinstance(holder, dict):
        del holder[path[-1]]
    elif mutation in ("drop", "null"):
        holder[path[-1]] = None
    elif mutation == "hole":
        values[place] = None
    elif mutation == "shorten":
        del values[place]
    elif mutation == "repeat":
        values.insert(place, values[place])
    elif isinstance(values[place], str):
        values[place] = "token_id:200001"
    else:
        values[place] = values[place] + 1
    check_mutated(payload, expected)


@pytest.mark.parametrize("dialect", sorted(COUNTS))
@given(sample=SAMPLES, data=st.data())
def test_a_mutated_count_gives_equal_tokens_or_an_error(dialect, sample, data):
    payload = unshared(sound_payloads(*sample)[dialect])
    expected = [plain(choice) for choice in read_response(payload)]
    path = data.draw(st.sampled_from(COUNTS[dialect]))
    at(payload, path[:-1])[path[-1]] = data.draw(st.one_of(st.none(), st.integers(0, 20)))
    check_mutated(payload, expected)


@pytest.mark.parametrize("dialect", ["vllm-chat", "vllm-completions", "sglang-chat", "litellm", "chat"])
@given(sample=SAMPLES, data=st.data())
def test_a_choice_dropped_or_doubled(dialect, sample, data):
    payload = unshared(sound_payloads(*sample)[dialect])
    choices = payload["choices"]
    place = data.draw(st.integers(0, len(choices) - 1))
    if data.draw(st.booleans()):
        choices.insert(place, copy.deepcopy(choices[place]))
        refused(payload, f"{dialect} choice {place}: duplicate choice index {place}")
    else:
        del choices[place]
        # A payload that carries its ids on its choices alone carries none without them.
        if choices or dialect in ("vllm-chat", "chat"):
            refused(payload, dialect)


@pytest.mark.parametrize("dialect", sorted(TWINS))
@given(sample=SAMPLES)
def test_nothing_without_token_fields(dialect, sample):
    gone = {
        *(
            "prompt_token_ids",
            "generation_token_ids",
            "generation_log_probs",
            "routed_experts",
            "token_ids",
            "logprobs",
        ),
        *("output_ids", "output_token_logprobs", "input_token_logprobs", "engine_data", "prefill", "tokens"),
        *("prompt_ids", "completion_ids"),
    }

    def without(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: without(held) for key, held in value.items() if key not in gone}
        return [without(held) for held in value] if isinstance(value, list) else value

    payload = without(sound_payloads(*sample)[dialect])
    assert read_response(payload) == []
    assert read_response(payload, dialect=dialect) == []


def test_every_dialect_has_a_property():
    assert {*TWINS, "unknown"} == set(READERS)


def test_arrays_of_objects_and_bytes_in_a_response() -> None:
    def payload(ids: Any) -> dict[str, Any]:
        log_probs = [-0.5, -0.5]
        fields = {"prompt_token_ids": [1], "generation_token_ids": ids, "generation_log_probs": log_probs}
        return {"choices": [{"message": fields}]}

    assert read_response(payload(np.array([41, 2], object)))[0].generation_token_ids == [41, 2]
    with pytest.raises(ValueError, match=r"chat choice 0: generation_token_ids: .*bytes are not a token sequence"):
        read_response(payload(memoryview(b"ab")))


def test_tensors_in_a_response_are_arrays() -> None:
    ids, log_probs = np.array([1, 7], np.int32), np.array([-0.5], np.float32)
    [choice] = read_response(
        native_chat(generation_token_ids=[2], prompt_token_ids=Array(ids), generation_log_probs=Array(log_probs))
    )
    assert choice.prompt_token_ids is ids
    assert choice.generation_log_probs is log_probs


def test_chunks_are_named() -> None:
    chunks = [{"object": "chat.completion.chunk", "choices": [{"index": 0, "delta": {"content": "x"}}]}] * 2
    with pytest.raises(ValueError, match="merge_stream joins the chunks"):
        read_response(chunks)
