"""What the places of a payload hold: values of any kind, judged, and two places that speak of one field."""

from typing import Any

import numpy as np
import pytest
from support.holders import Array
from support.payloads import (
    TOKENS,
    log_prob_entry,
    native,
    native_chat,
    refused,
    sglang_sample,
    tokens_of,
    vllm_chat,
    vllm_choice,
)
from tokenrecords import detect_dialect, read_response


@pytest.mark.parametrize(
    ("bad", "why"),
    [
        (True, "token ids must be integers"),
        (1.0, "token ids must be integers"),
        ("7", "token ids must be integers"),
        (None, "is null"),
        (-9, "token ids must be non-negative, got -9"),
        (2**64, "below 2**64"),
        ([7], "token ids must be integers"),
    ],
)
@pytest.mark.parametrize("name", ["prompt_token_ids", "generation_token_ids"])
def test_what_is_no_token_id(name, bad, why):
    payload = native_chat(**{name: [1, bad]})
    refused(payload, f"chat choice 0: {name}[1] is", why)


@pytest.mark.parametrize("bad", ["12", {"a": 1}, 5, {1, 2}, b"12"])
def test_fields_that_are_no_lists(bad):
    for name in ("prompt_token_ids", "generation_token_ids", "generation_log_probs"):
        payload = native_chat(**{name: bad})
        why = "a list or a one-dimensional array is needed"
        refused(payload, f"chat choice 0: {name} (message.{name}) is {type(bad).__name__}: {why}")


def test_large_ids_stay():
    payload = native_chat(prompt_token_ids=[2**64 - 1, 0])
    assert read_response(payload)[0].prompt_token_ids == [2**64 - 1, 0]


def test_non_finite_log_probs():
    payload = native_chat(generation_log_probs=["NaN", "-Infinity"])
    [choice] = read_response(payload)
    assert np.isnan(choice.generation_log_probs[0])
    assert choice.generation_log_probs[1] == float("-inf")
    held = [float("nan"), float("-inf")]
    payload = native_chat(generation_log_probs=held)
    assert read_response(payload)[0].generation_log_probs is held


@pytest.mark.parametrize(
    ("bad", "why"),
    [
        ("-0.5", "log-probs must be numbers"),
        (False, "log-probs must be numbers"),
        (None, "is null"),
        ([-0.5], "log-probs must be numbers"),
    ],
)
def test_what_is_no_log_prob(bad, why):
    payload = native_chat(generation_log_probs=[-0.125, bad])
    refused(payload, "chat choice 0: generation_log_probs[1] is", why)


def test_lists_and_arrays_stay_what_they_are():
    for convert in (list, np.array):
        held = {name: convert(values) for name, values in native().items()}
        [choice] = read_response({"choices": [{"message": {"content": "x", **held}}]})
        for name, values in held.items():
            assert getattr(choice, name) is values
        [choice] = read_response({"object": "response", "output": [{"type": "message", **held}]})
        assert choice.prompt_token_ids is held["prompt_token_ids"]


def test_tensors_in_a_response_are_arrays() -> None:
    ids, log_probs = np.array([1, 7], np.int32), np.array([-0.5], np.float32)
    [choice] = read_response(
        native_chat(generation_token_ids=[2], prompt_token_ids=Array(ids), generation_log_probs=Array(log_probs))
    )
    assert choice.prompt_token_ids is ids
    assert choice.generation_log_probs is log_probs


@pytest.mark.parametrize("name", ["prompt_token_ids", "generation_token_ids"])
def test_arrays_that_hold_no_ids(name):
    scores = native_chat(generation_log_probs=np.array([True, False]))
    refused(scores, "generation_log_probs is an array of dtype bool: log-probs must be float16, float32 or float64")
    masked = np.ma.masked_array([1, 2], [True, False])
    refused(native_chat(**{name: masked}), f"{name} (message.{name}) is a masked array: ")
    plane = np.ones((1, 2), dtype=int)
    refused(native_chat(**{name: plane}), f"{name}) is an array of shape (1, 2): one dimension is needed")
    for array in (np.array([1.0, 2.0]), np.array([True, False])):
        refused(
            native_chat(**{name: array}),
            f"{name} is an array of dtype {array.dtype}: token ids must be integers",
        )
    refused(
        native_chat(**{name: np.array([1, -2])}),
        f"{name}[1] is -2",
    )


def test_arrays_of_objects_and_bytes_in_a_response() -> None:
    def payload(ids: Any) -> dict[str, Any]:
        log_probs = [-0.5, -0.5]
        fields = {"prompt_token_ids": [1], "generation_token_ids": ids, "generation_log_probs": log_probs}
        return {"choices": [{"message": fields}]}

    assert read_response(payload(np.array([41, 2], object)))[0].generation_token_ids == [41, 2]
    with pytest.raises(
        ValueError,
        match=r"chat choice 0: generation_token_ids .* is of type memoryview: bytes are not a token sequence",
    ):
        read_response(payload(memoryview(b"ab")))


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
    assert tokens_of(read_response(agreeing)[0]) == TOKENS
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
    entries = [log_prob_entry("o", -0.1), log_prob_entry("k", -0.5)]
    meta = {"output_token_logprobs": [[-0.10000000149011612, 41, None], [-0.5, 2, None]]}
    choice = {"index": 0, "message": {"content": "ok"}, "prompt_token_ids": [1, 7], "meta_info": meta}
    payload = {"object": "chat.completion", "choices": [{**choice, "logprobs": {"content": entries}}]}
    assert read_response(payload)[0].generation_log_probs == [-0.10000000149011612, -0.5]
    entries[0]["logprob"] = -0.1001
    refused(payload, "sglang-chat choice 0", "disagree at position 0")


def test_arrays_in_two_places():
    payload = vllm_chat(vllm_choice(token_ids=np.array([41, 2], dtype=np.uint32)), prompt_token_ids=np.array([1, 7]))
    assert tokens_of(read_response(payload)[0]) == TOKENS
    payload["choices"][0]["prompt_token_ids"] = [1, 8]
    refused(payload, "disagree at position 1")
    payload["choices"][0]["prompt_token_ids"] = np.array([1, 7, 8])
    refused(payload, "disagree at position 2")
    payload["choices"][0].update(prompt_token_ids=None, token_ids=np.array([41, 3]))
    refused(payload, "disagree at position 1")


def two_places(first, second):
    """Log-probs on the message and in `logprobs`."""
    payload = native_chat(generation_log_probs=first)
    payload["choices"][0]["logprobs"] = {"content": [log_prob_entry("x", value) for value in second]}
    return payload


def test_each_word_is_its_number():
    [choice] = read_response(native_chat(generation_log_probs=["Infinity", "-Infinity"]))
    assert choice.generation_log_probs == [float("inf"), float("-inf")]


@pytest.mark.parametrize("value", ["NaN", "-Infinity", -1e300, -0.1])
def test_log_probs_that_agree(value):
    held = float(value)
    [choice] = read_response(two_places([held, -0.5], [value, -0.5]))
    assert choice.generation_log_probs[1] == -0.5


def test_log_probs_that_disagree():
    refused(two_places([float("nan"), -0.5], [-0.5, -0.5]), "disagree at position 0")
    refused(two_places([-0.5, -0.5], [-0.5, -0.50001]), "disagree at position 1")
    refused(two_places([-0.5, -0.5], [-0.5]), "disagree at position 1")


def test_the_first_place_is_the_one_that_is_read():
    payload = native_chat(generation_token_ids=np.array([41, 2]), routed_experts="AA")
    payload["choices"][0].update(token_ids=[41, 2], routed_experts="AA")
    [choice] = read_response(payload)
    assert isinstance(choice.generation_token_ids, np.ndarray)


def test_a_field_of_another_kind_is_named_with_its_place():
    payload = vllm_chat(vllm_choice(prompt_token_ids=5))
    refused(payload, "vllm-chat choice 0: prompt_token_ids (choices[].prompt_token_ids) is int: a list")
    refused(vllm_chat(prompt_token_ids=5), "vllm-chat choice 0: prompt_token_ids is int: a list")


@pytest.mark.parametrize(("ids", "log_probs"), [([41, 2], [-0.5]), ([41], [-0.125, -0.5])])
def test_unequal_numbers_are_said(ids, log_probs):
    refused(
        native_chat(generation_token_ids=ids, generation_log_probs=log_probs),
        f"chat choice 0: {len(ids)} generation_token_ids and {len(log_probs)} generation_log_probs",
    )


def test_only_prompts_may_stand_in_a_list_of_their_own():
    nested = native_chat(generation_token_ids=[[41, 2]], generation_log_probs=[[-0.5, -0.5]])
    refused(nested, "generation_log_probs[0] is [-0.5, -0.5]: log-probs must be numbers")
    refused(native_chat(generation_token_ids=[[41]], generation_log_probs=[-0.5]), "generation_token_ids[0] is [41]")


def test_no_number_beside_a_word_is_no_log_prob():
    refused(native_chat(generation_log_probs=["NaN", [-0.5]]), "generation_log_probs[1] is [-0.5]: log-probs must be")
    refused(native_chat(generation_log_probs=["NaN", {}]), "generation_log_probs[1] is {}: log-probs must be numbers")


@pytest.mark.parametrize("other", ["x", None, 3, 41.5, 2**64, -2])
def test_the_first_place_at_which_lists_disagree(other):
    payload = {"choices": [{"message": {"content": "x", **native()}, "token_ids": [41, other]}]}
    refused(payload, "message.generation_token_ids and token_ids disagree at position 1")


def test_every_place_is_compared():
    for name, place in (("token_ids", "token_ids"), ("output_ids", "output_ids")):
        choice = {"message": {"content": "x", **native()}, "token_ids": [41, 2], "output_ids": [41, 2]}
        refused({"choices": [{**choice, name: [41, 3]}]}, f"message.generation_token_ids and {place} disagree")


def test_arrays_of_equal_bytes_are_not_equal_ids():
    held = {"generation_token_ids": np.array([41, 0], np.int32), "generation_log_probs": [-0.125, -0.5]}
    payload = native_chat(**held)
    payload["choices"][0]["token_ids"] = np.array([41], np.int64)
    refused(payload, "message.generation_token_ids and token_ids disagree at position 1")


def test_a_negative_id_does_not_stand_for_any():
    sample = sglang_sample(input_token_logprobs=[[None, 1, None], [-2.0, -1, None]], prompt_token_ids=[1, 7])
    refused(sample, "meta_info.prompt_token_ids and meta_info.input_token_logprobs disagree at position 1")


def held_as(kind, ids):
    return list(ids) if kind is list else np.array(ids, kind)


def test_ids_of_64_bits_are_compared_exactly():
    large, other = [2**63 + 1, 1], [2**63, 1]
    scores = {"generation_log_probs": [-0.125, -0.5]}
    for one, two in ((large, other), (other, large)):
        for a, b in ((list, np.uint64), (np.uint64, list), (np.uint64, np.uint64), (list, list)):
            payload = native_chat(generation_token_ids=held_as(a, one), **scores)
            payload["choices"][0]["token_ids"] = held_as(b, two)
            refused(payload, "message.generation_token_ids and token_ids disagree at position 0")
            payload["choices"][0]["token_ids"] = held_as(b, one)
            assert len(read_response(payload)) == 1
    sample = sglang_sample(input_token_logprobs=[[None, 2**63, None], [-2.0, 1, None]], prompt_token_ids=large)
    refused(sample, "meta_info.prompt_token_ids and meta_info.input_token_logprobs disagree at position 0")


@pytest.mark.parametrize("index", [-1, True, "1"])
def test_the_place_of_an_index_that_is_none(index):
    choices = [{"index": k, "message": {"content": "x", **native()}} for k in (0, index)]
    refused({"choices": choices}, f"chat choice 1: index is {index!r}: it must be a non-negative integer")


def test_log_probs_without_ids_are_not_nothing():
    said = {"role": "assistant", "content": "", **native(generation_token_ids=None, generation_log_probs=[-0.5])}
    refused(
        {"choices": [{"message": said, "finish_reason": "abort"}]}, "chat choice 0: generation_token_ids is missing"
    )


def test_a_response_id_may_be_0():
    assert read_response(native(response_id=0))[0].response_id == "0"


@pytest.mark.parametrize("word", ["inf", "-inf", "nan", "infinity", "+Infinity", "", "NAN"])
def test_other_words_are_no_log_probs(word):
    refused(native_chat(generation_log_probs=[word, -0.5]), "generation_log_probs[0] is", "log-probs must be numbers")


def test_a_mask_is_no_extra_field():
    [choice] = read_response(native_chat(generation_loss_mask=[1, 0]))
    assert (choice.generation_loss_mask, choice.extras) == ([1, 0], {})


def test_what_is_kept_may_be_an_array():
    held = np.array([[41, 9], [2, 8]])
    message = {"content": "ok", "sampling_mask": held}
    [choice] = read_response(vllm_chat(vllm_choice(message=message, sampling_mask=[[41, 9], [2, 8]])))
    assert choice.extras["sampling_mask"] is held
    refused(vllm_chat(vllm_choice(message=message, sampling_mask=[[41, 9], [2, 7]])), "sampling_mask disagree")


@pytest.mark.parametrize("prompt", [[np.array([1, 7])], [(1, 7)], ([1, 7],), [[1, 7]]])
def test_a_prompt_in_a_list_of_its_own(prompt):
    assert tokens_of(read_response(native_chat(prompt_token_ids=prompt))[0]) == TOKENS


def test_an_empty_list_is_the_one_that_came():
    for held in ([], np.array([], np.int32)):
        message = {"content": "", **native(generation_token_ids=held, generation_log_probs=None)}
        assert read_response({"choices": [{"message": message}]})[0].generation_token_ids is held


def test_the_prompt_and_the_generation_have_counts_of_their_own():
    said = {"prompt_token_ids": [1, 7, 8], "input_token_logprobs": None}
    assert len(read_response(sglang_sample(**said, prompt_tokens=3))) == 1
    refused(sglang_sample(**said, prompt_tokens=2), "3 prompt_token_ids, but the engine counted 2")
    refused(sglang_sample(**said, completion_tokens=3), "2 generation_token_ids, but the engine counted 3")


def test_only_what_is_null_is_called_so():
    refused(native_chat(generation_log_probs=[-0.5, [None]]), "generation_log_probs[1] is [None]: log-probs must be")
    refused(native_chat(generation_log_probs=[-0.5, "None"]), "generation_log_probs[1] is 'None': log-probs must be")
    refused(native_chat(generation_log_probs=[-0.5, None]), "generation_log_probs[1] is null")


def test_of_several_positions_the_first_is_named():
    refused(two_places([-0.5, -0.5], [-1.0, -1.0]), "disagree at position 0")
    payload = native_chat(generation_token_ids=np.array([41, 2]))
    payload["choices"][0]["token_ids"] = np.array([40, 3])
    refused(payload, "message.generation_token_ids and token_ids disagree at position 0")
