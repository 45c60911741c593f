"""Reading and writing record files against the reference's own way, and the peak memory of reading."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import tokenrecords
from compare import Effort, Table, measure
from tokenrecords import TokenEntry, read_jsonl, stamp_lineage

RECORDS, PROMPT, GENERATION = 24, 16_384, 512


def records(count: int = RECORDS, prompt: int = PROMPT, generation: int = GENERATION) -> list[dict[str, Any]]:
    """Fields of records with arrays."""
    random = np.random.default_rng(0)
    text = {"type": "output_text", "text": "the tide comes in and the boats go out. " * 10}
    return [
        {
            "rollout_id": "r",
            "model_call_id": f"call-{i}",
            "prompt_token_ids": random.integers(0, 151_936, prompt, np.int32),
            "generation_token_ids": random.integers(0, 151_936, generation, np.int32),
            "generation_log_probs": -random.random(generation),
            "output_items": [{"type": "message", "role": "assistant", "content": [text]}],
            "token_item_index": 0,
            "created_at": 1_764_400_000.0 + i,
        }
        for i in range(count)
    ]


def as_lists(fields: dict[str, Any]) -> dict[str, Any]:
    return {name: value.tolist() if isinstance(value, np.ndarray) else value for name, value in fields.items()}


def files(effort: Effort, reference: Any) -> list[Table]:
    """How many times faster the files are read and written, and in how much memory."""
    model = reference.TokenEntry if reference else TokenEntry
    theirs = [model(**as_lists(fields)) for fields in records()]
    arrays = [TokenEntry(**fields) for fields in records()]
    lists = [entry.as_lists() for entry in arrays]

    def write_reference() -> bytes:
        dumped = (orjson.dumps(e.model_dump(mode="json"), option=orjson.OPT_SORT_KEYS) for e in theirs)
        return b"".join(line + b"\n" for line in dumped)

    def write(entries: list[TokenEntry]) -> bytes:
        return b"".join(entry.to_json() + b"\n" for entry in entries)

    table = Table(
        "files",
        f"A file of {RECORDS} records of {PROMPT:,} + {GENERATION} ids: times faster than pydantic + orjson on lists",
        "",
        {"reference/array": "arrays", "reference/list": "lists", "reference/threads": "arrays, 2 threads"},
    )
    written = measure(
        effort,
        {"reference": write_reference, "array": partial(write, arrays), "list": partial(write, lists), "threads": None},
    )
    table.ratios("write", written)
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory, "r.tokens.jsonl")
        path.write_bytes(write_reference())

        def read_reference() -> list[Any]:
            with path.open("rb") as lines:
                return [model.model_validate(orjson.loads(line)) for line in lines]

        read = measure(
            effort,
            {
                "reference": read_reference,
                "array": partial(read_jsonl, path, threads=1),
                "list": partial(read_jsonl, path, arrays=False),
                "threads": partial(read_jsonl, path, threads=2),
            },
            same=lambda a, b: [e.model_dump_json() for e in a] == [e.model_dump_json() for e in b],
        )
        table.ratios("read", read)
    return [table, threads(effort), memory(4_000_000 if effort.seconds else 10_000)]


def rollouts(count: int, turns: int = 8, ids: int = 9_500) -> list[list[TokenEntry]]:
    """Rollouts of calls that continue each other, with about `ids` ids each, as arrays."""
    random = np.random.default_rng(0)
    text = {"type": "output_text", "text": "the tide comes in and the boats go out. " * 10}
    made = []
    for number in range(count):
        sequence = random.integers(0, 151_936, ids + 100 * turns, np.int32)
        calls = []
        for turn in range(turns):
            end = ids + 200 * turn - 100 * turns
            entry = TokenEntry(
                rollout_id=f"r{number:04}",
                model_call_id=f"c{turn}",
                prompt_token_ids=sequence[: end - 128].copy(),
                generation_token_ids=sequence[end - 128 : end].copy(),
                generation_log_probs=-random.random(128),
                output_items=[{"type": "message", "role": "assistant", "content": [text]}],
                created_at=1_764_400_000.0 + turn,
            )
            calls.append(stamp_lineage(entry, f"c{turn - 1}" if turn else None, "resolved" if turn else "root"))
        made.append(calls)
    return made


def threads(effort: Effort) -> Table:
    """How many times faster two threads read a directory."""
    made = rollouts(64 if effort.seconds else 2)
    table = Table(
        "threads",
        f"A directory of {8 * len(made)} records of 9,500 ids, a file for each 8 turns: times faster than one thread",
        "files",
        {"one/two": "2 threads", "one/default": "as many as there are CPUs"},
    )
    for name, ending in (("plain", ""), ("gzip", ".gz"), ("zstd", ".zst")):
        with tempfile.TemporaryDirectory() as directory:
            for calls in made:
                tokenrecords.write_jsonl(Path(directory, f"{calls[0].rollout_id}.tokens.jsonl{ending}"), calls)
            read = measure(
                effort,
                {
                    "one": partial(read_jsonl, directory, threads=1),
                    "two": partial(read_jsonl, directory, threads=2),
                    "default": partial(read_jsonl, directory),
                },
            )
            table.ratios(name, read)
    return table


def memory(ids: int) -> Table:
    """Peak of memory while a record of many ids is read, in processes of their own."""
    table = Table(
        "memory",
        f"Peak memory of reading a record of {ids:,} ids, bytes an id above the text of the line",
        "ids",
        {"array": "read_jsonl (int32)", "reference": "pydantic + orjson"},
        unit="",
    )
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory, "r.tokens.jsonl")
        tokenrecords.write_jsonl(path, [TokenEntry(**fields) for fields in records(1, ids, 8)])
        size = path.stat().st_size
        ways = {
            "array": "tokenrecords.read_jsonl(path)",
            "reference": "[tokenrecords.TokenEntry.model_validate(orjson.loads(line)) for line in open(path, 'rb')]",
        }
        table.row(f"{ids:,}", {name: (_peak(way, path) - size) / ids for name, way in ways.items()})
    return table


def _peak(way: str, path: Path) -> int:
    code = f"""
import json, pathlib, re, sys, orjson, tokenrecords
path = sys.argv[1]
# Not ru_maxrss, which a process takes over from its parent.
peak = lambda: 1024 * int(re.search(r"VmHWM:\\s+(\\d+)", pathlib.Path("/proc/self/status").read_text())[1])
tokenrecords.read_jsonl(b"")
before = peak()
kept = {way}
print(json.dumps(peak() - before))
"""
    done = subprocess.run([sys.executable, "-c", code, path], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)
