"""Expert routes of staged calls as the text that its records hold."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tokenrecords._core import staged_routes
from tokenrecords.tokens import routed_experts
from tokenrecords.tokens.arrays import shown

_DTYPES = ("int8", "int16", "int32")


def encode_routed_experts(values: Any, *, dtype: str = "int16") -> str:
    """Routes as text, `nrlre1:<dtype>:<rows>x<layers>x<k>:<base64>`: as `nemo_gym`'s staging.routes writes it.

    Args:
        values: Nested lists of exact ints, or an integer array, of shape `(rows, layers, k)`, none of them 0.
        dtype: int8, int16 or int32.

    Raises:
        ValueError: Anything else, or a value that does not fit `dtype`.

    >>> encode_routed_experts([[[0, 1]]], dtype="int8")
    'nrlre1:int8:1x1x2:AAE='
    """
    if dtype not in _DTYPES:
        raise ValueError(f"dtype is {shown(dtype)}: one of {', '.join(_DTYPES)} is needed")
    routes = values if isinstance(values, np.ndarray) else staged_routes(values)
    if routes is None:
        routes = _from_lists(values)
    if routes.ndim != 3 or not routes.size or routes.dtype.kind not in "iu":
        held = f"an array of shape {routes.shape} and dtype {routes.dtype}"
        raise ValueError(f"routed_experts is {held}: integers of shape (rows, layers, k), none of them 0, are needed")
    limits = np.iinfo(dtype)
    for value in (int(routes.min()), int(routes.max())):
        if not limits.min <= value <= limits.max:
            raise ValueError(f"routed_experts holds {value}: it does not fit {dtype}")
    text: str = routed_experts.encode_routed_experts(routes.astype(dtype), "nrlre1")
    return text


def _from_lists(values: Any) -> npt.NDArray[np.int64]:
    """What the core does not read: large ints, or what is wrong with the lists."""
    layers = width = None
    for row in range(_length(values, "routed_experts")):
        layers = _length(values[row], f"routed_experts[{row}]", layers)
        for layer in range(layers):
            name = f"routed_experts[{row}][{layer}]"
            experts = values[row][layer]
            width = _length(experts, name, width)
            for rank, expert in enumerate(experts):
                if type(expert) is not int or not -1 << 63 <= expert < 1 << 63:
                    raise ValueError(f"{name}[{rank}] is {shown(expert)}: an exact int of 64 bits is needed")
    return np.array(values, np.int64)


def _length(value: Any, name: str, needed: int | None = None) -> int:
    if not isinstance(value, list) or not value or needed not in (None, len(value)):
        what = "a list that is not empty" if needed is None else f"a list of {needed}"
        raise ValueError(f"{name} is {shown(value)}: {what} is needed")
    return len(value)
