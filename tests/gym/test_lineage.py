"""The lineage store with arrays resolves as the published one, reads a line once, and keeps no more than it may."""

import asyncio
import inspect
import sys

import pytest
from support.captured import Captured
from tokenrecords import gym
from tokenrecords.gym import reading
from tokenrecords.gym.lineage import ArrayParents


def resolve(store, rollout_id, request):
    return asyncio.run(store.resolve(rollout_id, request))


def plain(resolution):
    match = resolution.match
    return (
        str(resolution.status),
        resolution.reason,
        match and (match.model_call_id, match.cumulative_token_ids, match.digest, match.staging_chain, match.prev_len),
    )


@pytest.fixture
def lines_read(monkeypatch):
    """The places of the lines that were read once more."""
    places = []
    lines_at = reading.lines_at

    def watched(store, rollout_id, asked):
        places.extend(asked)
        return lines_at(store, rollout_id, asked)

    monkeypatch.setattr(reading, "lines_at", watched)
    return places


def test_the_packages_own_conformance_run(nemo_gym, tmp_path):
    store = nemo_gym("store").TokenCaptureStore
    checks = nemo_gym("conformance").run_conformance(
        lambda: store(tmp_path), lambda: store(tmp_path), lambda: gym.FileLineageStore(tmp_path)
    )
    assert "lineage_visibility" in asyncio.run(checks)


def test_taking_the_store_from_here_installs(nemo_gym, tmp_path):
    theirs = nemo_gym("lineage").FileLineageStore
    assert issubclass(gym.FileLineageStore, theirs)
    assert gym.FileLineageStore is gym.FileLineageStore
    assert issubclass(gym.FileLineageStore, ArrayParents)
    assert nemo_gym("lineage").FileLineageStore is theirs
    assert gym.status().release == "0.7.0"
    assert gym.FileLineageStore(tmp_path).is_process_shared()
    store = gym.FileLineageStore
    assert f"{store.__module__}:{store.__qualname__}" == "tokenrecords.gym:FileLineageStore"
    ours, published = (inspect.signature(kind.__init__).parameters for kind in (store, theirs))
    assert {name: (each.kind, each.default) for name, each in ours.items()} == {
        name: (each.kind, each.default) for name, each in published.items()
    }


@pytest.mark.parametrize("late", [False, True])
def test_the_published_name_means_it_where_that_is_asked_for(nemo_gym, tmp_path, late):
    if late:
        theirs = nemo_gym("lineage").FileLineageStore
    installed = gym.install(lineage_store=True)
    assert ("nemo_gym.token_id_capture.lineage.FileLineageStore" in installed.rebound) is late
    ours = nemo_gym("lineage").FileLineageStore
    assert issubclass(ours, ArrayParents)
    assert gym.FileLineageStore is ours
    captured = Captured(nemo_gym, tmp_path)
    captured.branches("r")
    match = resolve(ours(tmp_path), "r", captured.continued("r", "c")).match
    assert match.cumulative_token_ids == tuple(captured.sequences["r", "c"])
    gym.uninstall()
    back = nemo_gym("lineage").FileLineageStore
    assert not issubclass(back, ArrayParents)
    assert not late or back is theirs


@pytest.mark.skipif(sys.version_info < (3, 12), reason="that package looks for what protocols have since 3.12")
def test_a_configuration_names_it(nemo_gym, tmp_path):
    settings = {
        "enabled": True,
        "dir": str(tmp_path),
        "lineage_store": "tokenrecords.gym:FileLineageStore",
        "lineage_store_kwargs": {"root": str(tmp_path), "max_cached_tokens": 5},
    }
    config = nemo_gym("config").TokenIdCaptureConfig.model_validate({"token_id_capture": settings})
    assert type(config.build_lineage_store()) is gym.FileLineageStore


def test_the_module_has_no_other_lazy_names():
    with pytest.raises(AttributeError, match=r"^module 'tokenrecords.gym' has no attribute 'FileStore'$"):
        _ = gym.FileStore


@pytest.mark.parametrize("limit", [8_000_000, 9, 1])
def test_it_resolves_as_the_published_store(nemo_gym, tmp_path, limit, lines_read):
    captured = Captured(nemo_gym, tmp_path)
    for rollout_id in ("r1", "r2"):
        captured.branches(rollout_id)
    asked = [(rollout_id, captured.continued(rollout_id, call_id)) for rollout_id, call_id in captured.sequences]
    asked += [(rollout_id, request[:-1]) for rollout_id, request in asked]
    asked += [("r1", []), ("r1", [{"role": "assistant", "content": "other"}]), ("missing", asked[0][1])]
    theirs = nemo_gym("lineage").FileLineageStore(tmp_path)
    wanted = [plain(resolve(theirs, *each)) for each in asked]
    assert sum(match is not None for *_, match in wanted) == 28

    store = gym.FileLineageStore(tmp_path, max_cached_tokens=limit)
    for turn in range(2):
        for each, result in zip(asked, wanted, strict=True):
            found = resolve(store, *each)
            assert plain(found) == result, turn
            assert found.match is None or {type(id_) for id_ in found.match.cumulative_token_ids} == {int}
            assert len(store._sequences) <= limit
    assert bool(lines_read) is (limit < 100)
    asyncio.run(store.close())
    assert len(store._sequences) == 0
    assert plain(resolve(store, *asked[0])) == wanted[0]


def test_lines_that_come_later_are_seen_and_read_once(nemo_gym, tmp_path, lines_read):
    captured = Captured(nemo_gym, tmp_path)
    store = gym.FileLineageStore(tmp_path)
    parent = None
    for turn in range(5):
        captured.call("r", f"c{turn}", parent, prompt=[turn], generation=[10 + turn], delta=bool(turn % 2))
        parent = f"c{turn}"
        match = resolve(store, "r", captured.continued("r", parent)).match
        assert match.cumulative_token_ids == tuple(captured.sequences["r", parent])
    assert lines_read == []


def test_a_file_that_was_replaced_is_read_anew(nemo_gym, tmp_path):
    captured = Captured(nemo_gym, tmp_path)
    captured.call("r", "a", prompt=[1, 2, 3], generation=[4])
    store = gym.FileLineageStore(tmp_path)
    path = captured.store.path_for("r")
    request = captured.continued("r", "a")
    assert resolve(store, "r", request).match.cumulative_token_ids == (1, 2, 3, 4)
    other = Captured(nemo_gym, tmp_path / "other")
    other.call("r", "a", prompt=[5], generation=[6])
    other.store.path_for("r").replace(path)
    assert resolve(store, "r", request).match.cumulative_token_ids == (5, 6)
    path.write_bytes(b"")
    assert str(resolve(store, "r", request).status) == "unresolved"
    path.unlink()
    assert str(resolve(store, "r", request).status) == "unresolved"


def test_a_line_that_is_another_by_now_is_refused(nemo_gym, tmp_path):
    captured = Captured(nemo_gym, tmp_path)
    captured.call("r", "a", prompt=[1, 2, 3], generation=[4])
    store = gym.FileLineageStore(tmp_path, max_cached_tokens=1)
    request = captured.continued("r", "a")
    path = captured.store.path_for("r")
    line = path.read_bytes()
    assert resolve(store, "r", request).match is not None
    path.write_bytes(line.replace(b"[1,2,3]", b"[1,2,9]"))
    with pytest.raises(ValueError, match=r"^call a has other ids than its digest says$"):
        resolve(store, "r", request)
    path.write_bytes(line.replace(b'"model_call_id":"a"', b'"model_call_id":"z"'))
    with pytest.raises(ValueError, match=r"^call a is not at its place any more: z is$"):
        resolve(store, "r", request)


def test_what_can_not_be_put_together_is_refused(nemo_gym, tmp_path):
    captured = Captured(nemo_gym, tmp_path)
    captured.call("r", "a", prompt=[1], generation=[2])
    captured.call("r", "b", "a", prompt=[3], generation=[4], delta=True)
    path = captured.store.path_for("r")
    path.write_bytes(path.read_bytes().splitlines(keepends=True)[1])
    store = gym.FileLineageStore(tmp_path)
    with pytest.raises(ValueError, match=r"^delta record b has the parent 'a': it was not read$"):
        resolve(store, "r", captured.continued("r", "b"))
    node = store._cache["r"][2].by_call_id["b"]
    with pytest.raises(ValueError, match=r"^call b is at no known place: a record that was read is needed$"):
        store._materialize("r", node, {}, None)
    node.parent_call_id = "b"
    with pytest.raises(ValueError, match=r"^call b has more than 10,000 delta records before it: a root is needed$"):
        store._materialize("r", node, {"b": 0}, store._cache["r"][2])
    path.write_bytes(path.read_bytes().replace(b"[3]", b"[-3]").replace(b"[4]", b"[18446744073709551615]"))
    with pytest.raises(ValueError, match=r"^a record holds ids that no integer dtype holds together$"):
        resolve(gym.FileLineageStore(tmp_path), "r", captured.continued("r", "b"))


def test_a_line_that_is_read_again_is_kept(nemo_gym, tmp_path, lines_read):
    captured = Captured(nemo_gym, tmp_path)
    store = gym.FileLineageStore(tmp_path, max_cached_tokens=5)
    for rollout_id in ("r1", "r2"):
        captured.call(rollout_id, "a", prompt=[1, 2, 3], generation=[4])
        assert resolve(store, rollout_id, captured.continued(rollout_id, "a")).match is not None
    for _ in range(2):
        assert resolve(store, "r1", captured.continued("r1", "a")).match.cumulative_token_ids == (1, 2, 3, 4)
        assert lines_read == [0]


def test_a_call_without_a_digest_is_taken_as_it_is(nemo_gym, tmp_path):
    captured = Captured(nemo_gym, tmp_path)
    captured.call("r", "a", prompt=[1, 2, 3], generation=[4])
    store = gym.FileLineageStore(tmp_path)
    assert resolve(store, "r", captured.continued("r", "a")).match is not None
    store._cache["r"][2].by_call_id["a"].digest = None
    assert resolve(store, "r", captured.continued("r", "a")).match.cumulative_token_ids == (1, 2, 3, 4)


def test_a_line_that_is_a_delta_by_now_is_another_one(nemo_gym, tmp_path):
    captured = Captured(nemo_gym, tmp_path)
    captured.call("r", "a", prompt=[1, 2, 3], generation=[4])
    captured.call("r", "b", "a", prompt=[5], generation=[6])
    store = gym.FileLineageStore(tmp_path, max_cached_tokens=1)
    request = captured.continued("r", "b")
    assert resolve(store, "r", request).match.cumulative_token_ids == (1, 2, 3, 4, 5, 6)
    path = captured.store.path_for("r")
    first, second = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(first + second.replace(b'"prompt_is_delta":false', b'"prompt_is_delta":true '))
    with pytest.raises(ValueError, match=r"^call b is not at its place any more: b is$"):
        resolve(store, "r", request)
