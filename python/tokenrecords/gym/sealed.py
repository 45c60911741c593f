"""What a sealed call of NeMo Gym must fulfil, asked of whole columns: a validator that takes the place of its own."""

from __future__ import annotations

from inspect import signature
from typing import Any

from tokenrecords.gym.staging import compute_staging_digest

_SEALED = tuple(signature(compute_staging_digest).parameters)


def validate_seal(call: Any) -> Any:
    """The call, if its digest is that of its fields: `StagedCallBaseSnapshot._validate_base_integrity`.

    Raises:
        ValueError: It is not, or the fields break a rule of `compute_staging_digest`.
    """
    digest = compute_staging_digest(**{name: getattr(call, name) for name in _SEALED})
    if digest != call.digest:
        raise ValueError(f"digest is {call.digest}: {digest} is needed, that of the other fields")
    return call
