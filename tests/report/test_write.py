"""The page as a file: its numbers, what was left out, and that no text of the records is part of its code."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest
from support.factories import call, conversation, make_entry
from support.page import Page
from tokenrecords import TokenEntry, verify, write_jsonl
from tokenrecords.report import Written, write_report

if TYPE_CHECKING:
    from pathlib import Path


def of_rollouts(*names: str) -> list[TokenEntry]:
    """A rollout of each name: one of `b...` is not trainable, one of `f...` has an error, others are sound."""
    entries = []
    for name in names:
        entry = call("c", [1, 2], [3, 4], rollout_id=name)
        if name.startswith("f"):
            entry.generation_log_probs = [-0.5, 0.5]
        entries.append(entry)
        if name.startswith("b"):
            entries.append(call("d", [9], [8], rollout_id=name))
    return entries


def test_the_numbers_of_the_overview(tmp_path: Path) -> None:
    entries = [*of_rollouts("a", "b", "f"), call("none", [1], [], rollout_id="a")]
    assert write_report(entries, tmp_path / "p.html") == Written(3, 3)
    words = Page(tmp_path / "p.html").words
    assert "Rollouts 3 2 trainable" in words
    assert "Calls 5 4 chains" in words
    assert "Ids 14 7 generated" in words
    assert "Trained on 28.6 % 4 ids, 57.1 % of the generated" in words
    assert "Errors 1 1 warning, 0 notes" in words
    assert "Findings Severity Code Findings error log_prob_positive 1 warning empty_generation 1 " in words
    assert "What stands against training Reason Rollouts several_roots 1 several_chains 1 " in words
    assert "1 not finite or above 0" in words
    assert "left out" not in words


def test_bars_say_what_they_count(tmp_path: Path) -> None:
    write_report(of_rollouts("a", "b", "f"), tmp_path / "p.html")
    seen = Page(tmp_path / "p.html").words
    assert "-0.75 to -0.5: 2 -0.5 to -0.25: 4 " in seen
    assert "up to -9.75: 0" in seen
    assert "4 to 5: 3" in seen
    assert "50 to 55%: 4" in seen


def test_a_page_of_nothing_says_so(tmp_path: Path) -> None:
    assert write_report([], tmp_path / "p.html") == Written(0, 0)
    words = Page(tmp_path / "p.html").words
    assert "Rollouts 0 0 trainable" in words
    assert "Trained on 0 % 0 ids, 0 % of the generated" in words
    assert "Nothing was found." in words
    assert "Nothing: every rollout is trainable." in words


@pytest.mark.parametrize(
    ("options", "shown", "said"),
    [
        ({}, "abcf", ""),
        (
            {"max_rollouts": 2},
            "ab",
            "2 rollouts of 4 below. 2 rollouts left out: there are more than the page was to hold. The",
        ),
        (
            {"only": "findings"},
            "f",
            "1 rollout of 4 below. 3 rollouts left out: only those with an error or a warning were asked for. The",
        ),
        (
            {"only": "untrainable"},
            "b",
            "1 rollout of 4 below. 3 rollouts left out: only those that are not trainable were asked for. The",
        ),
        ({"max_rollouts": None}, "abcf", ""),
    ],
)
def test_what_was_left_out_is_said(tmp_path: Path, options: Any, shown: str, said: str) -> None:
    written = write_report(of_rollouts(*"abcf"), tmp_path / "p.html", **options)
    page = Page(tmp_path / "p.html")
    assert written == Written(4, len(shown))
    assert "".join(row["id"] for row in page.rows) == shown
    assert [len(page.details(place)["calls"]) for place in range(len(shown))] == [1 + (name == "b") for name in shown]
    assert f"details-{len(shown)}" not in page.by_id
    assert said in page.words
    assert ("left-out" in page.by_id) == bool(said)
    assert "Rollouts 4 3 trainable" in page.words


def test_a_limit_counts_those_that_were_asked_for(tmp_path: Path) -> None:
    written = write_report(of_rollouts("a", "b1", "b2"), tmp_path / "p.html", only="untrainable", max_rollouts=1)
    assert written == Written(3, 1)
    said = "only those that are not trainable were asked for. 1 rollout left out: there are more than"
    assert f"1 rollout of 3 below. 1 rollout left out: {said}" in Page(tmp_path / "p.html").words


def test_an_info_alone_is_no_finding_to_look_at(tmp_path: Path) -> None:
    entries = [make_entry(parent_resolution="root")]
    assert write_report(entries, tmp_path / "p.html", only="findings") == Written(1, 0)


EVIL = "</script><script>alert(1)</script><img src=x onerror=alert(1)>\u2028\u202e\x1b[31m\ud800'\"&{{ 7*7 }}"


def test_no_text_of_records_is_code_of_the_page(tmp_path: Path) -> None:
    items = [{"type": EVIL, "text": EVIL}]
    entry = call(EVIL, [1], [2], model=EVIL, output_items=items, response_id=EVIL, parent_call_id=None)
    entry.rollout_id = EVIL
    entry.__pydantic_extra__ = {"weight_version": EVIL}
    entry.generation_log_probs = [0.5]
    write_report([entry], tmp_path / "evil.html")
    write_report(conversation(1), tmp_path / "good.html")
    evil, good = Page(tmp_path / "evil.html"), Page(tmp_path / "good.html")
    scripts = [attributes.get("id") for tag, attributes in evil.tags if tag == "script"]
    assert scripts == ["rows", "pieces", "details-0", "arrays-0", None]
    assert "img" not in {tag for tag, _ in evil.tags}
    assert [tag for tag, _ in evil.tags if tag != "button"][:40] == [tag for tag, _ in good.tags if tag != "button"][
        :40
    ]
    assert evil.source.isascii() or not set("\u2028\u202e\x1b\ud800") & set(evil.source)
    shown = EVIL.translate({0x2028: r"\u2028", 0x202E: r"\u202e", 0x1B: r"\x1b", 0xD800: r"\ud800"})
    told = evil.details()["calls"][0]
    assert [told[name] for name in ("id", "model", "version", "response")] == [shown] * 4
    assert told["text"] == f"[{shown}]\n{shown}"
    assert evil.rows[0]["id"] == shown


def test_nothing_is_fetched_and_nothing_runs_but_the_page_itself(tmp_path: Path) -> None:
    write_report(conversation(1), tmp_path / "p.html")
    page = Page(tmp_path / "p.html")
    [policy] = [each["content"] for tag, each in page.tags if tag == "meta" and "http-equiv" in each]
    assert re.fullmatch(
        r"default-src 'none'; script-src 'sha256-[\w+/]{43}='; style-src 'sha256-[\w+/]{43}='; base-uri 'none'; "
        r"form-action 'none'",
        policy or "",
    )
    for tag, attributes in page.tags:
        assert tag not in ("link", "img", "iframe", "object", "embed")
        assert not {"src", "style", "srcset", "onclick", "action"} & attributes.keys()
        assert (attributes.get("href") or "#").startswith("#")


def test_a_page_is_the_same_each_time(tmp_path: Path) -> None:
    for name in "ab":
        write_report(conversation(3), tmp_path / f"{name}.html")
    assert (tmp_path / "a.html").read_bytes() == (tmp_path / "b.html").read_bytes()


def test_pieces_are_those_of_the_ids_that_are_shown(tmp_path: Path) -> None:
    vocab = {"one": 1, "two": 2, "three": 3, "nine": 9}
    (tmp_path / "tokenizer.json").write_text(json.dumps({"model": {"vocab": vocab}}))
    write_report(of_rollouts("a", "b"), tmp_path / "p.html", tokenizer=tmp_path, max_rollouts=1)
    assert Page(tmp_path / "p.html").pieces == {"1": ["one"], "2": ["two"], "3": ["three"]}
    write_report(of_rollouts("a"), tmp_path / "p.html")
    assert Page(tmp_path / "p.html").pieces is None


def test_paths_are_read_with_what_stands_beside_them(tmp_path: Path) -> None:
    write_jsonl(tmp_path / "r.tokens.jsonl", conversation(2))
    with (tmp_path / "r.tokens.jsonl").open("ab") as lines:
        lines.write(b'{"<b>": \n{}\n')
    (tmp_path / "r.tokens.intents").write_text("c0\nc1\nc9\n")
    (tmp_path / "gone.tokens.incomplete").write_text("x\n")
    write_jsonl(tmp_path / "whole.tokens.jsonl", of_rollouts("whole"))
    (tmp_path / "whole.tokens.intents").write_text("c\n")
    assert write_report(tmp_path, tmp_path / "p.html") == Written(3, 3)
    page = Page(tmp_path / "p.html")
    assert [(row["id"], row["calls"], row["reasons"], row["codes"]) for row in page.rows] == [
        ("r", 2, ["incomplete"], ["lost_call"]),
        ("whole", 1, [], []),
        ("gone", 0, ["incomplete", "nothing_to_train"], ["lost_call"]),
    ]
    assert page.details()["findings"][0]["where"] == f"{tmp_path}/r.tokens.intents:3"
    assert page.details()["findings"][0]["id"] == "c9"
    assert page.details()["findings"][0]["call"] is None
    assert "2 lines without a record" in page.words
    assert f"{tmp_path}/r.tokens.jsonl:3: " in page.words


def test_of_many_bad_lines_some_are_shown(tmp_path: Path) -> None:
    (tmp_path / "r.tokens.jsonl").write_bytes(b"{}\n" * 60)
    write_report([tmp_path / "r.tokens.jsonl"], tmp_path / "p.html")
    words = Page(tmp_path / "p.html").words
    assert "60 lines without a record" in words
    assert words.count("r.tokens.jsonl:") == 50
    assert "and 10 more" in words


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"path": "p.txt"}, ValueError, "path is p.txt: a name that ends with .html is needed"),
        ({"max_rollouts": 0}, ValueError, "max_rollouts is 0: it must be at least 1"),
        ({"only": "some"}, ValueError, "only is 'some': one of findings, untrainable is needed"),
        ({"threads": 0}, ValueError, "threads is 0: it must be at least 1"),
        (
            {"terminal_call_ids": 5},
            TypeError,
            "terminal_call_ids is int: a mapping from rollout id to call id is needed",
        ),
        ({"entries": [5]}, TypeError, "entries[0] is int: a TokenEntry is needed, or paths alone"),
    ],
)
def test_a_wrong_argument_is_named_and_nothing_is_written(
    tmp_path: Path, options: dict[str, Any], error: type[Exception], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(error, match=f"^{re.escape(message)}$"):
        write_report(**{"entries": conversation(1), "path": "p.html", **options})
    assert list(tmp_path.iterdir()) == []


def test_a_page_that_fails_leaves_the_old_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = tmp_path / "p.html"
    page.write_text("old")
    monkeypatch.setattr("tokenrecords.report.page._hash", lambda _: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        write_report(conversation(1), page)
    assert page.read_text() == "old"
    monkeypatch.undo()
    monkeypatch.setattr("tokenrecords.report.embedding.json.dumps", lambda *_, **__: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        write_report(conversation(1), page)
    assert page.read_text() == "old"
    assert list(tmp_path.iterdir()) == [page]


def test_the_terminal_call_decides_what_is_trainable(tmp_path: Path) -> None:
    write_report(of_rollouts("b"), tmp_path / "p.html", terminal_call_ids={"b": "d"})
    page = Page(tmp_path / "p.html")
    assert page.rows[0]["reasons"] == []
    assert page.rows[0]["trained"] == 1
    write_report(of_rollouts("b"), tmp_path / "p.html", terminal_response_ids={"b": "none"})
    assert Page(tmp_path / "p.html").rows[0]["reasons"] == ["terminal_not_captured"]


def test_a_warning_alone_is_a_finding_to_look_at(tmp_path: Path) -> None:
    entries = [call("a", [1], [])]
    assert verify(entries).counts == {"empty_generation": 1}
    assert write_report(entries, tmp_path / "p.html", only="findings") == Written(1, 1)


def test_pieces_are_those_of_all_rollouts(tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").write_text(json.dumps({"model": {"vocab": {"one": 1, "seven": 7, "two": 2}}}))
    entries = [call("c", [1], [2], rollout_id="a"), call("c", [7], [2], rollout_id="b")]
    write_report(entries, tmp_path / "p.html", tokenizer=tmp_path)
    assert Page(tmp_path / "p.html").pieces == {"1": ["one"], "2": ["two"], "7": ["seven"]}
