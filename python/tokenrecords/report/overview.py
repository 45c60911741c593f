"""What all rollouts of a page come to."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tokenrecords.report.histograms import Histogram, LogProbs, of_lengths, of_shares
from tokenrecords.training.chains import REASONS

if TYPE_CHECKING:
    from tokenrecords.report.rollout import Rollout


@dataclass
class Overview:
    """Numbers of rollouts, as they come.

    Attributes:
        rollouts: How many there are.
        trainable: How many of them are trainable.
        calls: Records.
        chains: Chains.
        ids: Ids, those that several calls share once.
        generated: Generated ids.
        trained: Ids that carry loss in the main chains of trainable rollouts.
    """

    rollouts: int = 0
    trainable: int = 0
    calls: int = 0
    chains: int = 0
    ids: int = 0
    generated: int = 0
    trained: int = 0
    _reasons: Counter[str] = field(default_factory=Counter)
    _log_probs: LogProbs = field(default_factory=LogProbs)
    _lengths: list[int] = field(default_factory=list)
    _shares: list[float] = field(default_factory=list)

    def add(self, rollout: Rollout) -> None:
        """Count a rollout."""
        self.rollouts += 1
        self.trainable += rollout.build.trainable
        self.calls += rollout.records
        self.chains += len(rollout.build.chains)
        self.ids += rollout.ids
        self.generated += rollout.generated
        self.trained += rollout.trained
        self._reasons.update(rollout.build.reasons)
        for call in rollout.calls:
            self._log_probs.add(call.log_probs)
        for chain in rollout.build.chains:
            self._lengths.append(len(chain))
            self._shares.append(float((chain.spans[:, 1] - chain.spans[:, 0]).sum()) / len(chain))

    @property
    def reasons(self) -> dict[str, int]:
        """How many rollouts each reason stands against."""
        return {reason: self._reasons[reason] for reason in REASONS if self._reasons[reason]}

    @property
    def histograms(self) -> list[Histogram]:
        """Of log-probs, of lengths and of generated shares."""
        return [self._log_probs.histogram(), of_lengths(self._lengths), of_shares(self._shares)]
