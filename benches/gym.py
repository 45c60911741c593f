"""Compares NeMo Gym on this package with the same on its own code, at 33,792 ids: how many times faster.

python benches/gym.py [--smoke]

What a server of it gains as a whole, over its HTTP API, is in gym_run.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib
import importlib.util
import sys
import tempfile
import time
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import orjson
from compare import FULL, SMOKE, Effort, Table, Way, environment, measure
from reference import PACKAGE, reference_path
from tokenrecords import gym
from tokenrecords.gym import staging

if TYPE_CHECKING:
    from types import ModuleType

PROMPT, GENERATED = 32_768, 1_024


def reference_digest() -> ModuleType | None:
    """The published module of staging digests, loaded by its path."""
    path = reference_path()
    if path is None:
        return None
    spec = importlib.util.spec_from_file_location("reference_digest", path / PACKAGE / "staging" / "digest.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def calls() -> dict[str, dict[str, Any]]:
    """The fields of a root call, with columns as lists and as arrays."""
    random = np.random.default_rng(0)
    arrays = {
        "token_ids_delta": random.integers(0, 151_936, PROMPT + GENERATED, np.int32),
        "token_mask_delta": np.repeat(np.float32([0, 1]), [PROMPT, GENERATED]),
        "generation_log_probs_delta": np.append(np.zeros(PROMPT), -random.random(GENERATED)),
    }
    fields = {
        "schema_version": staging.STAGING_SCHEMA_VERSION,
        "digest_version": staging.STAGING_DIGEST_VERSION,
        "extras_digest_version": staging.EXTRAS_DIGEST_VERSION,
        "rollout_id": "rollout",
        "model_call_id": "call",
        "parent_call_id": None,
        "mode": "text",
        "prev_len": 0,
        "delta_len": PROMPT + GENERATED,
        "cum_len": PROMPT + GENERATED,
        "weight_version": 7,
        "extras_digest": staging.EMPTY_EXTRAS_DIGEST,
        "chain_hash": "a" * 64,
        "cumulative_hash": "b" * 64,
    }
    return {
        "array": {**fields, **arrays},
        "list": {**fields, **{name: column.tolist() for name, column in arrays.items()}},
    }


def digests(effort: Effort) -> Table:
    reference = reference_digest()
    table = Table(
        "staging",
        f"Staging digests of {PROMPT + GENERATED:,} ids: how many times faster than the reference (on lists)",
        "function",
        {"reference/list": "list", "reference/array": "array"},
    )
    held = calls()
    ids = {kind: call["token_ids_delta"] for kind, call in held.items()}
    routes = {"routes": np.random.default_rng(1).integers(0, 128, (256, 48, 8)).tolist()}
    ways = {
        "hash_token_ids": lambda of, kind: partial(of.hash_token_ids, ids[kind]),
        "compute_chain_hash": lambda of, kind: partial(of.compute_chain_hash, "c" * 64, ids[kind]),
        "compute_staging_digest": lambda of, kind: partial(of.compute_staging_digest, **held[kind]),
        "compute_extras_digest": lambda of, kind: partial(of.compute_extras_digest, routes) if kind == "list" else None,
    }
    for name, way in ways.items():
        times = measure(
            effort,
            {
                "list": way(staging, "list"),
                "array": way(staging, "array"),
                "reference": reference and way(reference, "list"),
            },
        )
        table.ratios(name, times)
    return table


def capture(root: str) -> dict[str, Any]:
    """What a server does with a rollout of 8 calls to 31,296 ids in its files, and with one staged call."""
    module = lambda name: importlib.import_module(f"nemo_gym.token_id_capture.{name}")  # noqa: E731
    records, lineage, store = module("records"), module("lineage"), module("store").TokenCaptureStore(root)
    routes_of, sealed, begun = module("staging.routes"), module("staging.records"), module("staging.capture")
    builder = module("builder")
    random, status = np.random.default_rng(0), records.ParentResolutionStatus
    request, sequence = [], []
    for turn in range(8):
        prompt, generation = random.integers(0, 151_936, 3_400).tolist(), random.integers(0, 151_936, 512).tolist()
        request.append({"role": "user", "content": f"question {turn}"})
        entry = records.TokenEntry(
            rollout_id="rollout",
            model_call_id=f"call {turn}",
            prompt_token_ids=sequence + prompt,
            generation_token_ids=generation,
            generation_log_probs=(-random.random(512)).tolist(),
            output_items=[{"role": "assistant", "content": f"answer {turn}"}],
        )
        lineage.stamp_continuation(entry, request)
        parent = f"call {turn - 1}" if turn else None
        records.stamp_lineage(entry, parent, parent_resolution=status("resolved" if turn else "root"))
        store.append(entry)
        request += entry.output_items
        sequence += prompt + generation
    request.append({"role": "user", "content": "and now?"})

    class Sink:
        def stage(self, record: Any, *, attachments: Any = None) -> Any:  # noqa: ARG002 - the protocol's
            self.record = record
            return sealed.StageResult(ok=True, staging_key=record.staging_key)

    sink = Sink()
    host = begun.RolloutTokenCapture(sink=sink, weight_version_fn=lambda: 1)
    call = calls()["list"]
    tokens = {
        "prompt_token_ids": call["token_ids_delta"][:PROMPT],
        "generated_token_ids": call["token_ids_delta"][PROMPT:],
        "generated_logprobs": call["generation_log_probs_delta"][PROMPT:],
    }

    def stage() -> str:
        admission = sealed.CaptureAdmission(rollout_id="rollout", model_call_id="call", mode="text")
        return host.complete_call(host.begin_call(admission), **tokens).digest

    stage()
    staged = sink.record.model_dump()
    stores = {"own": lineage.FileLineageStore}
    if gym.status():
        stores["ours"] = gym.FileLineageStore
    routes = np.random.default_rng(1).integers(0, 128, (256, 48, 8)).tolist()
    entries = store.read_entries("rollout")
    loop = asyncio.new_event_loop()  # asyncio.run would have all that is found written as text, for its signal handler

    def build() -> list[Any]:
        built = builder.run_builder(entries)
        return [[link.entry.model_call_id, link.interstitial] for chain in built.chains for link in chain.links]

    return {
        "stage a call": stage,
        "read a staged call": lambda: sealed.StagedCallSnapshot.model_validate(staged).digest,
        "encode_routed_experts": lambda: routes_of.encode_routed_experts(routes),
        "read_entries": lambda: [entry.digest for entry in store.read_entries("rollout")],
        "run_builder": build,
        "the store's line": lambda: orjson.dumps(entries[-1].model_dump(mode="json"), option=orjson.OPT_SORT_KEYS),
        **{
            f"FileLineageStore.resolve, cold{'' if name == 'own' else ', from tokenrecords.gym'}": lambda kind=kind: (
                loop.run_until_complete(kind(root).resolve("rollout", request)).match.cumulative_token_ids
            )
            for name, kind in stores.items()
        },
    }


def cpu_seconds(effort: Effort, way: Way) -> float:
    """The least CPU time of a call: before and after `install()` can't take turns, so what else runs must not tell."""

    def once() -> float:
        begun = time.process_time()
        way()
        return time.process_time() - begun

    return min(once() for _ in range(1 + int(effort.rounds * effort.seconds / max(once(), 1e-3))))


def servers(effort: Effort) -> Table | None:
    """The same work before and after `install()`."""
    path = reference_path()
    if path is None:
        return None
    sys.path.insert(0, str(path))
    table = Table("servers", "With install(): how many times less CPU than without", "work", {"own/ours": "ratio"})
    with tempfile.TemporaryDirectory() as own, tempfile.TemporaryDirectory() as ours:
        before = capture(own)
        wanted = {name: (way(), cpu_seconds(effort, way)) for name, way in before.items()}
        gym.install()
        for name, way in capture(ours).items():
            result, seconds = wanted[name.removesuffix(", from tokenrecords.gym")]
            if way() != result:
                sys.exit(f"{name}: the results differ")
            table.ratios(name, {"own": seconds, "ours": cpu_seconds(effort, way)})
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--smoke", action="store_true", help="each way once, to see that everything runs")
    arguments = parser.parse_args()
    print(*(f"{key}: {value}" for key, value in environment().items()), sep="\n")
    effort = SMOKE if arguments.smoke else FULL
    digests(effort)
    servers(effort)


if __name__ == "__main__":
    sys.exit(main())
