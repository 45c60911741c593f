"""Rollouts drawn at random, as NeMo Gym's capture might have recorded them: sound ones, and broken ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import random


class Drawn:
    """The records of a rollout.

    Args:
        draw: The source of what is drawn.
        records: NeMo Gym's module of records.
        broken: How often something is wrong with a record, from 0 to 1.
    """

    def __init__(self, draw: random.Random, records: Any, broken: float) -> None:
        self._draw, self._records, self._broken = draw, records, broken
        self.entries: list[Any] = []
        self._sequences: dict[str, list[int]] = {}
        for number in range(draw.randint(0, 8)):
            self._call(number)
        if self._breaks() and self.entries:
            self.entries.append(draw.choice(self.entries).model_copy())
        if draw.random() < 0.3:
            draw.shuffle(self.entries)

    def terminal(self) -> str | None:
        """The call that the rollout may have ended with."""
        named = [entry.model_call_id for entry in self.entries]
        return self._draw.choice([None, None, "", "missing", *named])

    def _breaks(self) -> bool:
        return self._draw.random() < self._broken

    def _ids(self, least: int, most: int) -> list[int]:
        return [self._draw.randint(0, 2) for _ in range(self._draw.randint(least, most))]

    def _call(self, number: int) -> None:
        draw, earlier = self._draw, self.entries
        parent = draw.choice([*earlier, earlier[-1], earlier[-1]]) if earlier and draw.random() < 0.8 else None
        more = self._ids(0 if self._breaks() else 1, 2)
        if earlier and draw.random() < 0.2:  # once more what was asked before
            asked = draw.choice(earlier)
            parent = next((entry for entry in earlier if entry.model_call_id == asked.parent_call_id), None)
            more = asked.prompt_token_ids[0 if asked.prompt_is_delta or parent is None else parent.cum_len or 0 :]
        before = self._sequences[parent.model_call_id] if parent is not None else []
        prompt, generation = [*before, *more], self._ids(0 if draw.random() < 0.1 else 1, 3)
        delta = parent is not None and draw.random() < 0.4
        if self._breaks() and prompt:
            prompt[draw.randrange(len(prompt))] = 7
        status = "root" if parent is None else "resolved"
        named = "missing" if parent is not None and self._breaks() else parent and parent.model_call_id
        if self._breaks():
            status, named, delta = draw.choice(
                [("unresolved", None, False), ("root", None, False), (None, named, False)]
            )
        entry = self._records.TokenEntry(
            rollout_id="r" if not self._breaks() else "other",
            model_call_id=f"c{draw.choice([number, number, 20 - number])}",
            prompt_token_ids=more if delta else prompt,
            generation_token_ids=generation,
            generation_log_probs=[-0.5] * len(generation),
            response_id=draw.choice([None, "response", f"response {number}"]),
            created_at=float(draw.choice([0, number])),
            parent_call_id=named,
            parent_resolution=status,
            prompt_is_delta=delta and named is not None,
        )
        whole = [*prompt, *generation]
        stamped = {"cumulative": whole} if entry.prompt_is_delta else {}
        self._records.stamp_lineage(entry, named, parent_resolution=entry.parent_resolution, **stamped)
        if draw.random() < 0.1:
            entry.digest = None
        if self._breaks():
            entry.digest, entry.cum_len = draw.choice([("0" * 64, entry.cum_len), (entry.digest, 3)])
        self._sequences[entry.model_call_id] = whole
        self.entries.append(entry)
