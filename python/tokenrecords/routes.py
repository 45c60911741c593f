"""Expert routes of mixture-of-experts models: `routed_experts` and its encodings."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

import numpy as np
from pydantic_core import core_schema

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt
    from pydantic import GetCoreSchemaHandler

_NRLRE_DTYPES = ("int8", "int16", "int32")


def encode_nrlre1(array: npt.NDArray[Any]) -> str:
    """Routes of shape `(tokens, layers, top_k)` as `nrlre1:<dtype>:<S>x<L>x<K>:<base64>`: little-endian, C order.

    Raises:
        ValueError: Another dtype than int8, int16 and int32, or another number of dimensions.

    >>> encode_nrlre1(np.array([[[0, 1]]], np.int16))
    'nrlre1:int16:1x1x2:AAABAA=='
    """
    dtype = array.dtype.newbyteorder("=").name
    if dtype not in _NRLRE_DTYPES:
        raise ValueError(f"routed_experts has dtype {array.dtype}: JSON takes {', '.join(_NRLRE_DTYPES)}")
    if array.ndim != 3:
        raise ValueError(
            f"routed_experts has shape {array.shape}: JSON takes three dimensions, tokens x layers x top_k"
        )
    data = np.ascontiguousarray(array, array.dtype.newbyteorder("<"))
    shape = "x".join(map(str, array.shape))
    return f"nrlre1:{dtype}:{shape}:{base64.b64encode(data.tobytes()).decode('ascii')}"


class _JsonField:
    """A pydantic annotation: anything, with an array as its `nrlre1` string in JSON."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> core_schema.CoreSchema:
        anything = handler(source)
        return core_schema.chain_schema(
            [anything],
            serialization=core_schema.wrap_serializer_function_ser_schema(
                self._serialize, info_arg=True, schema=anything
            ),
        )

    @staticmethod
    def _serialize(value: Any, handler: Callable[[Any], Any], info: core_schema.SerializationInfo) -> Any:
        if info.mode == "python":
            return value if isinstance(value, np.ndarray) else handler(value)
        if isinstance(value, np.ndarray):
            return encode_nrlre1(value)
        if isinstance(value, bytes | bytearray | memoryview):
            raise ValueError(
                f"routed_experts is {type(value).__name__}: JSON has no bytes; "
                "give an array, or text such as its base64"
            )
        return handler(value)


JSON_FIELD = _JsonField()
