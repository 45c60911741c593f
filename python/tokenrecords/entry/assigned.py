"""Fields of records, whatever was assigned to them: assignment is not validated."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np

from tokenrecords import _core
from tokenrecords.entry import fields

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy.typing as npt

    from tokenrecords.entry.model import TokenEntry

    Ids: TypeAlias = npt.NDArray[np.integer[Any]]
    LogProbs: TypeAlias = npt.NDArray[np.floating[Any]]


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


def id_array(value: Any) -> Ids | None:
    """Token ids as an array of shape `(n,)`, without a copy where they are one; negative ids are kept.

    None for what is no one-dimensional sequence of integers, and where no integer dtype holds all ids.
    """
    small = _core.int32_array(value)
    if small is not None:
        return small
    if isinstance(value, list | tuple):
        ids = _core.copy_int_list(list(value))
        array = None if ids is None else fields.as_id_array(ids, name="token_ids")
    else:
        array = _array_over(value)
    return array if isinstance(array, np.ndarray) and array.dtype.kind in "iu" and array.ndim == 1 else None


def log_prob_array(value: Any) -> LogProbs | None:
    """Log-probs as an array of shape `(n,)`: float64, or the float dtype that they have.

    None for what is no one-dimensional sequence of numbers.
    """
    if isinstance(value, list | tuple):
        if not all(isinstance(x, int | float) and not isinstance(x, bool) for x in value):
            return None
        try:
            return np.array(value, np.float64)
        except OverflowError:
            return None
    array = _array_over(value)
    if array is None or array.ndim != 1 or array.dtype.kind not in "iuf" or array.dtype.itemsize > 8:
        return None
    return array if array.dtype.kind == "f" else array.astype(np.float64)


def first_negative(ids: Ids) -> int | None:
    """The position of the first negative id."""
    if not len(ids) or ids.dtype.kind == "u" or ids.min() >= 0:
        return None
    return int(np.argmax(ids < 0))


def _array_over(value: Any) -> npt.NDArray[Any] | None:
    try:
        return _core.array_over(value)
    except TypeError:
        return None
