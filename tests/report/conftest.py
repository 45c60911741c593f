"""Pages in Chromium; when one is left, its console is empty and it asked for nothing but itself.

Skipped where selenium or Chromium is not there; the session `browser` has both.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from support.shown import ENTRIES, write_tokenizer
from tokenrecords.report import write_report

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tokenrecords import TokenEntry


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    pytest.importorskip("selenium")
    from support.browser import CHROMIUM, DRIVER, Browser

    if not (CHROMIUM and DRIVER):
        pytest.skip("there is no Chromium")
    driver = Browser()
    yield driver
    driver.quit()


@pytest.fixture
def opened(browser: Any, tmp_path: Path) -> Iterator[Callable[..., Any]]:
    from support.opened import Opened

    path = tmp_path / "page.html"

    def make(entries: list[TokenEntry], **options: Any) -> Opened:
        write_report(entries, path, **options)
        return Opened(browser, path)

    yield make
    assert browser.console() == []
    assert {address.partition("#")[0] for address in browser.requests()} <= {path.as_uri(), "about:blank"}


@pytest.fixture
def page(opened: Callable[..., Any], tmp_path: Path) -> Any:
    return opened(ENTRIES, tokenizer=write_tokenizer(tmp_path / "tokenizer.json"))
