"""Records, alone and in conversations, and their lines of JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import orjson
from tokenrecords import TokenEntry, stamp_lineage

if TYPE_CHECKING:
    from collections.abc import Iterable

IDS: dict[str, Any] = {"prompt_token_ids": [1, 2], "generation_token_ids": [3], "generation_log_probs": [-0.5]}
FIELDS: dict[str, Any] = {"rollout_id": "r", "model_call_id": "c", **IDS}
DELTA: dict[str, Any] = {"prompt_is_delta": True, "parent_resolution": "resolved", "parent_call_id": "p"}


def make_entry(**changes: Any) -> TokenEntry:
    """A record with the fields that have to be there, and `changes`."""
    return TokenEntry.model_validate({**FIELDS, **changes})


def bare(call_id: str, prompt: Any, generation: Any = (), **fields: Any) -> TokenEntry:
    """A record of these ids, with a log-prob for each generated one."""
    return make_entry(
        model_call_id=call_id,
        prompt_token_ids=prompt,
        generation_token_ids=generation,
        generation_log_probs=[-0.5 - index / 8 for index in range(len(generation))],
        **fields,
    )


def call(
    call_id: str, prompt: list[int], generation: list[int], parent: str | None = None, **fields: Any
) -> TokenEntry:
    """A stamped record with a full prompt: of a root, or of a call that continues `parent`; then `fields` are set."""
    entry = bare(call_id, prompt, generation)
    stamp_lineage(entry, parent, "root" if parent is None else "resolved")
    return entry.model_copy(update=fields)


def delta(entry: TokenEntry, common: int) -> TokenEntry:
    """The record with only what follows the first `common` ids of its prompt."""
    return entry.model_copy(update={"prompt_token_ids": entry.prompt_token_ids[common:], "prompt_is_delta": True})


def conversation(turns: int = 3, *, deltas: bool = False) -> list[TokenEntry]:
    """Calls that continue each other: call k has the id `c<k>`, one new prompt id and two generated ones."""
    entries: list[TokenEntry] = []
    sequence: list[int] = []
    for turn in range(turns):
        prompt, generation = [*sequence, 100 + turn], [200 + turn, 300 + turn]
        parent = f"c{turn - 1}" if turn else None
        entry = call(f"c{turn}", prompt, generation, parent, created_at=float(turn))
        entries.append(delta(entry, len(sequence)) if deltas and turn else entry)
        sequence = prompt + generation
    return entries


def as_arrays(entries: Iterable[TokenEntry]) -> list[TokenEntry]:
    return [entry.as_arrays() for entry in entries]


def call_ids(entries: Iterable[TokenEntry]) -> list[str]:
    return [entry.model_call_id for entry in entries]


def line(**changes: Any) -> bytes:
    """A record as JSON, with its line break."""
    return orjson.dumps({**FIELDS, **changes}) + b"\n"


THREE = b"".join(line(model_call_id=name) for name in "abc")


def raw(**texts: str) -> bytes:
    """As `line`, with values that are JSON text already."""
    members = {key: orjson.dumps(value).decode() for key, value in FIELDS.items()} | texts
    return ("{" + ",".join(f'"{key}":{text}' for key, text in members.items()) + "}\n").encode()


def orjson_line(entry: TokenEntry) -> bytes:
    """The bytes that the reference's store writes for a record, without the line break."""
    return orjson.dumps(entry.model_dump(mode="json"), option=orjson.OPT_SORT_KEYS)
