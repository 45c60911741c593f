"""Chains as the flat arrays that a trainer takes."""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from tokenrecords.tokens.arrays import Fault, as_dtype, id_array, integer_dtype
from tokenrecords.training.chain import Chain
from tokenrecords.training.loss import loss_once

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
__all__ = ["PackedBatch", "PaddedBatch", "pack_chains"]

_MAX_OFFSET = np.iinfo(np.int32).max


@dataclass(frozen=True, eq=False)
class PackedBatch:
    """Chains one after the other, without padding; `torch.from_numpy` takes each array as it is.

    Attributes:
        input_ids: The token ids: shape `(tokens,)`, of the dtype that was asked for.
        loss_mask: True for the tokens that carry loss: bool, shape `(tokens,)`.
        log_probs: Those of the tokens that carry loss, 0.0 elsewhere: float32, shape `(tokens,)`.
        position_ids: Places in the chain, from 0: int64, shape `(tokens,)`.
        cu_seqlens: Chain `i` is `cu_seqlens[i]:cu_seqlens[i + 1]`: int32, shape `(chains + 1,)`.
        sequence_index: The place of each packed chain in the input: int32, shape `(chains,)`.
        rollout_ids: The rollout of each packed chain.
        chain_ids: The id of each packed chain.
        bin_offsets: Bin `b` holds the chains `bin_offsets[b]:bin_offsets[b + 1]`: int32, shape `(bins + 1,)`.
        truncated: The number of tokens that were cut from each chain, in the order of the input: int64, shape
            `(chains,)`.
    """

    input_ids: npt.NDArray[np.integer[Any]]
    loss_mask: npt.NDArray[np.bool_]
    log_probs: npt.NDArray[np.float32]
    position_ids: npt.NDArray[np.int64]
    cu_seqlens: npt.NDArray[np.int32]
    sequence_index: npt.NDArray[np.int32]
    rollout_ids: list[str]
    chain_ids: list[str]
    bin_offsets: npt.NDArray[np.int32]
    truncated: npt.NDArray[np.int64]

    def __len__(self) -> int:
        """The number of chains."""
        return len(self.sequence_index)

    def padded(
        self, pad_id: int, *, length: int | None = None, multiple_of: int = 1, side: Literal["right", "left"] = "right"
    ) -> PaddedBatch:
        """One row a chain, padded to the same length.

        Args:
            pad_id: Stands where there is no token.
            length: The length of the rows; by default that of the longest chain.
            multiple_of: The length is rounded up to a multiple of it.
            side: Where the padding goes.

        Raises:
            ValueError: `pad_id` does not fit the dtype of `input_ids`, a chain is longer than `length`, `multiple_of`
                is below 1, or `side` is unknown.

        >>> pack_chains([]).padded(0, length=4).input_ids.shape
        (0, 4)
        """
        if side not in ("right", "left"):
            raise ValueError(f"side is {side!r}: it must be 'right' or 'left'")
        if operator.index(multiple_of) < 1:
            raise ValueError(f"multiple_of is {multiple_of}: it must be at least 1")
        limits = np.iinfo(self.input_ids.dtype)
        if pad_id is None:
            raise TypeError("pad_id is None: where the tokenizer has no pad token, any id will do")
        if not limits.min <= pad_id <= limits.max:
            raise ValueError(f"pad_id is {pad_id}: it does not fit {self.input_ids.dtype}")
        lengths = np.diff(self.cu_seqlens)
        longest = int(lengths.max(initial=0))
        width = longest if length is None else operator.index(length)
        if width < longest:
            raise ValueError(f"length is {width}, but chain {int(lengths.argmax())} has {longest} tokens")
        width += -width % multiple_of
        places = np.arange(width)
        starts = (width - lengths if side == "left" else np.zeros_like(lengths))[:, None]
        real = (places >= starts) & (places < starts + lengths[:, None])

        def rows(flat: npt.NDArray[Any], padding: float = 0) -> npt.NDArray[Any]:
            padded = np.full(real.shape, padding, flat.dtype)
            padded[real] = flat
            return padded

        return PaddedBatch(
            input_ids=rows(self.input_ids, pad_id),
            attention_mask=real,
            loss_mask=rows(self.loss_mask),
            log_probs=rows(self.log_probs),
            position_ids=rows(self.position_ids),
            sequence_index=self.sequence_index,
        )


@dataclass(frozen=True, eq=False)
class PaddedBatch:
    """One row a chain, in the order of the `PackedBatch` that it was made of.

    Attributes:
        input_ids: Shape `(chains, length)`.
        attention_mask: True where there is a token: bool, shape `(chains, length)`.
        loss_mask: True for the tokens that carry loss: bool, shape `(chains, length)`.
        log_probs: float32, shape `(chains, length)`.
        position_ids: int64, shape `(chains, length)`; 0 in the padding.
        sequence_index: The place of each row's chain in the input of `pack_chains`: int32, shape `(chains,)`.
    """

    input_ids: npt.NDArray[np.integer[Any]]
    attention_mask: npt.NDArray[np.bool_]
    loss_mask: npt.NDArray[np.bool_]
    log_probs: npt.NDArray[np.float32]
    position_ids: npt.NDArray[np.int64]
    sequence_index: npt.NDArray[np.int32]


def pack_chains(
    chains: Iterable[Chain],
    *,
    max_tokens: int | None = None,
    dtype: npt.DTypeLike = np.int64,
    too_long: Literal["error", "truncate"] = "error",
    shared: Literal["once", "each"] = "once",
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
        TypeError: `dtype` is not an integer dtype, `max_tokens` not an integer, or one of `chains` not a chain.
        ValueError: A chain is too long, an id does not fit `dtype`, `max_tokens` is below 1, `too_long` or `shared` is
            unknown, or there are more tokens than int32 offsets can count.

    >>> from tokenrecords import TokenEntry
    >>> from tokenrecords import build_chains
    >>> call = TokenEntry(rollout_id="r", model_call_id="c", prompt_token_ids=[1, 2], generation_token_ids=[3],
    ...                   generation_log_probs=[-0.5], parent_resolution="root")
    >>> batch = pack_chains(build_chains([call]).chains * 2)
    >>> batch.input_ids, batch.cu_seqlens
    (array([1, 2, 3, 1, 2, 3]), array([0, 3, 6], dtype=int32))
    """
    chains = list(chains)
    for place, chain in enumerate(chains):
        if not isinstance(chain, Chain):
            raise TypeError(f"chains[{place}] is {type(chain).__name__}: a Chain is needed, such as ChainBuild.main")
    dtype = integer_dtype(dtype)
    if too_long not in ("error", "truncate"):
        raise ValueError(f"too_long is {too_long!r}: it must be 'error' or 'truncate'")
    if shared not in ("once", "each"):
        raise ValueError(f"shared is {shared!r}: it must be 'once' or 'each'")
    chains = loss_once(chains) if shared == "once" else chains
    lengths = [len(chain) for chain in chains]
    if max_tokens is None:
        bins = [list(range(len(chains)))] if chains else []
    else:
        if operator.index(max_tokens) < 1:
            raise ValueError(f"max_tokens is {max_tokens}: it must be at least 1")
        for place, (chain, length) in enumerate(zip(chains, lengths, strict=True)):
            if length > max_tokens and too_long == "error":
                raise ValueError(
                    f"chains[{place}] ({chain.chain_id!r} of rollout {chain.rollout_id!r}) has {length} tokens, "
                    f"max_tokens is {max_tokens}"
                )
        lengths = [min(length, max_tokens) for length in lengths]
        bins = _first_fit_decreasing(lengths, max_tokens)
    return _pack(chains, lengths, bins, dtype)


def _first_fit_decreasing(lengths: Sequence[int], room: int) -> list[list[int]]:
    """The places of the lengths in each bin."""
    bins: list[list[int]] = []
    left = np.empty(len(lengths), np.int64)
    for place in sorted(range(len(lengths)), key=lambda place: -lengths[place]):
        fitting = left[: len(bins)] >= lengths[place]
        first = int(fitting.argmax()) if fitting.any() else len(bins)
        if first == len(bins):
            bins.append([])
            left[first] = room
        bins[first].append(place)
        left[first] -= lengths[place]
    return bins


def _pack(
    chains: Sequence[Chain], lengths: Sequence[int], bins: Sequence[Sequence[int]], dtype: np.dtype[Any]
) -> PackedBatch:
    order = [place for bin_ in bins for place in bin_]
    cu_seqlens = _offsets([lengths[place] for place in order])
    ids = [_ids(chains[place], place, lengths[place], dtype) for place in order]
    return PackedBatch(
        input_ids=_flat(ids, dtype),
        loss_mask=_flat([chains[place].loss_mask[: lengths[place]] for place in order], np.bool_),
        log_probs=_flat([chains[place].log_probs[: lengths[place]] for place in order], np.float32),
        position_ids=_flat([np.arange(lengths[place]) for place in order], np.int64),
        cu_seqlens=cu_seqlens,
        sequence_index=np.array(order, np.int32),
        rollout_ids=[chains[place].rollout_id for place in order],
        chain_ids=[chains[place].chain_id for place in order],
        bin_offsets=_offsets([len(bin_) for bin_ in bins]),
        truncated=np.array([len(chain) - length for chain, length in zip(chains, lengths, strict=True)], np.int64),
    )


def _ids(chain: Chain, place: int, length: int, dtype: np.dtype[Any]) -> npt.NDArray[np.integer[Any]]:
    try:
        return as_dtype(id_array(chain.token_ids[:length]), dtype)
    except Fault as fault:
        raise fault.error(f"chains[{place}].token_ids") from None


def _flat(parts: Sequence[npt.NDArray[Any]], dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    with np.errstate(over="ignore"):  # a log-prob beyond float32 is infinite there
        return np.concatenate([np.empty(0, dtype), *parts], dtype=dtype, casting="unsafe")


def _offsets(lengths: Sequence[int]) -> npt.NDArray[np.int32]:
    offsets = np.cumsum([0, *lengths], dtype=np.int64)
    if offsets[-1] > _MAX_OFFSET:
        raise ValueError(f"{offsets[-1]} tokens are more than int32 offsets can count: pack them in several batches")
    return offsets.astype(np.int32)
