"""Fields of records as arrays, whatever was assigned to them: assignment is not validated."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from tokenrecords import _core, _fields

if TYPE_CHECKING:
    import numpy.typing as npt

    Ids: TypeAlias = npt.NDArray[np.integer[Any]]
    LogProbs: TypeAlias = npt.NDArray[np.floating[Any]]


def id_array(value: Any) -> Ids | None:
    """Token ids as an array of shape `(n,)`, without a copy where they are one; negative ids are kept.

    None for what is no one-dimensional sequence of integers, and where no integer dtype holds all ids.
    """
    small = _core.int32_array(value)
    if small is not None:
        return small
    if isinstance(value, list | tuple):
        ids = _core.copy_int_list(list(value))
        array = None if ids is None else _fields.as_id_array(ids, name="token_ids")
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
