"""One record as JSON: a line straight into arrays and back."""

from __future__ import annotations

import math
import operator
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar

import numpy as np
from pydantic import BaseModel, ValidationError
from pydantic_core import to_jsonable_python

from tokenrecords._core import copy_float_list, copy_int_list, record_line, scan_record
from tokenrecords.entry.assigned import loss_mask_of
from tokenrecords.entry.errors import one_line
from tokenrecords.entry.fields import routes_to_json
from tokenrecords.tokens.arrays import Fault, as_dtype, id_array, integer_dtype, mask_array
from tokenrecords.tokens.names import ARRAY_FIELDS, ID_FIELDS, LOG_PROBS, LOSS_MASK, ROUTED_EXPERTS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import numpy.typing as npt

# Arrays, which pydantic would write item by item or not at all; and what it would ask our own code for: it takes an
# interrupt there for a ValueError.
_APART: Final = {*ARRAY_FIELDS, LOSS_MASK, ROUTED_EXPERTS}
_AS_THEY_ARE: Final = frozenset({str, int, float, bool, type(None)})
# What names a call or its proof is written as it is or not at all; the arrays hold no text.
_NAMES: Final = frozenset({*ARRAY_FIELDS, "rollout_id", "model_call_id", "parent_call_id", "response_id", "digest"})

Scanned: TypeAlias = "tuple[bytes, tuple[npt.NDArray[Any] | None, ...]] | None"
Model = TypeVar("Model", bound=BaseModel)
Written = TypeVar("Written")


@dataclass(frozen=True)
class Options:
    """How the arrays of a record arrive."""

    arrays: bool
    dtype: np.dtype[Any] | None
    narrow: bool  # log-probs as float32, not float64

    @classmethod
    def of(cls, *, arrays: bool, dtype: npt.DTypeLike | None, log_prob_dtype: npt.DTypeLike) -> Options:
        """The options, checked."""
        ids = None if dtype is None else integer_dtype(dtype)
        log_probs = np.dtype(log_prob_dtype)
        if log_probs not in (np.float32, np.float64):
            raise TypeError(f"log_prob_dtype is {log_probs}: it must be float32 or float64")
        return cls(arrays, ids, narrow=log_probs == np.float32)


def scan(data: bytes, options: Options) -> Scanned:
    """The arrays of a line and its rest, as far as they can be read without pydantic; runs without the GIL."""
    return scan_record(data, options.narrow) if options.arrays else None


def build(model: type[Model], data: bytes, scanned: Scanned, options: Options) -> Model:
    """The record of a line that was scanned.

    Raises:
        ValueError: The line holds no record, or an id does not fit `options.dtype`.
    """
    entry = build_scanned(model, scanned, options)
    return parse(model, data, options) if entry is None else entry


def parse(model: type[Model], data: bytes, options: Options) -> Model:
    """The record of a line, read by pydantic alone; raises as `build`."""
    entry = model.model_validate_json(data)
    if options.arrays:
        _make_arrays(entry.__dict__, options)
    return entry


def _make_arrays(values: dict[str, Any], options: Options) -> None:
    """Turn what pydantic read, or arrays of another dtype, into the arrays that were asked for."""
    for name in ID_FIELDS:
        values[name] = id_array(values[name])
        if options.dtype is not None:
            try:
                values[name] = as_dtype(values[name], options.dtype)
            except Fault as fault:
                raise fault.error(name) from None
    if isinstance(values[LOG_PROBS], list):
        with np.errstate(over="ignore"):  # a number beyond float32 is infinite there
            values[LOG_PROBS] = np.array(values[LOG_PROBS], np.float32 if options.narrow else np.float64)


def build_scanned(model: type[Model], scanned: Scanned, options: Options) -> Model | None:
    """The record of what was scanned, or None where only pydantic can say what is wrong with the whole line.

    Raises:
        ValueError: An id does not fit `options.dtype`.
    """
    if scanned is None:
        return None
    rest, arrays = scanned
    try:
        entry = model.model_validate_json(rest)
    except ValidationError:
        return None
    _, ids, log_probs = arrays
    # The rest was validated with empty arrays, so this rule is left.
    if ids is None or log_probs is None or len(ids) != len(log_probs):
        return None
    entry.__dict__.update(zip(ARRAY_FIELDS, arrays, strict=True))
    if options.dtype is not None:
        _make_arrays(entry.__dict__, options)
    return entry


def plain_lists(values: Mapping[str, Any]) -> dict[str, Any] | None:
    """The array fields of a record, if they are lists that JSON has as they are.

    Args:
        values: The record's fields.

    Returns:
        New lists by name; None where one of them is not a list of exact ints, or of exact and finite floats.
    """
    lists: dict[str, list[Any] | None] = {name: copy_int_list(values.get(name)) for name in ID_FIELDS}
    log_probs = copy_float_list(values.get(LOG_PROBS))
    if log_probs is None or not math.isfinite(sum(log_probs)) or None in lists.values():
        return None
    return {**lists, LOG_PROBS: log_probs}


def dump(entry: BaseModel) -> bytes:
    """The line of a validated record, without its line break.

    Raises:
        ValueError: A value that JSON does not have: what is wrong, by field.
    """
    created_at = entry.__dict__["created_at"]
    if not math.isfinite(created_at):
        raise ValueError(f"created_at is {created_at}: JSON has no such number")
    fields = {**_dump_fields(entry), **_apart(entry)}
    if isinstance(fields[LOG_PROBS], np.ndarray):
        fields[LOG_PROBS] = np.ascontiguousarray(fields[LOG_PROBS], np.float64)
    return mending(record_line, fields)


def json_values(entry: BaseModel) -> dict[str, Any]:
    """The fields of a validated record as JSON has them, but numbers that are not finite, and the arrays, as they are.

    Raises:
        ValueError: A value that JSON does not have: what is wrong, by field.
    """
    fields = {**entry.__dict__, **(entry.model_extra or {})}  # in a third of the time that the model's iterator takes
    for name, value in fields.items():
        if name not in _APART and type(value) not in _AS_THEY_ARE:
            try:
                fields[name] = to_jsonable_python(value)
            except ValueError as error:
                raise _no_json(name, value, error) from error
    return {**fields, **_apart(entry)}


def _apart(entry: BaseModel) -> dict[str, Any]:
    values = entry.__dict__
    fields = {name: values[name] for name in ARRAY_FIELDS}
    fields[ROUTED_EXPERTS] = _routes(values[ROUTED_EXPERTS])
    if LOSS_MASK in (entry.model_extra or ()):
        fields[LOSS_MASK] = _mask(loss_mask_of(entry))
    return fields


def _no_json(name: str, value: Any, error: Exception) -> ValueError:
    return ValueError(f"{name}: {one_line(error)} (it is {type(value).__name__})")


def mending(write: Callable[[dict[str, Any]], Written], fields: dict[str, Any]) -> Written:
    """What `write` makes of a record's fields; where it can't, of those with U+FFFD for each lone surrogate.

    A lone surrogate in a text costs no tokens, so it is a warning that names call and field. What names a call or its
    proof stays as it is.
    """
    try:
        return write(fields)
    except ValueError:
        mended = {name: _without_surrogates(value) for name, value in fields.items() if name not in _NAMES}
        changed = sorted(name for name, value in mended.items() if value is not fields[name])
        if not changed:
            raise
        written = write({**fields, **mended})
        call = f"model call {fields['model_call_id']!r} of rollout {fields['rollout_id']!r}"
        warnings.warn(f"{call}: lone surrogates in {', '.join(changed)} were written as U+FFFD", stacklevel=4)
        return written


def _without_surrogates(value: Any) -> Any:
    """The JSON value with U+FFFD for each lone surrogate in its texts; the same object where there is none."""
    if isinstance(value, str):
        # Two halves that stand side by side are joined.
        text = value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
        return value if text == value else text
    if isinstance(value, list):
        items = [_without_surrogates(item) for item in value]
        return value if all(map(operator.is_, items, value)) else items
    if isinstance(value, dict):
        texts = {key: _without_surrogates(item) for key, item in value.items()}
        return value if all(map(operator.is_, texts.values(), value.values())) else texts
    return value


def _mask(value: Any) -> Any:
    """A loss mask as a list of what it holds; what is not one as JSON has it, if it does."""
    if value is None or (type(value) is list and all(type(flag) in (int, bool) for flag in value)):
        return value
    try:
        mask_array(value)
    except Fault as fault:
        if isinstance(value, list | tuple | dict | str | int | float):
            return to_jsonable_python(value)
        raise ValueError(fault.of(LOSS_MASK)) from None
    return [flag if type(flag) is bool else int(flag) for flag in np.asarray(value).tolist()]


def _routes(value: Any) -> Any:
    try:
        return routes_to_json(value)
    except ValueError as error:
        raise _no_json(ROUTED_EXPERTS, value, error) from error


def _dump_fields(entry: BaseModel) -> dict[str, Any]:
    try:
        return entry.model_dump(mode="json", exclude=_APART)
    except ValueError as error:
        # pydantic does not say which field it was.
        for name, value in entry:
            if name not in _APART:
                try:
                    entry.model_dump(mode="json", include={name})
                except ValueError as found:
                    raise _no_json(name, value, found) from error
        raise
