"""TRL: batches of parallel lists."""

import numpy as np
import pytest
from support.payloads import TOKENS, refused, tokens_of
from tokenrecords import entries_from_response, read_response


@pytest.mark.parametrize(
    ("payload", "message"),
    [
        ({"prompt_ids": [[1]], "completion_ids": [[2]], "logprobs": None}, "generation_log_probs is missing"),
        ({"prompt_ids": [[1]], "completion_ids": [[2]]}, "generation_log_probs is missing"),
        ({"prompt_ids": [[1]], "logprobs": [[-0.5]]}, "trl choice 0: generation_token_ids is missing"),
        ({"completion_ids": [[1]], "logprobs": [[-0.5]]}, "trl choice 0: prompt_token_ids is missing"),
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
            "prompt_ids is int: a list of lists is needed",
        ),
        (
            {"prompt_ids": [1], "completion_ids": [2], "logprobs": [[-1.0]]},
            "is int: a list or a one-dimensional array is needed",
        ),
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


MASKED = {"prompt_ids": [[1]], "completion_ids": [[2, 3], [4]], "logprobs": [[-0.1, 0.0], [-0.2]]}


@pytest.mark.parametrize("mask", [[[1, 0], [1]], [[True, False], [True]], [np.array([1, 0]), np.array([True])]])
def test_the_mask_of_the_environment(mask):
    found = read_response({**MASKED, "env_mask": mask})
    assert [choice.generation_loss_mask for choice in found] == mask
    assert all(choice.generation_loss_mask is row for choice, row in zip(found, mask, strict=True))
    entries = entries_from_response({**MASKED, "env_mask": mask}, rollout_id="r", model_call_id="c")
    assert [entry.generation_loss_mask for entry in entries] == mask
    assert "generation_loss_mask" not in entries_from_response(MASKED, rollout_id="r", model_call_id="c")[0].model_extra


@pytest.mark.parametrize(
    ("mask", "message"),
    [
        ([[1, 0]], "trl: 2 completion_ids and 1 env_mask"),
        ([[1], [1]], "trl choice 0: 2 generation_token_ids and 1 generation_loss_mask"),
        ([[1, 0], [1, 1]], "trl choice 1: 1 generation_token_ids and 2 generation_loss_mask"),
        ([[1, 2], [1]], "trl choice 0: generation_loss_mask[1] is 2: a mask must hold 0 and 1"),
        ([[1, None], [1]], "generation_loss_mask[1] is None"),
        ([[1, 0.0], [1]], "generation_loss_mask[1] is 0.0"),
        ([[1, 0], None], "trl choice 1: env_mask is null"),
        ([1, 0], "trl choice 0: generation_loss_mask (env_mask) is int: a list"),
        (5, "trl: env_mask is int: a list of lists is needed"),
    ],
)
def test_masks_that_are_none(mask, message):
    refused({**MASKED, "env_mask": mask}, message)


@pytest.mark.parametrize(
    "fields",
    [
        {"logprobs": [[[-0.5]]], "logprob_token_ids": {"a": 1}},
        {"logprobs": [[[-0.5]]], "logprob_token_ids": 5},
        {"logprobs": [[[-0.5]]], "logprob_token_ids": [[[[2]]]]},
        {"logprobs": [[-0.5]], "completion_ids": [{"a": 1}]},
    ],
)
def test_what_is_no_list_of_candidates(fields):
    refused({"prompt_ids": [[1]], "completion_ids": [[2]], **fields}, "trl choice 0: ")


def test_the_completions_of_a_prompt_stand_together():
    payload = {"prompt_ids": [[1], [2]], "completion_ids": [[3], [4], [5], [6]], "logprobs": [[-0.5]] * 4}
    found = read_response(payload)
    assert [(choice.index, *choice.prompt_token_ids, *choice.generation_token_ids) for choice in found] == [
        *((0, 1, 3), (1, 1, 4), (2, 2, 5), (3, 2, 6)),
    ]
    assert len(read_response({**payload, "usage": {"completion_tokens": 99}})) == 4


@pytest.mark.parametrize(
    ("candidates", "why"),
    [
        ([[2]], "generation_log_probs is missing"),
        (None, "generation_log_probs is missing"),
        ([[2, 9, 8], [3, 7]], "generation_log_probs[0] is null"),
        ([5, [3, 7]], "generation_log_probs[0] is null"),
    ],
)
def test_candidates_that_do_not_fit_their_log_probs(candidates, why):
    payload = {"prompt_ids": [[1]], "completion_ids": [[2, 3]], "logprobs": [[[-0.1, -0.2], [-0.3, -0.4]]]}
    refused({**payload, "logprob_token_ids": None if candidates is None else [candidates]}, f"trl choice 0: {why}")


def test_prompts_that_only_the_caller_has():
    payload = {"completion_ids": [[3], [4], [5], [6]], "logprobs": [[-0.5]] * 4}
    found = read_response(payload, prompt_token_ids=[[1], [2]])
    assert [(*choice.prompt_token_ids, *choice.generation_token_ids) for choice in found] == [
        *((1, 3), (1, 4), (2, 5), (2, 6))
    ]
    refused(payload, "4 choices for 3 prompt_token_ids of the caller", prompt_token_ids=[[1], [2], [3]])


def test_the_mask_of_tools():
    found = read_response({**MASKED, "tool_mask": [[1, 0], [1]]})
    assert [choice.generation_loss_mask for choice in found] == [[1, 0], [1]]
    refused({**MASKED, "tool_mask": [[1, 0], [1]], "env_mask": [[1, 1], [1]]}, "env_mask and tool_mask disagree")
    refused({**MASKED, "tool_mask": [[1, 0]]}, "trl: 2 completion_ids and 1 tool_mask")
    refused({**MASKED, "tool_mask": [None, [1]]}, "trl choice 0: tool_mask is null")


def test_candidates_in_arrays():
    payload = {"prompt_ids": [[1, 7]], "completion_ids": [[41, 2]], "logprobs": [[[-9.0, -0.125], [-0.5, -9.0]]]}
    payload["logprob_token_ids"] = [np.array([[9, 41], [2, 9]])]
    [choice] = read_response(payload)
    assert tokens_of(choice) == TOKENS


@pytest.mark.parametrize("rows", [[], [[-0.5]], [[-0.5]] * 3])
def test_rows_are_as_many_as_completions(rows):
    payload = {"prompt_ids": [[1]], "completion_ids": [[2], [3]], "logprobs": rows}
    refused(payload, f"trl: 2 completion_ids and {len(rows)} logprobs")
    masks = [[1] for _ in rows]
    for name in ("env_mask", "tool_mask"):
        refused({**payload, "logprobs": [[-0.5]] * 2, name: masks}, f"trl: 2 completion_ids and {len(rows)} {name}")
    refused({**payload, "prompt_ids": [[1]] * 3}, "trl: 2 completion_ids for 3 prompt_ids")


@pytest.mark.parametrize("name", ["prompt_ids", "completion_ids", "logprobs", "env_mask"])
@pytest.mark.parametrize("rows", [5, "x", b"x", {"a": [1]}, {1}, np.array(5)], ids=repr)
def test_rows_of_another_type(name, rows):
    payload = {"prompt_ids": [[1]], "completion_ids": [[2]], "logprobs": [[-0.5]], name: rows}
    refused(payload, f"trl: {name} is {type(rows).__name__}: a list of lists is needed")


def test_rows_in_arrays():
    payload = {"prompt_ids": [[1, 7]], "completion_ids": [[41, 2]], "logprobs": [[-0.125, -0.5]]}
    [choice] = read_response({name: np.array(rows) for name, rows in payload.items()})
    assert tokens_of(choice) == TOKENS


def test_prompts_without_completions_in_an_array():
    refused({"prompt_ids": np.array([[1], [2]])}, "trl choice 0: generation_token_ids is missing")


SCORED = {"prompt_ids": [[1]], "completion_ids": [[2], [3]], "logprobs": [[[-0.1, -0.2]], [[-0.3, -0.4]]]}


@pytest.mark.parametrize("kind", [list, tuple])
def test_each_completion_has_candidates_of_its_own(kind):
    rows = [kind(map(kind, row)) for row in SCORED["logprobs"]]
    found = read_response({**SCORED, "logprobs": rows, "logprob_token_ids": [[[2, 3]], [[2, 3]]]})
    assert [choice.generation_log_probs for choice in found] == [[-0.1], [-0.4]]


def test_candidates_that_end_early_or_late():
    refused({**SCORED, "logprob_token_ids": [[[2, 9]]]}, "trl choice 1: generation_log_probs is missing")
    late = {**SCORED, "logprob_token_ids": [[[2, 9], [2, 9]], [[9, 3]]]}
    refused(late, "trl choice 0: generation_log_probs is missing")


def test_more_candidates_than_sampled_ids():
    payload = {"prompt_ids": [[1]], "completion_ids": [[2]], "logprobs": [[[-0.1], [-0.2]]]}
    refused(
        {**payload, "logprob_token_ids": [[[2], [3]]]},
        "trl choice 0: 1 generation_token_ids and 2 generation_log_probs",
    )


def test_the_first_entry_says_whether_there_are_candidates():
    payload = {"prompt_ids": [[1]], "completion_ids": [[2, 3]], "logprob_token_ids": [[[2], [3]]]}
    refused({**payload, "logprobs": [[[-0.1], -0.5]]}, "trl choice 0: generation_log_probs[1] is null")
    refused({**payload, "logprobs": [[-0.5, [-0.1]]]}, "generation_log_probs[1] is [-0.1]: log-probs must be numbers")
