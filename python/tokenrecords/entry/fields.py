"""The array fields of a record: how they are validated, compared, converted and written as JSON."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from pydantic_core import core_schema

from tokenrecords import _core
from tokenrecords.tokens import routed_experts as routes

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt
    from pydantic import GetCoreSchemaHandler

    Array = npt.NDArray[Any]
    Handler = Callable[[Any], Any]


class _Field:
    """A pydantic annotation: lists as pydantic reads them, arrays as they are; in JSON a list in any case."""

    def __init__(
        self,
        items: core_schema.CoreSchema,
        validate: core_schema.NoInfoWrapValidatorFunction,
        to_json: Callable[[Any], list[Any]],
        json_items: core_schema.CoreSchema,
    ) -> None:
        values = core_schema.list_schema(items)
        self._schema = core_schema.chain_schema(
            [
                core_schema.json_or_python_schema(
                    json_schema=values,  # JSON has no arrays
                    python_schema=core_schema.no_info_wrap_validator_function(validate, values),
                ),
                # This step passes everything; it is there because pydantic writes what it describes: an array stays
                # an array in `model_dump()`.
                core_schema.any_schema(),
            ],
            serialization=core_schema.plain_serializer_function_ser_schema(
                to_json, when_used="json", return_schema=core_schema.list_schema(json_items)
            ),
        )

    def __get_pydantic_core_schema__(self, _source: Any, _handler: GetCoreSchemaHandler) -> core_schema.CoreSchema:
        return self._schema


def _validate_ids(value: Any, handler: Handler) -> Any:
    # The common kind first: no Python code runs for its items.
    ids = _core.copy_int_list(value)
    if ids is not None:
        return ids
    array = _array_over(value)
    if array is None:
        return handler(value)
    kind = array.dtype.kind
    if kind in "iu":
        return array
    if kind == "O":
        return handler(array.tolist())
    if array.size == 0 and kind in "fc":
        return np.empty(0, np.int64)
    raise ValueError(f"token ids must be integers, got an array of dtype {array.dtype}")


def _validate_log_probs(value: Any, handler: Handler) -> Any:
    log_probs = _core.copy_float_list(value)
    if log_probs is not None:
        return log_probs
    array = _array_over(value)
    if array is None:
        return handler(value)
    kind = array.dtype.kind
    if kind == "f" and array.dtype.itemsize <= 8:
        return array
    if kind == "O":
        return handler(array.tolist())
    if kind in "iu" or (array.size == 0 and kind in "fc"):
        return array.real.astype(np.float64)
    raise ValueError(f"log-probs must be float16, float32 or float64, got an array of dtype {array.dtype}")


def _array_over(value: Any) -> Array | None:
    """The one-dimensional array that `value` is or exports, None where pydantic is to read it item by item."""
    try:
        array = _core.array_over(value)
    except TypeError as error:
        # Of the exceptions that a validator raises, pydantic reports ValueError.
        raise ValueError(str(error)) from error
    if array is not None and array.ndim != 1:
        raise ValueError(f"one dimension is needed, got {array.ndim}: an array of shape {array.shape}")
    return array


def as_list(value: Any) -> list[Any]:
    """The values of a field as a list of Python numbers; a list as it is."""
    if isinstance(value, np.ndarray):
        return cast("list[Any]", value.tolist())
    if type(value) is list or isinstance(value, str | bytes) or not isinstance(value, Iterable):
        return cast("list[Any]", value)  # assigned without validation: as it is
    return list(value)


def _log_probs_to_json(value: Any) -> list[Any]:
    values = as_list(value)
    try:
        if math.isfinite(sum(values)):  # then all of them are, and this is the fastest way to know
            return values
    except TypeError:  # assigned without validation: written as it is
        return values
    return [_finite_or_text(x) for x in values]


def _finite_or_text(value: Any) -> Any:
    """`value`, or the text that stands for it where JSON has no number: pydantic reads it back as the same float."""
    if not isinstance(value, float) or math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


TOKEN_IDS = _Field(core_schema.int_schema(), _validate_ids, as_list, core_schema.int_schema())
LOG_PROBS = _Field(
    core_schema.float_schema(),
    _validate_log_probs,
    _log_probs_to_json,
    core_schema.any_schema(
        metadata={"pydantic_js_updates": {"anyOf": [{"type": "number"}, {"enum": ["NaN", "Infinity", "-Infinity"]}]}}
    ),
)


class _RoutesField:
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
    def _serialize(value: Any, handler: Handler, info: core_schema.SerializationInfo) -> Any:
        if info.mode == "python":
            return value if isinstance(value, np.ndarray) else handler(value)
        if isinstance(value, np.ndarray):
            return routes.encode_routed_experts(value, "nrlre1")
        if isinstance(value, bytes | bytearray | memoryview):
            raise ValueError(
                f"routed_experts is {type(value).__name__}: JSON has no bytes; "
                "give an array, or text such as its base64"
            )
        return handler(value)


ROUTED_EXPERTS = _RoutesField()


def as_id_array(value: Any, *, name: str, dtype: npt.DTypeLike | None = None) -> Any:
    """Token ids as an array; see `TokenEntry.as_arrays`. A list that no dtype holds stays a list.

    Raises:
        TypeError: An element is no integer, or `dtype` is no integer dtype.
        ValueError: An id does not fit `dtype`.
    """
    ids = _id_array(value, name) if isinstance(value, np.ndarray) else _narrowest(value, name)
    if dtype is None:
        return ids
    wanted = np.dtype(dtype)
    if wanted.kind not in "iu":
        raise TypeError(f"dtype is {wanted}: token ids need an integer dtype")
    if len(ids):
        limits = np.iinfo(wanted)
        # Python ints, because a comparison of int64 with uint64 arrays would go through float64.
        low, high = (min(ids), max(ids)) if isinstance(ids, list) else (int(ids.min()), int(ids.max()))
        if low < limits.min or high > limits.max:
            index = next(i for i, id_ in enumerate(ids) if not limits.min <= int(id_) <= limits.max)
            raise ValueError(f"{name}[{index}] is {ids[index]}: it does not fit {wanted}")
    return np.asarray(ids, wanted)


def _id_array(array: Array, name: str) -> Any:
    if array.dtype.kind in "iu":
        return array
    if array.dtype.kind == "O":
        return _narrowest(array.tolist(), name)
    if array.size == 0 and array.dtype.kind in "fc":
        return np.empty(0, np.int64)
    raise TypeError(f"{name} has dtype {array.dtype}: token ids must be integers")


def _narrowest(value: Any, name: str) -> Any:
    array = _core.int32_array(value)
    if array is not None:
        return array
    ids = [_index(id_, f"{name}[{i}]") for i, id_ in enumerate(value)]
    low, high = min(ids, default=0), max(ids, default=0)
    for dtype in (np.int32, np.int64, np.uint64):
        if np.iinfo(dtype).min <= low and high <= np.iinfo(dtype).max:
            return np.array(ids, dtype)
    return ids


def _index(value: Any, name: str) -> int:
    try:
        return operator.index(value)
    except TypeError:
        kind = type(value).__name__
        raise TypeError(f"{name} is {value!r}: token ids must be integers, got {kind}") from None


def as_log_prob_array(value: Any) -> Array:
    """Log-probs as an array: float64, or the float dtype that they have.

    Raises:
        TypeError: An element is no number.
    """
    if isinstance(value, np.ndarray):
        return value
    if _core.copy_float_list(value) is None:
        for i, x in enumerate(value):
            if not isinstance(x, float | int | np.floating | np.integer) or isinstance(x, bool):
                kind = type(x).__name__
                raise TypeError(f"generation_log_probs[{i}] is {x!r}: log-probs must be numbers, got {kind}")
    return np.array(value, np.float64)


def same(a: Any, b: Any) -> bool:
    """Deep equality of field values: an array equals a list of the same values, and NaN equals NaN in its place."""
    if a is b:
        return True
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return _same_arrays(a, b)
    if isinstance(a, list | tuple) and type(a) is type(b):
        if len(a) != len(b):
            return False
        # In C where all are plain numbers; it would take an array of one element for its element.
        if all(_core.copy_int_list(x) is not None or _core.copy_float_list(x) is not None for x in (a, b)) and a == b:
            return True
        return all(map(same, a, b))
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        return a.keys() == b.keys() and all(same(value, b[key]) for key, value in a.items())
    if isinstance(a, float) and isinstance(b, float) and math.isnan(a):
        return math.isnan(b)
    return bool(a == b)


def _same_arrays(a: Any, b: Any) -> bool:
    if (
        isinstance(a, np.ndarray)
        and isinstance(b, np.ndarray)
        and a.dtype.kind == b.dtype.kind
        and a.dtype.kind in "iuf"
    ):
        return np.array_equal(a, b, equal_nan=a.dtype.kind == "f")
    # Through Python numbers: across kinds numpy compares as floats, which do not tell large ids apart.
    values = [x.tolist() if isinstance(x, np.ndarray) else x for x in (a, b)]
    return same(*(list(x) if isinstance(x, tuple) else x for x in values))
