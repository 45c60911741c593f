"""Ctrl-C, and other signals, end the work on digests at once."""

import subprocess
import sys

import numpy as np
import pytest
from tokenrecords import compute_digests

# Hours of hashing: without an end of it, the deadline of the process is met.
PROGRAM = """
import signal, numpy as np
from tokenrecords import _core

class Alarm({base}):
    pass

def alarm(*_):
    raise Alarm

endless = np.broadcast_to(np.int32(7), 1 << 44)
signal.signal(signal.SIGALRM, alarm)
signal.setitimer(signal.ITIMER_REAL, 0.1)
try:
    {work}
except Alarm:
    print("ended")
"""

WORK = [
    "_core.compute_digest(endless)",
    "_core.joint_digest(a=endless, b=endless)",
    "_core.prefix_digest(1 << 43, a=endless)",
    "_core.staged_ids_digest(b'', token_ids=endless)",
    "_core.compute_digests([endless], threads=1)",
    "_core.compute_digests([[1], endless, endless], threads=2)",
    "_core.compute_digests(endless, offsets=[0, 5, 1 << 43], threads=1)",
    "_core.PendingDigests([endless], threads=1).result()",
]


def ended(work, base):
    command = [sys.executable, "-c", PROGRAM.format(work=work, base=base)]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout == "ended\n"


@pytest.mark.parametrize("work", WORK)
def test_an_interrupt_ends_the_work(work):
    assert ended(work, "KeyboardInterrupt")


@pytest.mark.parametrize("work", [WORK[0], WORK[4]])
def test_another_error_of_a_handler_does_so_too(work):
    assert ended(work, "TimeoutError")


def sequences(error):
    yield np.array([-1])
    raise error


def test_an_interrupt_is_not_kept_back_by_a_fault_before_it():
    for interrupt in (KeyboardInterrupt, SystemExit):
        with pytest.raises(interrupt):
            compute_digests(sequences(interrupt))
    with pytest.raises(
        ValueError, match=r"^sequences\[0\], token_ids\[0\] is -1: token ids must be non-negative, got -1$"
    ):
        compute_digests(sequences(KeyError))
