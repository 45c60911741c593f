"""What notebooks show."""

from __future__ import annotations

from support.factories import call, conversation, make_entry
from tokenrecords import build_chains, verify
from tokenrecords.text.html import table


def test_a_table_shows_its_text_and_runs_none_of_it() -> None:
    shown = table("<b>\u202e", ("a&b", "n"), [("'x'", 1234)])
    assert shown == (
        r"<table><caption>&lt;b&gt;\u202e</caption>"
        "<thead><tr><th scope='col'>a&amp;b</th><th scope='col'>n</th></tr></thead>"
        "<tbody><tr><td>&#x27;x&#x27;</td><td>1,234</td></tr></tbody></table>"
    )


def test_a_report_is_a_table_of_its_codes() -> None:
    report = verify([make_entry(generation_log_probs=[0.5], parent_resolution="root")])
    rows = [("error", "log_prob_positive", 1), ("info", "no_digest", 1)]
    caption = "1 record with 3 ids: 1 error, 1 info"
    assert report._repr_html_() == table(caption, ("severity", "code", "findings"), rows)


def test_a_build_is_a_table_of_its_chains() -> None:
    header = ("chain", "calls", "ids", "with loss")
    shown = build_chains(conversation(2))._repr_html_()
    assert shown == table("rollout r: trainable", header, [("main", 2, 6, 4)])
    forks = build_chains([call("a", [1], [2]), *(call(f"b{n}", [1, 2, n + 3], [7, 8], "a") for n in range(25))])
    rows = [("main", 2, 5, 3), *((f"branch-{n}", 2, 5, 3) for n in range(19))]
    assert forks._repr_html_() == table(
        "rollout r: not trainable: several_chains", header, [*rows, ("...", "5 more chains")]
    )
    assert build_chains([])._repr_html_() == table("not trainable: nothing_to_train", header, [])
