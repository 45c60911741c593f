"""Chains of a run on a Ray of this machine against a loop in one process: seconds from a directory to packed batches.

python benches/clusters.py [rollouts ...]
"""

from __future__ import annotations

import logging
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import ray
from arrow import rollouts
from tokenrecords import build_rollouts, group_by_rollout, pack_chains, verify, write_jsonl
from tokenrecords.arrow import chains_from_arrow, write_parquet
from tokenrecords.ray import read_chains

REPEATS, BATCH = 5, 16


def packed(chains: list[Any]) -> int:
    return len(pack_chains(chains).input_ids)


def loop(directory: Path, *, checks: bool) -> int:
    """One process, with the threads that it takes by default."""
    if checks:
        verify(directory)
    total, held = 0, []
    for build in build_rollouts(directory):
        held.append(build.main)
        if len(held) == BATCH:
            total, held = total + packed(held), []
    return total + packed(held)


def workers(directory: Path, *, checks: bool) -> int:
    batches = read_chains(directory, verify=checks).iter_batches(batch_format="pyarrow", batch_size=BATCH)
    return sum(packed(chains_from_arrow(batch)) for batch in batches)


def compared(directory: Path, *, checks: bool) -> str:
    """The least seconds of each way; they take turns, so that both meet what else the machine does."""
    seconds = {loop: [], workers: []}
    for _ in range(REPEATS):
        tokens = set()
        for way, taken in seconds.items():
            started = time.perf_counter()
            tokens.add(way(directory, checks=checks))
            taken.append(time.perf_counter() - started)
        if len(tokens) > 1:
            sys.exit("the workers' batches do not have the loop's tokens")
    alone, shared = map(min, seconds.values())
    return f"loop {alone:.2f} s, Ray {shared:.2f} s, {alone / shared:.2f}x"


def main(*counts: int) -> None:
    # Ray's workers would wait for everything else that the machine does, and the loop would not.
    alike = {"worker_niceness": 0}
    ray.init(
        num_cpus=2, include_dashboard=False, logging_level=logging.ERROR, log_to_driver=False, _system_config=alike
    )
    ray.data.DataContext.get_current().enable_progress_bars = False
    logging.getLogger("ray.data").setLevel(logging.ERROR)
    for count in counts or (20, 200, 1_000):
        of_rollout = group_by_rollout(rollouts(min(count, 200)))
        with tempfile.TemporaryDirectory() as name:
            lines, columns = Path(name, "lines"), Path(name, "columns")
            lines.mkdir()
            columns.mkdir()
            for number in range(count):
                entries = of_rollout[f"r{number % len(of_rollout)}"]
                entries = [entry.model_copy(update={"rollout_id": f"r{number}"}) for entry in entries]
                write_jsonl(lines / f"r{number}.tokens.jsonl", entries)
                write_parquet(columns / f"r{number}.parquet", entries)
            for directory in (lines, columns):
                size = sum(file.stat().st_size for file in directory.iterdir())
                for checks in (False, True):
                    what = f"{count:,} rollouts, {size / 1e6:,.0f} MB of {directory.name}{', verified' * checks}"
                    print(f"{what}: {compared(directory, checks=checks)}", flush=True)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
