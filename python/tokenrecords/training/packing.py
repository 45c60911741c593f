"""Chains as the flat arrays that a trainer takes."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np
import numpy.typing as npt

from tokenrecords.tokens.arrays import Fault, as_dtype, id_array, integer_dtype, log_prob_array, mask_array
from tokenrecords.training.chain import Chain
from tokenrecords.training.loss import check_shared, loss_once
from tokenrecords.training.packed import PackedBatch, integer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from tokenrecords.tokens.arrays import IdArray, TokenIds
    from tokenrecords.training.loss import Shared

__all__ = ["pack_chains"]

_MAX_OFFSET = np.iinfo(np.int32).max


def pack_chains(
    chains: Iterable[Chain],
    *,
    max_tokens: int | None = None,
    dtype: npt.DTypeLike = np.int64,
    too_long: Literal["error", "truncate"] = "error",
    shared: Shared = "once",
) -> PackedBatch:
    """Put chains one after the other, into bins of at most `max_tokens` where that is given.

    Bins are filled first-fit-decreasing: the longest chains first, each into the first bin that has room. Without
    `max_tokens` there is one bin, in the order of the input.

    Args:
        chains: Of any number of rollouts.
        max_tokens: The most tokens of a bin.
        dtype: The integer dtype of `input_ids`.
        too_long: What happens to a chain of more than `max_tokens`: "error", or "truncate" to cut it on the right.
        shared: Where a sampled token carries loss that several of the chains hold (one call, and equal ids up to
            there): "once", in the first of them, or in "each".

    Raises:
        TypeError: `dtype` is not an integer dtype, `max_tokens` not an integer, one of `chains` not a chain, or the ids
            of a chain are not integers, its mask not one, or its log-probs not real numbers.
        ValueError: A chain is too long, its arrays are not one-dimensional and of one length, an id does not fit
            `dtype`, `max_tokens` is below 1, `too_long` or `shared` is unknown, or there are more tokens than int32
            offsets can count.

    >>> from tokenrecords import TokenEntry
    >>> from tokenrecords import build_chains
    >>> call = TokenEntry(rollout_id="r", model_call_id="c", prompt_token_ids=[1, 2], generation_token_ids=[3],
    ...                   generation_log_probs=[-0.5], parent_resolution="root")
    >>> batch = pack_chains(build_chains([call]).chains * 2)
    >>> batch.input_ids, batch.cu_seqlens
    (array([1, 2, 3, 1, 2, 3]), array([0, 3, 6], dtype=int32))
    """
    chains = [_checked(place, chain) for place, chain in enumerate(chains)]
    dtype = integer_dtype(dtype).newbyteorder("=")  # torch takes no other order
    if too_long not in ("error", "truncate"):
        raise ValueError(f"too_long is {too_long!r}: it must be 'error' or 'truncate'")
    check_shared(shared)
    chains = loss_once(chains) if shared == "once" else chains
    lengths = [len(chain) for chain in chains]
    if max_tokens is None:
        bins = [list(range(len(chains)))] if chains else []
    else:
        max_tokens = integer("max_tokens", max_tokens)
        if max_tokens < 1:
            raise ValueError(f"max_tokens is {max_tokens}: it must be at least 1")
        for place, (chain, length) in enumerate(zip(chains, lengths, strict=True)):
            if length > max_tokens and too_long == "error":
                raise ValueError(
                    f"chains[{place}] ({chain.chain_id!r} of rollout {chain.rollout_id!r}) has {length} tokens, "
                    f"max_tokens is {max_tokens}"
                )
        lengths = [min(length, max_tokens) for length in lengths]
        bins = _first_fit_decreasing(lengths, min(max_tokens, sum(lengths)))
    return _pack(chains, lengths, bins, dtype)


def _checked(place: int, chain: Chain) -> Chain:
    """The chain, with arrays of the right kind and of one length."""
    if not isinstance(chain, Chain):
        raise TypeError(f"chains[{place}] is {type(chain).__name__}: a Chain is needed, such as ChainBuild.main")
    judged: dict[str, Any] = {}
    for name, judge, kinds in _JUDGES:
        value = getattr(chain, name)
        if type(value) is not np.ndarray or value.ndim != 1 or value.dtype.kind not in kinds:
            try:
                value = judged[name] = judge(value)
            except Fault as fault:
                raise fault.error(f"chains[{place}].{name}") from None
        if len(value) != len(chain):
            raise ValueError(
                f"chains[{place}].{name} has {len(value)} values: {len(chain)} are needed, one for each token id"
            )
    return dataclasses.replace(chain, **judged) if judged else chain


# What makes an array of each field, and the kinds of dtype of those that are one.
_JUDGES: Final[tuple[tuple[str, Callable[[Any], Any], str], ...]] = (
    ("token_ids", id_array, "iu"),
    ("loss_mask", mask_array, "b"),
    ("log_probs", log_prob_array, "f"),
)


def _first_fit_decreasing(lengths: Sequence[int], room: int) -> list[list[int]]:
    """The places of the lengths in each bin."""
    bins: list[list[int]] = []
    # A tree over as many bins as there may be: each node has the most room that a bin below it has.
    first_leaf = 1 << max(len(lengths) - 1, 0).bit_length()
    most = [room] * (2 * first_leaf)
    for place in sorted(range(len(lengths)), key=lambda place: -lengths[place]):
        length, node = lengths[place], 1
        while node < first_leaf:
            node = 2 * node if most[2 * node] >= length else 2 * node + 1
        if node - first_leaf == len(bins):
            bins.append([])
        bins[node - first_leaf].append(place)
        most[node] -= length
        while node > 1:
            node //= 2
            most[node] = max(most[2 * node], most[2 * node + 1])
    return bins


def _pack(
    chains: Sequence[Chain], lengths: Sequence[int], bins: Sequence[Sequence[int]], dtype: np.dtype[Any]
) -> PackedBatch:
    order = [place for bin_ in bins for place in bin_]
    cu_seqlens = _offsets([lengths[place] for place in order])
    tokens = int(cu_seqlens[-1])
    input_ids, position_ids = np.empty(tokens, dtype), np.empty(tokens, np.int64)
    loss_mask, log_probs = np.empty(tokens, np.bool_), np.empty(tokens, np.float32)
    positions = np.arange(max(lengths, default=0))
    # Each value is written once, straight to its place.
    with np.errstate(over="ignore"):  # a log-prob beyond float32 is infinite there
        for place, start, end in zip(order, cu_seqlens[:-1].tolist(), cu_seqlens[1:].tolist(), strict=True):
            chain, length = chains[place], lengths[place]
            input_ids[start:end] = _fitting(chain.token_ids[:length], place, dtype)
            loss_mask[start:end] = chain.loss_mask[:length]
            log_probs[start:end] = chain.log_probs[:length]
            position_ids[start:end] = positions[:length]
    return PackedBatch(
        input_ids=input_ids,
        loss_mask=loss_mask,
        log_probs=log_probs,
        position_ids=position_ids,
        cu_seqlens=cu_seqlens,
        sequence_index=np.array(order, np.int32),
        prompt_lengths=np.array([min(chains[place].prompt_length, lengths[place]) for place in order], np.int32),
        rollout_ids=[chains[place].rollout_id for place in order],
        chain_ids=[chains[place].chain_id for place in order],
        bin_offsets=_offsets([len(bin_) for bin_ in bins]),
        truncated=np.array([len(chain) - length for chain, length in zip(chains, lengths, strict=True)], np.int64),
    )


def _fitting(ids: TokenIds, place: int, dtype: np.dtype[Any]) -> IdArray:
    """The ids, if `dtype` holds all of them."""
    if isinstance(ids, np.ndarray) and np.can_cast(ids.dtype, dtype):
        return ids
    try:
        return as_dtype(ids, dtype)
    except Fault as fault:
        raise fault.error(f"chains[{place}].token_ids") from None


def _offsets(lengths: Sequence[int]) -> npt.NDArray[np.int32]:
    offsets = np.cumsum([0, *lengths], dtype=np.int64)
    if offsets[-1] > _MAX_OFFSET:
        raise ValueError(f"{offsets[-1]} tokens are more than int32 offsets can count: pack them in several batches")
    return offsets.astype(np.int32)
