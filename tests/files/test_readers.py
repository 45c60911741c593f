"""What others read of the Parquet files, and give back: `nox -s readers` has them."""

import pytest
from support.factories import conversation, make_entry
from tokenrecords.arrow import from_arrow, write_parquet

ENTRIES = [
    *conversation(),
    make_entry(
        rollout_id="s",
        model="m",
        generation_log_probs=[float("nan")],
        output_items=[{"type": "message", "content": [{"text": "a"}]}],
        routed_experts="nrlre1:int8:1x1x1:AA==",
        reward=1.5,
    ),
]


@pytest.fixture
def path(tmp_path):
    write_parquet(tmp_path / "records.parquet", ENTRIES)
    return tmp_path / "records.parquet"


def test_duckdb(path):
    duckdb = pytest.importorskip("duckdb")
    query = f"SELECT rollout_id, sum(len(generation_token_ids))::BIGINT FROM '{path}' GROUP BY rollout_id"
    assert sorted(duckdb.sql(query).fetchall()) == [("r", 6), ("s", 1)]
    texts = f"SELECT output_items->>'$[0].content[0].text', extra_fields->>'$.reward' FROM '{path}' WHERE model = 'm'"
    assert duckdb.sql(texts).fetchall() == [("a", "1.5")]
    assert from_arrow(duckdb.sql(f"SELECT * FROM '{path}'").to_arrow_table()) == ENTRIES


def test_polars(path):
    polars = pytest.importorskip("polars")
    frame = polars.read_parquet(path)
    assert frame["generation_token_ids"].list.len().to_list() == [2, 2, 2, 1]
    assert from_arrow(frame.to_arrow()) == ENTRIES
    frame.write_parquet(path)
    assert from_arrow(polars.read_parquet(path).to_arrow()) == ENTRIES


def test_datasets(path, tmp_path):
    datasets = pytest.importorskip("datasets")
    loaded = datasets.load_dataset("parquet", data_files=str(path), split="train", cache_dir=str(tmp_path / "cache"))
    assert from_arrow(loaded.data.table) == ENTRIES
    assert loaded[0]["prompt_token_ids"] == [100]
    loaded.to_parquet(tmp_path / "again.parquet")
    again = datasets.Dataset.from_parquet(str(tmp_path / "again.parquet"), cache_dir=str(tmp_path / "cache"))
    assert from_arrow(again.data.table) == ENTRIES
