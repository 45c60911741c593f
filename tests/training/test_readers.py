"""What others read of the Parquet files of chains, and give back: `nox -s readers` has them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest
from support.factories import bare, conversation
from tokenrecords import Chain, build_rollouts
from tokenrecords.arrow import chains_from_arrow, chains_to_arrow

if TYPE_CHECKING:
    from pathlib import Path

BUILDS = list(build_rollouts([*conversation(), bare("c", [1], [2], output_items=[{"a": 1}], weight_version=7)]))


def shown(chains: list[Chain]) -> list[Any]:
    return [
        (each.rollout_id, each.chain_id, each.call_ids, each.contents, each.token_ids.tolist(),
         each.loss_mask.tolist(), each.log_probs.tolist(), each.spans.tolist())
        for each in chains
    ]  # fmt: skip


CHAINS = shown([chain for build in BUILDS for chain in build.chains])


@pytest.fixture
def path(tmp_path: Path) -> Path:
    pq.write_table(chains_to_arrow(BUILDS), tmp_path / "chains.parquet")
    return tmp_path / "chains.parquet"


def test_duckdb(path: Path) -> None:
    duckdb = pytest.importorskip("duckdb")
    query = f"SELECT chain_id, list_sum(loss_mask)::BIGINT, calls[1].call_id FROM '{path}' WHERE NOT trainable"
    assert duckdb.sql(query).fetchall() == [("main", 1, "c"), ("branch-0", 6, "c0")]
    assert shown(chains_from_arrow(duckdb.sql(f"SELECT * FROM '{path}'").to_arrow_table())) == CHAINS


def test_polars(path: Path) -> None:
    polars = pytest.importorskip("polars")
    frame = polars.read_parquet(path)
    assert frame["token_ids"].list.len().to_list() == [2, 9]
    assert shown(chains_from_arrow(frame.to_arrow())) == CHAINS


def test_datasets(path: Path, tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets")
    loaded = datasets.load_dataset("parquet", data_files=str(path), split="train", cache_dir=str(tmp_path / "cache"))
    assert shown(chains_from_arrow(loaded.data.table)) == CHAINS
