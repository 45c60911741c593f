"""Parquet against JSONL and pyarrow's defaults: bytes and time an id, on rollouts whose prompts grow.

python benches/arrow.py [rollouts]
"""

from __future__ import annotations

import sys
import tempfile
import time
from functools import partial
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
    """The least seconds of several runs, which other programs disturb least, and what the work gives."""
    times = []
    for _ in range(REPEATS):
        started = time.perf_counter()
        result = work()
        times.append(time.perf_counter() - started)
    return min(times), result


def main(count: int = 20) -> None:
    entries = rollouts(count)
    ids = sum(len(entry.prompt_token_ids) + len(entry.generation_token_ids) for entry in entries)
    print(f"{len(entries)} records, {ids:,} ids")
    table = to_arrow(entries)

    def by_rows() -> pa.Table:
        return pa.Table.from_pylist([entry.model_dump(mode="json") for entry in entries])

    works = {"to_arrow": lambda: to_arrow(entries), "from_pylist": by_rows, "from_arrow": lambda: from_arrow(table)}
    for name, work in works.items():
        seconds, result = best(work)
        print(f"{name}: {seconds / ids * 1e9:.1f} ns an id")
        if name == "from_arrow" and result != entries:
            sys.exit("from_arrow does not give what was given to to_arrow")

    read_lines = partial(read_jsonl, threads=1)
    kinds: dict[str, tuple[Callable[..., None], Callable[..., Any]]] = {
        "r.tokens.jsonl": (write_jsonl, read_lines),
        "r.tokens.jsonl.gz": (write_jsonl, read_lines),
        "r.tokens.jsonl.zst": (write_jsonl, read_lines),
        "defaults.parquet": (lambda path, entries: pq.write_table(to_arrow(entries), path), read_parquet),
        "r.parquet": (write_parquet, read_parquet),
    }
    with tempfile.TemporaryDirectory() as directory:
        for name, (write, read) in kinds.items():
            path = Path(directory, name)
            write_seconds, _ = best(partial(write, path, entries))
            read_seconds, result = best(partial(read, path))
            if result != entries:
                sys.exit(f"{name} does not give back what was written")
            times = f"{write_seconds / ids * 1e9:.1f} ns to write, {read_seconds / ids * 1e9:.1f} ns to read"
            print(f"{name}: {path.stat().st_size / ids:.2f} bytes, {times}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
