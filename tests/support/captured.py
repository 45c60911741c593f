"""Conversations in the files of NeMo Gym's capture, written by its own store."""

from __future__ import annotations

from typing import Any


class Captured:
    """Calls of rollouts, each written as it is made; `requests` holds what would continue each call.

    Args:
        nemo_gym: Imports a module of the capture package.
        root: The directory of the capture.
    """

    def __init__(self, nemo_gym: Any, root: Any) -> None:
        self._records = nemo_gym("records")
        self._lineage = nemo_gym("lineage")
        self.store = nemo_gym("store").TokenCaptureStore(root)
        self.requests: dict[tuple[str, str], list[dict[str, Any]]] = {}
        self.sequences: dict[tuple[str, str], list[int]] = {}

    def call(
        self,
        rollout_id: str,
        call_id: str,
        parent: str | None = None,
        *,
        prompt: list[int],
        generation: list[int],
        delta: bool = False,
    ) -> None:
        """Make a call that adds `prompt` to its parent's sequence."""
        question = {"role": "user", "content": f"question {call_id}"}
        answer = {"role": "assistant", "content": f"answer {call_id}"}
        request = [*(self.requests[rollout_id, parent] if parent else []), question]
        before = self.sequences[rollout_id, parent] if parent else []
        whole = [*before, *prompt, *generation]
        status = self._records.ParentResolutionStatus("resolved" if parent else "root")
        entry = self._records.TokenEntry(
            rollout_id=rollout_id,
            model_call_id=call_id,
            prompt_token_ids=prompt if delta else [*before, *prompt],
            generation_token_ids=generation,
            generation_log_probs=[-0.5] * len(generation),
            output_items=[answer],
            parent_call_id=parent,
            parent_resolution=status,
            prompt_is_delta=delta,
        )
        self._lineage.stamp_continuation(entry, request)
        self._records.stamp_lineage(entry, parent, parent_resolution=status, cumulative=whole if delta else None)
        self.store.append(entry)
        self.requests[rollout_id, call_id] = [*request, answer]
        self.sequences[rollout_id, call_id] = whole

    def continued(self, rollout_id: str, call_id: str) -> list[dict[str, Any]]:
        """What a call that continues this one is asked."""
        return [*self.requests[rollout_id, call_id], {"role": "user", "content": "and now?"}]

    def branches(self, rollout_id: str) -> None:
        """Make calls that fork, full and as deltas."""
        self.call(rollout_id, "a", prompt=[1, 2, 3], generation=[4])
        self.call(rollout_id, "b", "a", prompt=[5], generation=[6, 7], delta=True)
        self.call(rollout_id, "c", "b", prompt=[8, 9], generation=[10], delta=True)
        self.call(rollout_id, "d", "a", prompt=[11], generation=[2**40])
        self.call(rollout_id, "e", "d", prompt=[2**63], generation=[12], delta=True)
        self.call(rollout_id, "f", "c", prompt=[13], generation=[])
        self.call(rollout_id, "g", prompt=[70, 71], generation=[72])
