"""Parquet against JSONL and pyarrow's defaults: bytes and CPU time an id, on rollouts whose prompts grow.

python benches/arrow.py [rollouts]
"""

from __future__ import annotations

import io
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from tokenrecords import TokenEntry, read_jsonl, stamp_lineage, write_jsonl
from tokenrecords.arrow import from_arrow, read_parquet, to_arrow, write_parquet

if TYPE_CHECKING:
    from collections.abc import Callable

TURNS, GROWTH, GENERATION, VOCABULARY, REPEATS = 10, 1_200, 350, 151_936, 5


def rollouts(count: int) -> list[TokenEntry]:
    """Rollouts of ten turns: each prompt is the sequence before it and new ids, whose frequencies are Zipf's."""
    random = np.random.default_rng(0)

    of_rank = random.permutation(VOCABULARY).astype(np.int32)

    def ids(size: int) -> Any:
        return of_rank[random.zipf(1.2, size) % VOCABULARY]

    entries = []
    for rollout in range(count):
        sequence, parent = ids(0), None
        for turn in range(TURNS):
            prompt, generation = np.concatenate([sequence, ids(GROWTH)]), ids(GENERATION)
            entry = TokenEntry(
                rollout_id=f"r{rollout}",
                model_call_id=f"r{rollout}-c{turn}",
                model="model",
                prompt_token_ids=prompt,
                generation_token_ids=generation,
                generation_log_probs=-random.exponential(0.5, GENERATION).astype(np.float32),
                created_at=1_764_400_000.0 + turn,
            )
            stamp_lineage(entry, parent, "resolved" if parent else "root")
            entries.append(entry)
            sequence, parent = np.concatenate([prompt, generation]), entry.model_call_id
    return entries


def best(work: Callable[[], Any]) -> tuple[float, Any]:
    """The least CPU seconds of several runs, which other programs disturb least, and what the work gives."""
    times = []
    for _ in range(REPEATS):
        started = time.process_time()
        result = work()
        times.append(time.process_time() - started)
    return min(times), result


def main(count: int = 20) -> None:
    entries = rollouts(count)
    ids = sum(len(entry.prompt_token_ids) + len(entry.generation_token_ids) for entry in entries)
    table = to_arrow(entries)
    print(f"{len(entries)} records, {ids:,} ids")
    with tempfile.TemporaryDirectory() as directory:
        jsonl, parquet = Path(directory, "r.tokens.jsonl"), Path(directory, "r.parquet")
        gz = Path(directory, "r.tokens.jsonl.gz")
        results = {
            "build the table": best(lambda: to_arrow(entries)),
            "build the table by from_pylist": best(
                lambda: pa.Table.from_pylist([e.model_dump(mode="json") for e in entries])
            ),
            "table to records": best(lambda: from_arrow(table)),
            "write JSONL": best(lambda: write_jsonl(jsonl, entries)),
            "write Parquet": best(lambda: write_parquet(parquet, entries)),
            "read JSONL": best(lambda: read_jsonl(jsonl, threads=1)),
            "read Parquet": best(lambda: read_parquet(parquet)),
        }
        for name, (seconds, result) in results.items():
            print(f"{name}: {seconds / ids * 1e9:.2f} ns an id")
            if name in ("table to records", "read JSONL", "read Parquet") and result != entries:
                sys.exit(f"{name} does not give what was written")
        write_jsonl(gz, entries)
        defaults = io.BytesIO()
        pq.write_table(table, defaults)
        sizes = {"JSONL": jsonl.stat().st_size, "JSONL, gzip": gz.stat().st_size}
        sizes |= {"Parquet, pyarrow's defaults": len(defaults.getvalue()), "Parquet": parquet.stat().st_size}
        for name, size in sizes.items():
            print(f"{name}: {size / ids:.2f} bytes an id")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
