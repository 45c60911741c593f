"""Chains of a long rollout against the published builder: 50 turns growing to 127,000 ids, in one run."""

from __future__ import annotations

import importlib
import sys

import numpy as np
from compare import FULL, SMOKE, Effort, Table, machine, measure, ratio
from reference import reference_directory
from tokenrecords import ChainBuild, TokenEntry, build_chains, stamp_lineage, verify

TURNS, IDS, GENERATED = 50, 127_000, 500


def long_rollout(turns: int = TURNS, ids: int = IDS) -> list[TokenEntry]:
    """Calls that continue each other, with int32 arrays; the last one's sequence has `ids` ids."""
    sequence = np.random.default_rng(0).integers(0, 150_000, ids, np.int32)
    entries = []
    for turn in range(turns):
        end = ids * (turn + 1) // turns
        entry = TokenEntry(
            rollout_id="r",
            model_call_id=f"c{turn:03}",
            prompt_token_ids=sequence[: end - GENERATED].copy(),
            generation_token_ids=sequence[end - GENERATED : end].copy(),
            generation_log_probs=np.full(GENERATED, -0.5),
            created_at=float(turn),
        )
        entries.append(
            stamp_lineage(entry, f"c{turn - 1:03}" if turn else None, "resolved" if turn else "root"),
        )
    return entries


def published(entries: list[TokenEntry]) -> tuple[object, list[object]] | None:
    """The published builder, and its own records with lists."""
    directory = reference_directory()
    if directory is None:
        return None
    sys.path.insert(0, str(directory))
    builder = importlib.import_module("nemo_gym.token_id_capture.builder")
    records = importlib.import_module("nemo_gym.token_id_capture.records")
    return builder, [records.TokenEntry(**entry.as_lists().model_dump()) for entry in entries]


def calls(built: object) -> list[str]:
    """The calls of the main chain, of either builder."""
    if isinstance(built, ChainBuild):
        return built.main.call_ids
    return [link.entry.model_call_id for link in built.chains[0].links]


def main(effort: Effort) -> None:
    entries = long_rollout()
    lists = [entry.as_lists() for entry in entries]
    reference = published(entries)
    times = measure(
        effort,
        {
            "published, lists": reference and (lambda: reference[0].prefix_merging(reference[1])),
            "arrays": lambda: build_chains(entries),
            "arrays, one thread": lambda: build_chains(entries, threads=1),
            "lists": lambda: build_chains(lists),
        },
        same=lambda a, b: calls(a) == calls(b),
    )
    stored = sum(len(entry.prompt_token_ids) + len(entry.generation_token_ids) for entry in entries)
    table = Table(f"build_chains, {stored:,} ids in {TURNS} records", ["way", "ms", "ns an id", "times faster"])
    for name, seconds in times.items():
        if seconds is not None:
            faster = ratio(times["published, lists"], seconds)
            table.row(name, f"{seconds * 1e3:.1f}", f"{seconds / stored * 1e9:.1f}", faster)
    for name, seconds in measure(effort, {"verify, arrays": lambda: verify(entries)}).items():
        table.row(name, f"{seconds * 1e3:.1f}", f"{seconds / stored * 1e9:.1f}", "-")


if __name__ == "__main__":
    print(machine())
    main(SMOKE if "--smoke" in sys.argv else FULL)
