"""What a finished run leaves: the rows of its rollouts, whose items carry the tokens once the records are gone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from tokenrecords.capture.transcript import entries_from_transcript

if TYPE_CHECKING:
    from tokenrecords.entry.model import TokenEntry

_ID: Final = "_ng_rollout_id"
_INDICES: Final = ("_ng_task_index", "_ng_rollout_index")
_ATTEMPT: Final = "_ng_attempt_index"
_KEPT: Final = ("reward", "mask_sample")  # what the run decided of the rollout


def entries_from_rollout(row: Any) -> list[TokenEntry]:
    """The linked records of a row of a finished run's `rollouts.jsonl`, as NeMo Gym 0.7.0 writes them.

    A call is what `entries_from_transcript` finds in the row's `response`; the last one has the response's id, as that
    was scored. `reward` and `mask_sample` are kept as extra fields: a rollout that the run masked is not trainable.

    Args:
        row: The row. Its rollout is `_ng_rollout_id`, or `<_ng_task_index>-<_ng_rollout_index>`, with `-a<n>` for the
            attempt `_ng_attempt_index` after the first.

    Returns:
        The records, linked as `link_entries` does; an empty list where no item carries tokens.

    Raises:
        ValueError: The row names no rollout, or has no response; or a call's tokens are incomplete.
        TypeError: The row or its response is not a mapping, or has no list of items.

    >>> item = {"type": "message", "role": "assistant", "content": [], "prompt_token_ids": [1],
    ...         "generation_token_ids": [2], "generation_log_probs": [-0.5]}
    >>> row = {"_ng_task_index": 7, "_ng_rollout_index": 0, "reward": 1.0, "response": {"id": "r1", "output": [item]}}
    >>> [(entry.rollout_id, entry.model_call_id, entry.response_id) for entry in entries_from_rollout(row)]
    [('7-0', 'call-0', 'r1')]
    """
    if not isinstance(row, Mapping):
        raise TypeError(f"row is {type(row).__name__}: a mapping is needed")
    response = row.get("response")
    if response is None:
        raise ValueError("response is missing")
    if not isinstance(response, Mapping):
        raise TypeError(f"response is {type(response).__name__}: a mapping is needed")
    about = {name: row[name] for name in _KEPT if name in row}
    entries = entries_from_transcript(response, rollout_id=_rollout_id(row), **about)
    response_id = response.get("id")
    if entries and isinstance(response_id, str):
        entries[-1].response_id = response_id
    return entries


def is_finished(row: Any) -> bool:
    """True for a row of a finished run."""
    return isinstance(row, Mapping) and (_ID in row or all(name in row for name in _INDICES))


def _rollout_id(row: Mapping[str, Any]) -> str:
    if row.get(_ID) is not None:
        if not isinstance(row[_ID], str):
            raise ValueError(f"{_ID} is {type(row[_ID]).__name__}: a string is needed")
        return row[_ID]
    missing = [name for name in _INDICES if row.get(name) is None]
    if missing:
        raise ValueError(f"{missing[0]} is missing: a row names its rollout")
    attempt = row.get(_ATTEMPT)
    return "-".join([*(str(row[name]) for name in _INDICES), *([f"a{attempt}"] if attempt else [])])
