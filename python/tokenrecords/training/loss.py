"""Which chain a sampled token carries loss in, where several hold it."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tokenrecords.training.chain import Chain

Shared: TypeAlias = Literal["once", "each"]


def check_shared(shared: Shared) -> None:
    """Refuse what does not say where a token carries loss that several chains hold.

    Raises:
        ValueError: It is neither "once" nor "each".
    """
    if shared not in ("once", "each"):
        raise ValueError(f"shared is {shared!r}: it must be 'once' or 'each'")


def loss_once(chains: Sequence[Chain]) -> list[Chain]:
    """The chains, with the loss of each sampled token in the first one that trains on it.

    It is the same token where rollout and call are the same, and all ids up to there. A chain that shares none is the
    same object.
    """
    calls = [(chain.rollout_id, call_id) for chain in chains for call_id in chain.call_ids]
    if len(set(calls)) == len(calls):
        return list(chains)
    holders: dict[tuple[Any, ...], list[int]] = {}
    return [_without_held(chains, place, holders) for place in range(len(chains))]


def _without_held(chains: Sequence[Chain], place: int, holders: dict[tuple[Any, ...], list[int]]) -> Chain:
    chain = chains[place]
    common: dict[int, int] = {}  # ids that it starts with as an earlier chain does, by that one's place
    loss_mask = chain.loss_mask.copy()
    for call_id, (start, end) in zip(chain.call_ids, chain.spans.tolist(), strict=True):
        own = loss_mask[start:end]
        if not own.any():
            continue
        # Some of the ids too, so that chains of other tokens are not looked at one by one.
        some = (int(chain.token_ids[at]) for at in (0, start // 2, max(start - 1, 0), start))
        earlier = holders.setdefault((chain.rollout_id, call_id, start, *some), [])
        for other in earlier:
            if other not in common:
                common[other] = _common_ids(chains[other], chain)
            shared = max(min(common[other], end) - start, 0)
            own[:shared] &= ~chains[other].loss_mask[start : start + shared]
            if not own.any():
                break
        else:
            earlier.append(place)
    if np.array_equal(loss_mask, chain.loss_mask):
        return chain
    return dataclasses.replace(chain, loss_mask=loss_mask, log_probs=np.where(loss_mask, chain.log_probs, 0.0))


def _common_ids(a: Chain, b: Chain) -> int:
    """How many ids two chains start with alike."""
    length = min(len(a), len(b))
    different = a.token_ids[:length] != b.token_ids[:length]
    return int(np.argmax(different)) if different.any() else length
