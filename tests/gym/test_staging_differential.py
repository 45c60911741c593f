"""The published module of staging digests and ours give the same digest, or the same kind of error."""

import importlib.util
import math
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.places import REPOSITORY
from support.staged import staged
from tokenrecords.gym import staging


def load_by_path(path):
    spec = importlib.util.spec_from_file_location(f"loaded_{path.stem}", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def peer():
    path = load_by_path(REPOSITORY / "benches" / "reference.py").reference_path()
    if path is None:
        pytest.skip("the wheel nemo-gym 0.7.0 can't be downloaded, and TOKENRECORDS_REFERENCE_WHEEL names none")
    return load_by_path(path / "nemo_gym" / "token_id_capture" / "staging" / "digest.py")


def outcome(function, *arguments, **named):
    try:
        return function(*arguments, **named)
    except (TypeError, ValueError, RecursionError) as error:
        return type(error)


values = st.one_of(
    st.integers(-2, 2**64),
    st.floats(),
    st.sampled_from([True, None, "a", "", "text", "token_in", "c" * 64, [], 2, 1, math.nan, 1e39, -0.0, "\ud800"]),
)
names = sorted(staged(token_ids_delta=[1]))


def test_the_constants(peer):
    for name in ("STAGING_SCHEMA_VERSION", "STAGING_DIGEST_VERSION", "EXTRAS_DIGEST_VERSION", "EMPTY_EXTRAS_DIGEST"):
        assert getattr(staging, name) == getattr(peer, name)


@given(st.lists(values), st.sampled_from([None, "d" * 64, "D" * 64]))
def test_ids(peer, ids, parent):
    assert outcome(staging.encode_token_ids, ids) == outcome(peer.encode_token_ids, ids)
    assert outcome(staging.hash_token_ids, ids) == outcome(peer.hash_token_ids, ids)
    assert outcome(staging.compute_chain_hash, parent, ids) == outcome(peer.compute_chain_hash, parent, ids)


@given(st.dictionaries(st.text() | st.integers(), st.recursive(values, st.lists, max_leaves=8), max_size=4))
def test_extras(peer, extras):
    assert outcome(staging.compute_extras_digest, extras) == outcome(peer.compute_extras_digest, extras)


@given(st.booleans(), st.dictionaries(st.sampled_from(names), values, max_size=1), st.data())
def test_calls(peer, is_root, changes, data):
    call = staged(token_ids_delta=[5, 6, 7], carried=2, parent_call_id=None if is_root else "p")
    for column in ("token_ids_delta", "token_mask_delta", "generation_log_probs_delta"):
        if column in changes:
            place = data.draw(st.integers(0, 2))
            changes[column] = [*call[column][:place], changes[column], *call[column][place + 1 :]]
    ours = outcome(staging.compute_staging_digest, **{**call, **changes})
    if isinstance(changes.get("prev_len", 0), int | float):
        assert ours == outcome(peer.compute_staging_digest, **{**call, **changes})
    else:
        assert ours is ValueError  # of a child, the peer's sum of lengths fails as a TypeError


@given(st.lists(st.integers(0, 9)), st.lists(st.integers(0, 9)), st.integers(-1, 9), st.integers(-1, 1))
def test_deltas(peer, prompt, generated, prev_len, more):
    columns = {"prompt_token_ids": prompt, "generated_token_ids": generated, "prev_len": prev_len}
    log_probs = [-0.5] * max(0, len(generated) + more)
    ours = outcome(staging.build_staging_delta, **columns, generated_log_probs=log_probs)
    assert ours == outcome(peer.build_staging_delta, **columns, generated_log_probs=log_probs)
