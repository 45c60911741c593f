"""Chains as flat arrays, and the layouts of trainers that are made of them."""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tokenrecords.tokens.arrays import shown
from tokenrecords.training.per_token import on_tokens
from tokenrecords.training.rows import Rows, joined
from tokenrecords.training.views import NextTokenBatch, PaddedBatch, PromptResponseBatch

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tokenrecords.training.views import Side


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
        prompt_lengths: How many tokens of each packed chain stand before its first generated one: int32, shape
            `(chains,)`.
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
    prompt_lengths: npt.NDArray[np.int32]
    rollout_ids: list[str]
    chain_ids: list[str]
    bin_offsets: npt.NDArray[np.int32]
    truncated: npt.NDArray[np.int64]

    def __len__(self) -> int:
        """The number of chains."""
        return len(self.sequence_index)

    def per_token(self, values: Sequence[float] | npt.ArrayLike) -> npt.NDArray[np.float32]:
        """One number a chain, such as its advantage, at each of its tokens that carry loss; 0.0 elsewhere.

        Args:
            values: Finite numbers, one for each chain, in the order in which `pack_chains` got them, whatever bins they
                are in.

        Returns:
            An array of shape `(tokens,)`. The other layouts have this method, too, in the shape of their masks.

        Raises:
            TypeError: `values` is not a sequence of numbers.
            ValueError: There is not one for each chain, or one is not finite in float32.

        >>> from tokenrecords import TokenEntry, build_chains, pack_chains
        >>> call = TokenEntry(rollout_id="r", model_call_id="c", prompt_token_ids=[1, 2], generation_token_ids=[3],
        ...                   generation_log_probs=[-0.5], parent_resolution="root")
        >>> pack_chains(build_chains([call]).chains).per_token([1.5])
        array([0. , 0. , 1.5], dtype=float32)
        """
        return on_tokens(values, self.sequence_index, self.cu_seqlens, self.loss_mask)

    def next_token(self) -> NextTokenBatch:
        """Each token beside the one that follows it in its chain, and what is known of that one.

        Raises:
            ValueError: The first token of a chain carries loss: it follows none.

        >>> from tokenrecords import TokenEntry, build_chains, pack_chains
        >>> call = TokenEntry(rollout_id="r", model_call_id="c", prompt_token_ids=[1, 2], generation_token_ids=[3],
        ...                   generation_log_probs=[-0.5], parent_resolution="root")
        >>> batch = pack_chains(build_chains([call]).chains * 2).next_token()
        >>> batch.input_ids, batch.labels, batch.cu_seqlens
        (array([1, 2, 1, 2]), array([2, 3, 2, 3]), array([0, 2, 4], dtype=int32))
        """
        starts, all_lengths = self._stretches()
        [begun] = np.nonzero(all_lengths)
        [wrong] = np.nonzero(self.loss_mask[starts[begun]])
        if wrong.size:
            raise ValueError(f"the first token of {self._named(begun[wrong[0]])} carries loss: one before it is needed")
        lengths = np.maximum(all_lengths - 1, 0)
        after = starts + all_lengths - lengths
        return NextTokenBatch(
            input_ids=joined(self.input_ids, starts, lengths),
            labels=joined(self.input_ids, after, lengths),
            loss_mask=joined(self.loss_mask, after, lengths),
            log_probs=joined(self.log_probs, after, lengths),
            position_ids=joined(self.position_ids, starts, lengths),
            cu_seqlens=np.cumsum([0, *lengths], dtype=np.int32),
            sequence_index=self.sequence_index,
        )

    def padded(
        self, pad_id: int = 0, *, length: int | None = None, multiple_of: int = 1, side: Side = "right"
    ) -> PaddedBatch:
        """One row a chain, padded to the same length.

        Args:
            pad_id: Stands where there is no token; any id will do where `attention_mask` is used.
            length: The length of the rows; by default that of the longest chain.
            multiple_of: The length is rounded up to a multiple of it.
            side: Where the padding goes.

        Raises:
            TypeError: `pad_id`, `length` or `multiple_of` is not an integer.
            ValueError: `pad_id` does not fit the dtype of `input_ids`, a chain is longer than `length`, `multiple_of`
                is below 1, or `side` is unknown.

        >>> from tokenrecords import pack_chains
        >>> pack_chains([]).padded(length=4, side="left").input_ids.shape
        (0, 4)
        """
        if side not in ("right", "left"):
            raise ValueError(f"side is {side!r}: it must be 'right' or 'left'")
        multiple_of = integer("multiple_of", multiple_of)
        if multiple_of < 1:
            raise ValueError(f"multiple_of is {multiple_of}: it must be at least 1")
        pad_id = self._fitting(pad_id)
        starts, lengths = self._stretches()
        width = self._width("length", length, lengths, "tokens")
        width += -width % multiple_of
        rows = Rows(starts, lengths, width - lengths if side == "left" else np.zeros_like(starts), width)
        return PaddedBatch(
            input_ids=rows.of(self.input_ids, pad_id),
            attention_mask=rows.of(np.ones_like(self.loss_mask)),
            loss_mask=rows.of(self.loss_mask),
            log_probs=rows.of(self.log_probs),
            position_ids=rows.of(self.position_ids),
            sequence_index=self.sequence_index,
        )

    def prompt_response(
        self, pad_id: int, *, prompt_length: int | None = None, response_length: int | None = None
    ) -> PromptResponseBatch:
        """One row a chain, cut before its first generated token: the prompt padded left, the response padded right.

        Args:
            pad_id: Stands where there is no token.
            prompt_length: The length of all prompts; by default that of the longest one.
            response_length: The length of all responses; by default that of the longest one.

        Raises:
            TypeError: `pad_id` or a length is not an integer.
            ValueError: `pad_id` does not fit the dtype of `input_ids`, or a prompt or response is longer than its
                length.

        >>> from tokenrecords import TokenEntry, build_chains, pack_chains
        >>> call = TokenEntry(rollout_id="r", model_call_id="c", prompt_token_ids=[1, 2], generation_token_ids=[3],
        ...                   generation_log_probs=[-0.5], parent_resolution="root")
        >>> batch = pack_chains(build_chains([call]).chains).prompt_response(0, prompt_length=3, response_length=2)
        >>> batch.prompts, batch.responses
        (array([[0, 1, 2]]), array([[3, 0]]))
        """
        pad_id = self._fitting(pad_id)
        starts, lengths = self._stretches()
        prompts = self.prompt_lengths.astype(np.int64)
        prompt = self._width("prompt_length", prompt_length, prompts, "tokens before its first generated one")
        response = self._width(
            "response_length", response_length, lengths - prompts, "tokens from its first generated one"
        )
        whole = Rows(starts, lengths, prompt - prompts, prompt + response)
        responses = Rows(starts + prompts, lengths - prompts, np.zeros_like(starts), response)
        input_ids = whole.of(self.input_ids, pad_id)
        return PromptResponseBatch(
            input_ids=input_ids,
            prompts=input_ids[:, :prompt],
            responses=input_ids[:, prompt:],
            response_mask=responses.of(self.loss_mask),
            log_probs=responses.of(self.log_probs),
            attention_mask=whole.of(np.ones_like(self.loss_mask)),
            position_ids=whole.of(self.position_ids),
            sequence_index=self.sequence_index,
        )

    def _stretches(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """The start and length of each chain."""
        offsets = self.cu_seqlens.astype(np.int64)
        return offsets[:-1], np.diff(offsets)

    def _fitting(self, pad_id: int) -> int:
        if pad_id is None:
            raise TypeError("pad_id is None: where the tokenizer has no pad token, any id will do")
        pad_id = integer("pad_id", pad_id)
        limits = np.iinfo(self.input_ids.dtype)
        if not limits.min <= pad_id <= limits.max:
            raise ValueError(f"pad_id is {pad_id}: it does not fit {self.input_ids.dtype}")
        return pad_id

    def _width(self, name: str, given: int | None, lengths: npt.NDArray[np.int64], of: str) -> int:
        """The width that was given, if there is room for all lengths, or that of the longest."""
        longest = int(lengths.max(initial=0))
        width = longest if given is None else integer(name, given)
        if width < longest:
            raise ValueError(f"{name} is {width}: {self._named(int(lengths.argmax()))} has {longest} {of}")
        return width

    def _named(self, chain: int) -> str:
        place, chain_id, rollout_id = self.sequence_index[chain], self.chain_ids[chain], self.rollout_ids[chain]
        return f"chains[{place}] ({chain_id!r} of rollout {rollout_id!r})"


def integer(name: str, value: Any) -> int:
    """The value of an argument as an int.

    Raises:
        TypeError: It is not an integer.
    """
    try:
        return operator.index(value)
    except TypeError:
        raise TypeError(f"{name} is {shown(value)}: an integer is needed, got {type(value).__name__}") from None
