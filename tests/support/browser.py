"""Chromium without a window, driven by selenium; what it asks of the network and writes to its console is kept."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING, Any

from selenium import webdriver

if TYPE_CHECKING:
    from collections.abc import Iterator

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
DRIVER = shutil.which("chromedriver")


class Browser(webdriver.Chrome):
    """A window of one size and colour scheme."""

    def __init__(self, *, width: int = 1440, height: int = 1000, scheme: str = "light") -> None:
        options = webdriver.ChromeOptions()
        options.binary_location = CHROMIUM or ""
        for argument in ("--headless=new", "--no-sandbox", "--hide-scrollbars"):
            options.add_argument(argument)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        super().__init__(options, webdriver.ChromeService(DRIVER))
        self.resize(width, height)
        self.set_scheme(scheme)

    def resize(self, width: int, height: int) -> None:
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)

    def set_scheme(self, scheme: str) -> None:
        media = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
        self.execute_cdp_cmd("Emulation.setEmulatedMedia", media)

    def run(self, script: str) -> Any:
        """What a script returns; it may wait."""
        return self.execute_async_script(f"const [done] = arguments; (async () => {{ {script} }})().then(done);")

    def settle(self) -> None:
        """Wait until two pictures were drawn."""
        self.run("await new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)))")

    def console(self) -> list[str]:
        """The messages since this was asked last."""
        return [entry["message"] for entry in self.get_log("browser")]

    def requests(self) -> list[str]:
        """The addresses that were asked for since this was asked last."""
        return list(self._requests())

    def _requests(self) -> Iterator[str]:
        for entry in self.get_log("performance"):
            message = json.loads(entry["message"])["message"]
            if message["method"] == "Network.requestWillBeSent":
                yield message["params"]["request"]["url"]
