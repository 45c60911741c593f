"""What the Markdown pages are made of, as far as it decides whether their code runs as a test."""

import re
from pathlib import Path

import pytest
from support.places import DOCS, REPOSITORY

PAGES = [REPOSITORY / "README.md", REPOSITORY / "CONTRIBUTING.md", *sorted(DOCS.rglob("*.md"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(REPOSITORY)))
def test_python_is_called_python(page: Path) -> None:
    """Under another name of it, or none, a block would not run."""
    fences = re.findall(r"^ *(?:```|~~~)(.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    assert set(fences[::2]) <= {"python", "sh", "sql", "text"}
    assert set(fences[1::2]) <= {""}
