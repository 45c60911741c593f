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
    start: int = 0,
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
        value: The routes as they came.
        tokens: How many tokens the call has, prompt and generation together.
        rows: "tokens" where there is a row for each, "tokens-1" where the engine never routed the last one (it was
            sampled, not fed back: vLLM and SGLang). It is never guessed from the row count.
        shape: (layers, top_k) or (rows, layers, top_k). Needed for flat int32; checked for the others.
        start: The token of the first row, where the request asked for a part (SGLang, `routed_experts_start_len`).

    Returns:
        The array, of shape `(rows, layers, top_k)` in the dtype of the encoding: the rows from `start` on. A Dynamo
        object says its own `start`.

    Raises:
        ValueError: An unknown or broken encoding, a shape that does not fit, a `start` that the object contradicts, or
            a row count that is not the one that `tokens`, `rows` and `start` say.

    >>> decode_routed_experts("nrlre1:int8:1x1x2:AAE=", tokens=1)
    array([[[0, 1]]], dtype=int8)
    >>> decode_routed_experts("AAAAAAEAAAA=", tokens=2, rows="tokens-1", shape=(1, 2)).tolist()
    [[[0, 1]]]
    """
    if rows not in ("tokens", "tokens-1"):
        raise ValueError(f'rows is {rows!r}: rows must be "tokens" or "tokens-1"')
    if not _is_size(start):
        raise ValueError(f"start is {start!r}: an integer of 0 or more is needed")
    if isinstance(value, Mapping):
        routes, own = _from_object(value)
        if start and own != start:
            raise ValueError(f"start is {start}: the routed_experts object says {own}")
        start = own
    elif isinstance(value, str):
        routes = _from_text(value, shape)
    else:
        routes = _from_nested(value)
    _check_dimensions(routes)
    if shape is not None and routes.shape[-len(shape) :] != tuple(shape):
        raise ValueError(f"routed_experts has shape {routes.shape}, but shape={tuple(shape)} was given")
    expected = tokens - 1 if rows == "tokens-1" else tokens
    if start + len(routes) != expected:
        after = f" after a start of {start}" if start else ""
        raise ValueError(
            f"routed_experts has {len(routes)} rows{after}, but {tokens} tokens with rows={rows!r} want {expected}"
        )
    return routes


def _is_size(value: Any) -> bool:
    """True for an integer of 0 or more, be it Python's or numpy's."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool) and bool(value >= 0)


def _check_dimensions(routes: Routes) -> None:
    if routes.ndim != 3:
        raise ValueError(f"routed_experts has shape {routes.shape}: 3 dimensions (tokens, layers, top_k) are needed")


def shape_of_routes(value: Any) -> tuple[int, ...] | None:
    """The shape of routes that say it themselves; rows before the `start` of an object count.

    None for flat int32 numbers as text, which only their shape makes readable.

    Raises:
        ValueError: They are broken, not integers, or a text of another kind.
    """
    if isinstance(value, Mapping):
        routes, start = _from_object(value)
        return (start + routes.shape[0], *routes.shape[1:]) if routes.ndim else routes.shape
    if not isinstance(value, str):
        return _from_nested(value).shape
    if value.startswith((NRLRE, base64.b64encode(_NPY_MAGIC).decode())):
        return _from_text(value, None).shape
    size = len(_from_base64(value))
    if size % 4:
        raise ValueError(f"routed_experts holds {size} bytes: whole int32 numbers are needed")
    return None


def encode_routed_experts(array: Any, encoding: str) -> Any:
    """Expert routes in one of the encodings that `decode_routed_experts` reads.

    Args:
        array: An integer array of shape `(rows, layers, top_k)`, or nested lists.
        encoding: "lists" (nested lists of int), "nrlre1" (the string of records; int8, int16 or int32), "npy"
            (base64 of a `.npy` file, as vLLM), "int32" (base64 of flat little-endian int32, as SGLang), or
            "object" (`{data, dtype, shape, start}`, as Dynamo).

    Raises:
        ValueError: Another encoding, an array that is not of three dimensions and integers, a dtype that "nrlre1" does
            not have, or a value that "int32" does not hold.

    >>> encode_routed_experts(np.array([[[0, 1]]], dtype=np.int8), "nrlre1")
    'nrlre1:int8:1x1x2:AAE='
    >>> encode_routed_experts([[[0, 1]]], "int32")
    'AAAAAAEAAAA='
    """
    if encoding not in _ENCODERS:
        raise ValueError(f"encoding is {encoding!r}: encoding must be one of {', '.join(_ENCODERS)}")
    routes = _from_nested(array)
    _check_dimensions(routes)
    return _ENCODERS[encoding](routes)


def _from_nested(value: Any) -> Routes:
    if isinstance(value, np.ndarray):
        routes = value
    else:
        try:
            routes = np.array(value)
        except ValueError as error:
            raise ValueError(f"routed_experts is not a rectangular list: {error}") from None
        if routes.size == 0:  # what lists of no numbers are of, nothing says
            routes = np.empty((*routes.shape, 0, 0)[: max(3, routes.ndim)], dtype=np.int32)
    if routes.dtype.kind not in "iu":
        raise ValueError(f"routed_experts is {type(value).__name__} of {routes.dtype}: routes must be integers")
    return routes if isinstance(value, np.ndarray) else _as_int32(routes)


def _as_int32(routes: Routes) -> NDArray[np.int32]:
    narrow = routes.astype("<i4")
    if not np.array_equal(narrow, routes):
        raise ValueError("routed_experts holds a value that int32 does not")
    return narrow


def _from_text(value: str, shape: Sequence[int] | None) -> Routes:
    if value.startswith(NRLRE):
        return _from_record(value)
    data = _from_base64(value)
    if data.startswith(_NPY_MAGIC):
        return _from_nested(_from_npy(data))
    if shape is None:
        raise ValueError("routed_experts is flat int32: such routes need shape=(layers, top_k)")
    if len(shape) not in (2, 3):
        raise ValueError(f"shape is {tuple(shape)}: shape must be (layers, top_k) or (rows, layers, top_k)")
    row_bytes = 4 * shape[-2] * shape[-1]
    if row_bytes <= 0 or len(data) % row_bytes:
        raise ValueError(f"routed_experts holds {len(data)} bytes, no whole rows of {shape[-2]}x{shape[-1]} int32")
    return _shaped(data, "int32", (len(data) // row_bytes, shape[-2], shape[-1]))


def _from_npy(data: bytes) -> Any:
    """The array of a `.npy` file, whose header may promise more than is there: that is checked before it is made."""
    file = io.BytesIO(data)
    try:
        version = np.lib.format.read_magic(file)
        read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, _, dtype = read(file)
        held, wanted = len(data) - file.tell(), int(np.prod(shape, dtype=object)) * dtype.itemsize
        routes = np.load(io.BytesIO(data), allow_pickle=False) if held == wanted else None
    except Exception as error:  # noqa: BLE001 - the header is a Python literal, which numpy refuses in many ways
        raise ValueError(f"routed_experts holds no readable .npy file: {error}") from None
    if routes is None:
        raise ValueError(f"routed_experts holds no readable .npy file: {held} bytes for {dtype} of shape {shape}")
    return routes


def _from_record(value: str) -> Routes:
    dtype, _, rest = value[len(NRLRE) :].partition(":")
    dimensions, _, data = rest.partition(":")
    sizes = dimensions.split("x")
    if dtype not in _RECORD_DTYPES or len(sizes) != 3 or not all(s.isascii() and s.isdigit() for s in sizes):
        raise ValueError(f"routed_experts holds no nrlre1:<dtype>:<S>x<L>x<K>:<base64>: {value[:60]!r}")
    return _shaped(_from_base64(data), dtype, tuple(map(int, sizes)))


def _from_object(value: Mapping[str, Any]) -> tuple[Routes, int]:
    data, dtype, shape, start = (value.get(key) for key in ("data", "dtype", "shape", "start"))
    if not isinstance(data, str) or dtype not in _OBJECT_DTYPES or not isinstance(shape, list | tuple):
        raise ValueError("a routed_experts object needs data (base64), dtype (an integer type) and shape")
    start = 0 if start is None else start
    if not all(map(_is_size, (*shape, start))):
        raise ValueError(f"routed_experts has shape {shape} and start {start}: sizes of 0 or more are needed")
    return _shaped(_from_base64(data), dtype, tuple(shape)), start


def _from_base64(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise ValueError(f"routed_experts is not base64: {error}") from None


def _shaped(data: bytes, dtype: str, shape: tuple[int, ...]) -> Routes:
    little = np.dtype(dtype).newbyteorder("<")
    wanted = int(np.prod(shape, dtype=object)) * little.itemsize
    if len(data) != wanted:
        raise ValueError(f"routed_experts holds {len(data)} bytes, but {dtype} of shape {shape} takes {wanted}")
    return np.frombuffer(data, dtype=little).reshape(shape)


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
