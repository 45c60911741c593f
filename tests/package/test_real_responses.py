"""Seven served responses of real models (from NeMo Gym's example data, Apache-2.0), with their expected values."""

import copy

import numpy as np
import pytest
from support import oracle
from support.served import CALLS, capture
from tokenrecords import (
    TOKEN_FIELDS,
    ParentResolutionStatus,
    TokenEntry,
    compute_digest,
    cumulative_tokens,
    extract_token_fields,
    resolve_parent,
    response_to_output_items,
    stamp_lineage,
    strip_token_fields,
)

each_call = pytest.mark.parametrize("call", CALLS, ids=lambda call: f"{call['rollout_id']} {call['model_call_id']}")


def test_all_seven_are_here():
    assert len(CALLS) == 7
    assert sum("choices" in call["response"] for call in CALLS) == 2


@each_call
def test_items(call):
    response, expected = call["response"], call["expected"]
    before = copy.deepcopy(response)
    items = response_to_output_items(response)
    stripped, index = strip_token_fields(items)
    assert index == expected["token_item_index"]
    assert [item["type"] for item in stripped] == expected["output_item_types"]
    assert not any(name in item for item in stripped for name in TOKEN_FIELDS)
    fields = extract_token_fields(response)
    assert all(items[index].get(name) is fields[name] for name in TOKEN_FIELDS)
    assert response == before


@each_call
@pytest.mark.parametrize("dtype", [None, "int32", "int64", "uint32", ">i8"])
def test_digests(call, dtype):
    expected = call["expected"]
    entry = capture(call)
    if dtype:
        entry = entry.as_arrays(dtype)
    assert len(entry.prompt_token_ids) == expected["prompt_len"]
    assert len(entry.generation_token_ids) == len(entry.generation_log_probs) == expected["generation_len"]
    assert stamp_lineage(entry, None, ParentResolutionStatus.ROOT) is entry
    assert entry.cum_len == expected["cum_len"]
    assert entry.digest == expected["digest"]
    assert compute_digest(entry.prompt_token_ids) == expected["prompt_digest"]
    assert compute_digest(cumulative_tokens(entry)) == expected["digest"]
    assert oracle.digest(list(cumulative_tokens(entry))) == expected["digest"]


@each_call
def test_json(call):
    entry = capture(call)
    arrays = entry.as_arrays()
    assert arrays.model_dump_json() == entry.model_dump_json()
    assert TokenEntry.model_validate_json(entry.model_dump_json()) == entry == arrays
    fields = extract_token_fields(call["response"])
    assert entry.generation_log_probs == fields["generation_log_probs"]
    assert np.array_equal(arrays.generation_log_probs, fields["generation_log_probs"])


@pytest.mark.parametrize("dtype", [None, np.int32])
def test_parents(dtype):
    # The second call of both tool rollouts shares 3,089 ids with the first, and then differs from its 3,583.
    earlier = []
    for call in CALLS:
        entry = capture(call)
        if dtype:
            entry = entry.as_arrays(dtype)
        parent, status, reason = resolve_parent(entry, earlier)
        first = call["model_call_id"] == "call-0"
        assert parent is None
        assert status == ("root" if first else "unresolved")
        assert reason == ("" if first else "no_prefix_parent")
        earlier.append(stamp_lineage(entry, parent, status))


def test_a_named_parent_that_does_not_fit():
    first, second = (capture(call) for call in CALLS if call["rollout_id"] == "tools-0")
    second.parent_call_id = "call-0"
    assert resolve_parent(second, [first]) == (None, "unresolved", "prefix_mismatch")


def test_a_continued_call():
    first = capture(CALLS[0])
    second = capture(CALLS[0], prompt_token_ids=[*cumulative_tokens(first), 151_645, 198])
    second.model_call_id = "call-1"
    for a, b in ((first, second), (first.as_arrays(), second), (first, second.as_arrays("u4"))):
        assert resolve_parent(b, [a]) == ("call-0", "resolved", "")
