"""Records and chains that workers of a Ray read: the same as one process reads."""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from support.clusters import ray, rollout, write_rollouts
from support.factories import call
from tokenrecords import RecordError, build_rollouts, read_jsonl, verify, write_jsonl
from tokenrecords.arrow import (
    CHAIN_SCHEMA,
    RECORD_SCHEMA,
    chains_from_arrow,
    chains_to_arrow,
    from_arrow,
    read_parquet,
    write_parquet,
)
from tokenrecords.ray import Found, link_table, read_chains, read_records

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning:ray")


def table_of(dataset: Any) -> pa.Table:
    """The rows, in the order of rollouts, as they travelled."""
    return pa.concat_tables(ray.get(dataset.to_arrow_refs())).sort_by("rollout_id")


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """The files of 100 rollouts."""
    write_rollouts(tmp_path / "run", 100)
    return tmp_path / "run"


@pytest.fixture
def few(tmp_path: Path) -> Path:
    """The files of four rollouts, compressed or not, whose names Ray's own listing would pass over."""
    for name in ("_a.tokens.jsonl", ".b.tokens.jsonl.gz", "c.tokens.jsonl.zst", "d #%41?.tokens.jsonl"):
        write_jsonl(tmp_path / name, rollout(name[:2]))
    return tmp_path


def test_a_run_of_lines(run: Path) -> None:
    found = Found()
    records, chains = read_records(run).materialize(), read_chains(run, found=found).materialize()
    assert table_of(records).schema == RECORD_SCHEMA
    assert from_arrow(table_of(records)) == read_jsonl(run)
    assert table_of(chains).schema == CHAIN_SCHEMA
    assert table_of(chains).equals(chains_to_arrow(build_rollouts(run)))
    assert found.report() == verify(run)
    assert records.num_blocks() == chains.num_blocks() == 2  # so little is one task for each CPU


def test_a_run_of_parquet(run: Path, tmp_path: Path) -> None:
    (tmp_path / "columns").mkdir()
    for file in run.iterdir():
        write_parquet(tmp_path / "columns" / f"{file.name[:4]}.parquet", read_jsonl(file))
    expected = read_parquet(tmp_path / "columns")
    assert from_arrow(table_of(read_records(tmp_path / "columns"))) == expected
    assert table_of(read_chains(tmp_path / "columns")).equals(chains_to_arrow(build_rollouts(run)))


@pytest.mark.parametrize("url", ["{}", "file://{}", "simplecache::file://{}", "simplecache::file://{}/[d_]*"])
def test_paths_of_every_kind(few: Path, url: str) -> None:
    path = url.format(few)
    expected = chains_to_arrow(build_rollouts(path))
    assert expected.num_rows == (2 if "*" in url else 4)
    assert table_of(read_chains(path, override_num_blocks=3)).equals(expected.sort_by("rollout_id"))


def test_a_worker_that_is_killed(run: Path, tmp_path: Path) -> None:
    mark = tmp_path / "killed"

    def kill_once(table: pa.Table) -> pa.Table:
        if not mark.exists():
            mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return table

    found = Found()
    chains = read_chains(run, found=found).map_batches(kill_once, batch_format="pyarrow", batch_size=7)
    assert table_of(chains).equals(chains_to_arrow(build_rollouts(run)))
    assert mark.exists()
    assert found.report() == verify(run)


def damage(run: Path) -> None:
    """A line of one rollout is no record, one of another has a positive log-prob, and a third has lost a call."""
    with (run / "r003.tokens.jsonl").open("ab") as file:
        file.write(b'{"rollout_id": "r003"}\n')
    entries = rollout("r004", 2)
    entries[1].generation_log_probs = [-0.5, 0.5]
    write_jsonl(run / "r004.tokens.jsonl", entries)
    (run / "r002.intents").write_text("c9\n")
    (run / "gone.intents").write_text("c0\n")


def test_what_workers_find_is_not_lost(tmp_path: Path) -> None:
    write_rollouts(tmp_path, 6)
    damage(tmp_path)
    found = Found()
    chains = table_of(read_chains(tmp_path, on_error="skip", found=found))
    assert found.report() == verify(tmp_path)
    assert found.report().counts == {"unreadable_line": 1, "log_prob_positive": 1, "lost_call": 2}
    by_rollout = dict(zip(chains["rollout_id"].to_pylist(), chains["reasons"].to_pylist(), strict=True))
    assert by_rollout == {
        "r000": [],
        "r001": [],
        "r002": ["incomplete"],
        "r003": ["incomplete"],
        "r004": ["log_prob_positive"],
        "r005": [],
    }
    assert [not reasons for reasons in by_rollout.values()] == chains["trainable"].to_pylist()

    found = Found()
    assert read_records(tmp_path, on_error="skip", found=found).count() == 13
    assert [finding.code for finding in found.report().findings] == ["unreadable_line"]
    assert found.report().records == 13
    assert found.report().ids == verify(tmp_path).ids


@pytest.mark.parametrize("read", [read_records, read_chains])
def test_a_bad_line_is_raised(tmp_path: Path, read: Any) -> None:
    write_rollouts(tmp_path, 4)
    damage(tmp_path)
    (tmp_path / "gone.intents").unlink()
    with pytest.raises(RecordError, match=rf"{tmp_path}/r003.tokens.jsonl:5: .*model_call_id"):
        read(tmp_path).materialize()


def test_a_rollout_without_records_is_told(tmp_path: Path) -> None:
    (tmp_path / "gone.intents").write_text("c0\n")
    with pytest.warns(UserWarning, match=r"side files name rollouts without a record \(1 of 1\): 'gone'"):
        assert read_chains(tmp_path).schema().base_schema == CHAIN_SCHEMA
    found = Found()
    assert read_chains(tmp_path, found=found).count() == 0
    assert found.report() == verify(tmp_path)


@pytest.mark.parametrize(
    ("terminals", "columns"),
    [
        ({"terminal_call_ids": {"r": "c3", "s": "c0"}}, {"ids": "uint64"}),
        ({"terminal_response_ids": {"r": "answer"}}, {"shared": "each"}),
    ],
)
def test_options_of_chains(tmp_path: Path, terminals: dict[str, Any], columns: dict[str, Any]) -> None:
    fork = call("c3", [100, 200, 300, 7], [8], "c0", response_id="answer", created_at=3.0)
    write_jsonl(tmp_path / "r.tokens.jsonl", [*rollout("r"), fork])
    write_jsonl(tmp_path / "s.tokens.jsonl", rollout("s", 2))
    expected = chains_to_arrow(build_rollouts(tmp_path, **terminals), **columns)
    assert table_of(read_chains(tmp_path, **terminals, **columns)).equals(expected)
    # What is known of other rollouts is no matter of a file.
    known = {name: {**named, "other": "c"} for name, named in terminals.items()}
    assert table_of(read_chains(tmp_path, **known, **columns)).equals(expected)


def test_records_need_not_be_verified(tmp_path: Path) -> None:
    write_rollouts(tmp_path, 6)
    damage(tmp_path)
    found = Found()
    chains = table_of(read_chains(tmp_path, verify=False, on_error="skip", found=found))
    assert found.report().counts == {"unreadable_line": 1, "lost_call": 2}
    assert (found.report().records, found.report().ids) == (13, verify(tmp_path).ids)
    assert chains["reasons"].to_pylist() == [[], [], ["incomplete"], ["incomplete"], [], []]


def test_rollouts_that_are_mixed(tmp_path: Path) -> None:
    entries = [entry for number in range(10) for entry in rollout(f"r{number}")]
    for name in "abc":
        write_jsonl(tmp_path / f"{name}.tokens.jsonl", entries["abc".index(name) :: 3])
    records = read_records(tmp_path, ids="int64")
    linked = records.groupby("rollout_id").map_groups(
        link_table, batch_format="pyarrow", fn_kwargs={"terminal_call_ids": {"r3": "c1"}, "ids": "int64"}
    )
    expected = chains_to_arrow(build_rollouts(entries, terminal_call_ids={"r3": "c1"}), ids="int64")
    assert table_of(linked).equals(expected)


def test_what_ray_writes_has_the_schema(tmp_path: Path) -> None:
    write_rollouts(tmp_path / "run", 10)
    read_records(tmp_path / "run").write_parquet(str(tmp_path / "records"))
    read_chains(tmp_path / "run").write_parquet(str(tmp_path / "chains"))
    for name, schema in (("records", RECORD_SCHEMA), ("chains", CHAIN_SCHEMA)):
        files = list((tmp_path / name).glob("*.parquet"))
        assert files
        assert all(pa.parquet.read_schema(file) == schema for file in files)
    records = sorted(read_parquet(tmp_path / "records"), key=lambda entry: (entry.rollout_id, entry.model_call_id))
    assert records == read_jsonl(tmp_path / "run")
    chains = chains_from_arrow(pa.parquet.read_table(tmp_path / "chains").sort_by("rollout_id"))
    assert [chain.call_ids for chain in chains] == [build.main.call_ids for build in build_rollouts(tmp_path / "run")]


def test_files_in_another_order(tmp_path: Path) -> None:
    write_rollouts(tmp_path, 12)
    shuffle = ray.data.FileShuffleConfig(seed=3)
    read = read_chains(tmp_path, shuffle=shuffle, override_num_blocks=1)
    rollouts = pa.concat_tables(ray.get(read.to_arrow_refs()))["rollout_id"].to_pylist()
    assert rollouts != sorted(rollouts)
    assert sorted(rollouts) == [f"r{number:03}" for number in range(12)]


def test_relative_paths(few: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(few.parent)
    assert read_records(few.name).count() == 12


def test_a_file_without_records(tmp_path: Path) -> None:
    (tmp_path / "r.tokens.jsonl").touch()
    assert read_records(tmp_path).schema().base_schema == RECORD_SCHEMA
    assert read_chains(tmp_path).schema().base_schema == CHAIN_SCHEMA


@pytest.mark.parametrize("read", [read_records, read_chains])
def test_what_is_refused(tmp_path: Path, read: Any) -> None:
    write_rollouts(tmp_path, 1)
    for paths in (5, [], [5], rollout("r")):
        with pytest.raises(TypeError):
            read(paths)
    for paths in (tmp_path / "missing", [tmp_path, ""], "simplecache::file:///missing"):
        with pytest.raises(FileNotFoundError):
            read(paths)
    for options in ({"on_error": "ignore"}, {"ids": "int8"}, {"shuffle": "rows"}):
        with pytest.raises(ValueError, match=next(iter(options.values()))):
            read(tmp_path, **options)
    with pytest.raises(ValueError, match="shared"):
        read_chains(tmp_path, shared="never")
