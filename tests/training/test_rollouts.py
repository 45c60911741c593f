"""The chains of many rollouts in one call."""

from __future__ import annotations

import re
import threading
import warnings
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.factories import as_arrays, call, conversation, make_entry
from support.watch import open_files, threads_are, threads_asked
from tokenrecords import RecordError, TokenEntry, build_chains, build_rollouts, group_by_rollout, write_jsonl
from tokenrecords._core import PendingDigests
from tokenrecords.arrow import write_parquet
from tokenrecords.training import rollouts

if TYPE_CHECKING:
    from pathlib import Path

    from tokenrecords import ChainBuild


def rollout(rollout_id: str, turns: int = 3, *, deltas: bool = False) -> list[TokenEntry]:
    return [entry.model_copy(update={"rollout_id": rollout_id}) for entry in conversation(turns, deltas=deltas)]


def shown(build: ChainBuild) -> Any:
    """All that a build holds, to compare."""
    chains = [
        (each.rollout_id, each.chain_id, each.call_ids, each.token_ids.tolist(), each.loss_mask.tolist(),
         each.log_probs.tolist(), each.spans.tolist())
        for each in build.chains
    ]  # fmt: skip
    return chains, build.main and build.main.chain_id, build.quarantined, build.notes, build.reasons


def one_by_one(entries: list[TokenEntry], terminals: dict[str, str] | None = None) -> list[Any]:
    groups = group_by_rollout(entries)
    return [shown(build_chains(group, terminal_call_id=(terminals or {}).get(key))) for key, group in groups.items()]


THREADS = pytest.mark.parametrize("threads", [1, 2, 5, None])


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_each_rollout_is_built_as_by_build_chains(data: st.DataObject) -> None:
    entries: list[TokenEntry] = []
    terminals: dict[str, str] = {}
    for number in range(data.draw(st.integers(0, 6))):
        calls = rollout(f"r{number}", data.draw(st.integers(1, 5)), deltas=data.draw(st.booleans()))
        kind = data.draw(st.sampled_from(["sound", "wrong digest", "missing parent", "retry", "arrays"]))
        if kind == "wrong digest":
            calls[0].digest = "0" * 64
        elif kind == "missing parent":
            del calls[0]
        elif kind == "retry":
            calls.append(calls[-1].model_copy(update={"model_call_id": "again"}))
        elif kind == "arrays":
            calls = as_arrays(calls)
        entries += calls
        if data.draw(st.booleans()) and calls:
            terminals[calls[0].rollout_id] = data.draw(st.sampled_from(["c0", "c1", "c2", "none"]))
    entries = data.draw(st.permutations(entries))
    want = one_by_one(entries, terminals)
    for threads in (1, 2, 5):
        assert [shown(build) for build in build_rollouts(entries, terminal_call_ids=terminals, threads=threads)] == want


@THREADS
def test_many_long_rollouts(threads: int | None) -> None:
    rng = np.random.default_rng(1)
    entries = []
    for number in range(30):
        ids = rng.integers(0, 150_000, 60_000, np.int32)
        calls = [call("a", ids[:-9], ids[-9:]), call("b", np.append(ids, [1, 2]), ids[:5], "a")]
        if number == 17:
            calls[0].digest = calls[1].digest
        entries += [each.model_copy(update={"rollout_id": f"r{number}"}) for each in calls]
    builds = build_rollouts(iter(entries), threads=threads)
    assert [shown(build) for build in builds] == one_by_one(entries)
    assert threads_are(there=False)


@THREADS
def test_paths_are_read(tmp_path: Path, threads: int | None) -> None:
    entries = rollout("b") + rollout("a", 5)
    paths = [tmp_path / "1.tokens.jsonl", tmp_path / "2.tokens.jsonl.gz"]
    for path, part in zip(paths, (entries[:4], entries[4:]), strict=True):
        write_jsonl(path, part)
    want = one_by_one(entries)
    for source in (tmp_path, str(tmp_path), paths, iter(paths)):
        assert [shown(build) for build in build_rollouts(source, threads=threads)] == want
    with paths[0].open("ab") as file:
        file.write(b"bad\n")
    with pytest.raises(RecordError, match=r"1\.tokens\.jsonl:5: Invalid JSON"):
        build_rollouts(tmp_path, threads=threads)
    with pytest.raises(FileNotFoundError):
        build_rollouts(tmp_path / "missing")


def test_a_bad_line_closes_the_file(tmp_path: Path) -> None:
    path = tmp_path / "r.tokens.jsonl"
    write_jsonl(path, rollout("r", 40))
    path.write_bytes(b"bad\n" + path.read_bytes() * 400)
    with pytest.raises(RecordError, match=r"r\.tokens\.jsonl:1: Invalid JSON") as caught:
        build_rollouts(path, threads=3)
    assert open_files(path) == [], caught  # whose frames hold what was read
    assert threads_are(there=False)


def test_no_rollouts() -> None:
    assert list(build_rollouts([])) == []
    assert list(build_rollouts(iter(()), terminal_call_ids={}, threads=2)) == []


def test_terminal_calls_of_rollouts_without_a_record_are_named_in_one_warning() -> None:
    entries = rollout("r")
    with pytest.warns(
        UserWarning, match=r"^terminal_call_ids names rollouts without a record \(1 of 2\): 's'$"
    ) as caught:
        builds = build_rollouts(entries, terminal_call_ids={"r": "c1", "s": "c0"})
    assert (len(caught), caught[0].filename) == (1, __file__)
    (build,) = builds
    assert build.main is not None
    assert build.main.call_ids == ["c0", "c1"]
    five = "'s0', 's1', 's2', 's3', 's4'"
    for count, shown_count, names in ((5, "5", five), (7, "7", f"{five}, ..."), (1_000, "1,000", f"{five}, ...")):
        message = re.escape(f"({shown_count} of {shown_count}): {names}")
        with pytest.warns(UserWarning, match=f"{message}$"):
            build_rollouts(entries, terminal_call_ids={f"s{i}": "c" for i in range(count)})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        build_rollouts(entries, terminal_call_ids={"r": "not captured"})


@pytest.mark.parametrize(
    ("arguments", "options", "error", "message"),
    [
        ([make_entry()], {"threads": 0}, ValueError, r"^threads is 0: it must be at least 1$"),
        ([make_entry()], {"threads": "2"}, TypeError, r"^threads is '2': it must be an int or None, got str$"),
        (make_entry(), {}, TypeError, r"^entries is TokenEntry: several entries are needed; put it in a list$"),
        ([make_entry(), "a"], {}, TypeError, r"^entries\[1\] is str: a TokenEntry is needed, or paths alone$"),
        ([None], {}, TypeError, r"^entries\[0\] is NoneType: a TokenEntry is needed, or paths alone$"),
        (
            [],
            {"terminal_call_ids": ["c"]},
            TypeError,
            r"^terminal_call_ids is list: a mapping from rollout id to call id is needed$",
        ),
        (
            [],
            {"terminal_response_ids": ContextVar("which has get alone")},
            TypeError,
            r"^terminal_response_ids is ContextVar: a mapping from rollout id to response id is needed$",
        ),
    ],
)
def test_arguments_are_checked_at_the_call(
    arguments: Any, options: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        build_rollouts(arguments, **options)


def test_an_abandoned_iterator_leaves_no_thread() -> None:
    ids = np.arange(200_000, dtype=np.int32)
    entries = [
        each.model_copy(update={"rollout_id": f"r{number}"})
        for number in range(20)
        for each in (call("a", ids[:-9], ids[-9:]), call("b", np.append(ids, [1]), ids[:5], "a"))
    ]
    before = set(threading.enumerate())  # of other tests, some are there for good: fsspec's
    builds = build_rollouts(entries, threads=2)
    assert next(builds).main is not None
    del builds
    assert threads_are(there=False)
    assert set(threading.enumerate()) <= before


def test_parquet_beside_lines_of_records_is_passed_over_aloud(tmp_path):
    write_jsonl(tmp_path / "lines.tokens.jsonl", rollout("lines"))
    assert [build.chains[0].rollout_id for build in build_rollouts(tmp_path)] == ["lines"]
    write_parquet(tmp_path / "columns.parquet", rollout("columns"))
    with pytest.warns(UserWarning, match=r": of its files of records the 1 in Parquet are passed over$"):
        builds = build_rollouts(tmp_path)
    assert [build.chains[0].rollout_id for build in builds] == ["lines"]
    files = [tmp_path / "lines.tokens.jsonl", tmp_path / "columns.parquet"]
    assert [build.chains[0].rollout_id for build in build_rollouts(files)] == ["lines", "columns"]


@pytest.fixture
def begun(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int | None]]:
    """How many digests other threads were asked for, and by how many threads."""
    asked: list[tuple[int, int | None]] = []

    def watched(sequences: list[Any], *, threads: int | None) -> Any:
        asked.append((len(sequences), threads))
        return PendingDigests(sequences, threads=threads)

    monkeypatch.setattr(rollouts, "PendingDigests", watched)
    return asked


@pytest.mark.parametrize(("threads", "others"), [(2, 1), (5, 4), (None, None)])
def test_the_calling_thread_is_the_first(
    begun: list[tuple[int, int | None]], threads: int | None, others: int | None
) -> None:
    list(build_rollouts(rollout("r"), threads=threads))
    assert begun == [(2, others)]


def test_one_thread_is_the_calling_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, begun: list[tuple[int, int | None]]
) -> None:
    write_jsonl(tmp_path / "r.tokens.jsonl", rollout("r"))
    asked = threads_asked(monkeypatch)
    assert len(list(build_rollouts(tmp_path, threads=1))) == 1
    assert set(asked) == {1}
    assert begun == []


def test_files_are_read_by_as_many_threads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_jsonl(tmp_path / "r.tokens.jsonl", rollout("r"))
    asked = threads_asked(monkeypatch)
    build_rollouts(tmp_path, threads=3)
    assert asked == [3, 3]  # an empty batch, which says what is wrong with the number, and the reader


def test_rollouts_are_linked_in_windows_and_no_more_than_one_ahead(begun: list[tuple[int, int | None]]) -> None:
    ids = np.arange(600_000, dtype=np.int32)
    calls = [call("a", ids[:-1], ids[-1:]).as_arrays(), call("b", np.append(ids, [1]), [2], "a").as_arrays()]
    entries = [each.model_copy(update={"rollout_id": f"r{number}"}) for number in range(5) for each in calls]
    builds = build_rollouts(entries, threads=2)
    next(builds)
    assert begun == [(2, 1), (2, 1)]
    assert len(list(builds)) == 4
    assert begun == [(2, 1), (2, 1), (1, 1)]


def test_many_rollouts_that_ask_for_nothing_are_no_window_either(begun: list[tuple[int, int | None]]) -> None:
    builds = build_rollouts([make_entry(rollout_id=str(number)) for number in range(600)], threads=2)
    next(builds)
    assert len(begun) == 2
    assert len(list(builds)) == 599
    assert begun == [(0, 1)] * 3


def test_rollouts_that_lost_all_their_calls_are_named_in_order(tmp_path: Path) -> None:
    write_jsonl(tmp_path / "r.tokens.jsonl", rollout("r"))
    for name in "dacb":
        (tmp_path / f"{name}.tokens.intents").write_text("x\n")
    message = r"^side files name rollouts without a record \(4 of 4\): 'a', 'b', 'c', 'd'$"
    with pytest.warns(UserWarning, match=message):
        build_rollouts(tmp_path)
