"""Ids in shapes that no reader reads: they are named, and those that were read are not."""

import numpy as np
import pytest
from support.payloads import refused
from tokenrecords import read_response

TENSOR = {"name": "output_ids", "datatype": "INT32", "shape": [1, 1, 2], "data": [41, 2]}


@pytest.mark.parametrize(
    ("payload", "place"),
    [
        ({"model_name": "m", "outputs": [{"name": "text"}, TENSOR]}, "outputs[1].data of output_ids"),
        ({"outputs": [{**TENSOR, "data": np.array([41, 2])}]}, "outputs[0].data of output_ids"),
        ({"outputs": [{**TENSOR, "data": [[41], [2]]}]}, "outputs[0].data of output_ids"),
        ({"model": "m", "response": "ok", "done": True, "context": [1, 7, 41]}, "context"),
        ({"prompt_token_ids_b64": "AQAAAA=="}, "prompt_token_ids_b64"),
        ({"choices": [{"message": {"content": "x"}, "output_ids_base64": "AQAAAA=="}]}, "choices[0].output_ids_base64"),
    ],
)
def test_a_shape(payload, place):
    refused(payload, f"no token ids were found, and {place} is not read: its integers may be token ids")


@pytest.mark.parametrize(
    "payload",
    [
        {"outputs": [{"name": "sequence_length", "data": [2]}]},
        {"outputs": [{"name": "stop_token_ids", "data": [2]}, {"name": 5, "data": [2]}, {"name": "output_ids"}]},
        {"context": "what was said"},
        {"request": {"return_token_ids_b64": True}},
        {"prompt_token_ids_b64": "", "x": {"output_ids_base64": ""}},
    ],
)
def test_what_holds_none(payload):
    assert read_response(payload) == []


def test_what_was_read_is_not_named():
    rows = {"prompt_token_ids": [[1, 7]], "sampled_ids": [[41, 2]]}
    refused(rows, "flat choice 0: generation_token_ids is missing, and sampled_ids is not read")
