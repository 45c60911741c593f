"""Compares tokenrecords with the module that it replaces, with numpy + hashlib, and with SHA-256 over ready bytes.

python benches/bench.py [--smoke] [--json FILE] [section ...]
"""

from __future__ import annotations

import argparse
import hashlib
import json
from functools import partial
from pathlib import Path

import numpy as np
from bodies import bodies
from chains import chains
from compare import FULL, SMOKE, Effort, Table, environment, measure
from files import files
from gateways import gateways
from reference import NAME, VERSION, reference_records
from streams import streams
from tokenrecords import (
    TokenEntry,
    compute_digest,
    compute_digests,
    cumulative_tokens,
    encode_token_ids,
    stamp_lineage,
)
from views import views

SIZES = (16, 1_024, 32_768, 131_072)
DOMAIN = b"nemo-gym-tokens"
REFERENCE = reference_records()


def random_ids(n: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 151_936, n, np.int32)


def numpy_encode(ids: np.ndarray) -> bytes:
    """The best that numpy and the standard library do."""
    return b"\1" + len(ids).to_bytes(8, "big") + ids.astype(">u8").tobytes()


def numpy_digest(ids: np.ndarray) -> str:
    digest = hashlib.sha256(DOMAIN + b"\1" + len(ids).to_bytes(8, "big"))
    digest.update(ids.astype(">u8"))
    return digest.hexdigest()


def digests(effort: Effort) -> list[Table]:
    table = Table(
        "digests",
        "compute_digest: time, as a multiple of SHA-256 over ready bytes",
        "ids",
        {
            "list/bound": "list",
            "array/bound": "int32 array",
            "reference/bound": "reference (list)",
            "numpy/bound": "numpy + hashlib (int32)",
        },
    )
    for n in SIZES:
        ids = random_ids(n)
        listed = ids.tolist()
        ready = DOMAIN + numpy_encode(ids)
        times = measure(
            effort,
            {
                "bound": lambda ready=ready: hashlib.sha256(ready).hexdigest(),
                "list": partial(compute_digest, listed),
                "array": partial(compute_digest, ids),
                "reference": REFERENCE and partial(REFERENCE.compute_digest, listed),
                "numpy": partial(numpy_digest, ids),
            },
        )
        table.ratios(f"{n:,}", times)
    return [table]


def batches(effort: Effort) -> list[Table]:
    table = Table(
        "batches",
        "compute_digests: how many times faster than a loop over the sequences, one by one",
        "sequences x ids",
        {
            "bound/one": "SHA-256 over ready bytes, 1 thread",
            "bound/two": "2 threads",
            "numpy/one": "numpy + hashlib, 1 thread",
            "reference/array": "reference, default threads: arrays",
            "reference/list": "lists",
        },
    )
    ragged = np.random.default_rng(3).integers(3, 40_000, 64).tolist()
    shapes = {"64 x 512": [512] * 64, "256 x 4,096": [4_096] * 256, "32 x 32,768": [32_768] * 32}
    for name, lengths in {**shapes, "64 x 3 to 40,000": ragged}.items():
        arrays = [random_ids(n, seed) for seed, n in enumerate(lengths)]
        lists = [ids.tolist() for ids in arrays]
        ready = [DOMAIN + numpy_encode(ids) for ids in arrays]
        times = measure(
            effort,
            {
                "bound": lambda ready=ready: [hashlib.sha256(data).hexdigest() for data in ready],
                "one": partial(compute_digests, arrays, threads=1),
                "two": partial(compute_digests, arrays, threads=2),
                "numpy": lambda arrays=arrays: [numpy_digest(ids) for ids in arrays],
                "reference": REFERENCE and (lambda lists=lists: [REFERENCE.compute_digest(ids) for ids in lists]),
                "array": partial(compute_digests, arrays),
                "list": partial(compute_digests, lists),
            },
        )
        table.ratios(name, times)
    return [table]


def functions(effort: Effort) -> list[Table]:
    table = Table(
        "functions",
        "Each function: how many times faster than the reference (on lists)",
        "function, ids",
        {"reference/list": "list", "reference/array": "int32 array", "numpy/array": "array against numpy"},
    )
    for n in SIZES:
        ids = random_ids(n)
        listed = ids.tolist()
        times = measure(
            effort,
            {
                "list": partial(encode_token_ids, listed),
                "array": partial(encode_token_ids, ids),
                "reference": REFERENCE and partial(REFERENCE.encode_token_ids, listed),
                "numpy": partial(numpy_encode, ids),
            },
        )
        table.ratios(f"encode_token_ids, {n:,}", times)
        times = measure(
            effort,
            {
                "list": partial(compute_digest, listed),
                "array": partial(compute_digest, ids),
                "reference": REFERENCE and partial(REFERENCE.compute_digest, listed),
                "numpy": partial(numpy_digest, ids),
            },
        )
        table.ratios(f"compute_digest, {n:,}", times)
    for n in SIZES:
        parts = _parts(n)
        entries = [TokenEntry(**parts["list"]), TokenEntry(**parts["array"])]
        theirs = REFERENCE and REFERENCE.TokenEntry(**parts["list"])
        prompt, generation = parts["array"]["prompt_token_ids"], parts["array"]["generation_token_ids"]
        times = measure(
            effort,
            {
                "list": partial(cumulative_tokens, entries[0]),
                "array": partial(cumulative_tokens, entries[1]),
                "reference": theirs and partial(REFERENCE.cumulative_tokens, theirs),
                "numpy": partial(np.concatenate, (prompt, generation)),
            },
            same=lambda a, b: list(a) == list(b),
        )
        table.ratios(f"cumulative_tokens, {n:,}", times)
        times = measure(
            effort,
            {
                "list": lambda entry=entries[0]: stamp_lineage(entry, None).digest,
                "array": lambda entry=entries[1]: stamp_lineage(entry, None).digest,
                "reference": theirs and (lambda entry=theirs: REFERENCE.stamp_lineage(entry, None).digest),
                "numpy": lambda p=prompt, g=generation: numpy_digest(np.concatenate((p, g))),
            },
        )
        table.ratios(f"stamp_lineage, {n:,}", times)
        times = measure(
            effort,
            {
                "list": lambda parts=parts: TokenEntry(**parts["list"]),
                "array": lambda parts=parts: TokenEntry(**parts["array"]),
                "reference": REFERENCE and (lambda parts=parts: REFERENCE.TokenEntry(**parts["list"])),
                "numpy": None,
            },
            same=lambda a, b: a.model_dump_json() == b.model_dump_json(),
        )
        table.ratios(f"TokenEntry(...), {n:,}", times)
    return [table]


def _parts(n: int) -> dict[str, dict[str, object]]:
    """Fields of an entry of n prompt ids and n // 32 generated ones, as lists and as arrays."""
    ids = {"prompt_token_ids": random_ids(n), "generation_token_ids": random_ids(n // 32, seed=1)}
    arrays = {**ids, "generation_log_probs": -np.random.default_rng(2).random(n // 32)}
    names = {"rollout_id": "r", "model_call_id": "c"}
    return {"array": {**names, **arrays}, "list": {**names, **{k: v.tolist() for k, v in arrays.items()}}}


SECTIONS = {
    "digests": digests,
    "batches": batches,
    "functions": functions,
    "files": partial(files, reference=REFERENCE),
    "chains": chains,
    "views": views,
    "bodies": bodies,
    "streams": streams,
    "gateways": gateways,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--smoke", action="store_true", help="each way once, to see that everything runs")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the numbers to FILE")
    parser.add_argument("sections", nargs="*", choices=[*SECTIONS, []], help="default: all")
    arguments = parser.parse_args()
    effort = SMOKE if arguments.smoke else FULL
    measured = {
        **environment(),
        "reference": REFERENCE and f"{NAME} {VERSION}",
        "rounds": effort.rounds,
    }
    print(*(f"{key}: {value}" for key, value in measured.items()), sep="\n")
    tables = [table for name in arguments.sections or SECTIONS for table in SECTIONS[name](effort)]
    if arguments.json:
        results = {"measured": measured, "tables": {table.name: table.rows for table in tables}}
        arguments.json.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
