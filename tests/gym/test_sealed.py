"""A sealed call is taken or refused by ours as by the published validator, and either way reads back the same."""

import itertools
import json
import math

import pytest
from pydantic import ValidationError
from support.staged import staged
from tokenrecords import gym
from tokenrecords.gym import staging

MODELS = ("StagedCallBaseSnapshot", "StagedCallRecord", "StagedCallSnapshot")
COLUMNS = ("token_ids_delta", "token_mask_delta", "generation_log_probs_delta")
CHANGES = {
    "schema_version": [1, 3, "2"],
    "rollout_id": ["", "other", 5],
    "parent_call_id": [None, "", "other"],
    "mode": ["text", "token_in", "both"],
    "prev_len": [0, 1, 11, -1, True],
    "delta_len": [0, 2, 3, 4],
    "cum_len": [0, 3, 13, 14, 15],
    "weight_version": [-1, 1, 2**64 - 1, 2**64],
    "digest": ["a" * 64, "A" * 64, "a" * 63, None],
    "extras_digest": ["b" * 64, "x"],
    "chain_hash": ["c" * 64, None],
    "cumulative_hash": ["a" * 64, ""],
    "token_ids_delta": [[], [5, 6], [5, 6, 8], [5, -6, 7], [5, True, 7], [5, 6.0, 7], [5, 6, 2**64], [5, 6, 7, 8]],
    "token_mask_delta": [[0.0] * 3, [0.0, 1.0], [0.0, 0.5, 1.0], [0.0, 0, 1.0], [0.0, -0.0, 1.0], [0.0, math.nan, 1.0]],
    "generation_log_probs_delta": [
        [0.0, 0.0, -0.25],
        [-0.5, 0.0, -0.5],
        [0.0, -0.0, -0.5],
        [0.0, 0.0, math.nan],
        [0.0, 0.0, -math.inf],
        [0.0, 0.0, -1e39],
        [0.0, 0.0, -1],
        [0.0, 0.0],
    ],
    "extras": [{"routes": 1}],
    "unknown": [1],
}


def sealed(**changes):
    call = staged(token_ids_delta=[5, 6, 7], carried=2, **changes)
    call["extras_digest"] = staging.EMPTY_EXTRAS_DIGEST
    return {**call, "digest": staging.compute_staging_digest(**call)}


def variants():
    """Calls with one or two changed fields, some of them sealed anew."""
    for parent in (None, "parent"):
        call = sealed(parent_call_id=parent)
        yield call
        for name, values in CHANGES.items():
            for value in values:
                yield {**call, name: value}
        for (name, values), (other, others) in itertools.combinations(list(CHANGES.items())[:-2], 2):
            for changes in ({name: value, other: another} for value in values[:2] for another in others[:2]):
                changed = {**call, **changes}
                try:
                    digest = staging.compute_staging_digest(**{key: changed[key] for key in call if key != "digest"})
                except (TypeError, ValueError):
                    continue
                yield {"digest": digest, **changed} if "digest" in changes else {**changed, "digest": digest}


def outcomes(module):
    found = []
    for name, call in itertools.product(MODELS, variants()):
        model = getattr(module, name)
        for read, given in ((model.model_validate, call), (model.model_validate_json, json.dumps(call))):
            try:
                found.append(read(given).model_dump_json())
            except ValidationError as error:
                found.append([each["loc"] for each in error.errors()])
    return found


def test_it_is_taken_or_refused_as_by_the_published_one(nemo_gym):
    module = nemo_gym("staging.records")
    theirs = outcomes(module)
    assert sum(type(each) is str for each in theirs) > 100
    assert sum(type(each) is list for each in theirs) > 500
    gym.install()
    assert outcomes(module) == theirs
    gym.uninstall()
    assert outcomes(module) == theirs


@pytest.mark.parametrize("late", [False, True])
def test_the_validator_is_ours_while_installed(nemo_gym, late):
    if late:
        nemo_gym("staging.records")
    gym.install()
    call = {**sealed(), "digest": "a" * 64}
    for name in MODELS:
        model = getattr(nemo_gym("staging.records"), name)
        gym.install()
        with pytest.raises(ValidationError, match=f"digest is {'a' * 64}: {sealed()['digest']} is needed, that of the"):
            model.model_validate(call)
        gym.uninstall()
        with pytest.raises(ValidationError) as caught:
            model.model_validate(call)
        assert "is needed" not in str(caught.value)


def test_a_model_of_a_model_is_taken_along(nemo_gym):
    base = nemo_gym("staging.records").StagedCallSnapshot
    model = type("Snapshot", (base,), {})
    gym.install()
    with pytest.raises(ValidationError, match="is needed, that of the other fields"):
        model.model_validate({**sealed(), "digest": "a" * 64})
    assert model.model_validate(sealed()).token_ids_delta == [5, 6, 7]
