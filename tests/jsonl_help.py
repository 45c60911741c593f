"""What the tests of JSONL share: a plain pydantic twin of TokenEntry, and records."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import numpy as np
import orjson
from pydantic import BaseModel, ConfigDict, Field, model_validator
from tokenrecords import ParentResolutionStatus, TokenEntry

FIELDS: dict[str, Any] = {
    "rollout_id": "r",
    "model_call_id": "c",
    "prompt_token_ids": [1, 2],
    "generation_token_ids": [3],
    "generation_log_probs": [-0.5],
}


class Twin(BaseModel):
    """The fields and rules of a record, as pydantic alone reads them."""

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


def entry(**changes: Any) -> TokenEntry:
    return TokenEntry.model_validate({**FIELDS, **changes})


def line(**changes: Any) -> bytes:
    """A record as JSON, with its line break."""
    return orjson.dumps({**FIELDS, **changes}) + b"\n"


def raw(**texts: str) -> bytes:
    """As `line`, with values that are JSON text already."""
    members = {key: orjson.dumps(value).decode() for key, value in FIELDS.items()} | texts
    return ("{" + ",".join(f'"{key}":{text}' for key, text in members.items()) + "}\n").encode()


def orjson_line(record: TokenEntry) -> bytes:
    """The bytes that the reference's store writes for a record, without the line break."""
    return orjson.dumps(record.model_dump(mode="json"), option=orjson.OPT_SORT_KEYS)


def calls(entries: Any) -> list[str]:
    return [found.model_call_id for found in entries]


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


def open_files(path: Path) -> list[str]:
    fds = Path("/proc/self/fd")
    return [found for fd in fds.iterdir() if fd.is_symlink() and (found := str(fd.readlink())) == str(path)]


def scanning_threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("tokenrecords")]
