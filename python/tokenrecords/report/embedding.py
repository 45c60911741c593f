"""Arrays and values as text inside a page."""

from __future__ import annotations

import base64
import json
import zlib
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

import numpy as np

from tokenrecords.report.calls import start_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tokenrecords.lineage.call import Call

Stored: TypeAlias = Literal["int32", "int64", "uint64", "float32", "float64", "uint8"]

_LEVEL = 1  # of zlib: 16,000 ids take half a millisecond, and higher levels save little of what samples give


def as_json(value: Any) -> str:
    """The value as JSON in ASCII that no element of HTML ends in."""
    text = json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c")


def arrays_of(calls: Iterable[Call]) -> tuple[list[tuple[Stored, Stored, bool]], str]:
    """What each call adds to its parent: ids of prompt and generation, then log-probs, then its mask if it has one.

    Returns:
        What these are stored as, little-endian, and whether there is a mask; and the base64 of the bytes of all calls,
        one after the other, deflated (zlib).
    """
    stored: list[tuple[Stored, Stored, bool]] = []
    parts: list[bytes] = []
    for call in calls:
        new = call.joined()[start_of(call) :]
        ids, log_probs = _ids_as(new), _log_probs_as(call.log_probs)
        stored.append((ids, log_probs, call.loss_mask is not None))
        parts += [new.astype(_LITTLE[ids]).tobytes(), call.log_probs.astype(_LITTLE[log_probs]).tobytes()]
        if call.loss_mask is not None:
            parts.append(call.loss_mask.astype(np.uint8).tobytes())
    return stored, base64.b64encode(zlib.compress(b"".join(parts), _LEVEL)).decode("ascii")


_LITTLE: Final = {"int32": "<i4", "int64": "<i8", "uint64": "<u8", "float32": "<f4", "float64": "<f8"}


def _ids_as(ids: Any) -> Stored:
    least, most = (int(ids.min()), int(ids.max())) if len(ids) else (0, 0)
    if least >= -(1 << 31) and most < 1 << 31:
        return "int32"
    return "int64" if most < 1 << 63 else "uint64"


def _log_probs_as(log_probs: Any) -> Stored:
    """Engines compute in float32; a value beyond it keeps its own."""
    with np.errstate(over="ignore"):
        is_beyond = np.isfinite(log_probs) & ~np.isfinite(log_probs.astype(np.float32))
    return "float64" if is_beyond.any() else "float32"
