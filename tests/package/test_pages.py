"""What neither the tests of code blocks nor the build of the site see of the Markdown pages."""

import re
from pathlib import Path

import pytest
from support.places import DOCS, REPOSITORY

OUTSIDE = [REPOSITORY / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")]
PAGES = [*OUTSIDE, *sorted(DOCS.rglob("*.md"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(REPOSITORY)))
def test_python_is_called_python(page: Path) -> None:
    """Under another name of it, or none, a block would not run."""
    fences = re.findall(r"^ *(?:```|~~~)(.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    assert set(fences[::2]) <= {"python", "sh", "sql", "text"}
    assert set(fences[1::2]) <= {""}


def anchors(page: Path) -> set[str]:
    """Those that GitHub and the site give the headings of a page."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", OUTSIDE, ids=lambda page: page.name)
def test_links_from_outside_the_site_lead_somewhere(page: Path) -> None:
    for link in re.findall(r"\]\(\s*([^)\s]+)\)", page.read_text(encoding="utf-8")):
        path, _, anchor = link.partition("#")
        if "://" not in path:
            assert (page.parent / path).exists(), link
            assert not anchor or anchor in anchors(page.parent / path), link
