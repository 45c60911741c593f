"""The encodings of expert routes (which experts of a mixture-of-experts model each token went to).

A record keeps `routed_experts` as the engine sent it. These functions turn any encoding in use into one array
[tokens, layers, top_k] and back.
"""

from __future__ import annotations

import base64
import binascii
import io
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

Routes = NDArray[np.integer[Any]]

NRLRE: Final = "nrlre1:"
_RECORD_DTYPES: Final = ("int8", "int16", "int32")
_OBJECT_DTYPES: Final = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")
_NPY_MAGIC: Final = b"\x93NUMPY"


def decode_routed_experts(
    value: Any,
    *,
    tokens: int,
    rows: Literal["tokens", "tokens-1"] = "tokens",
    shape: Sequence[int] | None = None,
) -> Routes:
    """Expert routes as one integer array [rows, layers, top_k], from any encoding in use.

    | value | source |
    |---|---|
    | an array, or nested lists (read as int32) | in-process engines, older vLLM |
    | `nrlre1:<dtype>:<S>x<L>x<K>:<base64>` (int8, int16, int32) | records of this package and of NeMo RL |
    | base64 of a `.npy` file | vLLM, `--enable-return-routed-experts` |
    | base64 of flat little-endian int32; needs `shape` | SGLang, `--enable-return-routed-experts` |
    | `{"data": base64, "dtype", "shape", "start"}` | Dynamo, `nvext.routed_experts` |

    Args:
        value: the routes as they came.
        tokens: how many tokens the call has, prompt and generation together.
        rows: "tokens" where there is a row for each, "tokens-1" where the engine never routed the last one
            (it was sampled, not fed back: vLLM and SGLang). It is never guessed from the row count.
        shape: (layers, top_k) or (rows, layers, top_k). Needed for flat int32; checked for the others.

    Returns:
        The array, in the dtype of the encoding. A Dynamo object that starts after the first token (`start`
        above 0) gives the rows from there on, and `start` counts as rows that are there.

    Raises:
        ValueError: for an unknown or broken encoding, a shape that does not fit, or a row count that is not
            the one that `tokens` and `rows` say.

    >>> decode_routed_experts("nrlre1:int8:1x1x2:AAE=", tokens=1)
    array([[[0, 1]]], dtype=int8)
    >>> decode_routed_experts("AAAAAAEAAAA=", tokens=2, rows="tokens-1", shape=(1, 2)).tolist()
    [[[0, 1]]]
    """
    if rows not in ("tokens", "tokens-1"):
        raise ValueError(f'rows must be "tokens" or "tokens-1", got {rows!r}')
    start = 0
    if isinstance(value, Mapping):
        routes, start = _from_object(value)
    elif isinstance(value, str):
        routes = _from_text(value, shape)
    else:
        routes = _from_nested(value)
    if routes.ndim != 3:
        raise ValueError(f"routed_experts must have 3 dimensions [tokens, layers, top_k], got shape {routes.shape}")
    if shape is not None and routes.shape[-len(shape) :] != tuple(shape):
        raise ValueError(f"routed_experts has shape {routes.shape}, but shape={tuple(shape)} was given")
    expected = tokens - 1 if rows == "tokens-1" else tokens
    if start + len(routes) != expected:
        after = f" after a start of {start}" if start else ""
        raise ValueError(
            f"routed_experts has {len(routes)} rows{after}, but {tokens} tokens with rows={rows!r} want {expected}"
        )
    return routes


def shape_of_routes(value: Any) -> tuple[int, ...]:
    """The shape of routes as an array, nested lists or an `nrlre1` string.

    Raises:
        ValueError: They are none of these, broken, or no integers.
    """
    return (_from_record(value) if isinstance(value, str) else _from_nested(value)).shape


def encode_routed_experts(array: Any, encoding: str) -> Any:
    """Expert routes in one of the encodings that `decode_routed_experts` reads.

    Args:
        array: an integer array (or nested lists) [rows, layers, top_k].
        encoding: "lists" (nested lists of int), "nrlre1" (the string of records; int8, int16 or int32), "npy"
            (base64 of a `.npy` file, as vLLM), "int32" (base64 of flat little-endian int32, as SGLang), or
            "object" (`{data, dtype, shape, start}`, as Dynamo).

    Raises:
        ValueError: for another encoding, for an array that is not of three dimensions and integers, for a
            dtype that "nrlre1" does not have, and for a value that "int32" does not hold.

    >>> encode_routed_experts(np.array([[[0, 1]]], dtype=np.int8), "nrlre1")
    'nrlre1:int8:1x1x2:AAE='
    >>> encode_routed_experts([[[0, 1]]], "int32")
    'AAAAAAEAAAA='
    """
    if encoding not in _ENCODERS:
        raise ValueError(f"encoding must be one of {', '.join(_ENCODERS)}, got {encoding!r}")
    routes = _from_nested(array)
    if routes.ndim != 3:
        raise ValueError(f"routed_experts must have 3 dimensions [tokens, layers, top_k], got shape {routes.shape}")
    return _ENCODERS[encoding](routes)


# --- decoding ---------------------------------------------------------------------------------------------


def _from_nested(value: Any) -> Routes:
    if isinstance(value, np.ndarray):
        routes = value
    else:
        try:
            routes = np.array(value)
        except ValueError as error:
            raise ValueError(f"routed_experts are no rectangular lists: {error}") from None
        if routes.size == 0 and routes.ndim < 3:
            routes = np.empty((len(routes) if routes.ndim else 0, 0, 0), dtype=np.int32)
    if routes.dtype.kind not in "iu":
        raise ValueError(f"routed_experts must be integers, got {type(value).__name__} of {routes.dtype}")
    return routes if isinstance(value, np.ndarray) else _as_int32(routes)


def _as_int32(routes: Routes) -> NDArray[np.int32]:
    narrow = routes.astype("<i4")
    if not np.array_equal(narrow, routes):
        raise ValueError("routed_experts hold a value that int32 does not")
    return narrow


def _from_text(value: str, shape: Sequence[int] | None) -> Routes:
    if value.startswith(NRLRE):
        return _from_record(value)
    data = _from_base64(value)
    if data.startswith(_NPY_MAGIC):
        try:
            routes = np.load(io.BytesIO(data), allow_pickle=False)
        except (ValueError, EOFError, OSError) as error:
            raise ValueError(f"routed_experts are no readable .npy file: {error}") from None
        return _from_nested(routes)
    if shape is None:
        raise ValueError("routed_experts as flat int32 need shape=(layers, top_k)")
    if len(shape) not in (2, 3):
        raise ValueError(f"shape must be (layers, top_k) or (rows, layers, top_k), got {tuple(shape)}")
    row_bytes = 4 * shape[-2] * shape[-1]
    if row_bytes <= 0 or len(data) % row_bytes:
        raise ValueError(f"routed_experts hold {len(data)} bytes, no whole rows of {shape[-2]}x{shape[-1]} int32")
    return _shaped(data, "int32", (len(data) // row_bytes, shape[-2], shape[-1]))


def _from_record(value: str) -> Routes:
    dtype, _, rest = value[len(NRLRE) :].partition(":")
    dimensions, _, data = rest.partition(":")
    sizes = dimensions.split("x")
    if dtype not in _RECORD_DTYPES or len(sizes) != 3 or not all(s.isascii() and s.isdigit() for s in sizes):
        raise ValueError(f"routed_experts are no nrlre1:<dtype>:<S>x<L>x<K>:<base64>: {value[:60]!r}")
    return _shaped(_from_base64(data), dtype, tuple(map(int, sizes)))


def _from_object(value: Mapping[str, Any]) -> tuple[Routes, int]:
    data, dtype, shape, start = (value.get(key) for key in ("data", "dtype", "shape", "start"))
    if not isinstance(data, str) or dtype not in _OBJECT_DTYPES or not isinstance(shape, (list, tuple)):
        raise ValueError("a routed_experts object needs data (base64), dtype (an integer type) and shape")
    start = 0 if start is None else start
    if not all(isinstance(n, int) and n >= 0 for n in (*shape, start)):
        raise ValueError(f"a routed_experts object needs sizes of 0 or more, got shape {shape} and start {start}")
    return _shaped(_from_base64(data), dtype, tuple(shape)), start


def _from_base64(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise ValueError(f"routed_experts are not base64: {error}") from None


def _shaped(data: bytes, dtype: str, shape: tuple[int, ...]) -> Routes:
    little = np.dtype(dtype).newbyteorder("<")
    wanted = int(np.prod(shape, dtype=object)) * little.itemsize
    if len(data) != wanted:
        raise ValueError(f"routed_experts hold {len(data)} bytes, but {dtype} of shape {shape} takes {wanted}")
    return np.frombuffer(data, dtype=little).reshape(shape)


# --- encoding ---------------------------------------------------------------------------------------------


def _little_base64(routes: Routes) -> str:
    little = routes.astype(routes.dtype.newbyteorder("<"), copy=False)
    return base64.b64encode(little.tobytes()).decode("ascii")


def _to_record(routes: Routes) -> str:
    if routes.dtype.name not in _RECORD_DTYPES:
        raise ValueError(f"routed_experts has dtype {routes.dtype}: nrlre1 holds {', '.join(_RECORD_DTYPES)}")
    return f"{NRLRE}{routes.dtype.name}:{'x'.join(map(str, routes.shape))}:{_little_base64(routes)}"


def _to_npy(routes: Routes) -> str:
    file = io.BytesIO()
    np.save(file, routes, allow_pickle=False)
    return base64.b64encode(file.getvalue()).decode("ascii")


def _to_object(routes: Routes) -> dict[str, Any]:
    return {
        "data": _little_base64(routes),
        "dtype": routes.dtype.name,
        "shape": list(routes.shape),
        "start": 0,
    }


_ENCODERS: Final[dict[str, Callable[[Routes], Any]]] = {
    "lists": lambda routes: routes.tolist(),
    "nrlre1": _to_record,
    "npy": _to_npy,
    "int32": lambda routes: _little_base64(_as_int32(routes)),
    "object": _to_object,
}
