"""Records for tests: calls that continue each other."""

from __future__ import annotations

from typing import Any

from tokenrecords import TokenEntry, stamp_lineage


def call(
    call_id: str, prompt: list[int], generation: list[int], parent: str | None = None, **fields: Any
) -> TokenEntry:
    """A stamped record with a full prompt: of a root, or of a call that continues `parent`; then `fields` are set."""
    entry = TokenEntry(
        rollout_id="r",
        model_call_id=call_id,
        prompt_token_ids=prompt,
        generation_token_ids=generation,
        generation_log_probs=[-0.5 - index / 8 for index in range(len(generation))],
    )
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


def as_arrays(entries: list[TokenEntry]) -> list[TokenEntry]:
    return [entry.as_arrays() for entry in entries]
