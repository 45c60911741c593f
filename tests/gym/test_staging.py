"""The staging digests: golden values, another opinion on drawn ones, and arrays as the equal lists."""

import array
import dataclasses
import json
from types import MappingProxyType

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import staging_oracle as oracle
from support.places import DATA
from support.staged import staged
from tokenrecords.gym import staging

VECTORS = json.loads((DATA / "staging_v2.json").read_text())
HASH = "0123456789abcdef" * 4

ids = st.lists(st.one_of(st.integers(0, 200_000), st.integers(0, 2**64 - 1)))
json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


def whole(values):
    return [int(value) for value in values]


def test_golden_values_of_ids():
    for vector in VECTORS["ids"]:
        assert staging.hash_token_ids(whole(vector["ids"])) == vector["hash"]
        assert staging.hash_token_ids(np.array(vector["ids"], np.uint64)) == vector["hash"]


def test_golden_values_of_chains():
    for vector in VECTORS["chain"]:
        assert staging.compute_chain_hash(vector["parent"], whole(vector["ids"])) == vector["hash"]
        assert staging.compute_chain_hash(vector["parent"], np.array(vector["ids"], ">u8")) == vector["hash"]


def test_golden_values_of_extras():
    assert VECTORS["empty_extras"] == staging.EMPTY_EXTRAS_DIGEST
    for vector in VECTORS["extras"]:
        assert staging.compute_extras_digest(vector["extras"]) == vector["hash"]


def test_golden_values_of_calls():
    for vector in VECTORS["staging"]:
        call = {**vector["args"], "token_ids_delta": whole(vector["args"]["token_ids_delta"])}
        assert staging.compute_staging_digest(**call) == vector["hash"]
        call["token_ids_delta"] = np.array(call["token_ids_delta"], np.uint64)
        for name in ("token_mask_delta", "generation_log_probs_delta"):
            call[name] = np.array(call[name])
        assert staging.compute_staging_digest(**call) == vector["hash"]


def test_golden_values_of_deltas():
    for vector in VECTORS["delta"]:
        assert list(staging.build_staging_delta(**vector["args"])) == vector["gives"]


def test_the_oracle_has_the_golden_values():
    assert all(oracle.ids_digest(whole(vector["ids"])) == vector["hash"] for vector in VECTORS["ids"])
    assert all(oracle.chain_hash(v["parent"], whole(v["ids"])) == v["hash"] for v in VECTORS["chain"])
    assert all(oracle.extras_digest(vector["extras"]) == vector["hash"] for vector in VECTORS["extras"])
    assert all(oracle.call_digest(vector["args"]) == vector["hash"] for vector in VECTORS["staging"])


@given(ids, st.none() | st.just(HASH))
def test_ids_of_every_kind(values, parent):
    kinds = [list, tuple, lambda v: np.array(v, np.uint64), lambda v: np.array(v, ">u8"), lambda v: array.array("Q", v)]
    for kind in kinds:
        assert staging.encode_token_ids(kind(values)) == oracle.encode(values)
        assert staging.hash_token_ids(kind(values)) == oracle.ids_digest(values)
        assert staging.compute_chain_hash(parent, kind(values)) == oracle.chain_hash(parent, values)


@pytest.mark.parametrize("dtype", ["i1", "u1", "<i2", ">u2", "<i4", ">i4", "<u4", "<i8", ">i8", "<u8"])
def test_every_dtype_and_stride(dtype):
    values = np.arange(1_000) % 100
    wanted = oracle.ids_digest(values)
    held = values.astype(dtype)
    assert staging.hash_token_ids(held) == wanted
    assert staging.hash_token_ids(np.repeat(held, 2)[::2]) == wanted
    assert staging.hash_token_ids(held[::-1][::-1]) == wanted


def test_a_range_and_an_object_array_are_sequences():
    assert staging.hash_token_ids(range(300)) == oracle.ids_digest(range(300))
    assert staging.hash_token_ids(np.array([1, 2**63], object)) == oracle.ids_digest([1, 2**63])
    assert staging.hash_token_ids(np.array([])) == oracle.ids_digest([])


@given(st.dictionaries(st.text(), json_values) | st.none())
def test_extras(extras):
    assert staging.compute_extras_digest(extras) == oracle.extras_digest(extras)
    if extras is not None:
        backwards = dict(reversed(extras.items()))
        assert staging.compute_extras_digest(MappingProxyType(backwards)) == oracle.extras_digest(extras)


def test_extras_longer_than_what_waits_to_be_hashed():
    for size in (450, 460, 5_000):
        extras = {"ints": list(range(-size, size)), "texts": ["word" * size] * 3, "nested": [[[1, 2]] * size]}
        assert staging.compute_extras_digest(extras) == oracle.extras_digest(extras)


drawn_calls = st.builds(
    staged,
    token_ids_delta=st.lists(st.integers(0, 2**64 - 1), min_size=1),
    carried=st.integers(0, 3),
    rollout_id=st.text(min_size=1),
    model_call_id=st.text(min_size=1),
    parent_call_id=st.none() | st.text(min_size=1),
    weight_version=st.integers(0, 2**64 - 1),
    log_prob=st.floats(width=64, min_value=-3e38, max_value=3e38),
)


@given(drawn_calls)
def test_calls(call):
    wanted = oracle.call_digest(call)
    assert staging.compute_staging_digest(**call) == wanted
    for dtype in (">f8", "<f8"):
        held = {
            **call,
            "token_ids_delta": np.array(call["token_ids_delta"], np.uint64),
            "token_mask_delta": np.array(call["token_mask_delta"], dtype),
            "generation_log_probs_delta": np.array(call["generation_log_probs_delta"], dtype),
        }
        assert staging.compute_staging_digest(**held) == wanted


@pytest.mark.parametrize("dtype", ["<f2", ">f2", "<f4", ">f4", "<f8", ">f8"])
@pytest.mark.parametrize("size", [1, 5, 127, 128, 129, 1_000])
def test_columns_of_every_float_dtype_and_stride(dtype, size):
    call = staged(token_ids_delta=list(range(size)), carried=size // 2, log_prob=-0.3)
    log_probs = np.array(call["generation_log_probs_delta"]).astype(dtype)
    mask = np.array(call["token_mask_delta"]).astype(dtype)
    wanted = oracle.call_digest({**call, "generation_log_probs_delta": log_probs.tolist()})
    for take in (lambda column: column, lambda column: np.repeat(column, 3)[::3]):
        columns = {"token_mask_delta": take(mask), "generation_log_probs_delta": take(log_probs)}
        assert staging.compute_staging_digest(**{**call, **columns}) == wanted


def test_columns_of_other_holders():
    call = staged(token_ids_delta=[1, 2, 3], carried=1, log_prob=-0.5)
    wanted = oracle.call_digest(call)
    for kind in (tuple, lambda v: array.array("d", v), lambda v: array.array("f", v), lambda v: np.array(v, object)):
        columns = {name: kind(call[name]) for name in ("token_mask_delta", "generation_log_probs_delta")}
        assert staging.compute_staging_digest(**{**call, **columns}) == wanted


def test_minus_zero_keeps_its_sign():
    call = staged(token_ids_delta=[1, 2], carried=1, log_prob=-0.5)
    call |= {"token_mask_delta": [-0.0, 1.0], "generation_log_probs_delta": [-0.0, -0.5]}
    assert staging.compute_staging_digest(**call) == oracle.call_digest(call)
    assert oracle.call_digest(call) != oracle.call_digest({**call, "token_mask_delta": [0.0, 1.0]})


def test_versions_and_domains_are_those_of_the_layout():
    later = dataclasses.replace(staging.LAYOUT, schema_version=3)
    call = staged(token_ids_delta=[1, 2], carried=1)
    assert later.compute_staging_digest(**{**call, "schema_version": 3}) == oracle.call_digest(call, (3, 2, 1))
    with pytest.raises(ValueError, match="schema_version is 2: unsupported staging schema, version 3 is needed"):
        later.compute_staging_digest(**call)
    other = dataclasses.replace(
        staging.LAYOUT, prefix_domain=b"p", chain_domain=b"c", extras_domain=b"e", extras_digest_version=9
    )
    assert other.hash_token_ids([1]) == oracle.sha(b"p", oracle.encode([1]))
    assert other.compute_chain_hash(None, [1]) == oracle.sha(b"c", b"\0", oracle.encode([1]))
    assert other.compute_extras_digest({}) == oracle.sha(b"e", b"\x09", oracle.typed({}))


def test_a_delta_of_arrays_is_arrays():
    columns = {
        "prompt_token_ids": np.arange(4, dtype=np.int32),
        "generated_token_ids": np.array([7, 8], np.int64),
        "generated_log_probs": np.array([-0.5, -0.25], np.float32),
    }
    token_ids, mask, log_probs = staging.build_staging_delta(**columns, prev_len=1)
    assert (token_ids.dtype, mask.dtype, log_probs.dtype) == (np.int32, np.float32, np.float32)
    assert token_ids.tolist() == [1, 2, 3, 7, 8]
    assert mask.tolist() == [0, 0, 0, 1, 1]
    assert log_probs.tolist() == [0, 0, 0, -0.5, -0.25]


def test_a_call_may_carry_a_single_id_of_its_parent():
    call = staged(token_ids_delta=[1, 2], parent_call_id="p", prev_len=1, cum_len=3)
    assert staging.compute_staging_digest(**call) == oracle.call_digest(call)


@pytest.mark.parametrize(("given", "held"), [("f2", "f4"), ("f4", "f4"), ("f8", "f8"), ("i4", "f8")])
def test_log_probs_of_a_delta_are_as_wide_as_they_were_given(given, held):
    columns = {"prompt_token_ids": np.arange(2), "generated_token_ids": np.array([7])}
    _, mask, log_probs = staging.build_staging_delta(**columns, generated_log_probs=np.array([-1], given), prev_len=0)
    assert (mask.dtype, log_probs.dtype) == (held, held)


def test_a_delta_of_ids_that_no_dtype_holds_together_is_a_list():
    columns = {"prompt_token_ids": [-1], "generated_token_ids": np.array([2**63], np.uint64)}
    token_ids, _, _ = staging.build_staging_delta(**columns, generated_log_probs=[-0.5], prev_len=0)
    assert token_ids == [-1, 2**63]
