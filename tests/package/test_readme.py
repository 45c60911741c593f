"""The README's commands are those that stand there."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

from support.places import REPOSITORY

README = REPOSITORY / "README.md"


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", README.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


def test_there_are_two_commands_of_one_line() -> None:
    assert [block.count("\n") for block in blocks("sh")][:2] == [1, 1]


def test_the_first_command_ends_as_shown(tmp_path: Path) -> None:
    shutil.copytree(README.parent / "examples", tmp_path / "examples")
    programs = {".venv/bin/tokenrecords": [sys.executable, "-m", "tokenrecords"], ".venv/bin/python": [sys.executable]}
    printed = ""
    for command in blocks("sh")[0].split("&&")[2:]:
        program, *arguments = command.split()
        done = subprocess.run(
            [*programs[program], *arguments], cwd=tmp_path, capture_output=True, text=True, check=True
        )
        printed += done.stdout
    assert printed.endswith(blocks("text")[0])
