"""Staged calls, as the arguments of `compute_staging_digest`."""

from __future__ import annotations

from typing import Any


def staged(
    *,
    token_ids_delta: list[int],
    carried: int = 0,
    parent_call_id: str | None = None,
    log_prob: float = -0.5,
    **changes: Any,
) -> dict[str, Any]:
    """A call that carries `carried` ids of its prompt and generated the others, with `changes`."""
    delta_len = len(token_ids_delta)
    carried = min(carried, delta_len)
    prev_len = 0 if parent_call_id is None else 11
    return {
        "schema_version": 2,
        "digest_version": 2,
        "extras_digest_version": 1,
        "rollout_id": "rollout",
        "model_call_id": "call",
        "parent_call_id": parent_call_id,
        "mode": "text" if parent_call_id is None else "token_in",
        "prev_len": prev_len,
        "delta_len": delta_len,
        "cum_len": prev_len + delta_len,
        "weight_version": 0,
        "token_ids_delta": token_ids_delta,
        "token_mask_delta": [0.0] * carried + [1.0] * (delta_len - carried),
        "generation_log_probs_delta": [0.0] * carried + [log_prob] * (delta_len - carried),
        "extras_digest": "a" * 64,
        "chain_hash": "b" * 64,
        "cumulative_hash": "c" * 64,
        **changes,
    }
