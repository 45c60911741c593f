"""What an installation says of itself."""

import importlib.metadata
import os
import platform
import subprocess
import sys

import pytest
from tokenrecords.info import installation as module
from tokenrecords.info.installation import installation

CPUS = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()


def test_each_line_says_one_thing():
    version, one, batch, json, threads, *versions = installation().split("\n")
    assert version == f"tokenrecords: {importlib.metadata.version('tokenrecords')}, release build"
    assert one.split(": ")[0] == "kernel of one digest"
    assert batch.split(": ")[0] == "kernel of a batch"
    assert json in {"ids in JSON: avx2", "ids in JSON: portable"}
    name, count = threads.split(": ")
    assert name == "threads"
    assert 1 <= int(count) <= CPUS
    assert versions == [
        f"{platform.python_implementation()}: {platform.python_version()}",
        f"numpy: {importlib.metadata.version('numpy')}",
        f"pydantic: {importlib.metadata.version('pydantic')}",
    ]


def test_a_debug_build_says_so(monkeypatch):
    monkeypatch.setattr(module, "DEBUG", True)
    assert installation().split("\n")[0].endswith(", debug build")


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="CPUs of a process can't be set here")
def test_the_module_prints_it_for_the_process_that_it_runs_in():
    program = (
        "import os, runpy; os.sched_setaffinity(0, {min(os.sched_getaffinity(0))}); "
        "runpy.run_module('tokenrecords.info', run_name='__main__')"
    )
    environment = {**os.environ, "TOKENRECORDS_KERNEL": "portable"}
    run = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    lines = run.stdout.splitlines()
    assert lines[1:3] == ["kernel of one digest: portable", "kernel of a batch: portable"]
    assert lines[4] == "threads: 1"
    assert len(lines) == 8
