"""The processes of a run: the engine, and NeMo Gym's vllm_model server before it."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
import urllib.request
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Any

import psutil

if TYPE_CHECKING:
    from collections.abc import Iterator

HERE = Path(__file__).parent
LAUNCHER = (sys.executable, "-m", "tokenrecords.gym", "--require", "--")
TOKEN = "bench"  # of the server's control routes


@dataclass(frozen=True)
class Usage:
    """What a process and its children used up to now.

    Attributes:
        seconds: CPU time, of user and system.
        bytes: Resident memory.
    """

    seconds: float
    bytes: int

    @classmethod
    def of(cls, pid: int) -> Usage:
        """The usage of a process that runs."""
        parent = psutil.Process(pid)
        family = [parent, *parent.children(recursive=True)]
        times = [process.cpu_times() for process in family]
        return cls(sum(each.user + each.system for each in times), sum(each.memory_info().rss for each in family))


def free_port() -> int:
    """A port that nobody listens at."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        return bound.getsockname()[1]


@contextmanager
def running(command: list[str], port: int, **options: Any) -> Iterator[int]:
    """A process, from when it listens at the port until the end of the block. Gives its id."""
    with TemporaryFile() as log, subprocess.Popen(command, stdout=log, stderr=log, **options) as process:
        try:
            deadline = time.monotonic() + 120
            while not listens(port):
                if process.poll() is not None or time.monotonic() > deadline:
                    log.seek(0)
                    sys.exit(f"{' '.join(command)} does not listen:\n{log.read().decode()}")
                time.sleep(0.1)
            yield process.pid
        finally:
            process.terminate()


def listens(port: int) -> bool:
    """True if somebody listens at the port."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@contextmanager
def engine(*directory: str, launcher: tuple[str, ...] = ()) -> Iterator[str]:
    """The engine; it stages into the directory where there is one. Gives its address."""
    port = free_port()
    with running([*launcher, sys.executable, str(HERE / "engine.py"), str(port), *directory], port):
        yield f"http://127.0.0.1:{port}"


def staging_seconds(engine_url: str) -> float:
    """The CPU time that the engine has staged for."""
    with urllib.request.urlopen(engine_url) as answer:
        return json.load(answer)["seconds"]


@contextmanager
def model_server(
    engine_url: str, capture: dict[str, Any], launcher: tuple[str, ...] = (), workers: int = 1
) -> Iterator[tuple[str, int]]:
    """The model server, with its block `token_id_capture`; several workers are processes that it spawns.

    Gives its address and its process's id.
    """
    port = free_port()
    echo = not capture.get("external_staging", False)
    server = {
        "entrypoint": "app.py",
        "host": "127.0.0.1",
        "port": port,
        "num_workers": workers,
        "base_url": f"{engine_url}/v1",
        "api_key": "none",
        "model": "policy",
        "return_token_id_information": echo,
        "request_prompt_and_generation_token_ids": echo,
        "uses_reasoning_parser": False,
    }
    config = {
        "policy_model": {"responses_api_models": {"vllm_model": server}},
        "token_id_capture": {"enabled": True, **capture},
        "head_server": {"host": "127.0.0.1", "port": free_port()},
        "dry_run": False,
    }
    place = find_spec("responses_api_models.vllm_model")
    assert place
    assert place.submodule_search_locations
    environment = os.environ | {
        "NEMO_GYM_CONFIG_DICT": json.dumps(config),
        "NEMO_GYM_CONFIG_PATH": "policy_model",
        "NEMO_GYM_TOKEN_CAPTURE_CONTROL_TOKEN": TOKEN,
    }
    [folder] = place.submodule_search_locations
    with running([*launcher, sys.executable, "app.py"], port, cwd=folder, env=environment) as pid:
        yield f"http://127.0.0.1:{port}", pid
