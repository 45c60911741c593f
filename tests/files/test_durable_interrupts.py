"""Writing is interrupted at random moments, and no acknowledged record is lost.

TOKENRECORDS_INTERRUPTS sets how often.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path

INTERRUPTS = os.environ.get("TOKENRECORDS_INTERRUPTS", "100")
PROGRAM = Path(__file__).parent.parent / "support" / "interrupted_writes.py"


def test_interrupts_at_any_moment_lose_no_acknowledged_record(tmp_path: Path) -> None:
    seed = str(random.SystemRandom().randrange(2**32))
    command = [sys.executable, str(PROGRAM), str(tmp_path), INTERRUPTS, seed]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, ""), f"seed {seed}"
    assert done.stdout.startswith(f"{INTERRUPTS} interrupts")
    print(done.stdout)  # noqa: T201
