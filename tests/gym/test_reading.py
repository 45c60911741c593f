"""The methods that read files of records give what the published ones give, on objects made before and after."""

import asyncio
from pathlib import Path

import numpy as np
import pytest
from support.captured import Captured
from support.factories import make_entry
from tokenrecords import gym
from tokenrecords.gym import reading


@pytest.fixture
def captured(nemo_gym, tmp_path):
    captured = Captured(nemo_gym, tmp_path)
    captured.branches("r")
    with captured.store.path_for("r").open("ab") as file:
        file.write(b"\n  \n")
    return captured


def dumped(entries):
    return [entry.model_dump(mode="json") for entry in entries]


def test_the_store_reads_the_same_records(captured):
    theirs = captured.store.read_entries("r")
    installed = gym.install()
    ours = captured.store.read_entries("r")
    assert "nemo_gym.token_id_capture.store.TokenCaptureStore._read_entries_unlocked" in installed.rebound
    assert dumped(ours) == dumped(theirs)
    assert len(ours) == 7
    assert {type(entry) for entry in ours}.isdisjoint({type(entry) for entry in theirs})
    for entry in ours:
        for name in ("prompt_token_ids", "generation_token_ids", "generation_log_probs"):
            assert type(getattr(entry, name)) is list
    assert captured.store.read_entries("missing") == []
    gym.uninstall()
    assert type(captured.store.read_entries("r")[0]) is type(theirs[0])


def test_the_lineage_store_reads_the_same_records(nemo_gym, captured, tmp_path):
    lineage = nemo_gym("lineage")
    own = {name: value for name, value in vars(lineage.FileLineageStore).items() if callable(value)}
    calls = [captured.continued("r", call_id) for _, call_id in captured.sequences]
    theirs = [asyncio.run(lineage.FileLineageStore(tmp_path).resolve("r", request)) for request in calls]
    store = lineage.FileLineageStore(tmp_path)
    places = [place for _, place in store._fetch_new_entries("r", None)[0]]
    loaded = dumped(store._load_entries("r", places))
    gym.install()
    items, cursor = store._fetch_new_entries("r", None)
    assert [place for _, place in items] == places
    assert dumped(entry for entry, _ in items) == loaded
    assert store._fetch_new_entries("r", cursor) == ([], cursor)
    assert store._fetch_new_entries("missing", None) == ([], None)
    assert dumped(store._load_entries("r", places)) == loaded
    assert dumped([store._load_entry("r", places[2])]) == loaded[2:3]
    for wrong in [(cursor[0] + 1, 0), (cursor[0], -1), (cursor[0], cursor[1] + 1)]:
        with pytest.raises(lineage.IncrementalLineageStore.CursorReset):
            store._fetch_new_entries("r", wrong)
    with pytest.raises(lineage.IncrementalLineageStore.CursorReset):
        store._fetch_new_entries("missing", cursor)
    for request, wanted in zip(calls, theirs, strict=True):
        match = asyncio.run(lineage.FileLineageStore(tmp_path).resolve("r", request)).match
        assert match.cumulative_token_ids == wanted.match.cumulative_token_ids
        assert {type(id_) for id_ in match.cumulative_token_ids} == {int}
    gym.uninstall()
    assert {name: value for name, value in vars(lineage.FileLineageStore).items() if callable(value)} == own


def test_behind_an_interface_only_known_files_are_replaced(nemo_gym, tmp_path, monkeypatch):
    """A file with other bytes keeps its methods; the records are replaced all the same."""
    store = nemo_gym("store")
    other = tmp_path / "store.py"
    other.write_bytes(Path(store.__file__).read_bytes() + b"\n")
    monkeypatch.setattr(store, "__file__", str(other))
    own = store.TokenCaptureStore._read_entries_unlocked
    installed = gym.install()
    assert store.__name__ not in installed.modules
    assert "nemo_gym.token_id_capture.records" in installed.modules
    assert store.TokenCaptureStore._read_entries_unlocked is own


def record(prompt, generation):
    return make_entry(
        prompt_token_ids=np.array(prompt),
        generation_token_ids=np.array(generation),
        generation_log_probs=np.full(len(generation), -0.5),
    )


@pytest.mark.parametrize(
    ("prompt", "shared"),
    [
        ([1000, 2000, 3000, 4000], 3),
        ([1000, 2000, 3000], 3),
        ([1000, 2000, 9000, 4000], 0),
        ([1000, 9000, 3000, 4000], 0),
        ([1000, 2000], 0),
        ([1000], 0),
        ([], 0),
        ([2**63, 2000, 3000], 0),
    ],
)
def test_ids_that_continue_the_record_before_are_the_same_objects(prompt, shared):
    entries = [record([1000, 2000], [3000]), record(np.array(prompt, np.uint64), [5000])]
    first, second = reading.with_lists(entries)
    assert [first.prompt_token_ids, first.generation_token_ids, first.generation_log_probs] == [
        [1000, 2000],
        [3000],
        [-0.5],
    ]
    assert [second.prompt_token_ids, second.generation_token_ids] == [prompt, [5000]]
    assert type(second.prompt_token_ids) is list
    before = {id(id_) for id_ in first.prompt_token_ids + first.generation_token_ids}
    assert sum(id(id_) in before for id_ in second.prompt_token_ids) == shared


def test_each_record_is_compared_with_the_one_before_it():
    entries = [record([1000], [2000]), record([3000], [4000]), record([3000, 4000, 5000], []), record([1000, 2000], [])]
    _, second, third, fourth = reading.with_lists(entries)
    assert third.prompt_token_ids[1] is second.generation_token_ids[0]
    assert fourth.prompt_token_ids == [1000, 2000]


def test_ids_that_no_dtype_holds_are_lists_already():
    entries = [make_entry(prompt_token_ids=[2**64], generation_token_ids=[1], generation_log_probs=[-0.5])] * 2
    assert [entry.prompt_token_ids for entry in reading.with_lists(entries)] == [[2**64], [2**64]]
