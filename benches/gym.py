"""Compares the staging digests with the reference's, at 33,792 ids: how many times faster, after equal results.

python benches/gym.py [--smoke]
"""

from __future__ import annotations

import argparse
import importlib.util
import sys
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from compare import FULL, SMOKE, Effort, Table, environment, measure
from reference import PACKAGE, reference_path
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--smoke", action="store_true", help="each way once, to see that everything runs")
    arguments = parser.parse_args()
    print(*(f"{key}: {value}" for key, value in environment().items()), sep="\n")
    digests(SMOKE if arguments.smoke else FULL)


if __name__ == "__main__":
    sys.exit(main())
