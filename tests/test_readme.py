"""The README's code runs, and its commands are those that stand there."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

README = Path(__file__).parent.parent / "README.md"


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", README.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("code", blocks("python"))
def test_the_code_runs(code: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(README.parent)
    exec(compile(code, str(README), "exec"), {})


def test_there_are_two_commands_of_one_line() -> None:
    assert [block.count("\n") for block in blocks("sh")][:2] == [1, 1]


def test_the_first_command_ends_as_shown(tmp_path: Path) -> None:
    command = blocks("sh")[0].split("&&")[-1].split()
    assert command[0] == ".venv/bin/tokenrecords"
    arguments = [str(tmp_path) if argument == "records" else argument for argument in command[1:]]
    done = subprocess.run(
        [sys.executable, "-m", "tokenrecords", *arguments],
        cwd=README.parent,
        capture_output=True,
        text=True,
        check=True,
    )
    printed = done.stdout.replace(str(tmp_path), "records").splitlines()
    shown = blocks("text")[0].splitlines()
    assert [line.rstrip() for line in printed][-len(shown) :] == shown
