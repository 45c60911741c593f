"""The builder gives what the published one gives, in its classes: by what is found here, or by itself where it must."""

import dataclasses
import random

import numpy as np
import pytest
from support.gym_rollouts import Drawn
from support.watch import threads_asked
from tokenrecords import TokenEntry, gym
from tokenrecords.gym.building import prefix_merging


def plain(value):
    """A result with all that it holds, in order."""
    if dataclasses.is_dataclass(value):
        fields = {field.name: plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
        return type(value).__name__, fields
    if isinstance(value, list):
        return [plain(item) for item in value]
    return list(value.items()) if isinstance(value, dict) else value


def build(function, drawn, terminal):
    try:
        return plain(function(drawn.entries, terminal))
    except ValueError as error:
        return str(error)


@pytest.mark.parametrize(("broken", "by_itself"), [(0.0, (20, 100)), (0.03, (200, 500)), (0.3, (600, 1000))])
def test_it_builds_as_the_published_one(nemo_gym, broken, by_itself):
    own = nemo_gym("builder").prefix_merging
    asked = []
    ours = prefix_merging(lambda *arguments: asked.append(arguments) or own(*arguments))
    for seed in range(1000):
        drawn = Drawn(random.Random(seed), nemo_gym("records"), broken)
        terminal = drawn.terminal()
        assert build(ours, drawn, terminal) == build(own, drawn, terminal), seed
    assert by_itself[0] <= len(asked) <= by_itself[1]


@pytest.fixture
def conversation(nemo_gym):
    """A rollout of two calls."""
    records = nemo_gym("records")
    first = records.TokenEntry(
        rollout_id="r",
        model_call_id="a",
        prompt_token_ids=[1, 2],
        generation_token_ids=[3],
        generation_log_probs=[-0.5],
        parent_resolution="root",
        response_id="response",
    )
    second = first.model_copy(
        update={
            "model_call_id": "b",
            "parent_call_id": "a",
            "parent_resolution": records.ParentResolutionStatus.RESOLVED,
            "prompt_token_ids": [1, 2, 3, 4, 5],
        }
    )
    return [records.stamp_lineage(first, None, parent_resolution=first.parent_resolution), second]


def test_records_are_handed_on_as_they_are(conversation):
    built = prefix_merging(None)(conversation)
    [chain] = built.chains
    assert [link.entry for link in chain.links] == conversation
    assert all(link.entry is entry for link, entry in zip(chain.links, conversation, strict=True))
    assert [link.interstitial for link in chain.links] == [[], [4, 5]]
    assert chain.root_prompt == [1, 2]
    assert chain.root_prompt is not conversation[0].prompt_token_ids
    chain.validate()


def test_delta_records_get_their_prompt_as_a_list(conversation):
    first, second = conversation
    delta = second.model_copy(update={"prompt_token_ids": [4, 5], "prompt_is_delta": True})
    [chain] = prefix_merging(None)([first, delta]).chains
    assert chain.links[1].entry.prompt_token_ids == [1, 2, 3, 4, 5]
    assert type(chain.links[1].entry.prompt_token_ids) is list
    assert not chain.links[1].entry.prompt_is_delta
    assert chain.links[1].entry.response_id == "response"
    assert delta.prompt_is_delta


def test_arrays_are_taken(conversation):
    arrays = [TokenEntry(**entry.model_dump()).as_arrays(np.int64) for entry in conversation]
    [chain] = prefix_merging(None)(arrays).chains
    assert (chain.root_prompt, chain.links[1].interstitial) == ([1, 2], [4, 5])
    assert {type(id_) for id_ in chain.root_prompt} == {int}


def test_a_delta_record_of_arrays_gets_a_list_of_ints(conversation):
    first, second = (TokenEntry(**entry.model_dump()).as_arrays() for entry in conversation)
    delta = second.model_copy(update={"prompt_token_ids": np.array([4, 5]), "prompt_is_delta": True})
    [chain] = prefix_merging(None)([first, delta]).chains
    assert chain.links[1].entry.prompt_token_ids == [1, 2, 3, 4, 5]
    assert {type(id_) for id_ in chain.links[1].entry.prompt_token_ids} == {int}


def test_chains_that_share_a_call_share_its_record(conversation):
    first, second = conversation
    delta = second.model_copy(update={"prompt_token_ids": [4, 5], "prompt_is_delta": True})
    more = {"parent_call_id": "b", "prompt_is_delta": True}
    ends = [second.model_copy(update={"model_call_id": f"c{id_}", "prompt_token_ids": [id_], **more}) for id_ in (6, 7)]
    chains = prefix_merging(None)([first, delta, *ends]).chains
    assert [[link.entry.model_call_id for link in chain.links] for chain in chains] == [
        ["a", "b", "c6"],
        ["a", "b", "c7"],
    ]
    assert chains[0].links[1].entry is chains[1].links[1].entry


def test_of_two_records_of_a_call_the_first_is_used(nemo_gym, conversation):
    other = conversation[0].model_copy(update={"output_items": [{"type": "message"}]})
    entries = [*conversation, other]
    own = nemo_gym("builder").prefix_merging
    assert plain(prefix_merging(own)(entries)) == plain(own(entries))


def test_retries_stand_by_parent_then_by_prompt(nemo_gym, conversation):
    first, second = conversation
    retry = [call.model_copy(update={"model_call_id": f"{call.model_call_id}2"}) for call in (first, second)]
    longer = {"parent_call_id": None, "parent_resolution": first.parent_resolution, "prompt_token_ids": [8, 8, 8, 8, 8]}
    roots = [second.model_copy(update={"model_call_id": call_id, **longer}) for call_id in ("c", "c2")]
    entries = [*conversation, *retry, *roots]
    own = nemo_gym("builder").prefix_merging
    built = prefix_merging(None)(entries)
    assert plain(built) == plain(own(entries))
    assert built.notes.unresolved_retries == ["c", "c2", "b", "b2"]
    assert built.quarantined == ["a2", "c2", "b2"]


@pytest.mark.parametrize("late", [False, True])
def test_it_is_run_by_name(nemo_gym, conversation, late):
    if late:
        nemo_gym("builder")
    gym.install()
    builder = nemo_gym("builder")
    names = (
        "nemo_gym.token_id_capture.builder.prefix_merging",
        "nemo_gym.token_id_capture.builder._BUILDERS.prefix_merging",
    )
    assert set(names) <= set(gym.status().rebound)
    ours = builder.prefix_merging
    assert ours.__module__ == builder._BUILDERS["prefix_merging"].__module__ == "tokenrecords.gym.building"
    assert plain(builder.run_builder(conversation)) == plain(ours(conversation))
    gym.uninstall()
    assert builder.prefix_merging is builder._BUILDERS["prefix_merging"]
    assert builder.prefix_merging.__module__ == builder.__name__


def test_no_thread_is_started_beside_those_of_the_package(conversation, monkeypatch):
    asked = threads_asked(monkeypatch)
    prefix_merging(None)(conversation)
    assert set(asked) == {1}
