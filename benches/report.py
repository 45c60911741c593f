"""How long the page of many rollouts takes to write, to open and to show a rollout in headless Chromium.

python benches/report.py [ROLLOUTS [TURNS [IDS]]]

By default 200 rollouts of 10 turns that grow to 16,000 ids. Needs the extra `report`, selenium and Chromium with its
driver.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from tokenrecords import TokenEntry, stamp_lineage
from tokenrecords.report import write_report

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
from support.browser import Browser

REPEATS = 5
VOCABULARY = 150_000


def rollouts(number: int, turns: int, ids: int) -> list[TokenEntry]:
    """Rollouts whose turns each add as many ids, of which every other one is generated."""
    random = np.random.default_rng(1)
    entries = []
    for rollout in range(number):
        sequence = np.empty(0, np.int32)
        for turn in range(turns):
            added = ids // turns // 2
            prompt = np.concatenate([sequence, random.integers(0, VOCABULARY, added, np.int32)])
            entry = TokenEntry(
                rollout_id=f"rollout-{rollout:04}",
                model_call_id=f"call-{turn}",
                prompt_token_ids=prompt,
                generation_token_ids=random.integers(0, VOCABULARY, added, np.int32),
                generation_log_probs=-random.exponential(0.4, added),
                weight_version=rollout % 4,
            )
            stamp_lineage(entry, f"call-{turn - 1}" if turn else None, "resolved" if turn else "root")
            sequence = np.concatenate([prompt, entry.generation_token_ids])
            entries.append(entry)
    return entries


def opened(browser: Browser, page: Path) -> tuple[float, float]:
    """Seconds until the table is drawn, and from a click on the last rollout until its tokens are."""
    browser.get("about:blank")
    started = time.perf_counter()
    browser.get(page.as_uri())
    browser.settle()
    is_open = time.perf_counter()
    browser.run("document.querySelector('#table tbody tr:last-child a').click();")
    browser.run("while (!document.querySelector('.t')) await new Promise(requestAnimationFrame);")
    browser.settle()
    return is_open - started, time.perf_counter() - is_open


def longest_frame(browser: Browser) -> float:
    """The longest time between two pictures, in seconds, while the tokens are scrolled through."""
    milliseconds: float = browser.run(
        """
        const strip = document.getElementById("strip");
        let longest = 0, last = performance.now();
        for (let step = 0; step < 200; step += 1) {
          strip.scrollTop += 400;
          await new Promise(requestAnimationFrame);
          const now = performance.now();
          longest = Math.max(longest, now - last);
          last = now;
        }
        return longest;
        """
    )
    return milliseconds / 1000


def main() -> None:
    number, turns, ids = (int(value) for value in [*sys.argv[1:], *("200", "10", "16000")[len(sys.argv) - 1 :]])
    entries = rollouts(number, turns, ids)
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "report.html"
        started = time.perf_counter()
        write_report(entries, page, max_rollouts=None)
        print(f"written in {time.perf_counter() - started:.2f} s: {page.stat().st_size / 1e6:.1f} MB")
        browser = Browser()
        try:
            times = [opened(browser, page) for _ in range(REPEATS)]
            frame = longest_frame(browser)
        finally:
            browser.quit()
    for name, seconds in zip(("opened", "a rollout shown"), zip(*times, strict=True), strict=True):
        print(f"{name} in {statistics.median(seconds):.2f} s, at most {max(seconds):.2f} s of {REPEATS} times")
    print(f"longest frame while scrolling: {1000 * frame:.0f} ms")


if __name__ == "__main__":
    main()
