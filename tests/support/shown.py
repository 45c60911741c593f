"""Rollouts of every kind that the page shows, and what it is to say of each token."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from tokenrecords import TokenEntry, stamp_lineage

if TYPE_CHECKING:
    from pathlib import Path

# Byte-level pieces: a word, a space, a line break, half a character, what only looks like an element, a bidi control.
PIECES = {"Ġthe": 1, "Ġ": 2, "Ċ": 3, "âī": 4, "<script>alert(1)</script>": 5, "âĢ®": 6, "end": 7}
SHOWN = {1: "␣the", 2: "␣", 3: r"\n", 4: "<0xE2><0x89>", 5: "<script>alert(1)</script>", 6: r"\u202e", 7: "end"}


def write_tokenizer(path: Path) -> Path:
    path.write_text(json.dumps({"model": {"vocab": PIECES}, "decoder": {"type": "ByteLevel"}}), encoding="utf-8")
    return path


class Token(NamedTuple):
    """What the page says of a token."""

    id: int
    log_prob: float | None
    role: str
    call: str


class Rollout:
    """A rollout that is made call by call."""

    def __init__(self, rollout_id: str, **fields: Any) -> None:
        self.id = rollout_id
        self.fields = fields
        self.entries: list[TokenEntry] = []
        self.tokens: dict[str | None, list[Token]] = {None: []}

    def call(
        self,
        name: str,
        new: list[int],
        generated: list[int],
        log_probs: list[float] | None = None,
        *,
        parent: str | None = None,
        mask: list[int] | None = None,
        **fields: Any,
    ) -> Rollout:
        """Add a call that continues another one, if it names one, with `new` ids after that one's."""
        log_probs = [-0.25 * (1 + at) for at in range(len(generated))] if log_probs is None else log_probs
        before = self.tokens[parent]
        extra = {} if mask is None else {"generation_loss_mask": mask}
        entry = TokenEntry(
            rollout_id=self.id,
            model_call_id=name,
            prompt_token_ids=np.array([*(token.id for token in before), *new], np.int64),
            generation_token_ids=np.array(generated, np.int64),
            generation_log_probs=log_probs,
            **{**self.fields, **extra, **fields},
        )
        stamp_lineage(entry, parent, "root" if parent is None else "resolved")
        self.entries.append(entry)
        roles = ["generated" if own else "tool, masked" for own in mask or [1] * len(generated)]
        told = [
            *(Token(each, None, "prompt", name) for each in new),
            *(Token(*each, name) for each in zip(generated, log_probs, roles, strict=True)),
        ]
        self.tokens[name] = [*before, *told]
        return self


def every_kind() -> list[Rollout]:
    """A conversation with a mask, forks, a break, and one that holds nothing but trouble."""
    plain = Rollout("plain", model="m-1", weight_version=3)
    plain.call("a", [1, 2, 3, 4], [5, 6, 7], [-0.01, -0.5, -5.0])
    plain.call("b", [1, 2], [1, 1, 7, 7], mask=[1, 0, 0, 1], parent="a")
    plain.call("c", [99], [7], parent="b", weight_version=4)
    fork = Rollout("fork", model="m-2", weight_version=3)
    fork.call("a", [1], [1, 2])
    fork.call("left", [3], [7], parent="a").call("right", [2], [7, 7], parent="a")
    broken = Rollout("broken", model="m-1", weight_version=10)
    broken.call("first", [1, 1, 2, 2], [7, 1, 1, 3])
    broken.call("second", [1, 1, 2, 2, 7, 2, 1, 3, 3], [7])
    broken.entries[1].parent_resolution = "unresolved"  # type: ignore[assignment]
    odd = Rollout("odd", model="m-2")
    odd.call("a", [1], [1, 2, 3, 7], [math.nan, 0.5, -9999.0, -0.5])
    return [plain, fork, broken, odd]


KINDS = every_kind()
ENTRIES = [entry for rollout in KINDS for entry in rollout.entries]


def expected_facts(rollout: Rollout, call: str, position: int) -> dict[str, str]:
    """What the page says of a token in the sequence of a call."""
    token = rollout.tokens[call][position]
    own = next(entry for entry in rollout.entries if entry.model_call_id == token.call)
    log_prob, probability = "none", "none"
    if token.log_prob is not None:
        log_prob = "NaN" if math.isnan(token.log_prob) else f"{token.log_prob:g}"
        is_one = -9999 < token.log_prob <= 0
        probability = f"{100 * math.exp(token.log_prob):.2f} %" if is_one else "not one"
    return {
        "position": f"{position} of {len(rollout.tokens[call])}",
        "id": str(token.id),
        "text": SHOWN.get(token.id, "unknown to the tokenizer"),
        "role": token.role,
        "log-prob": log_prob,
        "probability": probability,
        "call": token.call,
        "weights": str((own.model_extra or {}).get("weight_version", "not said")),
    }
