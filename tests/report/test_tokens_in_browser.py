"""A rollout in Chromium: every token is what the records say, by pointer and by keys."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from support.factories import call, conversation
from support.shown import KINDS, SHOWN, Rollout, expected_facts

if TYPE_CHECKING:
    from support.opened import Opened


@pytest.mark.parametrize(("name", "call"), [("plain", "c"), ("odd", "a")])
def test_the_token_under_the_pointer_is_told(page: Opened, name: str, call: str) -> None:
    rollout = next(each for each in KINDS if each.id == name)
    page.rollout(name)
    tokens = page.all("#strip .t")
    assert len(tokens) == len(rollout.tokens[call])
    for position, element in enumerate(tokens):
        page.hover(element)
        assert page.facts() == expected_facts(rollout, call, position)
        assert element.text.strip() == SHOWN.get(rollout.tokens[call][position].id, "99").replace("␣", "")
        assert [int(each.get_attribute("data-p")) for each in page.all(".cursor")] == [position]


def test_roles_and_heat_are_told_by_class_and_underline(page: Opened) -> None:
    page.rollout("plain")
    looks = page.run(
        """
        return [...document.querySelectorAll("#strip .t")].map((token) => {
          token.classList.remove("cursor");
          return [token.className, getComputedStyle(token).borderBottomStyle];
        });
        """
    )
    assert looks[:7] == [
        *[["t prompt", "solid"]] * 4,
        ["t generated h0", "solid"],
        ["t generated h1", "solid"],
        ["t generated h4", "solid"],
    ]
    assert looks[9:13] == [
        ["t generated h1", "solid"],
        ["t masked h1", "dotted"],
        ["t masked h2", "dotted"],
        ["t generated h2", "solid"],
    ]
    page.go("#/3")
    assert [t.get_attribute("class") for t in page.all("#strip .generated")] == [
        *["t generated hx"] * 3,
        "t generated h1",
    ]


def test_keys_move_the_cursor_and_it_is_said(page: Opened) -> None:
    rollout = KINDS[0]
    page.rollout("plain")
    page.run("document.getElementById('strip').focus();")
    keys = {
        "ARROW_RIGHT": [0, 1, 2],
        "END": [14],
        "ARROW_LEFT": [13, 12],
        "[": [9, 7, 4],
        "]": [7, 9, 13, 14, 14],
        "HOME": [0],
        "PAGE_DOWN": [14],
        "PAGE_UP": [0],
    }
    for key, positions in keys.items():
        for position in positions:
            assert page.press(key) == expected_facts(rollout, "c", position)
            token = rollout.tokens["c"][position]
            log_prob = "" if token.log_prob is None else f", log-prob {token.log_prob:g}"
            text = (SHOWN.get(token.id) or "unknown").replace("␣", " ")
            said = f"position {position}, id {token.id}, text {text}, {token.role}{log_prob}, call {token.call}"
            assert page.run("return document.getElementById('live').textContent;") == said
    assert page.one("#live").get_attribute("aria-live") == "polite"
    assert page.browser.current_url.endswith("#/0/2/0")


def test_up_and_down_go_by_lines(opened: Any) -> None:
    page = opened(Rollout("r").call("a", [10_000] * 100, [20_000] * 5).entries)
    page.go("#/0/0/0")
    places = page.run(
        """
        const places = [...document.querySelectorAll("#strip .t")].map((token) => token.getBoundingClientRect());
        return places.map(({ top, left }) => [top, left]);
        """
    )
    wide = sum(top == places[0][0] for top, _ in places)
    assert 5 < wide < 50
    page.press(*["ARROW_RIGHT"] * 3)
    for position in (3 + wide, 3 + 2 * wide):
        page.press("ARROW_DOWN")
        assert page.position() == position
        assert places[position][1] == places[3][1]
    page.press("ARROW_UP")
    assert page.position() == 3 + wide
    page.press(*["ARROW_UP"] * 3)
    assert page.position() == 3
    page.press(*["ARROW_DOWN"] * 60)
    assert page.position() >= 100


def test_ids_take_the_place_of_text(page: Opened) -> None:
    page.rollout("plain")
    page.click(page.one("#show-ids"))
    assert page.texts("#strip .t") == [str(token.id) for token in KINDS[0].tokens["c"]]
    page.click(page.one("#show-ids"))
    assert page.texts("#strip .t")[0] == "the"


def test_without_a_tokenizer_there_are_ids_alone(opened: Any) -> None:
    page = opened(KINDS[0].entries)
    page.rollout("plain")
    assert page.texts("#strip .t") == [str(token.id) for token in KINDS[0].tokens["c"]]
    assert not page.one("#show-ids").is_enabled()
    page.click(page.all("#strip .t")[4])
    assert page.facts()["text"] == "no tokenizer"
    assert page.facts()["id"] == "5"


def test_ids_beyond_53_bits_are_exact(opened: Any) -> None:
    page = opened(Rollout("r").call("a", [2**62 + 1], [2**53 + 1]).entries)
    page.rollout("r")
    assert page.texts("#strip .t") == [str(2**62 + 1), str(2**53 + 1)]


def test_calls_are_a_tree_that_opens_sequences(page: Opened) -> None:
    page.rollout("fork")
    assert page.texts("#tree tbody tr") == [
        "● a root main 1 2 -0.38 3",
        "● left resolved main 1 1 -0.25 3",
        "○ right resolved 1 2 -0.38 3",
    ]
    assert [row.get_attribute("aria-level") for row in page.all("#tree tbody tr")] == ["1", "2", "2"]
    page.click(page.all("#tree tbody tr")[2])
    last = page.texts("#tree tbody tr")[2].split()[1]
    assert page.texts("#strip .call-head .call-name") == ["a", last]
    assert len(page.all("#strip .t")) == len(KINDS[1].tokens[last])
    assert page.texts("#tree [aria-selected=true] .call-name") == [last]
    buttons = {button.text: button for button in page.all(".chains button")}
    assert sorted(buttons) == ["branch-0", "main"]
    assert buttons["branch-0"].get_attribute("aria-pressed") == "true"
    page.click(buttons["main"])
    assert len(page.all("#strip .t")) == len(KINDS[1].tokens["left"])


def test_the_tree_says_what_each_call_is(opened: Any) -> None:
    page = opened(
        [
            call("a", [1], [2]),
            call("again", [1], [3]),
            call("b", [1, 2, 3], [4], "a", response_id="x"),
            call("c", [1, 2, 3], [5], "a", response_id="x"),
            call("f", [7], [8], parent_resolution="unresolved"),
            call("g", [1, 2, 5], [8], "gone"),
            call("none", [1], []),
        ],
        terminal_call_ids={"r": "c"},
    )
    page.rollout("r")
    assert page.texts("#tree tbody tr") == [
        "● a root main retry 1 1 -0.50",
        "○ b resolved sample 1 1 -0.50",
        "● c resolved main terminal sample 1 1 -0.50",
        "○ g resolved 1 ! found by its ids 1 1 -0.50",
        "✗ again root quarantined retry 1 1 -0.50",
        "○ f fragment parent_unresolved 1 1 -0.50",
    ]
    assert page.attributes("#tree .wrong", "title") == ["parent_missing"]
    assert page.texts("#calls-left-out li") == ["none left out: generated nothing"]


def test_a_chain_is_opened_from_a_call_beyond_its_end(opened: Any) -> None:
    page = opened(conversation(3), terminal_call_ids={"r": "c1"})
    page.rollout("r")
    assert page.texts("#strip .call-name") == ["c0", "c1"]
    page.click(page.all("#tree tbody tr")[2])
    assert page.texts("#strip .call-name") == ["c0", "c1", "c2"]
    assert page.texts("#strip-title") == ["Up to c2"]
    page.click(page.one(".chains button"))
    assert page.texts("#strip .call-name") == ["c0", "c1"]
    assert page.texts("#strip-title") == ["Chain main"]


def test_keys_walk_the_tree(page: Opened) -> None:
    page.rollout("plain")
    page.run("document.querySelector('#tree tbody tr').focus();")
    page.press("ARROW_DOWN")
    assert page.run("return document.activeElement.dataset.call;") == "1"
    assert page.press("ENTER") == expected_facts(KINDS[0], "c", 9)
    assert page.run("return document.activeElement.id;") == "strip"


def test_both_sequences_of_a_break_stand_side_by_side(page: Opened) -> None:
    page.rollout("broken")
    assert page.texts("#breaks caption") == ["At position 5 the prompt of second is not what first has."]
    assert page.texts("#breaks thead th")[1:] == [str(at) for at in range(10)]
    lines = page.run(
        """
        const rows = [...document.querySelectorAll("#breaks tbody tr")];
        return rows.map((row) => [...row.querySelectorAll("td")].map((td) => td.innerText.trim()));
        """
    )
    words = {1: "the", 2: "", 3: r"\n", 7: "end"}
    assert lines[0] == [*(words[each] for each in [1, 1, 2, 2, 7, 1, 1, 3]), "end", "end"]
    assert lines[2] == [words[each] for each in [1, 1, 2, 2, 7, 2, 1, 3, 3, 7]]
    assert lines[1] == ["=", "=", "=", "=", "=", "≠", "=", "=", "≠", "≠"]
    assert page.texts("#breaks .parts") == ["5", "the", ""]
    page.click(page.all("#breaks .link")[1])
    assert page.facts()["position"] == "5 of 10"
    assert page.facts()["call"] == "second"


def test_a_finding_leads_to_its_token(page: Opened) -> None:
    page.rollout("odd")
    rows = page.texts("#rollout-findings tbody tr")
    assert [row.split()[:3] for row in rows] == [
        ["error", code, "a"] for code in ("log_prob_not_finite", "log_prob_positive", "log_prob_sentinel")
    ]
    page.click(page.all("#rollout-findings .link")[1])
    assert page.facts() == expected_facts(KINDS[3], "a", 2)


def test_a_link_leads_to_a_token_and_back(page: Opened) -> None:
    page.go("#/0/1/10")
    assert page.facts() == expected_facts(KINDS[0], "c", 10)
    page.click(page.one(".home"))
    page.wait()
    assert page.one("#overview").is_displayed()
    assert not page.one("#rollout").is_displayed()
    page.browser.back()
    page.wait()
    assert page.facts()["id"] == "1"
    for nowhere in ("#/99", "#/x", "#/-1", "#/0.5", "#/length", "#/__proto__"):
        page.go(nowhere)
        assert page.one("#overview").is_displayed()
    page.go("#/1")
    assert page.texts("#crumbs") == ["All rollouts Previous Next 2 of 4"]
    page.go("#/0/77/5")
    assert page.texts("#rollout-title") == ["plain"]


def test_a_long_chain_is_drawn_only_where_it_is_seen(opened: Any) -> None:
    rollout = Rollout("long")
    for turn in range(8):
        parent = f"c{turn - 1}" if turn else None
        rollout.call(
            f"c{turn}",
            [turn * 10_000 + at for at in range(1_000)],
            [turn * 10_000 + 5_000 + at for at in range(1_000)],
            [-0.5] * 1_000,
            parent=parent,
        )
    page = opened(rollout.entries)
    page.rollout("long")
    assert 200 < len(page.all("#strip .t")) < 4_000
    begins = [at + turn for turn in range(0, 16_000, 1_000) for at in (256, 512, 768)]
    assert page.attributes(".portion[data-from]", "data-from") == [f"{at:,}" for at in begins]
    for position in (12_345, 3, 15_999, 8_000):
        page.go(f"#/0/7/{position}")
        token = rollout.tokens["c7"][position]
        assert page.facts()["id"] == str(token.id)
        assert page.texts("#tree [aria-selected=true] .call-name") == page.texts(".about h2") == [token.call]
        assert len(page.all("#strip .t")) < 4_000
        assert page.run(
            """
            const [strip, token] = [document.getElementById("strip"), document.querySelector(".cursor")];
            const [outer, inner] = [strip.getBoundingClientRect(), token.getBoundingClientRect()];
            return inner.top >= outer.top && inner.bottom <= outer.bottom && token.textContent;
            """
        ) == str(token.id)
    page.run(
        """
        const strip = document.getElementById("strip");
        const isAtEnd = () => strip.scrollTop + strip.clientHeight >= strip.scrollHeight - 1;
        for (strip.scrollTop = 0; !isAtEnd(); strip.scrollTop += 600) await new Promise(requestAnimationFrame);
        """
    )
    page.draw()
    assert len(page.all("#strip .t")) < 4_000
    page.click_in_the_middle(page.one("#minimap"))
    assert page.position() == pytest.approx(8_000, abs=20)
    page.draw()
    left, width = page.run(
        "const w = document.querySelector('.window'); return [parseFloat(w.style.left), parseFloat(w.style.width)];"
    )
    assert left < 50 < left + width


def map_colours(page: Opened) -> list[list[str | None]]:
    """For each column of the map the names of the colours in the upper band and at the bottom."""
    return page.run(
        """
        const canvas = document.querySelector("#minimap canvas");
        const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
        const style = getComputedStyle(document.documentElement);
        const hex = ([r, g, b]) => "#" + [r, g, b].map((v) => v.toString(16).padStart(2, "0")).join("");
        const names = ["prompt", "generated", "masked", "h0", "h1", "h2", "h4"];
        const at = (x, y) => {
          const pixel = 4 * (y * canvas.width + x);
          const colour = hex(data.slice(pixel, pixel + 3));
          return names.find((each) => style.getPropertyValue("--" + each).trim() === colour) ?? null;
        };
        return Array.from({ length: canvas.width }, (_, x) => [at(x, 3), at(x, canvas.height - 1)]);
        """
    )


def test_the_map_is_drawn_in_the_colours_of_roles_and_heat(page: Opened) -> None:
    page.rollout("plain")
    page.draw()
    columns = map_colours(page)
    seen = [columns[int((at + 0.5) * len(columns) / 15)] for at in range(15)]
    roles = {"prompt": "prompt", "generated": "generated", "tool, masked": "masked"}
    assert [role for role, _ in seen] == [roles[token.role] for token in KINDS[0].tokens["c"]]
    assert [heat for _, heat in seen][4:7] == ["h0", "h1", "h4"]
    assert [heat for _, heat in seen][:4] == [None] * 4


@pytest.mark.parametrize("unlikely", range(4_000, 4_012, 3))
def test_of_many_tokens_in_a_column_the_map_shows_the_least_likely(opened: Any, unlikely: int) -> None:
    log_probs = [-0.01] * 8_000
    log_probs[unlikely] = -9.0
    page = opened(Rollout("r").call("a", [], [1] * 8_000, log_probs).entries)
    page.rollout("r")
    page.draw()
    columns = map_colours(page)
    hot = [at for at, (_, heat) in enumerate(columns) if heat == "h4"]
    assert len(hot) in (1, 2)
    assert hot[0] <= unlikely * len(columns) / 8_000 <= hot[-1] + 1
