"""vLLM in process: its objects, read by their attributes."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from support.payloads import TOKENS, refused, tokens_of
from tokenrecords import detect_dialect, entries_from_response, read_response


def scored(**log_probs: float) -> dict[int, Any]:
    """The candidates of a position, by id."""
    return {int(name[1:]): SimpleNamespace(logprob=value, rank=1) for name, value in log_probs.items()}


def output(index: int = 0, **fields: Any) -> Any:
    log_probs = [scored(_9=-0.01, _41=-0.125), scored(_2=-0.5)]
    own = {"text": "ok", "token_ids": (41, 2), "logprobs": log_probs, "finish_reason": "stop"}
    return SimpleNamespace(index=index, **{**own, **fields})


def request(*outputs: Any, **fields: Any) -> Any:
    own = {"request_id": "g", "prompt_token_ids": [1, 7], "finished": True, "outputs": list(outputs) or [output()]}
    return SimpleNamespace(**{**own, **fields})


def test_a_request():
    assert detect_dialect(request()) == "vllm-engine"
    [choice] = read_response(request())
    assert (tokens_of(choice), choice.finish_reason, choice.response_id) == (TOKENS, "stop", "g")
    assert choice.output_items == [{"type": "message", "role": "assistant", "content": "ok"}]


@pytest.mark.parametrize("ids", [[41, 2], (41, 2), np.array([41, 2])])
def test_ids_of_any_kind(ids):
    assert tokens_of(read_response(request(output(token_ids=ids)))[0]) == TOKENS


def test_a_list_of_requests_is_numbered_through():
    other = request(
        output(1), output(0, token_ids=[2, 41], logprobs=[scored(_2=-1.0), scored(_41=-2.0)]), request_id="h"
    )
    found = read_response([request(), other])
    assert [(c.index, c.response_id, c.generation_token_ids[0]) for c in found] == [
        (0, "g", 41),
        (1, "h", 2),
        (2, "h", 41),
    ]
    entries = entries_from_response([request(), other], rollout_id="r", model_call_id="c")
    assert [entry.model_call_id for entry in entries] == ["c#0", "c#1", "c#2"]


def test_faults():
    def bad(message: str, **fields: Any) -> None:
        refused(request(output(**fields)), "vllm-engine choice 0: ", message)

    bad("generation_log_probs[0] is null", logprobs=[scored(_9=-0.01), scored(_2=-0.5)])
    bad("generation_log_probs[1] is null", logprobs=[scored(_41=-0.1), None])
    bad("2 generation_token_ids and 1 generation_log_probs", logprobs=[scored(_41=-0.1)])
    bad("generation_log_probs is missing", logprobs=None)
    refused(request(finished=False), "vllm-engine: finished is false")
    refused(request(prompt_token_ids=None), "prompt_token_ids is missing")
    refused(request(output(0), output(0)), "duplicate choice index 0")
    with pytest.raises(TypeError, match="payload is SimpleNamespace: a mapping"):
        read_response(SimpleNamespace(outputs=[]))


def test_aborted():
    [choice] = read_response(request(output(token_ids=[], logprobs=None, finish_reason="abort")))
    assert tokens_of(choice) == ([1, 7], [], [])


def test_the_number_of_a_single_output_is_its_own():
    assert [choice.index for choice in read_response(request(output(5), output(3)))] == [3, 5]
    assert [choice.index for choice in read_response([request(output(5), output(3))])] == [3, 5]


@pytest.mark.parametrize(
    "body",
    [
        {"outputs": [{"token_ids": [41]}]},
        {"prompt_token_ids": [1], "outputs": []},
        {"prompt_token_ids": [1], "outputs": [{"token_ids": [41]}, {}]},
    ],
)
def test_what_only_resembles_a_request(body):
    assert detect_dialect(body) == "unknown"


def test_log_probs_of_parsed_outputs():
    """Their candidates are by the text of an id; a number stands for itself."""
    body = {"prompt_token_ids": [1, 7], "outputs": [{"index": 0, "token_ids": [41, 2]}]}
    body["outputs"][0]["logprobs"] = [{"41": {"logprob": -0.125}, "9": {"logprob": -9.0}}, {"2": -0.5}]
    assert tokens_of(read_response(body)[0]) == TOKENS
    body["outputs"][0]["logprobs"] = [-0.125, {2: {"logprob": -0.5}, "2": {"logprob": -9.0}}]
    assert tokens_of(read_response(body)[0]) == TOKENS
    body["outputs"][0]["logprobs"] = [{"41": {}}, {"2": -0.5}]
    refused(body, "vllm-engine choice 0: generation_log_probs[0] is null")


def test_what_objects_hold_beside_their_fields():
    [choice] = read_response(request(output(routed_experts="AAAB", ng_x=1), weight_version="5"))
    assert (choice.routed_experts, choice.extras) == ("AAAB", {"ng_x": 1, "weight_version": "5"})


@pytest.mark.parametrize("count", [0, 1, 3])
def test_positions_are_as_many_as_ids(count):
    held = [scored(_41=-0.125), scored(_2=-0.5), scored(_9=-1.0)][:count]
    refused(request(output(logprobs=held)), f"vllm-engine choice 0: 2 generation_token_ids and {count} ")


@pytest.mark.parametrize("wrong", [[41], {}, np.array([41])], ids=["list", "dict", "array"])
def test_what_is_no_id_has_no_log_prob(wrong):
    refused(request(output(token_ids=[wrong, 2])), "vllm-engine choice 0: generation_log_probs[0] is null")


class Output:
    """An output that has its fields alone."""

    __slots__ = ("finish_reason", "index", "logprobs", "text", "token_ids")


class Request:
    """A request that has its fields alone."""

    __slots__ = ("finished", "outputs", "prompt_token_ids", "request_id")


def test_objects_without_a_dict_are_read_by_their_names():
    made, said = Request(), Output()
    for name, value in {**vars(request()), "outputs": [said]}.items():
        setattr(made, name, value)
    for name, value in vars(output(3)).items():
        setattr(said, name, value)
    [choice] = read_response(made)
    assert (choice.index, tokens_of(choice), choice.finish_reason, choice.response_id) == (3, TOKENS, "stop", "g")
    assert choice.output_items[0]["content"] == "ok"
    made.finished = False
    refused(made, "vllm-engine: finished is false")


def test_what_an_output_says_of_its_making_is_named_with_its_place():
    output = {"index": 0, "token_ids": [41, 2], "logprobs": [-0.125, -0.5], "weight_version": "5"}
    payload = {"prompt_token_ids": [1, 7], "outputs": [output]}
    assert read_response(payload)[0].extras == {"weight_version": "5"}
    refused({**payload, "weight_version": "6"}, "choice 0: outputs[].weight_version and weight_version disagree")
