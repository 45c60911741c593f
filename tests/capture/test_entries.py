"""Stamped records of a served response."""

import time
from typing import Any

import numpy as np
import pytest
from support.payloads import native_chat, sglang_sample, vllm_chat, vllm_choice
from support.served import CALLS
from tokenrecords import ParentResolutionStatus, TokenEntry, entries_from_response, stamp_lineage


def entries(payload: Any, **options: Any) -> list[TokenEntry]:
    return entries_from_response(payload, rollout_id="r", model_call_id="c", **options)


def test_entry_of_one_choice():
    [entry] = entries(vllm_chat(), parent=None, weight_version="7")
    assert (entry.model_call_id, entry.model, entry.response_id, entry.created_at) == (
        "c",
        "m",
        "chatcmpl-9",
        1700000000.0,
    )
    assert (entry.finish_reason, entry.weight_version) == ("stop", "7")
    assert (entry.parent_resolution, entry.parent_call_id, entry.cum_len) == (
        ParentResolutionStatus.ROOT,
        None,
        4,
    )


@pytest.mark.parametrize("created", [{}, {"created": 0}, {"created": None}])
def test_time_of_capture(created, monkeypatch):
    monkeypatch.setattr(time, "time", lambda: 7.5)
    payload = {k: v for k, v in vllm_chat().items() if k != "created"}
    [entry] = entries({**payload, **created})
    assert entry.created_at == 7.5
    assert entries({**payload, **created}, created_at=5.0, model="other")[0].created_at == 5.0


def test_a_time_that_is_no_number_is_the_time_of_capture(monkeypatch):
    monkeypatch.setattr(time, "time", lambda: 7.5)
    [entry] = entries({"created": float("nan"), **native_chat()})
    assert entry.created_at == 7.5


def test_a_parent_that_is_no_entry():
    with pytest.raises(TypeError, match=r"^parent is str: a TokenEntry"):
        entries_from_response(native_chat(), rollout_id="r", model_call_id="c", parent="c0")
    with pytest.raises(TypeError, match=r"^parent_call_id can't be given: .* parent="):
        entries_from_response(native_chat(), rollout_id="r", model_call_id="c", parent_call_id="c0")


def test_a_parent_of_another_rollout():
    [parent] = entries(vllm_chat(), parent=None)
    longer = vllm_chat(prompt_token_ids=[1, 7, 41, 2, 5])
    for delta in (False, True):
        with pytest.raises(ValueError, match=r"^parent is a call of rollout 'r': one of 's' is needed$"):
            entries_from_response(longer, rollout_id="s", model_call_id="d", parent=parent, delta=delta)


def test_entries_of_several_choices():
    payload = vllm_chat(vllm_choice(1, [9], [-1.0], finish_reason="length"), vllm_choice(0))
    found = entries(payload)
    assert [(e.model_call_id, e.finish_reason) for e in found] == [("c#0", "stop"), ("c#1", "length")]
    assert all(e.parent_resolution is None and e.digest for e in found)


def test_no_entries_without_tokens():
    assert entries({"choices": [{"message": {"content": "x"}}]}) == []


@pytest.mark.parametrize("convert", [list, np.array])
@pytest.mark.parametrize("delta", [False, True])
def test_parent(convert, delta):
    [first] = entries(vllm_chat(), parent=None, delta=delta)
    assert not first.prompt_is_delta
    longer = vllm_chat(prompt_token_ids=convert([1, 7, 41, 2, 5]))
    [second] = entries_from_response(longer, rollout_id="r", model_call_id="d", parent=first, delta=delta)
    assert (second.parent_call_id, second.parent_resolution) == ("c", ParentResolutionStatus.RESOLVED)
    assert (second.cum_len, second.prompt_is_delta) == (7, delta)
    assert list(second.prompt_token_ids) == ([5] if delta else [1, 7, 41, 2, 5])
    longest = vllm_chat(prompt_token_ids=convert([1, 7, 41, 2, 5, 41, 2, 6]))
    [third] = entries_from_response(longest, rollout_id="r", model_call_id="e", parent=second, delta=delta)
    assert (third.parent_call_id, third.cum_len) == ("d", 10)
    whole = stamp_lineage(
        third.model_copy(update={"prompt_token_ids": [1, 7, 41, 2, 5, 41, 2, 6], "prompt_is_delta": False}),
        "d",
    )
    assert whole.digest == entries(longest)[0].digest
    for other in ([1, 7, 41], [1, 7, 41, 3, 5, 41, 2, 6]):
        [apart] = entries(vllm_chat(prompt_token_ids=convert(other)), parent=second, delta=delta)
        assert (apart.parent_resolution, apart.parent_resolution_reason) == ("unresolved", "prefix_mismatch")
        assert (apart.parent_call_id, list(apart.prompt_token_ids)) == (None, other)


def test_delta_parent_without_digest():
    [first] = entries(vllm_chat(), parent=None)
    lost = first.model_copy(update={"prompt_is_delta": True, "digest": None})
    [entry] = entries(vllm_chat(prompt_token_ids=[1, 7, 41, 2, 5]), parent=lost)
    assert entry.parent_resolution_reason == "prefix_mismatch"


@pytest.mark.parametrize("bad", [-9, None])
def test_entry_of_a_prompt_with_a_bad_id(bad):
    payload = native_chat(prompt_token_ids=[1, bad])
    with pytest.raises(ValueError, match=r"chat choice 0: prompt_token_ids\[1\] is"):
        entries(payload)
    with pytest.raises(ValueError, match="string"):
        entries(vllm_chat(), model=["m"])


def test_arguments_of_entries_from_response():
    with pytest.raises(ValueError, match="requires parent"):
        entries(vllm_chat(), delta=True)
    with pytest.raises(TypeError, match="digest is read"):
        entries(vllm_chat(), digest="x")
    with pytest.raises(TypeError, match=r"^cum_len is read"):
        entries(vllm_chat(), digest="x", cum_len=1)


@pytest.mark.parametrize("served", CALLS)
def test_real_response(served):
    expected = served["expected"]
    [entry] = entries_from_response(
        served["response"],
        rollout_id=served["rollout_id"],
        model_call_id=served["model_call_id"],
        parent=None,
    )
    assert entry.token_item_index == expected["token_item_index"]
    assert [item["type"] for item in entry.output_items] == expected["output_item_types"]
    assert (entry.cum_len, entry.digest) == (expected["cum_len"], expected["digest"])


TWO = vllm_chat(vllm_choice(0), vllm_choice(1, [9], [-1.0]))


def test_choices_as_rollouts():
    found = entries(TWO, parent=None, choices="rollouts")
    assert [(e.rollout_id, e.model_call_id, e.generation_token_ids) for e in found] == [
        ("r.choice-0", "c", [41, 2]),
        ("r.choice-1", "c", [9]),
    ]
    [alone] = entries(vllm_chat(), choices="rollouts")
    assert (alone.rollout_id, alone.model_call_id) == ("r", "c")
    [parent] = entries_from_response(native_chat(), rollout_id="r", model_call_id="p", parent=None)
    with pytest.raises(ValueError, match=r"^parent is a call of rollout 'r': rollouts of their own have none$"):
        entries(TWO, parent=parent, choices="rollouts")
    [linked] = entries(vllm_chat(prompt_token_ids=[1, 7, 41, 2, 5]), parent=parent, choices="rollouts")
    assert (linked.rollout_id, linked.parent_call_id) == ("r", "p")
    with pytest.raises(ValueError, match=r"^choices is 'samples': 'calls' or 'rollouts' is needed$"):
        entries(TWO, choices="samples")


def test_the_prompt_of_the_caller():
    bare = {**TWO, "prompt_token_ids": None}
    found = entries(bare, prompt_token_ids=[[1], [7, 8]])
    assert [entry.prompt_token_ids for entry in found] == [[1], [7, 8]]


@pytest.mark.parametrize("mask", [[1, 0], np.array([1, 0])])
def test_a_mask_of_the_caller_is_checked(mask):
    [entry] = entries(native_chat(generation_loss_mask=[1, 1]), generation_loss_mask=mask)
    assert entry.generation_loss_mask is mask
    for wrong in ([1], [1, 2], "10", 5):
        with pytest.raises(ValueError, match="generation_loss_mask"):
            entries(native_chat(), generation_loss_mask=wrong)
    [entry] = entries(native_chat(generation_loss_mask=[1, 1]), generation_loss_mask=None)
    assert entry.model_extra["generation_loss_mask"] is None


def test_what_a_payload_says_of_the_call():
    head = {"created_at": 3.0, "created": 4, "request_id": "q"}
    [entry] = entries({**native_chat(), **head})
    assert (entry.created_at, entry.response_id, entry.model) == (3.0, "q", "")
    [entry] = entries({**native_chat(), **head, "created_at": None, "id": "i", "model": "m"})
    assert (entry.created_at, entry.response_id, entry.model) == (4.0, "i", "m")


def test_samples_have_their_own_response_ids():
    found = entries([sglang_sample(id="a"), sglang_sample(id="b")], created_at=1.0)
    assert [(entry.model_call_id, entry.response_id) for entry in found] == [("c#0", "a"), ("c#1", "b")]
    assert entries(sglang_sample(id="a"), created_at=1.0, response_id="x")[0].response_id == "x"
    assert entries({**sglang_sample(id="a"), "id": "whole"}, created_at=1.0)[0].response_id == "a"


@pytest.mark.parametrize(
    "name",
    [
        *("generation_token_ids", "generation_log_probs", "cum_len", "digest"),
        *("parent_resolution_reason", "prompt_is_delta"),
    ],
)
def test_what_is_read_or_computed_can_not_be_given(name):
    with pytest.raises(TypeError, match=rf"^{name} is read from the response"):
        entries(vllm_chat(), **{name: None})


@pytest.mark.parametrize("name", ["parent_call_id", "parent_resolution"])
def test_a_parent_is_found_not_given(name):
    with pytest.raises(TypeError, match=rf"^{name} can't be given: it is found by the tokens of parent="):
        entries(vllm_chat(), **{name: None})


def test_a_delta_keeps_no_more_than_its_ids():
    [first] = entries(vllm_chat(), parent=None)
    [second] = entries(vllm_chat(prompt_token_ids=np.array([1, 7, 41, 2, 5])), parent=first, delta=True)
    assert second.prompt_token_ids.tolist() == [5]
    assert second.prompt_token_ids.base is None


LONGER = vllm_chat(prompt_token_ids=[1, 7, 41, 2, 5])


def later(payload: Any = LONGER, **options: Any) -> TokenEntry:
    [entry] = entries_from_response(payload, rollout_id="r", model_call_id="d", **options)
    return entry


@pytest.mark.parametrize("delta", [False, True])
def test_a_parent_among_the_earlier_calls(delta):
    [first] = entries(vllm_chat(), parent=None)
    for earlier in ([first], (first,), iter([first])):
        found = later(earlier=earlier, delta=delta)
        assert (found.parent_call_id, found.parent_resolution) == ("c", ParentResolutionStatus.RESOLVED)
        assert (found.cum_len, found.prompt_is_delta) == (7, delta)
        assert found.prompt_token_ids == ([5] if delta else [1, 7, 41, 2, 5])


def test_no_parent_among_the_earlier_calls():
    [first] = entries(vllm_chat(), parent=None)
    for earlier, payload, status, reason in (
        ([], LONGER, "root", ""),
        ([first], vllm_chat(), "root", ""),
        ([first], vllm_chat(prompt_token_ids=[9]), "unresolved", "no_prefix_parent"),
    ):
        found = later(payload, earlier=earlier, delta=True)
        assert (found.parent_resolution, found.parent_resolution_reason or "") == (status, reason)
        assert (found.parent_call_id, found.prompt_is_delta) == (None, False)


def test_each_choice_looks_through_all_earlier_calls():
    [first] = entries(vllm_chat(), parent=None)
    two = vllm_chat(vllm_choice(0), vllm_choice(1), prompt_token_ids=[1, 7, 41, 2, 5])
    found = entries_from_response(two, rollout_id="r", model_call_id="d", earlier=iter([first]))
    assert [entry.parent_call_id for entry in found] == ["c", "c"]


@pytest.mark.parametrize("earlier", [[], ()])
def test_a_parent_and_earlier_calls_exclude_each_other(earlier):
    [first] = entries(vllm_chat(), parent=None)
    for parent in (None, first):
        with pytest.raises(ValueError, match=r"^parent and earlier exclude each other: the parent is found among"):
            later(parent=parent, earlier=earlier)


def test_what_a_response_says_of_its_tokens_is_read_as_it_is_asked():
    payload = {**vllm_chat(), "usage": {"completion_tokens": 9}}
    with pytest.raises(ValueError, match="the engine counted 9"):
        later(payload)
    assert later(payload, check_counts=False).cum_len == 4


def test_a_batch_of_one_says_nothing_of_the_call():
    sample = {**sglang_sample(id=None), "id": "x", "model": "m", "created_at": 3.0}
    [entry] = entries([sample], created_at=1.0)
    assert (entry.response_id, entry.model) == (None, "")
