"""A page of rollouts in the browser."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.select import Select

if TYPE_CHECKING:
    from pathlib import Path

    from support.browser import Browser


class Opened:
    """The page, and what one does with it."""

    def __init__(self, browser: Browser, path: Path) -> None:
        self.browser = browser
        self.path = path
        browser.get("about:blank")
        browser.console()
        browser.requests()
        self.go("")

    def run(self, script: str) -> Any:
        return self.browser.run(script)

    def go(self, address: str) -> None:
        self.browser.get(self.path.as_uri() + address)
        self.wait()

    def wait(self) -> None:
        """Wait until the view is drawn that the address names."""
        self.run("while (document.body.dataset.ready !== location.hash) await new Promise(requestAnimationFrame);")
        self.draw()

    def draw(self) -> None:
        """Wait until the tokens are drawn that are seen."""
        self.browser.settle()
        self.run(
            """
            const strip = document.getElementById("strip");
            const { top, bottom } = strip?.getBoundingClientRect() ?? {};
            const isMissing = (portion) => {
              const box = portion.getBoundingClientRect();
              return box.bottom > top && box.top < bottom && !portion.childElementCount;
            };
            const portions = [...document.querySelectorAll("#strip .portion")];
            while (portions.some(isMissing)) await new Promise(requestAnimationFrame);
            """
        )

    def click(self, element: Any) -> None:
        element.click()
        self.draw()

    def back(self) -> None:
        self.browser.back()
        self.wait()

    def rollout(self, name: str) -> None:
        next(link for link in self.all("#table a") if link.text == name).click()
        self.run("while (document.getElementById('rollout').hidden) await new Promise(requestAnimationFrame);")
        self.wait()

    def all(self, selector: str) -> list[Any]:
        return self.browser.find_elements(By.CSS_SELECTOR, selector)

    def one(self, selector: str) -> Any:
        [found] = self.all(selector)
        return found

    def texts(self, selector: str) -> list[str]:
        """The text of each element, each gap one space."""
        found = f"[...document.querySelectorAll({selector!r})]"
        return self.run(f"return {found}.map((each) => each.innerText.replace(/\\s+/g, ' ').trim());")

    def attributes(self, selector: str, name: str) -> list[str | None]:
        return self.run(
            f"return [...document.querySelectorAll({selector!r})].map((each) => each.getAttribute({name!r}));"
        )

    def column(self, name: str) -> list[str]:
        at = self.texts("#table thead th").index(name)
        return self.texts(f"#table tbody tr > :nth-child({at + 1})")

    def choose(self, field: str, value: str) -> None:
        Select(self.one(f"#filter-{field}")).select_by_visible_text(value)

    def facts(self) -> dict[str, str]:
        """What is said of the token under the cursor."""
        entries = "[...document.querySelectorAll('#facts dd')].map((dd) => [dd.dataset.fact, dd.textContent])"
        return self.run(f"return Object.fromEntries({entries});")

    def position(self) -> int:
        return int(self.facts()["position"].split(" of ")[0].replace(",", ""))

    def press(self, *keys: str) -> dict[str, str]:
        """Press keys, one after the other: a character, or the name of a key as `Keys` has it."""
        ActionChains(self.browser).send_keys(*(getattr(Keys, key, key) for key in keys)).perform()
        return self.facts()

    def hover(self, element: Any) -> None:
        ActionChains(self.browser).move_to_element(element).perform()

    def click_in_the_middle(self, element: Any) -> None:
        ActionChains(self.browser).move_to_element(element).click().perform()

    def resize(self, width: int, height: int) -> None:
        self.browser.resize(width, height)
        self.draw()
