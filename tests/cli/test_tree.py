"""The tree of a rollout."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich import console
from support.factories import call, conversation
from tokenrecords.cli.tree import rollout_tree

if TYPE_CHECKING:
    from tokenrecords import TokenEntry


def show(entries: list[TokenEntry], **options: Any) -> list[str]:
    out = console.Console(width=200, color_system=None)
    with out.capture() as captured:
        out.print(rollout_tree(entries, **options))
    return [" ".join(line.split()) for line in captured.get().splitlines()]


def test_the_tree_shows_roots_retries_fragments_and_what_was_left_out() -> None:
    entries = [
        call("a", [1], [2]),
        call("again", [1], [3]),
        call("b", [1, 2, 3], [4], "a"),
        call("c", [1, 2, 3, 4], [5, 6], "b"),
        call("d", [1, 2, 9], [5, 6], "a"),
        call("f", [7], [8], parent_resolution="unresolved"),
        call("g", [1, 2, 5], [8], "gone"),
        call("none", [1], []),
        call("a", [1], [9]),
    ]
    assert show(entries, terminal_call_id="c") == [
        "rollout r 7 calls 2 roots 1 fragment 1 quarantined 4 chains 4 of 9 generated ids in main terminal delivered",
        "├── ● a root 1 prompt 1 new 1 generated main, retry, kept",
        "│ ├── ● b continues 3 prompt 1 new 1 generated main",
        "│ │ ● c continues 4 prompt 0 new 2 generated main, terminal",
        "│ ├── ○ d continues 3 prompt 1 new 2 generated",
        "│ └── ○ g continues, found by its ids 3 prompt 1 new 1 generated",
        "├── ✗ again root 1 prompt 1 new 1 generated retry, quarantined",
        "├── ○ f fragment: parent_unresolved 1 prompt 1 new 1 generated",
        "├── none generated nothing: left out",
        "└── a duplicate_call_id_conflict: left out",
    ]


def test_what_was_left_out_is_sorted() -> None:
    broken = [call(name, [1], [2], output_items=None) for name in "ba"]
    assert show([*broken, call("d", [1], []), call("c", [1], [])])[1:] == [
        "├── c generated nothing: left out",
        "├── d generated nothing: left out",
        "├── a record_unreadable: left out",
        "└── b record_unreadable: left out",
    ]


def test_the_tree_of_nothing_and_of_a_long_chain() -> None:
    assert show([]) == ["rollout of no calls 0 of 0 generated ids in main"]
    assert len(show(conversation(1_500, deltas=True))) == 1_501
    assert show([call("a", [1], [2]), call("b", [1], [3])])[0].endswith("2 unresolved retries")


def test_a_call_stays_on_its_line() -> None:
    entries = [call(f"{name}\n", [1], ids, rollout_id="r\n") for name, ids in (("a", [2]), ("none", []))]
    broken = call("b\n", [1], [2], rollout_id="r\n", output_items=None)
    assert [line.split()[:3] for line in show([*entries, broken])] == [
        ["rollout", r"r\n", "1"],
        ["├──", "●", r"a\n"],
        ["├──", r"none\n", "generated"],
        ["└──", r"b\n", "record_unreadable:"],
    ]


def test_what_became_of_the_terminal_call_has_its_colour() -> None:
    for terminal, style in (("a", "bold green"), ("gone", "red")):
        title = rollout_tree([call("a", [1], [2])], terminal_call_id=terminal).label
        assert title.spans[-1].style == style  # type: ignore[union-attr]


def lines_of(entries: list[TokenEntry], **options: Any) -> list[str]:
    out = console.Console(width=200, color_system="standard", force_terminal=True)
    with out.capture() as captured:
        out.print(rollout_tree(entries, **options))
    return captured.get().splitlines()


def test_numbers_end_in_one_column() -> None:
    out = console.Console(width=200, color_system=None)
    with out.capture() as captured:
        out.print(rollout_tree([call("a", [1], list(range(12))), call("b", [1, *range(12)], [5], "a")]))
    first, second = captured.get().splitlines()[1:]
    for noun in ("prompt", "new", "generated"):
        assert first.index(f" {noun}") == second.index(f" {noun}")


def test_a_kept_retry_is_not_red() -> None:
    retries = [call("p", [7], [8]), call("q", [7], [9]), call("x", [7, 9], [1], "q")]
    shown = lines_of([call("a", [1], [2]), *retries], terminal_call_id="a")
    kept, quarantined = (next(line for line in shown if what in line) for what in ("retry, kept", "retry, quarantined"))
    assert "main" not in kept
    assert "\x1b[31m" in quarantined
    assert "\x1b[31m" not in kept
