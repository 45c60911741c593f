"""The token sequences that a trainer trains on, built from the calls of a rollout."""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tokenrecords.entry.entries import as_entries
from tokenrecords.lineage.calls import RECOVERED
from tokenrecords.lineage.paths import Paths, find_paths
from tokenrecords.tokens.names import TOKEN_FIELDS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from tokenrecords.entry.model import TokenEntry
    from tokenrecords.lineage.call import Call
    from tokenrecords.tokens.arrays import LogProbArray

__all__ = ["BuildNotes", "Chain", "ChainBuild", "build_chains"]

MAIN = "main"


@dataclass(frozen=True, eq=False)
class Chain:
    """One sequence from the first call of a rollout to a last one.

    Attributes:
        rollout_id: The rollout.
        chain_id: `main`, or `branch-0`, `branch-1` and so on.
        call_ids: Its calls, from first to last.
        token_ids: The whole sequence: an integer array of shape `(tokens,)`, of the dtype of the last call's prompt
            (for a list the first of int32, int64 and uint64 that holds its ids), wider where a generated id needs it.
        loss_mask: True where the policy generated: bool, shape `(tokens,)`.
        log_probs: Those of the generated ids, 0.0 elsewhere: float64, shape `(tokens,)`.
        spans: Start and end of what each call generated: int64, shape `(calls, 2)`.
        contents: What `output_items` needs of each call's record.
    """

    rollout_id: str
    chain_id: str
    call_ids: list[str]
    token_ids: npt.NDArray[np.integer[Any]]
    loss_mask: npt.NDArray[np.bool_]
    log_probs: npt.NDArray[np.float64]
    spans: npt.NDArray[np.int64]
    contents: list[Content] = field(default_factory=list, repr=False)

    def __len__(self) -> int:
        """The number of tokens."""
        return len(self.token_ids)

    def output_items(self) -> list[dict[str, Any]]:
        """The content of the calls, as one list of output items that carry the chain's tokens.

        Returns:
            Shallow copies of the calls' items. In each call the item that `token_item_index` names, or else the last
            one, carries `prompt_token_ids`, `generation_token_ids` and `generation_log_probs` (views of the chain's
            arrays) and, where there are any, `routed_experts`. A call without items becomes a bare message.

        >>> from tokenrecords import TokenEntry
        >>> call = TokenEntry(rollout_id="r", model_call_id="c", prompt_token_ids=[1, 2], generation_token_ids=[3],
        ...                   generation_log_probs=[-0.5], parent_resolution="root")
        >>> build_chains([call]).main.output_items()[0]["prompt_token_ids"]
        array([1, 2], dtype=int32)
        """
        items: list[dict[str, Any]] = []
        for content, (start, end) in zip(self.contents, self.spans.tolist(), strict=True):
            own = [{key: value for key, value in item.items() if key not in TOKEN_FIELDS} for item in content.items]
            own = own or [{"type": "message"}]
            carrier = own[content.carrier(len(own))]
            carrier["prompt_token_ids"] = self.token_ids[:start]
            carrier["generation_token_ids"] = self.token_ids[start:end]
            carrier["generation_log_probs"] = self.log_probs[start:end]
            if content.routed_experts is not None:
                carrier["routed_experts"] = content.routed_experts
            items += own
        return items


@dataclass(frozen=True, slots=True)
class Content:
    """What a call's record holds beside its tokens."""

    items: list[dict[Any, Any]]
    token_item_index: int | None
    routed_experts: Any

    def carrier(self, items: int) -> int:
        """The place of the item that carries the tokens."""
        index = self.token_item_index
        return index if index is not None and 0 <= index < items else items - 1


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
        terminal_chain: `delivered`, `broken`, `not_captured`, or empty where no terminal call was given.
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
    """

    chains: list[Chain]
    main: Chain | None
    quarantined: list[str]
    notes: BuildNotes

    @property
    def trainable(self) -> bool:
        """False where there is no main chain, it does not end with the terminal call, or retries are unresolved."""
        notes = self.notes
        return self.main is not None and notes.terminal_chain in ("", "delivered") and not notes.unresolved_retries


def build_chains(
    entries: Iterable[TokenEntry], *, terminal_call_id: str | None = None, threads: int | None = None
) -> ChainBuild:
    """Build the sequences of one rollout, from the first call to the last ones.

    A call continues another only where that is proven: the parent's own ids start the prompt, and are those that its
    recorded `cum_len` and `digest` describe. Where it is not, the call starts a fragment. The order of the entries does
    not matter, and what is wrong with some is in the notes.

    Retries are calls with the same parent and the same prompt (calls without a parent form one group). Kept are those
    on the path to the terminal call; else those that another call continues; else, undecided, the one with the smallest
    call id, and then the rollout is not trainable. The others are quarantined, and no chain passes through one.

    Args:
        entries: The records of one rollout, full or delta, in any order. They are not changed.
        terminal_call_id: The call that the rollout ended with: the main chain is the path to it.
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
    found = find_paths(as_entries(entries), terminal_call_id, threads=threads)
    chains = [_chain(path, found.links.log_probs, name) for path, name in zip(found.paths, _names(found), strict=True)]
    return ChainBuild(
        chains,
        next((chain for chain in chains if chain.chain_id == MAIN), None),
        sorted(call.id for call in found.links.calls if call.quarantined),
        _notes(found),
    )


def _names(found: Paths) -> list[str]:
    branches = itertools.count()
    return [MAIN if path is found.main else f"branch-{next(branches)}" for path in found.paths]


def _chain(path: list[Call], scored: Mapping[Call, LogProbArray], name: str) -> Chain:
    last = path[-1]
    token_ids = last.joined()
    spans = np.array([(len(call.prompt), call.length) for call in path], np.int64)
    loss_mask = np.zeros(len(token_ids), np.bool_)
    log_probs = np.zeros(len(token_ids), np.float64)
    for call in path:
        generated = slice(len(call.prompt), call.length)
        loss_mask[generated] = True
        log_probs[generated] = scored[call]
    return Chain(
        rollout_id=last.entry.rollout_id,
        chain_id=name,
        call_ids=[call.id for call in path],
        token_ids=token_ids,
        loss_mask=loss_mask,
        log_probs=log_probs,
        spans=spans,
        contents=[
            Content(call.entry.output_items, call.entry.token_item_index, call.entry.routed_experts) for call in path
        ],
    )


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
