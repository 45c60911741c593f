"""One number a chain, such as its advantage, at each token that carries loss."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tokenrecords.tokens.arrays import Fault, array_over, shown

if TYPE_CHECKING:
    import numpy.typing as npt


def on_tokens(
    values: Any, sequence_index: npt.NDArray[np.int32], cu_seqlens: npt.NDArray[np.int32], mask: npt.NDArray[np.bool_]
) -> npt.NDArray[np.float32]:
    """The value of the chain where the mask is True, 0.0 elsewhere: float32, shape `(tokens,)`."""
    spread = np.repeat(_in_order(values, sequence_index), np.diff(cu_seqlens))
    spread[~mask] = 0.0
    return spread


def on_rows(values: Any, sequence_index: npt.NDArray[np.int32], mask: npt.NDArray[np.bool_]) -> npt.NDArray[np.float32]:
    """The value of the row's chain where the mask is True, 0.0 elsewhere: float32, shape of the mask."""
    return np.where(mask, _in_order(values, sequence_index)[:, None], np.float32(0.0))


def _in_order(values: Any, sequence_index: npt.NDArray[np.int32]) -> npt.NDArray[np.float32]:
    """The values, given in the order of the chains, in that of the batch."""
    try:
        array = None if isinstance(values, list | tuple) else array_over(values)
        array = np.asarray(values) if array is None else array
    except Fault as fault:
        raise fault.error("values") from None
    except ValueError:  # lists of several lengths
        array = np.asarray(values, object)
    if array.ndim != 1 or array.dtype.kind not in "biuf":
        raise TypeError(f"values is {shown(values)}: a number is needed for each chain")
    if len(array) != len(sequence_index):
        raise ValueError(
            f"values has {len(array)} numbers: {len(sequence_index)} are needed, one for each chain in the order in "
            "which pack_chains got them"
        )
    with np.errstate(over="ignore"):
        narrow = array.astype(np.float32)
    wrong = np.flatnonzero(~np.isfinite(narrow))
    if wrong.size:
        raise ValueError(f"values[{wrong[0]}] is {array[wrong[0]]}: a finite number of float32 is needed")
    return narrow[sequence_index]
