"""Chains of a long rollout against the published builder, and what verifying files is made of."""

from __future__ import annotations

import importlib
import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from compare import Effort, Table, measure
from files import rollouts
from reference import reference_path
from tokenrecords import (
    ChainBuild,
    TokenEntry,
    build_chains,
    build_rollouts,
    compute_digests,
    cumulative_tokens,
    pack_chains,
    read_jsonl,
    stamp_lineage,
    verify,
    write_jsonl,
)

TURNS, IDS, GENERATED = 50, 127_000, 500


def long_rollout(rollout_id: str = "r") -> list[TokenEntry]:
    """Calls that continue each other, with int32 arrays; the last one's sequence has `IDS` ids."""
    sequence = np.random.default_rng(0).integers(0, 150_000, IDS, np.int32)
    entries = []
    for turn in range(TURNS):
        end = IDS * (turn + 1) // TURNS
        entry = TokenEntry(
            rollout_id=rollout_id,
            model_call_id=f"c{turn:03}",
            prompt_token_ids=sequence[: end - GENERATED].copy(),
            generation_token_ids=sequence[end - GENERATED : end].copy(),
            generation_log_probs=np.full(GENERATED, -0.5),
            created_at=float(turn),
        )
        parent = f"c{turn - 1:03}" if turn else None
        entries.append(stamp_lineage(entry, parent, "resolved" if turn else "root"))
    return entries


def published(entries: list[TokenEntry]) -> tuple[Any, list[Any]] | None:
    """The published builder, and its own records with lists; None where its wheel can't be had."""
    path = reference_path()
    if path is None:
        return None
    sys.path.insert(0, str(path))
    builder = importlib.import_module("nemo_gym.token_id_capture.builder")
    records = importlib.import_module("nemo_gym.token_id_capture.records")
    return builder, [records.TokenEntry(**entry.as_lists().model_dump()) for entry in entries]


def call_ids(built: Any) -> list[str]:
    """The calls of the main chain, of either builder."""
    if isinstance(built, ChainBuild):
        return built.main.call_ids
    return [link.entry.model_call_id for link in built.chains[0].links]


def chains(effort: Effort) -> list[Table]:
    """How many times faster chains are built, and the parts of the time of verifying."""
    entries = long_rollout()
    lists = [entry.as_lists() for entry in entries]
    reference = published(entries)
    stored = sum(len(entry.prompt_token_ids) + len(entry.generation_token_ids) for entry in entries)
    times = measure(
        effort,
        {
            "reference": reference and partial(reference[0].prefix_merging, reference[1]),
            "array": partial(build_chains, entries),
            "one": partial(build_chains, entries, threads=1),
            "list": partial(build_chains, lists),
        },
        same=lambda a, b: call_ids(a) == call_ids(b),
    )
    built = Table(
        "chains",
        f"build_chains, {stored:,} ids: times faster than the reference builder (on lists)",
        "records",
        {"reference/array": "int32 arrays", "reference/one": "arrays, 1 thread", "reference/list": "lists"},
    )
    built.ratios(f"{TURNS}", times)
    with tempfile.TemporaryDirectory() as directory:
        write_jsonl(Path(directory, "r.tokens.jsonl"), entries)
        whole = [cumulative_tokens(entry) for entry in entries]
        times = measure(
            effort,
            {
                "all": lambda: verify(read_jsonl(directory)).ok,
                "read": lambda: bool(read_jsonl(directory)),
                "hash": lambda: bool(compute_digests(whole)),
                "verify": lambda: verify(entries).ok,
            },
        )
    verified = Table(
        "verifying",
        "Verifying the same records from disk, ns an id",
        "records",
        {"all": "from disk to report", "read": "of it reading", "verify": "verify", "hash": "of it hashing"},
        unit="",
    )
    verified.row(f"{TURNS}", {part: seconds / stored * 1e9 for part, seconds in times.items()})
    return [built, verified, *batch(effort)]


def batch(effort: Effort) -> list[Table]:
    """How many times faster many rollouts are built by two threads, and packing against plain concatenation."""
    made = rollouts(64 if effort.seconds else 2)
    entries = [call for calls in made for call in calls]
    times = measure(
        effort,
        {
            "loop": lambda: [build_chains(calls, threads=1) for calls in made],
            "one": lambda: list(build_rollouts(entries, threads=1)),
            "two": lambda: list(build_rollouts(entries, threads=2)),
        },
        same=lambda a, b: [packed(each) for each in a] == [packed(each) for each in b],
    )
    built = Table(
        "rollouts",
        f"build_rollouts of {len(made)} rollouts of 8 calls, arrays: times faster",
        "",
        {
            "one/two": "2 threads than 1",
            "loop/one": "1 thread than a loop over build_chains",
            "loop/two": "2 threads than that loop",
        },
    )
    built.ratios("build_rollouts", times)

    chains_ = [build.main for build in build_rollouts(entries)]
    tokens = sum(map(len, chains_))

    def concatenated() -> list[np.ndarray]:
        return [
            np.concatenate([getattr(each, name) for each in chains_])
            for name in ("token_ids", "loss_mask", "log_probs")
        ]

    times = measure(
        effort,
        {
            "plain": concatenated,
            "flat": partial(pack_chains, chains_),
            "bins": partial(pack_chains, chains_, max_tokens=tokens),
        },
        same=lambda plain, pack: all(
            np.array_equal(a, b)
            for a, b in zip(
                [plain[0], plain[1], plain[2].astype(np.float32)],
                [pack.input_ids, pack.loss_mask, pack.log_probs],
                strict=True,
            )
        ),
    )
    packing = Table(
        "packing",
        f"pack_chains of {len(chains_)} chains with {tokens:,} ids, ns an id",
        "",
        {"plain": "three plain concatenations", "flat": "pack_chains", "bins": "with max_tokens"},
        unit="",
    )
    packing.row("ns an id", {way: seconds / tokens * 1e9 for way, seconds in times.items()})
    return [built, packing]


def packed(build: ChainBuild) -> tuple[bytes, bytes, bytes]:
    """What a trainer gets of a build."""
    batch = pack_chains(build.chains)
    return batch.input_ids.tobytes(), batch.loss_mask.tobytes(), batch.log_probs.tobytes()
