"""What the staging digests refuse: exact values only, each error with its name, place and value."""

import re
from collections import OrderedDict

import numpy as np
import pytest
from support.staged import staged
from tokenrecords.gym import staging


class Int(int):
    pass


class Float(float):
    pass


class Text(str):
    __slots__ = ()


EXACT = "an exact int from 0 to 2**64 - 1 is needed"


def refused(kind, message, function, *arguments, **named):
    with pytest.raises(kind, match=f"^{re.escape(message)}$") as caught:
        function(*arguments, **named)
    assert type(caught.value) is kind


@pytest.mark.parametrize("function", [staging.encode_token_ids, staging.hash_token_ids])
@pytest.mark.parametrize(
    ("value", "shown", "kind"),
    [
        (True, "True", "bool"),
        (Int(1), "1", "Int"),
        (1.0, "1.0", "float"),
        (np.int64(1), repr(np.int64(1)), "int64"),
        (-1, "-1", "int"),
        (2**64, str(2**64), "int"),
        ("a", "'a'", "str"),
        (None, "None", "NoneType"),
    ],
)
@pytest.mark.parametrize("hold", [list, tuple, lambda values: np.array(values, object)])
def test_an_element_that_is_not_a_token_id(function, value, shown, kind, hold):
    refused(ValueError, f"token_ids[1] is {shown}: {EXACT}, got {kind}", function, hold([1, value]))


def test_a_negative_element_of_an_array():
    message = "token_ids[1] is -9: token ids must be non-negative, got -9"
    refused(ValueError, message, staging.hash_token_ids, np.array([1, -9]))
    message = "token_ids_delta[400] is -9: token ids must be non-negative, got -9"
    refused(ValueError, message, staging.compute_chain_hash, None, np.append(np.arange(400), -9))


@pytest.mark.parametrize("value", ["ab", b"ab", {1, 2}, {1: 2}, None, 5, iter([1]), np.array([1.5]), np.array([True])])
def test_what_is_not_a_sequence_of_ids(value):
    for function in (staging.encode_token_ids, staging.hash_token_ids):
        with pytest.raises(TypeError, match=r"^token_ids "):
            function(value)
    with pytest.raises(TypeError, match=r"^token_ids_delta "):
        staging.compute_chain_hash(None, value)


@pytest.mark.parametrize("value", ["", "A" * 64, "x" * 64, "a" * 63 + "\n", "a" * 65, 5, b"a" * 64])
def test_a_parent_hash_that_is_not_a_digest(value):
    with pytest.raises(ValueError, match=r"^parent_chain_hash is .*: 64 lowercase hex digits are needed$"):
        staging.compute_chain_hash(value, [1])


@pytest.mark.parametrize("value", [[], [1], "s", 5, True, (1,), 0.5])
def test_extras_that_are_no_mapping(value):
    message = f"extras is {value!r}: a mapping or None is needed, got {type(value).__name__}"
    refused(TypeError, message, staging.compute_extras_digest, value)


@pytest.mark.parametrize(
    ("kind", "value", "message"),
    [
        (TypeError, (1,), "extras hold (1,): its type, tuple, is unsupported"),
        (TypeError, b"x", "extras hold b'x': its type, bytes, is unsupported"),
        (TypeError, np.float64(1), f"extras hold {np.float64(1)!r}: its type, float64, is unsupported"),
        (TypeError, Text("x"), "extras hold 'x': its type, Text, is unsupported"),
        (TypeError, Int(3), "extras hold 3: its type, Int, is unsupported"),
        (TypeError, Float(1), "extras hold 1.0: its type, Float, is unsupported"),
        (TypeError, OrderedDict(), f"extras hold {OrderedDict()!r}: its type, OrderedDict, is unsupported"),
        (TypeError, {1: 2}, "extras hold the key 1: string keys are needed"),
        (TypeError, {Text("k"): 2}, "extras hold the key 'k': string keys are needed"),
        (ValueError, float("nan"), "extras hold nan: a finite float is needed"),
        (ValueError, float("inf"), "extras hold inf: a finite float is needed"),
        (ValueError, 2**63, f"extras hold {2**63}: a signed 64-bit int is needed"),
        (ValueError, -(2**63) - 1, f"extras hold {-(2**63) - 1}: a signed 64-bit int is needed"),
    ],
)
def test_a_value_that_extras_can_not_hold(kind, value, message):
    refused(kind, message, staging.compute_extras_digest, {"a": value})
    refused(kind, message, staging.compute_extras_digest, {"a": [1, {"b": value}]})


@pytest.mark.parametrize("extras", [{"a": "\ud800"}, {"\ud800": 1}])
def test_a_lone_surrogate_in_extras(extras):
    with pytest.raises(UnicodeEncodeError):
        staging.compute_extras_digest(extras)


def test_extras_that_hold_themselves():
    extras = {}
    extras["self"] = [extras]
    refused(RecursionError, "extras are more than 500 values deep", staging.compute_extras_digest, extras)


CALL = staged(token_ids_delta=[1, 2], carried=1)
CHILD = staged(token_ids_delta=[1, 2], carried=1, parent_call_id="p")
PLACE = "parent_call_id is {}, mode {}, prev_len {}: a call "
ROOT, LATER = "without a parent is text and has prev_len 0", "with a parent is token_in and has prev_len above 0"
FLOAT32 = "a finite float that float32 can hold is needed"
NUMBER = "an int from 0 to 2**64 - 1 is needed"
HEX = "64 lowercase hex digits are needed"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"schema_version": 3}, "schema_version is 3: unsupported staging schema, version 2 is needed"),
        ({"schema_version": 2.0}, "schema_version is 2.0: unsupported staging schema, version 2 is needed"),
        ({"digest_version": 1}, "digest_version is 1: unsupported staging digest, version 2 is needed"),
        (
            {"extras_digest_version": True},
            "extras_digest_version is True: unsupported extras digest, version 1 is needed",
        ),
        ({"rollout_id": ""}, "rollout_id is '' and model_call_id 'call': neither may be empty"),
        ({"model_call_id": None}, "rollout_id is 'rollout' and model_call_id None: neither may be empty"),
        ({"parent_call_id": ""}, "parent_call_id is empty: None or the id of a call is needed"),
        ({"parent_call_id": "p"}, PLACE.format("'p'", "text", 0) + LATER),
        ({"mode": "token_in"}, PLACE.format(None, "token_in", 0) + ROOT),
        ({"mode": "other"}, "mode is 'other': text or token_in is needed"),
        ({"prev_len": 1, "cum_len": 3}, PLACE.format(None, "text", 1) + ROOT),
        ({"prev_len": False}, f"prev_len is False: {NUMBER}, got bool"),
        ({"weight_version": -1}, f"weight_version is -1: {NUMBER}, got int"),
        ({"weight_version": 2**64}, f"weight_version is {2**64}: {NUMBER}, got int"),
        ({"delta_len": 3, "cum_len": 3}, "token_ids_delta has 2 values: delta_len does not match, it is 3"),
        ({"token_mask_delta": [1.0]}, "token_mask_delta has 1 values: delta_len does not match, it is 2"),
        (
            {"generation_log_probs_delta": np.zeros(3)},
            "generation_log_probs_delta has 3 values: delta_len does not match, it is 2",
        ),
        ({"token_ids_delta": [1, True]}, f"token_ids_delta[1] is True: {EXACT}, got bool"),
        ({"token_mask_delta": [0.0, 1]}, "token_mask_delta[1] is 1: an exact finite float is needed, got int"),
        (
            {"token_mask_delta": [0.0, Float(1)]},
            "token_mask_delta[1] is 1.0: an exact finite float is needed, got Float",
        ),
        ({"token_mask_delta": [0.0, 0.5]}, "token_mask_delta[1] is 0.5: a mask must contain only 0.0 or 1.0"),
        (
            {"token_mask_delta": np.array([0.0, 1 + 2**-40])},
            f"token_mask_delta[1] is {1 + 2**-40}: a mask must contain only 0.0 or 1.0",
        ),
        (
            {"generation_log_probs_delta": [-0.5, -0.5]},
            "generation_log_probs_delta[0] is -0.5: 0.0 is needed where the mask is 0.0",
        ),
        (
            {"generation_log_probs_delta": [1e-60, -0.5]},
            "generation_log_probs_delta[0] is 1e-60: 0.0 is needed where the mask is 0.0",
        ),
        ({"generation_log_probs_delta": [0.0, -1e39]}, f"generation_log_probs_delta[1] is -1e39: {FLOAT32}"),
        ({"generation_log_probs_delta": np.array([0.0, np.nan])}, f"generation_log_probs_delta[1] is NaN: {FLOAT32}"),
        ({"extras_digest": None}, f"extras_digest is None: {HEX}"),
        ({"chain_hash": "x"}, f"chain_hash is 'x': {HEX}"),
        ({"cumulative_hash": "B" * 64}, f"cumulative_hash is {'B' * 64!r}: {HEX}"),
    ],
)
def test_a_call_with_a_wrong_value(changes, message):
    refused(ValueError, message, staging.compute_staging_digest, **{**CALL, **changes})


@pytest.mark.parametrize("changes", [{"mode": "text"}, {"prev_len": 0, "cum_len": 2}, {"prev_len": "11"}])
def test_a_child_that_is_none(changes):
    with pytest.raises(ValueError, match=LATER):
        staging.compute_staging_digest(**{**CHILD, **changes})


@pytest.mark.parametrize(("prev", "delta", "total"), [(0, 0, 0), (0, 2, 3)])
def test_lengths_that_do_not_add_up(prev, delta, total):
    needed = "a delta of at least one token, and cum_len that is prev_len + delta_len, are needed"
    message = f"prev_len is {prev}, delta_len {delta}, cum_len {total}: {needed}"
    lengths = {"prev_len": prev, "delta_len": delta, "cum_len": total}
    refused(ValueError, message, staging.compute_staging_digest, **{**CALL, **lengths})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"rollout_id": 5}, "rollout_id is 5: text is needed, got int"),
        ({"model_call_id": b"x"}, "model_call_id is b'x': text is needed, got bytes"),
        ({"chain_hash": None}, "chain_hash is None: a text is needed, got NoneType"),
        ({"cumulative_hash": 5}, "cumulative_hash is 5: a text is needed, got int"),
        ({"token_mask_delta": None}, "token_mask_delta is of type NoneType: a sequence of floats is needed"),
        ({"token_mask_delta": "ab"}, "token_mask_delta is of type str: a sequence of floats is needed"),
        ({"token_mask_delta": {0.0, 1.0}}, "token_mask_delta is of type set: a sequence of floats is needed"),
        (
            {"token_mask_delta": np.array([0, 1])},
            "token_mask_delta has dtype int64: float16, float32 or float64 is needed",
        ),
    ],
)
def test_a_call_with_a_value_of_the_wrong_type(changes, message):
    refused(TypeError, message, staging.compute_staging_digest, **{**CALL, **changes})


def test_columns_of_two_dimensions():
    message = "token_mask_delta has 2 dimensions: one is needed"
    refused(ValueError, message, staging.compute_staging_digest, **{**CALL, "token_mask_delta": np.ones((2, 1))})


@pytest.mark.parametrize(
    ("prompt", "generated", "log_probs", "prev_len", "message"),
    [
        ([1, 2], [3], [-0.5], 3, "prev_len is 3: it is outside prompt length 2"),
        ([1, 2], [3], [-0.5], -1, "prev_len is -1: it is outside prompt length 2"),
        ([1], [3], [], 0, "generated_log_probs do not fit generated_token_ids: lengths differ, 1 ids and 0 log-probs"),
        ([1], [], [], 1, "the staging delta is empty: at least one token is needed"),
    ],
)
def test_a_delta_that_is_none(prompt, generated, log_probs, prev_len, message):
    names = ("prompt_token_ids", "generated_token_ids", "generated_log_probs")
    for hold in (list, np.array):
        columns = dict(zip(names, map(hold, (prompt, generated, log_probs)), strict=True))
        refused(ValueError, message, staging.build_staging_delta, **columns, prev_len=prev_len)
