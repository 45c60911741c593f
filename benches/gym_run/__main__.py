"""NeMo Gym's vllm_model server before an engine of ours, on its own code and on this package: CPU, memory, results.

python benches/gym_run [--rounds N] [--workers N] [--delta]

Needs nemo-gym 0.7.0 and what its servers need: `nox -s gym_run` installs that.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import urllib.request
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from agents import Load, run
from nemo_gym.token_id_capture.staging.rebuild import LinearizedRow, verify_and_linearize
from nemo_gym.token_id_capture.staging.records import RolloutManifest, RolloutReceipt, StagedCallSnapshot
from servers import LAUNCHER, TOKEN, Usage, engine, model_server, staging_seconds

HERE = Path(__file__).parent
DRAWN = re.compile(rb'"(model_call_id|parent_call_id|digest)":"([^"]+)"|"created_at":[0-9.]+')
WARM = Load("warm", rollouts=2, turns=2, ids=8_000)
OURS = "tokenrecords.gym:FileLineageStore"
Launcher = tuple[str, ...]


def settled(text: bytes, *drawn: bytes) -> bytes:
    """Records with what is drawn anew each time replaced: times by 0, these fields by the rank of their value."""
    ranks: dict[bytes, int] = {}

    def plain(found: re.Match[bytes]) -> bytes:
        if found[1] is None:
            return b'"created_at":0'
        return b'"%s":%d' % (found[1], ranks.setdefault(found[2], len(ranks))) if found[1] in drawn else found[0]

    return DRAWN.sub(plain, text)


def same(results: dict[str, Any], what: str) -> None:
    """End where the ways came to different results."""
    first, *others = results
    for name in others:
        if results[name] != results[first]:
            sys.exit(f"{what}: {name} differs from {first}")
    print(f"\n{what}: equal for {', '.join(results)}")


def print_row(*cells: str) -> None:
    print("|", " | ".join(cells), "|", flush=True)


def file_store(rounds: int, workers: int, *, delta: bool) -> None:
    """The server that keeps records itself: all ways take their turn in each round."""
    ways: dict[str, tuple[bool, Launcher]] = {
        "own code": (False, ()),
        "by configuration": (True, ()),
        "by the launcher": (False, LAUNCHER),
    }
    seconds: dict[str, list[float]] = {way: [] for way in ways}
    memory, records, servers = {}, {}, {}
    with ExitStack() as stack:
        roots = {way: stack.enter_context(tempfile.TemporaryDirectory()) for way in ways}
        url = stack.enter_context(engine())
        for way, (configured, launcher) in ways.items():
            capture: dict[str, Any] = {"dir": roots[way], "delta_records": delta}
            if configured:
                capture |= {"lineage_store": OURS, "lineage_store_kwargs": {"root": roots[way]}}
            servers[way] = stack.enter_context(model_server(url, capture, launcher, workers))
            run(servers[way][0], WARM)
        loads = [Load(f"task-{number}") for number in range(rounds)]
        for load in loads:
            for way, (server, pid) in servers.items():
                before = Usage.of(pid)
                run(server, load)
                seconds[way].append((Usage.of(pid).seconds - before.seconds) / load.calls)
        for way, root in roots.items():
            memory[way] = Usage.of(servers[way][1]).bytes
            files = sorted(Path(root).glob("task-*.tokens.jsonl"))
            records[way] = {
                path.name: settled(path.read_bytes(), b"model_call_id", b"parent_call_id") for path in files
            }
        same(records, f"{rounds * loads[0].calls} records in {rounds * loads[0].rollouts} files")
        print_row("vllm_model with the file store", "CPU a call", "less", "memory at the end", "less")
        print_row("---", *["---:"] * 4)
        ratio = lambda way: statistics.median(map(float.__truediv__, seconds[way], seconds["own code"]))  # noqa: E731
        for way in ways:
            print_row(
                way,
                f"{statistics.median(seconds[way]) * 1e3:.2f} ms",
                f"{1 - ratio(way):.0%}",
                f"{memory[way] / 1e6:.0f} MB",
                f"{1 - memory[way] / memory['own code']:.0%}",
            )
        collect(roots["own code"], [name for load in loads for name in load.names()])


def collect(root: str, names: list[str]) -> None:
    """The collector of these rollouts' records."""
    found = {}
    for way, launcher in {"own code": (), "by the launcher": LAUNCHER}.items():
        with tempfile.TemporaryDirectory() as copy:
            shutil.copytree(root, copy, dirs_exist_ok=True)
            command = [*launcher, sys.executable, str(HERE / "collector.py"), copy, *names]
            found[way] = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    seconds = {way: each.pop("seconds") for way, each in found.items()}
    same(found, f"{len(names)} rollouts rebuilt of them")
    print_row("the collector", "CPU a rollout", "times less")
    print_row("---", "---:", "---:")
    for way, each in seconds.items():
        print_row(way, f"{each * 1e3:.2f} ms", f"{seconds['own code'] / each:.1f}")


def staging(rounds: int) -> None:
    """The server before a worker that stages: both on their own code, then both by the launcher."""
    loads = [Load(f"task-{number}") for number in range(rounds)]
    rows, calls, seconds = {}, {}, {}
    for way, launcher in {"own code": (), "by the launcher": LAUNCHER}.items():
        with tempfile.TemporaryDirectory() as root, tempfile.TemporaryDirectory() as staged:
            capture = {"dir": root, "external_staging": True, "rebuild_response": False}
            with engine(staged, launcher=launcher) as url, model_server(url, capture, launcher) as (server, pid):
                run(server, WARM)
                before = Usage.of(pid).seconds, staging_seconds(url)
                for load in loads:
                    run(server, load)
                after = Usage.of(pid).seconds, staging_seconds(url)
                names = [name for load in loads for name in load.names()]
                rows[way] = [plain_row(server, staged, name) for name in names]
            seconds[way] = [(b - a) / (loads[0].calls * rounds) for a, b in zip(before, after, strict=True)]
            texts = {path.name: path.read_bytes() for path in sorted(Path(staged).glob("task-*"))}
            drawn = b"model_call_id", b"parent_call_id", b"digest"
            calls[way] = {name: settled(text, *drawn) for name, text in texts.items()}
    same(calls, f"{len(calls['own code'])} staged calls but for their seals")
    same(rows, f"{len(rows['own code'])} rollouts verified and rebuilt of them, by NeMo Gym's own code")
    print_row(
        "vllm_model before a worker that stages", "CPU of the server a call", "CPU of staging a call", "times less"
    )
    print_row("---", *["---:"] * 3)
    for way, (server_seconds, worker_seconds) in seconds.items():
        times = seconds["own code"][1] / worker_seconds
        print_row(way, f"{server_seconds * 1e3:.2f} ms", f"{worker_seconds * 1e3:.2f} ms", f"{times:.1f}")


def plain_row(server: str, staged: str, rollout: str) -> dict[str, Any]:
    """What a trainer gets of a rollout that was staged, without the names of its calls."""
    target = f"{server}/training-token-capture/control/rollouts/{rollout}/manifest"
    request = urllib.request.Request(target, headers={"authorization": f"Bearer {TOKEN}"})
    with urllib.request.urlopen(request) as answer:
        manifest = RolloutManifest.model_validate_json(answer.read())
    receipt = RolloutReceipt(
        rollout_id=rollout,
        manifest=manifest.records,
        terminal_model_call_id=manifest.records[-1].model_call_id,
        terminal_selection="declared",
    )
    paths = sorted(Path(staged).glob(f"{rollout}.*"))
    row: LinearizedRow = verify_and_linearize(
        receipt, [StagedCallSnapshot.model_validate_json(path.read_bytes()) for path in paths]
    )
    return {
        name: getattr(row, name) for name in ("token_ids", "token_mask", "logprobs", "prompt_len", "weight_versions")
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=32, help="of 8 rollouts of 8 turns to 32,768 ids")
    parser.add_argument("--workers", type=int, default=1, help="of the server that keeps records itself")
    parser.add_argument("--delta", action="store_true", help="that server writes delta records")
    arguments = parser.parse_args()
    file_store(arguments.rounds, arguments.workers, delta=arguments.delta)
    staging(max(1, arguments.rounds // 8))


if __name__ == "__main__":
    main()
