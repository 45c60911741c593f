"""The examples are what their program makes."""

import subprocess
import sys

from support.places import EXAMPLES


def test_the_examples_are_what_their_program_makes() -> None:
    made = subprocess.run(
        [sys.executable, EXAMPLES / "make_responses.py"], capture_output=True, text=True, check=True
    ).stdout
    assert made == (EXAMPLES / "served_responses.jsonl").read_text(encoding="utf-8")
