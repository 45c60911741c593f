"""The page in Chromium: it runs no text of the records, and can be read by everybody."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from support.factories import call

if TYPE_CHECKING:
    from support.opened import Opened


EVIL = "<img src=x onerror='window.run=1'></script><script>window.run=1</script>\u202e\u2028\x1b[31m\ud800"
EVIL_SHOWN = r"<img src=x onerror='window.run=1'></script><script>window.run=1</script>\u202e\u2028\x1b[31m\ud800"


def test_text_of_records_is_shown_and_never_run(opened: Any) -> None:
    items = [{"type": EVIL, "text": EVIL}]
    entry = call(EVIL, [1], [2], model=EVIL, response_id=EVIL, output_items=items)
    entry.rollout_id = EVIL
    entry.__pydantic_extra__ = {"weight_version": EVIL}
    entry.cum_len = 7
    page = opened([entry])
    assert page.column("Rollout") == page.column("Model") == page.column("Weights") == [EVIL_SHOWN]
    page.all("#table a")[0].click()
    page.wait()
    page.press("HOME")
    assert page.texts("#rollout-title") == [EVIL_SHOWN]
    assert page.texts("#tree .call-name") == page.texts("#strip .call-name") == [EVIL_SHOWN]
    assert page.texts(".said") == [f"[{EVIL_SHOWN}] {EVIL_SHOWN}"]
    page.all("#strip .t")[0].click()
    assert page.facts()["call"] == page.facts()["weights"] == EVIL_SHOWN
    assert page.run("return [window.run ?? null, document.images.length];") == [None, 0]


def test_a_script_that_gets_in_is_not_run(page: Opened) -> None:
    page.run(
        """
        const script = document.createElement("script");
        script.textContent = "window.run = 1";
        document.body.append(script);
        document.body.insertAdjacentHTML("beforeend", "<button id='evil' onclick='window.run = 1'>run</button>");
        document.getElementById("evil").click();
        """
    )
    assert page.run("return window.run ?? null;") is None
    refused = page.browser.console()
    assert ["Content Security Policy" in message for message in refused] == [True] * 2, refused


def test_it_is_readable_in_the_light_and_in_the_dark(page: Opened) -> None:
    backgrounds = []
    try:
        for scheme in ("dark", "light"):
            page.browser.set_scheme(scheme)
            found = []
            for address in ("#/", "#/0/2/1", "#/2", "#/3"):
                page.go(address)
                found += page.run(CONTRASTS)
            backgrounds.append(page.run("return getComputedStyle(document.body).backgroundColor;"))
            assert len(found) > 200
            assert [each for each in found if each[0] < 4.5] == []
    finally:
        page.browser.set_scheme("light")
    assert backgrounds == ["rgb(16, 19, 23)", "rgb(246, 247, 249)"]


# The contrast of each text with what is painted behind it, as WCAG 2 has it.
CONTRASTS = """
  const parse = (text) => {
    const srgb = text.startsWith("color(srgb");
    const numbers = text.replace("color(srgb", "").match(/[\\d.]+/g).map(Number);
    const [r, g, b, a = 1] = numbers;
    return srgb ? [r * 255, g * 255, b * 255, a] : [r, g, b, a];
  };
  const over = ([r, g, b, a], [R, G, B]) => [r * a + R * (1 - a), g * a + G * (1 - a), b * a + B * (1 - a), 1];
  const behind = (element) => {
    const layers = [];
    for (let at = element; at; at = at.parentElement) layers.push(parse(getComputedStyle(at).backgroundColor));
    return layers.reverse().reduce((below, layer) => over(layer, below), [255, 255, 255, 1]);
  };
  const light = ([r, g, b]) => {
    const linear = (v) => ((v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b);
  };
  const found = [];
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const element = texts.currentNode.parentElement;
    const isShown = element.checkVisibility() && !element.closest("svg, script, style, noscript, .hidden, .skip");
    if (!texts.currentNode.data.trim() || !isShown) continue;
    const back = behind(element);
    let opacity = 1;
    for (let at = element; at; at = at.parentElement) opacity *= getComputedStyle(at).opacity;
    const [r, g, b, a] = parse(getComputedStyle(element).color);
    const [high, low] = [light(over([r, g, b, a * opacity], back)), light(back)].sort((x, y) => y - x);
    found.push([(high + 0.05) / (low + 0.05), texts.currentNode.data.slice(0, 40), element.className]);
  }
  return found;
"""


@pytest.mark.parametrize("width", [1440, 1000, 420])
def test_it_fits_windows_of_any_width(page: Opened, width: int) -> None:
    page.resize(width, 800)
    try:
        for address in ("#/", "#/0/1/10", "#/2"):
            page.go(address)
            assert page.run("return document.documentElement.scrollWidth;") <= width
    finally:
        page.resize(1440, 1000)


def test_what_stands_above_can_be_skipped(page: Opened) -> None:
    page.go("#/2")
    page.run("document.getElementById('skip').focus();")
    page.press("ENTER")
    assert page.run("return document.activeElement.id;") == "top"
    assert page.texts("#rollout-title") == ["broken"]


def test_every_control_has_a_name_and_can_be_reached_by_keys(page: Opened) -> None:
    for address in ("#/", "#/2/1/3"):
        page.go(address)
        nameless = page.run(
            """
            const controls = "button, a, input, select, [tabindex='0'], [role=application]";
            return [...document.querySelectorAll(controls)].filter((each) => {
              if (!each.checkVisibility()) return false;
              const name = each.getAttribute("aria-label") || each.innerText || each.labels?.[0]?.innerText || "";
              return !name.trim() || each.tabIndex < 0;
            }).map((each) => each.outerHTML);
            """
        )
        assert nameless == []
    assert "arrow keys" in page.one("#strip").get_attribute("aria-label")
