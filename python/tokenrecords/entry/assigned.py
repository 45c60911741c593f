"""Fields of records, whatever was assigned to them: assignment is not validated."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tokenrecords.entry.model import TokenEntry

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


def wrong_types(entry: TokenEntry) -> dict[str, Any]:
    """The fields whose values are of a wrong type or missing, with those values."""
    values = {name: getattr(entry, name, _MISSING) for name in _TYPES}
    return {name: value for name, value in values.items() if not isinstance(value, _TYPES[name])}
