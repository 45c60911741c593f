"""Stretches of a flat array as padded rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    Places: TypeAlias = npt.NDArray[np.int64]

Side: TypeAlias = Literal["right", "left"]


class Rows(NamedTuple):
    """Where the stretches `flat[start:end]` stand in rows of one width; each has room.

    Attributes:
        starts: Shape `(rows,)`.
        ends: Shape `(rows,)`.
        at: The place of each in its row, shape `(rows,)`.
        width: The length of the rows.
    """

    starts: Places
    ends: Places
    at: Places
    width: int

    @classmethod
    def aside(cls, starts: Places, ends: Places, width: int, padding: Side) -> Rows:
        """Rows with their padding on one side."""
        return cls(starts, ends, width - (ends - starts) if padding == "left" else np.zeros_like(starts), width)

    def of(self, flat: npt.NDArray[Any], padding: int = 0) -> npt.NDArray[Any]:
        """The rows of an array, `padding` where there is no value: new, shape `(rows, width)`."""
        shape = len(self.starts), self.width
        rows = np.full(shape, padding, flat.dtype) if padding else np.zeros(shape, flat.dtype)
        places = zip(rows, self.starts.tolist(), self.ends.tolist(), self.at.tolist(), strict=True)
        for row, start, end, at in places:
            row[at : at + end - start] = flat[start:end]
        return rows
