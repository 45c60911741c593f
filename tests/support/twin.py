"""A plain pydantic twin of TokenEntry, and what a record holds, told apart exactly."""

from __future__ import annotations

from typing import Any

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, model_validator
from tokenrecords import ParentResolutionStatus, TokenEntry


class Plain(BaseModel):
    """The fields of a record, as pydantic alone reads them."""

    model_config = ConfigDict(extra="allow")

    schema_version: int = 1
    rollout_id: str
    model_call_id: str
    model: str = ""
    prompt_token_ids: list[int]
    generation_token_ids: list[int]
    generation_log_probs: list[float]
    routed_experts: Any | None = None
    output_items: list[dict[Any, Any]] = Field(default_factory=list)
    token_item_index: int | None = None
    response_id: str | None = None
    created_at: float = 0.0
    parent_call_id: str | None = None
    cum_len: int | None = None
    digest: str | None = None
    parent_resolution: ParentResolutionStatus | None = None
    continuation_fingerprint: str = ""
    continuation_context_len: int = 0
    continuation_context_digest: str = ""
    parent_resolution_reason: str = ""
    fingerprint_version: int | None = None
    prompt_is_delta: bool = False
    prefix_requested: bool = False
    prefix_supplied: bool = False


class Twin(Plain):
    """The fields and the rules."""

    @model_validator(mode="after")
    def _rules(self) -> Twin:
        status, parent = self.parent_resolution, self.parent_call_id
        resolved = status == ParentResolutionStatus.RESOLVED
        index = self.token_item_index
        broken = (
            self.schema_version != 1
            or len(self.generation_token_ids) != len(self.generation_log_probs)
            or (index is not None and not 0 <= index < len(self.output_items))
            or (resolved and not parent)
            or (status is not None and not resolved and parent is not None)
            or (self.prompt_is_delta and not resolved)
        )
        if broken:
            raise ValueError("a rule is broken")
        return self


def exact(record: BaseModel) -> str:
    """All that a record holds, told apart as Python tells 1, 1.0 and True apart; NaN is equal to itself."""
    if isinstance(record, TokenEntry):
        record = record.as_lists()
    return repr((record.model_dump(), sorted(record.model_fields_set)))


def id_dtype(ids: list[int]) -> np.dtype[Any] | None:
    """The first dtype that holds the ids; None where a list must."""
    for dtype in map(np.dtype, ("int32", "int64", "uint64")):
        if all(np.iinfo(dtype).min <= id_ <= np.iinfo(dtype).max for id_ in ids):
            return dtype
    return None
