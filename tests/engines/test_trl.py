"""TRL: batches of parallel lists."""

import pytest
from support.payloads import refused
from tokenrecords import read_response


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
