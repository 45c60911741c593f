"""The overview in Chromium: numbers, and the table that is sorted and filtered."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from support.factories import call
from support.shown import ENTRIES, KINDS
from tokenrecords import build_chains, verify

if TYPE_CHECKING:
    from support.opened import Opened


def test_numbers_are_those_of_the_data(page: Opened) -> None:
    builds = {rollout.id: build_chains(rollout.entries) for rollout in KINDS}
    trained = sum(int(build.main.loss_mask.sum()) for build in builds.values() if build.trainable and build.main)
    generated = sum(len(entry.generation_token_ids) for entry in ENTRIES)
    ids = {
        (rollout.id, call, at)
        for rollout in KINDS
        for tokens in rollout.tokens.values()
        for at, (*_, call) in enumerate(tokens)
    }
    chains = sum(len(build.chains) for build in builds.values())
    counts = verify(ENTRIES).counts
    tiles = page.texts(".tile dd")
    assert tiles[:3] == [
        f"{len(KINDS)} {sum(build.trainable for build in builds.values())} trainable",
        f"{len(ENTRIES)} {chains} chains",
        f"{len(ids)} {generated} generated",
    ]
    assert (
        tiles[3]
        == f"{100 * trained / len(ids):.1f} % {trained} ids, {100 * trained / generated:.1f} % of the generated"
    )
    assert page.texts("#findings tbody tr") == [
        f"{verify_severity(code)} {code} {count}" for code, count in counts.items()
    ]
    assert page.column("Rollout") == [rollout.id for rollout in KINDS]
    assert page.column("Calls") == [str(len(rollout.entries)) for rollout in KINDS]
    assert page.column("Generated") == [
        str(sum(len(entry.generation_token_ids) for entry in rollout.entries)) for rollout in KINDS
    ]
    assert page.column("Trainable") == [
        "yes",
        "several_chains",
        "several_roots, several_chains, unresolved_parents",
        "yes",
    ]
    assert page.column("Weights") == ["3, 4", "3", "10", ""]
    assert page.column("Model") == ["m-1", "m-2", "m-1", "m-2"]
    assert page.column("Errors") == ["0", "0", "0", "3"]
    assert page.texts("#shown") == ["4 of 4 rollouts"]


def verify_severity(code: str) -> str:
    return next(finding.severity for finding in verify(ENTRIES).findings if finding.code == code)


@pytest.mark.parametrize(
    ("column", "first", "other"),
    [
        ("Rollout", "broken fork odd plain", "plain odd fork broken"),
        ("Calls", "plain fork broken odd", "odd broken plain fork"),
        ("Ids", "broken plain fork odd", "odd fork plain broken"),
        ("Weights", "odd fork plain broken", "broken plain fork odd"),
        ("Errors", "odd plain fork broken", "plain fork broken odd"),
    ],
)
def test_headers_sort(page: Opened, column: str, first: str, other: str) -> None:
    at = page.texts("#table thead th").index(column)
    for order, expected in enumerate((first, other, first)):
        page.all("#table thead button")[at].click()
        assert page.column("Rollout") == expected.split()
        sorts = [header.get_attribute("aria-sort") for header in page.all("#table thead th")]
        is_number = column not in ("Rollout", "Weights")
        assert sorts.pop(at) == ("descending" if is_number == (order != 1) else "ascending")
        assert set(sorts) == {"none"}


@pytest.mark.parametrize(
    ("field", "value", "expected"),
    [
        ("finding", "prefix_broken", "broken"),
        ("finding", "none", "plain fork"),
        ("model", "m-2", "fork odd"),
        ("version", "3", "plain fork"),
        ("version", "10", "broken"),
        ("trainable", "yes", "plain odd"),
        ("trainable", "no", "fork broken"),
        ("trainable", "no: several_roots", "broken"),
    ],
)
def test_fields_filter(page: Opened, field: str, value: str, expected: str) -> None:
    page.choose(field, value)
    assert page.column("Rollout") == expected.split()
    assert page.texts("#shown") == [f"{len(expected.split())} of 4 rollouts"]
    page.choose(field, "any")
    assert page.texts("#shown") == ["4 of 4 rollouts"]


def test_fields_filter_together_and_what_is_sorted_stays_so(page: Opened) -> None:
    page.all("#table thead button")[0].click()
    page.one("#search").send_keys("O")
    assert page.column("Rollout") == ["broken", "fork", "odd"]
    page.choose("model", "m-2")
    assert page.column("Rollout") == ["fork", "odd"]
    page.one("#search").send_keys("x")
    assert page.column("Rollout") == []
    assert page.texts("#shown") == ["0 of 4 rollouts"]


def test_codes_and_reasons_filter(page: Opened) -> None:
    page.one("[data-code=log_prob_sentinel]").click()
    assert page.column("Rollout") == ["odd"]
    assert page.run("return table.finding.value;") == "log_prob_sentinel"
    page.choose("finding", "any")
    page.one("[data-reason=unresolved_parents]").click()
    assert page.column("Rollout") == ["broken"]


def test_many_rows_are_drawn_in_portions(opened: Any) -> None:
    page = opened([call("c", [1], [2], rollout_id=f"r{n}") for n in range(600)], max_rollouts=None)
    for drawn in (250, 500, 600):
        assert len(page.all("#table tbody tr")) == drawn
        if drawn < 600:
            page.one("#more").click()
    assert not page.one("#more").is_displayed()
    page.one("#search").send_keys("r59")
    assert page.column("Rollout") == ["r59", *(f"r{n}" for n in range(590, 600))]
