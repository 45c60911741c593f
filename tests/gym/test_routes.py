"""Routes are written as the published package writes them, and refused where it refuses them."""

import re

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tokenrecords import decode_routed_experts
from tokenrecords.gym.routes import encode_routed_experts

shapes = st.tuples(*[st.integers(1, 4)] * 3)
routes = st.tuples(shapes, st.integers(0, 2**31 - 1), st.integers(0, 2**32))


def nested(shape, most, seed):
    return np.random.default_rng(seed).integers(-most - 1, most, shape, endpoint=True).tolist()


def test_known_texts():
    assert encode_routed_experts([[[1, -1]]], dtype="int8") == "nrlre1:int8:1x1x2:Af8="
    assert encode_routed_experts([[[300]]]) == "nrlre1:int16:1x1x1:LAE="
    assert encode_routed_experts([[[300]]], dtype="int32") == "nrlre1:int32:1x1x1:LAEAAA=="


@given(routes, st.sampled_from(["int8", "int16", "int32"]))
def test_what_is_written_is_read_back(drawn, dtype):
    values = nested(*drawn)
    limits = np.iinfo(dtype)
    if np.min(values) < limits.min or np.max(values) > limits.max:
        with pytest.raises(ValueError, match=f"it does not fit {dtype}$"):
            encode_routed_experts(values, dtype=dtype)
        return
    for held in (values, np.array(values), np.array(values, ">i8")):
        text = encode_routed_experts(held, dtype=dtype)
        assert decode_routed_experts(text, tokens=len(values)).tolist() == values


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(routes, st.sampled_from(["int8", "int16", "int32"]))
def test_as_the_published_package(nemo_gym, drawn, dtype):
    theirs = nemo_gym("staging.routes").encode_routed_experts
    values = nested(*drawn)
    try:
        wanted = theirs(values, dtype=dtype)
    except ValueError:
        with pytest.raises(ValueError, match="does not fit"):
            encode_routed_experts(values, dtype=dtype)
    else:
        assert encode_routed_experts(values, dtype=dtype) == wanted


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([], "routed_experts is []: a list that is not empty is needed"),
        (None, "routed_experts is None: a list that is not empty is needed"),
        ([[]], "routed_experts[0] is []: a list that is not empty is needed"),
        ([1], "routed_experts[0] is 1: a list that is not empty is needed"),
        ([[[]]], "routed_experts[0][0] is []: a list that is not empty is needed"),
        ([[1]], "routed_experts[0][0] is 1: a list that is not empty is needed"),
        ([[(1, 2)]], "routed_experts[0][0] is (1, 2): a list that is not empty is needed"),
        ([[[1]], [[2], [3]]], "routed_experts[1] is [[2], [3]]: a list of 1 is needed"),
        ([[[1], [2]], [[3]]], "routed_experts[1] is [[3]]: a list of 2 is needed"),
        ([[[1, 2]], [[3]]], "routed_experts[1][0] is [3]: a list of 2 is needed"),
        ([[[1, 2]], [[3, 4, 5]]], "routed_experts[1][0] is [3, 4, 5]: a list of 2 is needed"),
        ([[[1, True]]], "routed_experts[0][0][1] is True: an exact int of 64 bits is needed"),
        ([[[1.0]]], "routed_experts[0][0][0] is 1.0: an exact int of 64 bits is needed"),
        ([[[2**63]]], f"routed_experts[0][0][0] is {2**63}: an exact int of 64 bits is needed"),
        ([[[-(2**63) - 1]]], f"routed_experts[0][0][0] is {-(2**63) - 1}: an exact int of 64 bits is needed"),
        ([[[40_000]]], "routed_experts holds 40000: it does not fit int16"),
        ([[[-(2**63)]]], f"routed_experts holds {-(2**63)}: it does not fit int16"),
        ([[[0, -(2**31)]]], f"routed_experts holds {-(2**31)}: it does not fit int16"),
    ],
)
def test_what_are_no_routes(values, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        encode_routed_experts(values)


def test_another_dtype():
    with pytest.raises(ValueError, match=r"^dtype is 'int64': one of int8, int16, int32 is needed$"):
        encode_routed_experts([[[1]]], dtype="int64")


@pytest.mark.parametrize("array", [np.ones((2, 2), np.int8), np.ones((2, 2, 2)), np.ones((2, 0, 2), np.int8)])
def test_another_array(array):
    held = f"an array of shape {array.shape} and dtype {array.dtype}"
    message = f"routed_experts is {held}: integers of shape (rows, layers, k), none of them 0, are needed"
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        encode_routed_experts(array)
