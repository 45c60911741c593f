"""Stretches of flat arrays as padded rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    Places: TypeAlias = npt.NDArray[np.int64]


class Rows:
    """A row for each stretch `flat[start:end]` of arrays, and the place where it begins in its row."""

    def __init__(self, starts: Places, ends: Places, at: Places, width: int) -> None:
        """All of shape `(rows,)`, and the length of the rows, which have room for their stretches."""
        self._shape = len(starts), width
        begins = np.arange(len(starts)) * width + at
        # Slices of the flat rows, made once for all arrays.
        self._copies = list(zip(slices(begins, begins + ends - starts), slices(starts, ends), strict=True))

    def of(self, flat: npt.NDArray[Any], padding: int = 0) -> npt.NDArray[Any]:
        """The rows of an array, `padding` where a stretch is not: a new array of shape `(rows, width)`."""
        size = self._shape[0] * self._shape[1]
        rows = np.full(size, padding, flat.dtype) if padding else np.zeros(size, flat.dtype)
        for place, stretch in self._copies:
            rows[place] = flat[stretch]
        return rows.reshape(self._shape)


def slices(starts: Places, ends: Places) -> list[slice]:
    """A slice for each stretch."""
    return list(map(slice, starts.tolist(), ends.tolist()))
