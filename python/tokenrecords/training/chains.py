"""The token sequences that a trainer trains on, built from the calls of a rollout."""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tokenrecords.entry.entries import as_entries
from tokenrecords.lineage.calls import RECOVERED
from tokenrecords.lineage.hashing import hashed
from tokenrecords.lineage.paths import Paths, Terminal, finding_paths
from tokenrecords.text.html import table
from tokenrecords.training.chain import Chain, Content
from tokenrecords.training.loss import loss_once

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tokenrecords.entry.model import TokenEntry
    from tokenrecords.lineage.call import Call
    from tokenrecords.lineage.hashing import Hashing

__all__ = ["BuildNotes", "ChainBuild", "build_chains"]

MAIN = "main"
_SHOWN = 20  # chains that a notebook lists
MASKED = "mask_sample"  # the extra field of records whose rollout was judged already

# What may stand against training, as `mask_sample` of the published consumer of these records judges: with a terminal
# call its chain must be there and whole; without one the rollout must be one chain from one root, with no link failure
# but a recovered one and no undecided retry. No call of it may be lost, and something must carry loss, of a call that
# all records agree on.
REASONS = (
    "incomplete",
    "masked",
    "terminal_not_captured",
    "terminal_ambiguous",
    "terminal_broken",
    "several_roots",
    "several_chains",
    "unresolved_parents",
    "unresolved_retries",
    "call_conflict",
    "nothing_to_train",
)


@dataclass(frozen=True)
class BuildNotes:
    """What `build_chains` found.

    Attributes:
        roots: Calls without a parent, fragments included.
        generated_tokens_captured: Generated ids of all calls.
        generated_tokens_delivered: Generated ids of the main chain.
        delivered_fraction: The second by the first, rounded to 4 places; 0.0 where nothing was captured.
        unresolved_retries: Ids of retries among which nothing decides, sorted.
        empty_generation_calls: Ids of calls that generated nothing and were left out, sorted.
        parent_link_failures: Counts by name: `duplicate_call_id_conflict`, `delta_chain_unreconstructable`,
            `record_unreadable` (fields that were assigned and are not sequences of one length), `parent_unresolved`,
            `missing_resolution`, `resolved_parent_missing_id`, `parent_digest_mismatch`, `parent_call_id_missing`,
            `parent_call_id_missing_recovered`.
        unresolved_parent_calls: Ids of the calls that start a fragment, and one for each record that was left out for
            a failure, sorted.
        terminal_chain: `delivered`, `broken`, `not_captured`, `ambiguous`, or empty where no terminal call was given.
    """

    roots: int
    generated_tokens_captured: int
    generated_tokens_delivered: int
    delivered_fraction: float
    unresolved_retries: list[str]
    empty_generation_calls: list[str]
    parent_link_failures: dict[str, int]
    unresolved_parent_calls: list[str]
    terminal_chain: str


@dataclass(frozen=True)
class ChainBuild:
    """The chains of one rollout.

    Attributes:
        chains: By prompt length, then call id, of their last calls; but first the one that a terminal call ends.
        main: The chain to train on if `trainable`; None where there is none.
        quarantined: Ids of the retries that were not kept, sorted; no chain passes through one.
        notes: What was found.
        reasons: What stands against training on the main chain, of `REASONS`; empty where nothing does.
    """

    chains: list[Chain]
    main: Chain | None
    quarantined: list[str]
    notes: BuildNotes
    reasons: list[str]

    @property
    def trainable(self) -> bool:
        """True if the rollout may be trained on as the published consumer of these records judges: see `REASONS`."""
        return not self.reasons

    def rows(self) -> list[Chain]:
        """The chains, each sampled token with its loss in the first chain that holds it.

        Returns:
            A chain for each of `chains`, in their order; its ids are those of that chain, its `loss_mask` and
            `log_probs` are cleared where an earlier one holds the token.

        >>> from tokenrecords import TokenEntry
        >>> calls = [TokenEntry(rollout_id="r", model_call_id=call_id, prompt_token_ids=prompt,
        ...                     generation_token_ids=[9], generation_log_probs=[-0.5], parent_call_id=parent)
        ...          for call_id, prompt, parent in (("a", [1], None), ("b", [1, 9, 2], "a"), ("c", [1, 9, 3], "a"))]
        >>> [chain.loss_mask.astype(int).tolist() for chain in build_chains(calls).rows()]
        [[0, 1, 0, 1], [0, 0, 0, 1]]
        """
        return loss_once(self.chains)

    def _repr_html_(self) -> str:
        rows = [(each.chain_id, len(each.call_ids), len(each), int(each.loss_mask.sum())) for each in self.chains]
        more = [("...", f"{len(rows) - _SHOWN:,} more chains")] if len(rows) > _SHOWN else []
        judged = "trainable" if self.trainable else f"not trainable: {', '.join(self.reasons)}"
        rollout = f"rollout {self.chains[0].rollout_id}: " if self.chains else ""
        header = ("chain", "calls", "ids", "with loss")
        return table(f"{rollout}{judged}", header, [*rows[:_SHOWN], *more])


def build_chains(
    entries: Iterable[TokenEntry],
    *,
    terminal_call_id: str | None = None,
    terminal_response_id: str | None = None,
    threads: int | None = None,
) -> ChainBuild:
    """Build the sequences of one rollout, from the first call to the last ones.

    A call continues another only where that is proven: the parent's own ids start the prompt, and are those that its
    recorded `cum_len` and `digest` describe. Where it is not, the call starts a fragment. What is wrong with some is in
    the notes. The order of the entries does not matter, but for two records of one call that say different things of
    its tokens: the first one is used, and a rollout whose main chain passes through that call is not trainable.

    Retries are calls with the same parent and the same prompt (calls without a parent form one group). Kept are those
    on the path to the terminal call; else those that another call continues; else, undecided, the one with the smallest
    call id, and then the rollout is not trainable. The others are quarantined, and no chain passes through one. Calls
    with the same parent and prompt that share a `response_id` are samples of one response: they are kept side by side.

    Tokens that a tool or the environment wrote inside a generation carry no loss: the extra field
    `generation_loss_mask` of a record says which, a list or array of 0 and 1, one for each generated id.

    Args:
        entries: The records of one rollout, full or delta, in any order. They are not changed.
        terminal_call_id: The call that the rollout ended with: the main chain is the path to it.
        terminal_response_id: The `response_id` of that call, where the response is known that was scored. Where both
            are given, both must be the call's.
        threads: The most threads that hash; by default the CPUs that this process may use.

    Raises:
        ValueError: The entries belong to two rollouts, or `threads` is below 1.

    >>> from tokenrecords import TokenEntry
    >>> first = TokenEntry(rollout_id="r", model_call_id="a", prompt_token_ids=[1, 2], generation_token_ids=[3],
    ...                    generation_log_probs=[-0.5], parent_resolution="root")
    >>> second = TokenEntry(rollout_id="r", model_call_id="b", prompt_token_ids=[1, 2, 3, 4], generation_token_ids=[5],
    ...                     generation_log_probs=[-0.25], parent_call_id="a", parent_resolution="resolved")
    >>> main = build_chains([second, first]).main
    >>> main.token_ids, main.loss_mask
    (array([1, 2, 3, 4, 5], dtype=int32), array([False, False,  True, False,  True]))
    >>> main.spans.tolist()
    [[2, 3], [4, 5]]
    """
    terminal = Terminal(terminal_call_id, terminal_response_id)
    return hashed(building(as_entries(entries), terminal, threads=threads), threads=threads)


def building(
    entries: list[TokenEntry], terminal: Terminal, *, is_incomplete: bool = False, threads: int | None = None
) -> Hashing[ChainBuild]:
    """`build_chains` as work that asks for the digests of the parents; of a rollout that lost a call, if it did."""
    found = yield from finding_paths(entries, terminal, threads=threads)
    return built(entries, found, is_incomplete=is_incomplete)


def built(entries: Iterable[TokenEntry], found: Paths, *, is_incomplete: bool) -> ChainBuild:
    """The chains along the paths that were found through the entries of a rollout."""
    chains = [_chain(path, name) for path, name in zip(found.paths, _names(found), strict=True)]
    main = next((chain for chain in chains if chain.chain_id == MAIN), None)
    notes = _notes(found)
    stands = {
        "incomplete": is_incomplete,
        "masked": any((entry.model_extra or {}).get(MASKED) is True for entry in entries),
        **_against(found, notes, main),
    }
    return ChainBuild(
        chains=chains,
        main=main,
        quarantined=sorted(call.id for call in found.links.calls if call.quarantined),
        notes=notes,
        reasons=[reason for reason in REASONS if stands[reason]],
    )


def _against(found: Paths, notes: BuildNotes, main: Chain | None) -> dict[str, bool]:
    is_terminal_known = bool(notes.terminal_chain)
    return {
        "terminal_not_captured": notes.terminal_chain == "not_captured",
        "terminal_ambiguous": notes.terminal_chain == "ambiguous",
        "terminal_broken": notes.terminal_chain == "broken",
        # Where a terminal call was named, what lies beside its chain does not matter.
        "several_roots": notes.roots > 1 and not is_terminal_known,
        "several_chains": len(found.paths) > 1 and not is_terminal_known,
        "unresolved_parents": bool(notes.unresolved_parent_calls) and not is_terminal_known,
        "unresolved_retries": bool(notes.unresolved_retries) and not is_terminal_known,
        "call_conflict": any(call.is_conflicting for call in found.main),
        "nothing_to_train": main is None or not main.loss_mask.any(),
    }


def _names(found: Paths) -> list[str]:
    branches = itertools.count()
    return [MAIN if path is found.main else f"branch-{next(branches)}" for path in found.paths]


def _chain(path: list[Call], name: str) -> Chain:
    last = path[-1]
    token_ids = last.joined()
    spans = np.array([(len(call.prompt), call.length) for call in path], np.int64)
    loss_mask = np.zeros(len(token_ids), np.bool_)
    log_probs = np.zeros(len(token_ids), np.float64)
    for call in path:
        generated = slice(len(call.prompt), call.length)
        if call.loss_mask is None:
            loss_mask[generated], log_probs[generated] = True, call.log_probs
        else:
            loss_mask[generated] = call.loss_mask
            log_probs[generated] = np.where(call.loss_mask, call.log_probs, 0.0)
    return Chain(
        rollout_id=last.entry.rollout_id,
        chain_id=name,
        call_ids=[call.id for call in path],
        token_ids=token_ids,
        loss_mask=loss_mask,
        log_probs=log_probs,
        spans=spans,
        contents=[_content(call) for call in path],
    )


def _content(call: Call) -> Content:
    entry, extra = call.entry, call.entry.model_extra or {}
    version = extra.get("weight_version")
    return Content(entry.output_items, entry.token_item_index, entry.routed_experts, version, call.own)


def _notes(found: Paths) -> BuildNotes:
    calls = found.links.calls
    captured = sum(len(call.generation) for call in calls)
    delivered = sum(len(call.generation) for call in found.main)
    failures = [(call.id, call.failure) for call in calls if call.failure] + found.links.left_out
    return BuildNotes(
        roots=sum(call.parent is None for call in calls),
        generated_tokens_captured=captured,
        generated_tokens_delivered=delivered,
        delivered_fraction=round(delivered / captured, 4) if captured else 0.0,
        unresolved_retries=found.undecided,
        empty_generation_calls=found.links.empty,
        parent_link_failures=dict(sorted(Counter(name for _, name in failures).items())),
        unresolved_parent_calls=sorted(call_id for call_id, name in failures if name != RECOVERED),
        terminal_chain=found.outcome,
    )
