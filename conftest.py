"""The Python blocks of the README and of docs/ are tests: in order, with a namespace and a directory for each page.

The directory has `examples/` in it, and is gone with the page. Pages that are excluded have tests of their own, with
stand-ins for trainers and with Ray.
"""

from __future__ import annotations

import shutil
from contextlib import ExitStack, chdir
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from sybil import Sybil
from sybil.parsers.markdown import PythonCodeBlockParser, SkipParser

pytest_plugins = ["support.skips"]

HERE = Path(__file__).parent
DIRECTORY = "__directory__"


def enter(names: dict[str, Any]) -> None:
    """Go to a new directory, with the data of the examples."""
    stack = names[DIRECTORY] = ExitStack()
    directory = stack.enter_context(TemporaryDirectory())
    shutil.copytree(HERE / "examples", Path(directory, "examples"))
    stack.enter_context(chdir(directory))


def leave(names: dict[str, Any]) -> None:
    """Go back, and remove the directory."""
    names[DIRECTORY].close()


pytest_collect_file = Sybil(
    parsers=[PythonCodeBlockParser(), SkipParser()],
    patterns=["README.md", "docs/*.md", "docs/*/*.md"],
    excludes=["docs/clusters.md", "docs/trainers.md"],
    setup=enter,
    teardown=leave,
).pytest()
