"""The calls of a rollout as a tree to look at. Needs rich, of the extra `cli`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text
from rich.tree import Tree

from tokenrecords.lineage.calls import RECOVERED
from tokenrecords.lineage.paths import Paths, Terminal, find_paths
from tokenrecords.text.printable import printable

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tokenrecords.entry.model import TokenEntry
    from tokenrecords.lineage.call import Call
    from tokenrecords.verification.findings import Finding

__all__ = ["rollout_tree"]

_MAIN_STYLE, _ROOT_STYLE, _DOUBT_STYLE, _BAD_STYLE, _PLAIN_STYLE = "bold green", "cyan", "yellow", "red", "dim"


def rollout_tree(
    entries: Iterable[TokenEntry],
    *,
    terminal_call_id: str | None = None,
    terminal_response_id: str | None = None,
    lost: Sequence[Finding] = (),
) -> Tree:
    """The calls of one rollout: below each call those that continue it, calls without a branch in one block.

    Args:
        entries: The records of one rollout, full or delta, in any order.
        terminal_call_id: The call that the rollout ended with.
        terminal_response_id: The id of its response.
        lost: What the files beside the records say against the rollout.

    Raises:
        ValueError: The entries belong to two rollouts.
    """
    entries = list(entries)
    rollouts = [*(entry.rollout_id for entry in entries[:1]), *(finding.rollout_id for finding in lost)]
    rollout_id = next(filter(None, rollouts), "of no calls")
    found = find_paths(entries, Terminal(terminal_call_id, terminal_response_id))
    tree = Tree(_title(rollout_id, found), guide_style="dim")
    pending = [(call, tree) for call in reversed(found.links.calls) if call.parent is None]
    while pending:
        call, above = pending.pop()
        block = [call]
        while len(block[-1].children) == 1:
            block.append(block[-1].children[0])
        below = above.add(_table(block, found))
        pending += [(child, below) for child in reversed(block[-1].children)]
    for call_id in found.links.empty:
        tree.add(Text(f"{printable(call_id)}  generated nothing: left out", _DOUBT_STYLE))
    for call_id, why in found.links.left_out:
        tree.add(Text(f"{printable(call_id)}  {why}: left out", _BAD_STYLE))
    for finding in lost:
        name = "" if finding.model_call_id is None else f"{printable(finding.model_call_id)}  "
        tree.add(Text(f"{name}{printable(finding.message)}", _BAD_STYLE))
    return tree


def _title(rollout_id: str, found: Paths) -> Text:
    calls = found.links.calls
    title = Text(f"rollout {printable(rollout_id)}", "bold")
    roots = sum(call.parent is None and not call.starts_fragment for call in calls)
    counts = {
        "call": len(calls),
        "root": roots,
        "fragment": sum(call.starts_fragment for call in calls),
        "quarantined": sum(call.quarantined for call in calls),
        "chain": len(found.paths),
    }
    for noun, count in counts.items():
        plural = "" if count == 1 or noun == "quarantined" else "s"
        title.append(f"  {count:,} {noun}{plural}" if count else "", _PLAIN_STYLE)
    generated, delivered = (sum(len(call.generation) for call in some) for some in (calls, found.main))
    title.append(f"  {delivered:,} of {generated:,} generated ids in main", _MAIN_STYLE)
    if found.outcome:
        title.append(f"  terminal {found.outcome}", _MAIN_STYLE if found.outcome == "delivered" else _BAD_STYLE)
    if found.undecided:
        title.append(f"  {len(found.undecided):,} unresolved retries", _BAD_STYLE)
    return title


def _table(block: Sequence[Call], found: Paths) -> Table:
    """One line a call: mark, id, what it is, ids of its prompt, those of them that are new, ids that it generated."""
    table = Table.grid(padding=(0, 2, 0, 0))
    for justify in ("left", "left", "left", "right", "right", "right", "left"):
        table.add_column(justify=justify, no_wrap=True)
    main = set(found.main)
    for call in block:
        is_main = call in main
        before = 0 if call.parent is None else call.parent.length
        table.add_row(
            Text("●" if is_main else "✗" if call.quarantined else "○"),
            Text(printable(call.id)),
            _kind(call),
            f"{len(call.prompt):,} prompt",
            f"{len(call.prompt) - before:,} new",
            f"{len(call.generation):,} generated",
            Text(", ".join(_remarks(call, is_main=is_main, is_terminal=call is found.terminal))),
            style=_MAIN_STYLE if is_main else _BAD_STYLE if call.quarantined else "",
        )
    return table


def _kind(call: Call) -> Text:
    if call.starts_fragment:
        return Text(f"fragment: {call.failure}", _DOUBT_STYLE)
    if call.parent is None:
        return Text("root", _ROOT_STYLE)
    return Text("continues, found by its ids" if call.failure == RECOVERED else "continues")


def _remarks(call: Call, *, is_main: bool, is_terminal: bool) -> list[str]:
    retry = "retry, quarantined" if call.quarantined else "retry, kept"
    remarks = {"main": is_main, "terminal": is_terminal, retry: call.is_retry}
    return [remark for remark, applies in remarks.items() if applies]
