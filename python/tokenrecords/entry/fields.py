"""The array fields of a record as pydantic annotations: how they are validated and written as JSON."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from pydantic_core import core_schema, to_jsonable_python

from tokenrecords._core import kept_ids, kept_log_probs
from tokenrecords.tokens.arrays import array_over, as_list, id_array, log_prob_array
from tokenrecords.tokens.routed_experts import encode_routed_experts

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


def _as_array(judge: Callable[[Array], Any], value: Any, handler: Handler) -> Any:
    """The array that `value` is or exports, judged; pydantic reads item by item what is none, or one of objects."""
    array = array_over(value)
    if array is None:
        return handler(value)
    return handler(array.tolist()) if array.dtype.kind == "O" else judge(array)


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


TOKEN_IDS = _Field(
    core_schema.int_schema(), partial(kept_ids, partial(_as_array, id_array)), as_list, core_schema.int_schema()
)
LOG_PROBS = _Field(
    core_schema.float_schema(),
    partial(kept_log_probs, partial(_as_array, log_prob_array)),
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
        return handler(value) if info.mode == "python" else routes_to_json(value, handler)


def routes_to_json(value: Any, handler: Handler = to_jsonable_python) -> Any:
    """Routes as JSON has them: an array as its `nrlre1` string, text and nothing as they are, all else by `handler`.

    Raises:
        ValueError: An array that `nrlre1` does not hold, bytes, or what JSON does not have.
    """
    if value is None or type(value) is str:
        return value
    if isinstance(value, np.ndarray):
        return encode_routed_experts(value, "nrlre1")
    if isinstance(value, bytes | bytearray | memoryview):
        raise ValueError(
            f"routed_experts is {type(value).__name__}: JSON has no bytes; give an array, or text such as its base64"
        )
    return handler(value)


ROUTED_EXPERTS = _RoutesField()
