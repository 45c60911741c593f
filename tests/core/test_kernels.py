"""The kernels of SHA-256: which one a process uses, and that all of them compute the same."""

import json
import os
import re
import subprocess
import sys

import pytest
from support import oracle
from tokenrecords._core import machine

# Every number of lanes with a rest, blocks' ends, and ids of more than 32 bits.
LENGTHS = [0, 1, 3, 4, 5, 6, 11, 12, 13, 14, 40, 127, 128, 129, 150, 300, 1_000, 2, 9, 17, 23]
SEQUENCES = [[(i * 7_919 + n) << (40 if i == n // 2 else 0) for i in range(n)] for n in LENGTHS]

PROGRAM = """
import json, sys, warnings
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    from tokenrecords._core import compute_digest, compute_digests, machine
sequences = json.load(sys.stdin)
json.dump({
    "one": [compute_digest(ids) for ids in sequences],
    "batches": [compute_digests(sequences[:n], threads=1) for n in range(len(sequences) + 1)],
    "kernels": machine()[:2],
    "warnings": [f"{each.category.__name__}: {each.message}" for each in caught],
}, sys.stdout)
"""


def forced(name, *flags):
    """What a process says that is to use a kernel."""
    environment = {**os.environ, "TOKENRECORDS_KERNEL": name}
    command = [sys.executable, *flags, "-c", PROGRAM]
    run = subprocess.run(
        command, env=environment, input=json.dumps(SEQUENCES), capture_output=True, text=True, check=True
    )
    return json.loads(run.stdout)


def check(said):
    """The digests of a process are those of the definition."""
    wanted = [oracle.digest(ids) for ids in SEQUENCES]
    assert said["one"] == wanted
    assert said["batches"] == [wanted[:n] for n in range(len(wanted) + 1)]


@pytest.fixture(scope="module")
def unknown():
    """A process that is to use a kernel of which nobody heard."""
    return forced("x'\n")


def names(said):
    [warning] = said["warnings"]
    begin = r"RuntimeWarning: TOKENRECORDS_KERNEL is 'x\'\n': one of "
    end = " is needed on this machine; the fastest are used"
    return re.fullmatch(f"{re.escape(begin)}(.+){end}", warning)[1].split(", ")


def test_a_kernel_that_is_not_there_is_warned_of_and_forces_nothing(unknown):
    check(unknown)
    assert names(unknown)[0] == "portable"
    assert len(set(names(unknown))) == len(names(unknown))
    assert set(unknown["kernels"]) <= set(names(unknown))
    assert unknown["kernels"][0] == machine()[0]


def test_one_digest_gets_one_lane_and_a_batch_several_where_there_are_such_kernels(unknown):
    one, batch = unknown["kernels"]
    assert one == ("sha-ni-x1" if "sha-ni-x1" in names(unknown) else "portable")
    several = [name for name in names(unknown) if name not in {"sha-ni-x1", "portable"}]
    assert batch in (several or ["portable"])


def test_each_kernel_can_be_forced_and_gives_the_same_digests(unknown):
    for name in names(unknown):
        said = forced(name)
        assert said["kernels"] == [name, name]
        assert said["warnings"] == []
        check(said)


def test_an_empty_name_forces_nothing():
    said = forced("")
    assert said["warnings"] == []
    assert said["kernels"][0] == machine()[0]
    check(said)


def test_the_variable_is_read_once(monkeypatch):
    before = machine()
    monkeypatch.setenv("TOKENRECORDS_KERNEL", "portable" if before[0] != "portable" else "none")
    assert machine() == before
