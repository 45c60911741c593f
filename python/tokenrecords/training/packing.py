"""Chains as the flat arrays that a trainer takes."""

from __future__ import annotations

import dataclasses
import operator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np
import numpy.typing as npt

from tokenrecords.tokens.arrays import Fault, as_dtype, id_array, integer_dtype, log_prob_array, mask_array, shown
from tokenrecords.training.chain import Chain
from tokenrecords.training.loss import loss_once

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from tokenrecords.tokens.arrays import IdArray, TokenIds

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
            TypeError: `pad_id`, `length` or `multiple_of` is not an integer.
            ValueError: `pad_id` does not fit the dtype of `input_ids`, a chain is longer than `length`, `multiple_of`
                is below 1, or `side` is unknown.

        >>> pack_chains([]).padded(0, length=4).input_ids.shape
        (0, 4)
        """
        if side not in ("right", "left"):
            raise ValueError(f"side is {side!r}: it must be 'right' or 'left'")
        multiple_of = _integer("multiple_of", multiple_of)
        if multiple_of < 1:
            raise ValueError(f"multiple_of is {multiple_of}: it must be at least 1")
        limits = np.iinfo(self.input_ids.dtype)
        if pad_id is None:
            raise TypeError("pad_id is None: where the tokenizer has no pad token, any id will do")
        pad_id = _integer("pad_id", pad_id)
        if not limits.min <= pad_id <= limits.max:
            raise ValueError(f"pad_id is {pad_id}: it does not fit {self.input_ids.dtype}")
        lengths = np.diff(self.cu_seqlens)
        longest = int(lengths.max(initial=0))
        width = longest if length is None else _integer("length", length)
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
        max_tokens = _integer("max_tokens", max_tokens)
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


def _integer(name: str, value: Any) -> int:
    try:
        return operator.index(value)
    except TypeError:
        raise TypeError(f"{name} is {shown(value)}: an integer is needed, got {type(value).__name__}") from None


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
