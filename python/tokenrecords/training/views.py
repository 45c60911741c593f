"""Packed chains in the layouts of trainers; `torch.from_numpy` takes each array as it is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from tokenrecords.training.per_token import on_rows, on_tokens

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    import numpy.typing as npt

__all__ = ["NextTokenBatch", "PaddedBatch", "PromptResponseBatch"]

Side: TypeAlias = Literal["right", "left"]


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

    def per_token(self, values: Sequence[float] | npt.ArrayLike) -> npt.NDArray[np.float32]:
        """As `PackedBatch.per_token`, in the shape of `loss_mask`."""
        return on_rows(values, self.sequence_index, self.loss_mask)


@dataclass(frozen=True, eq=False)
class NextTokenBatch:
    """Each token with the one that follows it in its chain; a chain of `n` tokens has `n - 1` places.

    Attributes:
        input_ids: The chains without their last tokens: shape `(places,)`.
        labels: The ids that follow: shape `(places,)`, whether they carry loss or not.
        loss_mask: True where the label carries loss: bool, shape `(places,)`.
        log_probs: Those of the labels that carry loss, 0.0 elsewhere: float32, shape `(places,)`.
        position_ids: Those of `input_ids`: int64, shape `(places,)`.
        cu_seqlens: Chain `i` is `cu_seqlens[i]:cu_seqlens[i + 1]`, empty for a chain of one token: int32, shape
            `(chains + 1,)`. The bins are those of the `PackedBatch`.
        sequence_index: The place of each chain in the input of `pack_chains`: int32, shape `(chains,)`.
    """

    input_ids: npt.NDArray[np.integer[Any]]
    labels: npt.NDArray[np.integer[Any]]
    loss_mask: npt.NDArray[np.bool_]
    log_probs: npt.NDArray[np.float32]
    position_ids: npt.NDArray[np.int64]
    cu_seqlens: npt.NDArray[np.int32]
    sequence_index: npt.NDArray[np.int32]

    def per_token(self, values: Sequence[float] | npt.ArrayLike) -> npt.NDArray[np.float32]:
        """As `PackedBatch.per_token`, where the label carries loss."""
        return on_tokens(values, self.sequence_index, self.cu_seqlens, self.loss_mask)


@dataclass(frozen=True, eq=False)
class PromptResponseBatch:
    """One row a chain: what stands before its first generated token, padded on the left, and the rest, on the right.

    Attributes:
        input_ids: Prompts and responses side by side: shape `(chains, prompt + response)`.
        prompts: Its left part, a view of shape `(chains, prompt)`.
        responses: Its right part, a view of shape `(chains, response)`.
        response_mask: True for the tokens of the response that carry loss: bool, shape `(chains, response)`.
        log_probs: Those of the tokens that carry loss, 0.0 elsewhere: float32, shape `(chains, response)`.
        attention_mask: True where there is a token of prompt or response: bool, shape `(chains, prompt + response)`.
        position_ids: Places in the chain, 0 in the padding: int64, shape `(chains, prompt + response)`.
        sequence_index: The place of each row's chain in the input of `pack_chains`: int32, shape `(chains,)`.
    """

    input_ids: npt.NDArray[np.integer[Any]]
    prompts: npt.NDArray[np.integer[Any]]
    responses: npt.NDArray[np.integer[Any]]
    response_mask: npt.NDArray[np.bool_]
    log_probs: npt.NDArray[np.float32]
    attention_mask: npt.NDArray[np.bool_]
    position_ids: npt.NDArray[np.int64]
    sequence_index: npt.NDArray[np.int32]

    def per_token(self, values: Sequence[float] | npt.ArrayLike) -> npt.NDArray[np.float32]:
        """As `PackedBatch.per_token`, in the shape of `response_mask`."""
        return on_rows(values, self.sequence_index, self.response_mask)
