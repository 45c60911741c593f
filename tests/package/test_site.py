"""The documentation site has every public name and the whole wire format, and fetches nothing.

`nox -s docs` builds it, and says where.
"""

import json
import os
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from support.places import DOCS, REPOSITORY

if "TOKENRECORDS_SITE" not in os.environ:
    pytest.skip("nox -s docs builds the site", allow_module_level=True)

import griffe
from mkdocstrings import Inventory

SITE = Path(os.environ["TOKENRECORDS_SITE"])
PAGES = sorted(SITE.rglob("*.html"))
PACKAGE = griffe.load("tokenrecords", search_paths=[REPOSITORY / "python"], allow_inspection=False)
BELOW = [module for name, module in PACKAGE.modules.items() if module.exports and not name.startswith("_")]
PUBLIC = [PACKAGE, *BELOW, PACKAGE["gym.staging"]]


@pytest.mark.parametrize("module", PUBLIC, ids=lambda module: module.path)
def test_every_public_name_is_in_the_reference(module: griffe.Module) -> None:
    with (SITE / "objects.inv").open("rb") as file:
        inventory = Inventory.parse_sphinx(file)
    assert not [name for name in module.exports if f"{module.path}.{name}" not in inventory]


def test_the_public_modules_are_looked_at() -> None:
    assert {
        "tokenrecords",
        "tokenrecords.records",
        "tokenrecords.arrow",
        "tokenrecords.gym",
        "tokenrecords.gateway",
    } <= {module.path for module in PUBLIC}


def test_the_wire_format_is_that_of_the_crate() -> None:
    page = (SITE / "format.html").read_text(encoding="utf-8")
    docs = "\n".join(
        re.findall("^//! ?(.*)$", (REPOSITORY / "rust" / "lib.rs").read_text(encoding="utf-8"), re.MULTILINE)
    )
    headings = re.findall("^## (.+)$", docs, re.MULTILINE)
    digests = re.findall("[0-9a-f]{64}", docs)
    assert headings
    assert digests
    assert re.findall(r"<h2[^>]*>(.+?)<", page) == headings
    assert [digest for digest in digests if digest not in page] == []
    assert page.count("<li>") == len(re.findall(r"^\d+\. ", docs, re.MULTILINE))  # those of the navigation have a class
    assert "Infallible" not in page  # a line that rustdoc hides


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(SITE)))
def test_no_list_or_table_is_left_as_text(page: Path) -> None:
    """Markdown of GitHub needs fewer blank lines and spaces than that of the site."""
    text = re.sub(r"<pre.*?</pre>", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    assert re.findall(r"^ {0,3}(?:[-*|] |\d+\. |```|>>> ).*$", text, re.MULTILINE) == []


def test_prompts_are_known_as_such() -> None:
    """So that a copy goes without them."""
    page = (SITE / "index.html").read_text(encoding="utf-8")
    assert page.count('<span class="gp">&gt;&gt;&gt; </span>') == page.count("&gt;&gt;&gt;") > 10


class Fetched(HTMLParser):
    """What a page makes the browser fetch."""

    def __init__(self) -> None:
        super().__init__()
        self.addresses: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag != "a":
            self.addresses += [value or "" for name, value in attrs if name in {"src", "href", "srcset", "data"}]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(SITE)))
def test_nothing_is_fetched_from_elsewhere(page: Path) -> None:
    fetched = Fetched()
    fetched.feed(page.read_text(encoding="utf-8"))
    assert fetched.addresses
    assert [address for address in fetched.addresses if re.match("(https?:)?//", address)] == []


def test_no_style_is_fetched_from_elsewhere() -> None:
    styles = [path.read_text(encoding="utf-8") for path in SITE.rglob("*.css")]
    assert styles
    assert not [
        found for style in styles for found in re.findall(r"(?:url\(|@import )[\"']?(?:https?:)?//.{40}", style)
    ]


def test_the_search_of_pages_from_disk_knows_every_page() -> None:
    script = (SITE / "search" / "search_index.js").read_text(encoding="utf-8")
    found = {entry["location"].partition("#")[0] for entry in json.loads(script.removeprefix("var __index = "))["docs"]}
    assert {str(path.relative_to(DOCS).with_suffix(".html")) for path in DOCS.rglob("*.md")} <= found


def test_pages_from_disk_search_without_a_worker() -> None:
    assert "javascripts/iframe-worker.js" in (SITE / "index.html").read_text(encoding="utf-8")
