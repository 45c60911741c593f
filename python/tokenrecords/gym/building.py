"""NeMo Gym's builder of chains, by the paths that are found here: a function that takes the place of its own."""

from __future__ import annotations

import importlib
import itertools
from collections import defaultdict
from typing import TYPE_CHECKING, Any

from tokenrecords.lineage.paths import Terminal, find_paths
from tokenrecords.tokens.arrays import as_list

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tokenrecords.entry.model import TokenEntry
    from tokenrecords.lineage.call import Call
    from tokenrecords.lineage.paths import Paths


def prefix_merging(own: Callable[..., Any]) -> Callable[..., Any]:
    """What takes the place of `builder.prefix_merging`: the same chains, in NeMo Gym's own classes and with lists.

    Args:
        own: The published function. It says what becomes of a rollout with a record or a link that is broken.
    """

    def merge(entries: Sequence[TokenEntry], terminal_call_id: str | None = None) -> Any:
        paths = _sound_paths(entries, terminal_call_id)
        return own(entries, terminal_call_id) if paths is None else _output(entries, terminal_call_id, paths)

    return merge


def _sound_paths(entries: Sequence[TokenEntry], terminal_call_id: str | None) -> Paths | None:
    """The paths through the calls; None where one is recorded twice, can't be read, or lacks its parent."""
    if len({(entry.rollout_id, entry.model_call_id) for entry in entries}) < len(entries):
        return None
    # Copies that name no response: several calls of one are retries there, not samples.
    copies = [entry.model_copy(update={"response_id": None}) for entry in entries]
    try:
        paths = find_paths(copies, Terminal(terminal_call_id), threads=1)
    except ValueError:  # several rollouts
        return None
    return None if paths.links.left_out or any(call.failure for call in paths.links.calls) else paths


def _output(entries: Sequence[TokenEntry], terminal_call_id: str | None, paths: Paths) -> Any:
    builder = importlib.import_module("nemo_gym.token_id_capture.builder")
    given = {entry.model_call_id: entry for entry in entries}
    branches = itertools.count()
    chains = []
    for path in paths.paths:
        name = "main" if path is paths.main else f"branch-{next(branches)}"
        links: list[Any] = []
        for call in path:
            before = links[-1].entry if links else None
            entry = given[call.id] = _full(given[call.id], before)
            start = call.length if call.parent is None else call.parent.length
            links.append(builder.ChainLink(entry, as_list(entry.prompt_token_ids[start:])))
        chains.append(builder.Chain(name, links, [*as_list(links[0].entry.prompt_token_ids)]))
    calls, retries = paths.links.calls, _retries(paths.links.calls)
    of_all, of_main = (sum(len(call.generation) for call in some) for some in (calls, paths.main))
    notes = builder.BuildNotes(
        builder="prefix_merging",
        terminal_call_id=terminal_call_id,
        terminal_chain=paths.outcome,
        roots=sum(call.parent is None for call in calls),
        chains=len(paths.paths),
        generated_tokens_captured=of_all,
        generated_tokens_delivered=of_main,
        delivered_fraction=round(of_main / of_all, 4) if of_all else 0.0,
        unresolved_retries=[call.id for call in retries if call.id in paths.undecided],
        empty_generation_calls=[call_id for call_id in given if call_id in paths.links.empty],
    )
    return builder.BuildOutput(chains, [call.id for call in retries if call.quarantined], notes)


def _full(entry: TokenEntry, before: Any) -> TokenEntry:
    """The record as it was given, or a copy of a delta record with the full prompt that follows the call before."""
    if not entry.prompt_is_delta:
        return entry
    parts = before.prompt_token_ids, before.generation_token_ids, entry.prompt_token_ids
    prompt = [id_ for part in map(as_list, parts) for id_ in part]
    return entry.model_copy(update={"prompt_token_ids": prompt, "prompt_is_delta": False})


def _retries(calls: Sequence[Call]) -> list[Call]:
    """The calls that were made again: by parent, then by prompt, each in the order of the first of them."""
    alike: dict[Call | None, dict[bytes, list[Call]]] = {}
    for call in calls:
        by_prompt = alike.setdefault(call.parent, defaultdict(list))
        if call.is_retry:
            by_prompt[call.prompt.astype("int64").tobytes()].append(call)
    return [call for by_prompt in alike.values() for same in by_prompt.values() for call in same]
