"""Records and chains that workers of a Ray read: the same as one process reads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from support.clusters import ray, write_rollouts
from tokenrecords import build_rollouts, read_jsonl
from tokenrecords.arrow import (
    CHAIN_SCHEMA,
    RECORD_SCHEMA,
    chains_to_arrow,
    from_arrow,
)
from tokenrecords.ray import read_chains, read_records

if TYPE_CHECKING:
    from pathlib import Path


pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning:ray")


def table_of(dataset: Any) -> pa.Table:
    """The rows, in the order of rollouts, as they travelled."""
    tables = [table for table in ray.get(dataset.to_arrow_refs()) if table.num_rows]
    return pa.concat_tables(tables).sort_by("rollout_id") if tables else None


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """The files of 100 rollouts."""
    write_rollouts(tmp_path / "run", 100)
    return tmp_path / "run"


def test_records(run: Path) -> None:
    table = table_of(read_records(run))
    assert table.schema == RECORD_SCHEMA
    assert from_arrow(table) == read_jsonl(run)


def test_chains(run: Path) -> None:
    table = table_of(read_chains(run))
    assert table.schema == CHAIN_SCHEMA
    assert table.num_rows == 100
    assert table.equals(chains_to_arrow(build_rollouts(run)))
