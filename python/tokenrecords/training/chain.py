"""One sequence that a trainer trains on."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

import numpy as np

from tokenrecords.tokens.names import GENERATION, LOG_PROBS, LOSS_MASK, PROMPT, ROUTED_EXPERTS, TOKEN_FIELDS
from tokenrecords.tokens.routed_experts import decode_routed_experts

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from tokenrecords.tokens.routed_experts import Routes

    Rows = Literal["tokens", "tokens-1"]

__all__ = ["Chain", "Split"]

_CARRIED: Final = frozenset({*TOKEN_FIELDS, LOSS_MASK})  # what the chain says itself


@dataclass(frozen=True, eq=False)
class Chain:
    """One sequence from the first call of a rollout to a last one.

    Attributes:
        rollout_id: The rollout.
        chain_id: `main`, or `branch-0`, `branch-1` and so on.
        call_ids: Its calls, from first to last.
        token_ids: The whole sequence: an integer array of shape `(tokens,)`, of the dtype of the last call's prompt
            (for a list the first of int32, int64 and uint64 that holds its ids), wider where a generated id needs it.
        loss_mask: True where the policy generated, but for what the record's `generation_loss_mask` takes out: bool,
            shape `(tokens,)`.
        log_probs: Those of the tokens that carry loss, 0.0 elsewhere: float64, shape `(tokens,)`.
        spans: Start and end of what each call generated: int64, shape `(calls, 2)`.
        contents: What each call's record holds beside its tokens.
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

    @property
    def prompt_length(self) -> int:
        """How many tokens stand before the first one that was generated."""
        start = min(int(self.spans[0, 0]), len(self)) if len(self.spans) else len(self)
        carrying = np.flatnonzero(self.loss_mask[:start])  # of a chain that somebody made by hand
        return int(carrying[0]) if carrying.size else start

    def split(self) -> Split:
        """The chain cut before its first generated token: what TRL, SkyRL, verl's agent loop and slime take.

        What later calls added to the prompt is a part of the response that carries no loss.

        Returns:
            Views of the chain's arrays.

        >>> from tokenrecords import TokenEntry, build_chains
        >>> call = TokenEntry(rollout_id="r", model_call_id="c", prompt_token_ids=[1, 2], generation_token_ids=[3],
        ...                   generation_log_probs=[-0.5], parent_resolution="root")
        >>> split = build_chains([call]).main.split()
        >>> split.prompt_ids, split.response_ids
        (array([1, 2], dtype=int32), array([3], dtype=int32))
        """
        at = self.prompt_length
        return Split(self.token_ids[:at], self.token_ids[at:], self.loss_mask[at:], self.log_probs[at:])

    @property
    def weight_versions(self) -> list[Any]:
        """The version of the policy's weights that each call ran on, as its record's extra field `weight_version` says.

        None for a call where nobody said.
        """
        return [content.weight_version for content in self.contents]

    def routed_experts(self, *, rows: Rows | None = None, shape: Sequence[int] | None = None) -> Routes | None:
        """Which experts each token went to, of the records' `routed_experts`.

        A token's row is that of the call that brought it; where that call has none (engines do not route the last
        token that they sample), that of the first later call that has one.

        Args:
            rows: "tokens" where each call's routes have a row for each of its tokens, "tokens-1" where the last one has
                none; None takes either.
            shape: `(layers, top_k)`, needed for flat int32 (SGLang).

        Returns:
            A signed integer array of shape `(tokens, layers, top_k)`, -1 where nobody said; None where no call has
            routes.

        Raises:
            ValueError: Routes of another number of rows, of different shapes, or that can't be read; the message names
                the call.

        >>> from tokenrecords import TokenEntry, build_chains
        >>> call = TokenEntry(rollout_id="r", model_call_id="c", prompt_token_ids=[1, 2], generation_token_ids=[3],
        ...                   generation_log_probs=[-0.5], parent_resolution="root", routed_experts=[[[4]], [[5]]])
        >>> build_chains([call]).main.routed_experts().ravel().tolist()
        [4, 5, -1]
        """
        ends = self.spans[:, 1].tolist()
        found: list[tuple[int, Routes]] = []  # the first token with a row, rows
        for content, call_id, end in zip(self.contents, self.call_ids, ends, strict=False):
            if content.routed_experts is not None:
                found.append(_rows_of(content, call_id, end, rows, shape))
        if not found:
            return None
        sizes = {routes.shape[1:] for _, routes in found}
        if len(sizes) > 1:
            shapes = ", ".join(map(str, sorted(sizes)))
            raise ValueError(f"chain {self.chain_id!r} has routes of several (layers, top_k): {shapes}")
        dtype = np.result_type(np.int8, *(routes.dtype for _, routes in found))
        dtype = dtype if dtype.kind == "i" else np.dtype(np.int64)  # numpy joins int8 and uint64 to a float
        whole = np.full((len(self), *sizes.pop()), -1, dtype)
        is_set = np.zeros(len(self), np.bool_)
        for start, routes in found:  # the call that brought a token before those that hold it in their prompt
            _fill(whole, is_set, start, routes)
        return whole

    def output_items(self, *, arrays: bool = True) -> list[dict[str, Any]]:
        """The content of the calls, as one list of output items that carry the chain's tokens.

        Args:
            arrays: False gives the tokens as lists of Python ints and floats.

        Returns:
            Shallow copies of the calls' items. In each call the item that `token_item_index` names, or else the last
            one, carries `prompt_token_ids`, `generation_token_ids` and `generation_log_probs` (views of the chain's
            arrays, or lists) and, where there are any, `routed_experts`; and `generation_loss_mask` where some of the
            generated tokens carry no loss. A call without items becomes a bare message.

        >>> from tokenrecords import TokenEntry, build_chains
        >>> call = TokenEntry(rollout_id="r", model_call_id="c", prompt_token_ids=[1, 2], generation_token_ids=[3],
        ...                   generation_log_probs=[-0.5], parent_resolution="root")
        >>> build_chains([call]).main.output_items(arrays=False)[0]["prompt_token_ids"]
        [1, 2]
        """
        items: list[dict[str, Any]] = []
        for content, (start, end) in zip(self.contents, self.spans.tolist(), strict=True):
            own = [{key: value for key, value in item.items() if key not in _CARRIED} for item in content.items]
            own = own or [{"type": "message"}]
            carried = {
                PROMPT: self.token_ids[:start],
                GENERATION: self.token_ids[start:end],
                LOG_PROBS: self.log_probs[start:end],
            }
            carrier = own[content.carrier(len(own))]
            carrier.update(carried if arrays else {name: value.tolist() for name, value in carried.items()})
            sampled = self.loss_mask[start:end]
            if not sampled.all():
                carrier[LOSS_MASK] = sampled if arrays else sampled.astype(int).tolist()
            routes = content.routed_experts
            if routes is not None:
                carrier[ROUTED_EXPERTS] = routes if arrays or not isinstance(routes, np.ndarray) else routes.tolist()
            items += own
        return items


class Split(NamedTuple):
    """A chain's prompt and response.

    Attributes:
        prompt_ids: What stands before the first generated token: an integer array of shape `(prompt,)`.
        response_ids: The rest, of the same dtype: shape `(response,)`.
        response_mask: True for the tokens of the response that carry loss: bool, shape `(response,)`.
        response_log_probs: Those of the tokens that carry loss, 0.0 elsewhere: float64, shape `(response,)`.
    """

    prompt_ids: npt.NDArray[np.integer[Any]]
    response_ids: npt.NDArray[np.integer[Any]]
    response_mask: npt.NDArray[np.bool_]
    response_log_probs: npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Content:
    """What a call's record holds beside its tokens, and how many of those; a delta record holds not all."""

    items: list[dict[Any, Any]]
    token_item_index: int | None
    routed_experts: Any
    weight_version: Any
    own: int

    def carrier(self, items: int) -> int:
        """The place of the item that carries the tokens."""
        index = self.token_item_index
        return index if index is not None and 0 <= index < items else items - 1


def _rows_of(
    content: Content, call_id: str, tokens: int, rows: Rows | None, shape: Sequence[int] | None
) -> tuple[int, Routes]:
    """The first token of a call that has a row, and the rows."""
    refused = ""
    allowed: tuple[Rows, ...] = ("tokens", "tokens-1") if rows is None else (rows,)
    # Routes of a delta record are those of all tokens of the call, or of what the record adds.
    for known, which in itertools.product(dict.fromkeys((tokens, content.own)), allowed):
        try:
            routes = decode_routed_experts(content.routed_experts, tokens=known, rows=which, shape=shape)
        except ValueError as error:
            refused = refused or str(error)
        else:
            return tokens - (which == "tokens-1") - len(routes), routes
    raise ValueError(f"call {call_id!r}: {refused}")


def _fill(whole: Routes, is_set: npt.NDArray[np.bool_], start: int, routes: Routes) -> None:
    """Take the rows, of the tokens from `start` on, where none is known."""
    span = slice(start, start + len(routes))
    free = ~is_set[span]
    if routes.dtype == np.uint64 and len(routes) and int(routes.max()) > np.iinfo(np.int64).max:
        raise ValueError(f"routed_experts hold {int(routes.max())}: experts below 2**63 are needed")
    whole[span][free] = routes[free]
    is_set[span] = True
