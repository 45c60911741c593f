"""Stretches of flat arrays as padded rows, or one after the other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from tokenrecords._core import copy_stretches

if TYPE_CHECKING:
    import numpy.typing as npt

    Places: TypeAlias = npt.NDArray[np.int64]


class Rows:
    """A row for each stretch of arrays, and the place where it begins in its row."""

    def __init__(self, starts: Places, lengths: Places, at: Places, width: int) -> None:
        """All of shape `(rows,)`, and the length of the rows, which have room for their stretches."""
        self._shape = len(starts), width
        self._starts, self._lengths = starts, lengths
        self._places = np.arange(len(starts)) * width + at

    def of(self, flat: npt.NDArray[Any], padding: int = 0) -> npt.NDArray[Any]:
        """The rows of an array, `padding` where a stretch is not: a new array of shape `(rows, width)`."""
        size = self._shape[0] * self._shape[1]
        rows = np.full(size, padding, flat.dtype) if padding else np.zeros(size, flat.dtype)
        _copy(flat, rows, self._starts, self._lengths, self._places)
        return rows.reshape(self._shape)


def joined(flat: npt.NDArray[Any], starts: Places, lengths: Places) -> npt.NDArray[Any]:
    """Stretches of an array one after the other, as a new one."""
    ends = lengths.cumsum()
    out = np.empty(ends[-1] if len(ends) else 0, flat.dtype)
    _copy(flat, out, starts, lengths, ends - lengths)
    return out


def _copy(flat: npt.NDArray[Any], out: npt.NDArray[Any], starts: Places, lengths: Places, places: Places) -> None:
    source, target = np.ascontiguousarray(flat).view(np.uint8), out.view(np.uint8)
    starts, lengths = np.ascontiguousarray(starts), np.ascontiguousarray(lengths)
    copy_stretches(source, target, starts, lengths, places, flat.itemsize)
