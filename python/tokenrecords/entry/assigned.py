"""Fields of records (`TokenEntry`), whatever was assigned to them: assignment is not validated."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tokenrecords._core import copy_float_list, copy_int_list
from tokenrecords.entry.resolution import ParentResolutionStatus
from tokenrecords.tokens.names import ID_FIELDS, LOG_PROBS, LOSS_MASK

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pydantic import BaseModel

_MISSING: Final = object()

# Of the fields that tell how calls are linked, and of those that are looked at one by one.
_TYPES: Final[Mapping[str, tuple[type, ...]]] = {
    "rollout_id": (str,),
    "model_call_id": (str,),
    "output_items": (list,),
    "token_item_index": (int, type(None)),
    "created_at": (float, int),
    "parent_call_id": (str, type(None)),
    "parent_resolution": (str, type(None)),
    "cum_len": (int, type(None)),
    "digest": (str, type(None)),
    "prompt_is_delta": (bool,),
}
# What validation makes of each field but the arrays, `routed_experts` (anything) and `output_items`.
_VALIDATED: Final[Mapping[str, tuple[type, ...]]] = {
    "schema_version": (int,),
    "rollout_id": (str,),
    "model_call_id": (str,),
    "model": (str,),
    "token_item_index": (int, type(None)),
    "response_id": (str, type(None)),
    "created_at": (float,),
    "parent_call_id": (str, type(None)),
    "cum_len": (int, type(None)),
    "digest": (str, type(None)),
    "parent_resolution": (ParentResolutionStatus, type(None)),
    "continuation_fingerprint": (str,),
    "continuation_context_len": (int,),
    "continuation_context_digest": (str,),
    "parent_resolution_reason": (str,),
    "fingerprint_version": (int, type(None)),
    "prompt_is_delta": (bool,),
    "prefix_requested": (bool,),
    "prefix_supplied": (bool,),
}


def wrong_types(entry: BaseModel) -> dict[str, Any]:
    """The fields whose values are of a wrong type or missing, with those values."""
    return {
        name: value for name, types in _TYPES.items() if not isinstance(value := getattr(entry, name, _MISSING), types)
    }


def loss_mask_of(entry: BaseModel) -> Any:
    """The extra field `generation_loss_mask` as it was given, None where there is none."""
    extra: Mapping[str, Any] | None = entry.model_extra
    return None if extra is None else extra.get(LOSS_MASK)


def is_as_validated(values: Mapping[str, Any]) -> bool:
    """True if the fields hold just what validation would make of them, one by one.

    It says no where it is not sure: then the fields are validated. To validate a record of three ids takes 13 us, this
    2 us; `to_json` takes 8 us, not 19 (CPython 3.11).
    """
    try:
        if any(type(values[name]) not in types for name, types in _VALIDATED.items()):
            return False
        items, log_probs = values["output_items"], values[LOG_PROBS]
        return (
            type(items) is list
            and all(type(item) is dict for item in items)
            and all(_is_array(values[name], "iu") or copy_int_list(values[name]) is not None for name in ID_FIELDS)
            and (_is_array(log_probs, "f") or copy_float_list(log_probs) is not None)
        )
    except KeyError:
        return False


def _is_array(value: Any, kinds: str) -> bool:
    return type(value) is np.ndarray and value.ndim == 1 and value.dtype.kind in kinds and value.dtype.itemsize <= 8
