"""Rows of one call as trainers name their fields."""

from typing import Any

import numpy as np
import pytest
from support.payloads import TOKENS, refused, tokens_of
from tokenrecords import detect_dialect, read_response

RLLM = {"prompt_ids": [1, 7], "completion_ids": [41, 2], "logprobs": [-0.125, -0.5], "finish_reason": "stop"}
VERL = {"prompt_ids": [1, 7], "response_ids": [41, 2], "response_logprobs": [-0.125, -0.5], "response_mask": [1, 0]}
VERIFIERS = {
    "prompt_ids": [1, 7],
    "completion_ids": [41, 2],
    "completion_logprobs": [-0.125, -0.5],
    "prompt_mask": [0, 0],
    "completion_mask": [1, 1],
}


@pytest.mark.parametrize(("row", "mask"), [(RLLM, None), (VERL, [1, 0]), (VERIFIERS, [1, 1])])
def test_a_row(row: Any, mask: Any) -> None:
    assert detect_dialect(row) == "flat"
    [choice] = read_response(row)
    assert (tokens_of(choice), choice.generation_loss_mask) == (TOKENS, mask)
    assert choice.finish_reason == row.get("finish_reason")
    assert [tokens_of(choice) for choice in read_response([row, row])] == [TOKENS] * 2


def test_arrays():
    row = {"prompt_ids": np.array([1, 7]), "completion_ids": np.array([41, 2]), "logprobs": np.array([-0.125, -0.5])}
    assert tokens_of(read_response(row)[0]) == TOKENS


def test_one_of_both_may_be_empty():
    assert tokens_of(read_response({**RLLM, "completion_ids": [], "logprobs": []})[0]) == ([1, 7], [], [])
    assert tokens_of(read_response({**RLLM, "prompt_ids": []})[0]) == ([], [41, 2], [-0.125, -0.5])


@pytest.mark.parametrize(
    "row",
    [
        {"prompt_ids": [[1, 7]], "completion_ids": [[41, 2]], "logprobs": [[-0.125, -0.5]]},
        {"prompt_ids": np.array([[1, 7]]), "completion_ids": np.array([[41, 2]]), "logprobs": [[-0.125, -0.5]]},
    ],
)
def test_lists_of_calls_are_those_of_the_trl_server(row):
    assert detect_dialect(row) == "trl"
    assert tokens_of(read_response(row)[0]) == TOKENS


def test_of_both_kinds_it_is_refused():
    refused({**RLLM, "logprobs": [[-0.125, -0.5]]}, "trl: 2 completion_ids and 1 logprobs")
    refused({**RLLM, "prompt_ids": [[1, 7]]}, "trl choice 0", "completion_ids")


def test_what_is_missing_is_named():
    refused({"prompt_ids": [1, 7]}, "flat choice 0: generation_token_ids is missing")
    refused({**VERL, "response_logprobs": None}, "flat choice 0: generation_log_probs is missing")
    refused({**VERL, "response_logprobs": [-0.5]}, "flat choice 0: 2 generation_token_ids and 1 generation_log_probs")
    refused({**VERL, "response_mask": [1]}, "flat choice 0: 2 generation_token_ids and 1 generation_loss_mask")
    refused({**VERL, "completion_ids": [41, 3]}, "completion_ids and response_ids disagree at position 1")


@pytest.mark.parametrize("ids", [["resp_1", "resp_2"], [], "resp_1", 5])
def test_ids_of_other_things(ids):
    assert read_response({"response_ids": ids}) == []


@pytest.mark.parametrize("name", ["completion_token_ids", "response_token_ids"])
def test_other_names_of_the_generation(name):
    row = {"prompt_token_ids": [1, 7], name: [41, 2], "logprobs": [-0.125, -0.5]}
    assert tokens_of(read_response(row)[0]) == TOKENS


@pytest.mark.parametrize("ids", [[1, "resp_2"], ["resp_1", 2]])
def test_ids_are_those_of_tokens_at_both_ends(ids):
    assert detect_dialect({"response_ids": ids}) == "unknown"
    assert read_response({"response_ids": ids}) == []


@pytest.mark.parametrize("log_probs", [[-0.125, [-0.5]], [[-0.125], -0.5], -0.5])
def test_a_row_of_one_call_has_one_row_of_each(log_probs):
    assert detect_dialect({**RLLM, "logprobs": log_probs}) == "trl"


def test_log_probs_that_are_integers_are_no_ids():
    assert detect_dialect({"logprobs": [0, -1]}) == "unknown"
    assert read_response({"logprobs": [0, -1]}) == []


def test_what_a_row_says_of_itself_is_better_than_what_a_trainer_says():
    own = {"prompt_token_ids": [1], "generation_token_ids": [41], "generation_log_probs": [-0.1]}
    [choice] = read_response({**own, "completion_ids": [41], "logprobs": [-0.10000000149011612]})
    assert choice.generation_log_probs == [-0.1]
    # What has a trainer's name and is of another kind is not of this row.
    for other in ({"logprobs": [[-0.25, -1.5]]}, {"response_ids": ["resp_1"]}):
        [choice] = read_response({**own, **other})
        assert tokens_of(choice) == ([1], [41], [-0.1])


def test_the_response_id_of_a_row():
    assert read_response({**RLLM, "id": "x", "response_id": "y"})[0].response_id == "y"
    assert read_response({**RLLM, "id": "x"})[0].response_id is None


@pytest.mark.parametrize("said", [True, 1])
def test_a_delta_is_no_prompt(said):
    refused({**RLLM, "prompt_is_delta": said}, "flat choice 0: prompt_is_delta is true: the whole prompt is needed")
