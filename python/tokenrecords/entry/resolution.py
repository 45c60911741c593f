"""What is known about the call that a call continues."""

from __future__ import annotations

import enum


class ParentResolutionStatus(enum.StrEnum):
    """What is known about the earlier call that a call continues.

    ROOT: it continues none. RESOLVED: it continues `parent_call_id`, which was proven. UNRESOLVED: it continues one
    that was not captured.
    """

    ROOT = "root"
    RESOLVED = "resolved"
    UNRESOLVED = "unresolved"


def check_parent(status: ParentResolutionStatus | None, parent_call_id: str | None, *, is_delta: bool) -> None:
    """What `parent_resolution`, `parent_call_id` and `prompt_is_delta` must fulfil together.

    Raises:
        ValueError: The first rule that is broken, with the values.
    """
    if status is None and not is_delta:
        return  # whatever the parent: nobody decided yet, as of each record that is being made
    if status == ParentResolutionStatus.RESOLVED:
        if not parent_call_id:
            raise ValueError(f"parent_resolution is 'resolved': it requires parent_call_id, got {parent_call_id!r}")
    elif status is not None and parent_call_id is not None:
        raise ValueError(f"parent_resolution is '{status}': it cannot carry parent_call_id, got {parent_call_id!r}")
    elif is_delta:
        given = None if status is None else str(status)
        raise ValueError(
            "a delta prompt can only be read through its parent: it needs parent_resolution 'resolved' and "
            f"parent_call_id, got {given!r} and {parent_call_id!r}"
        )
