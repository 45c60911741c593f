"""One record as JSON: a line straight into arrays and back."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import numpy as np
from pydantic import BaseModel, ValidationError

from tokenrecords import _core
from tokenrecords.entry import fields
from tokenrecords.entry.errors import one_line

if TYPE_CHECKING:
    import numpy.typing as npt

ARRAYS = ("prompt_token_ids", "generation_token_ids", "generation_log_probs")

Scanned: TypeAlias = "tuple[bytes, tuple[npt.NDArray[Any] | None, ...]] | None"
Model = TypeVar("Model", bound=BaseModel)


@dataclass(frozen=True)
class Options:
    """How the arrays of a record arrive."""

    arrays: bool
    dtype: np.dtype[Any] | None
    narrow: bool  # log-probs as float32, not float64

    @classmethod
    def of(cls, *, arrays: bool, dtype: npt.DTypeLike | None, log_prob_dtype: npt.DTypeLike) -> Options:
        """The options, checked."""
        ids = None if dtype is None else np.dtype(dtype)
        if ids is not None and ids.kind not in "iu":
            raise TypeError(f"dtype is {ids}: token ids need an integer dtype")
        log_probs = np.dtype(log_prob_dtype)
        if log_probs not in (np.float32, np.float64):
            raise TypeError(f"log_prob_dtype is {log_probs}: it must be float32 or float64")
        return cls(arrays, ids, narrow=log_probs == np.float32)


def scan(data: bytes, options: Options) -> Scanned:
    """The arrays of a line and its rest, as far as they can be read without pydantic; runs without the GIL."""
    return _core.scan_record(data, options.narrow) if options.arrays else None


def build(model: type[Model], data: bytes, scanned: Scanned, options: Options) -> Model:
    """The record of a line that was scanned.

    Raises:
        ValueError: The line holds no record, or an id does not fit `options.dtype`.
    """
    entry = None if scanned is None else _build_scanned(model, *scanned)
    if entry is None:
        entry = model.model_validate_json(data)
    if options.arrays and (scanned is None or options.dtype is not None):
        for name in ARRAYS[:2]:
            entry.__dict__[name] = fields.as_id_array(entry.__dict__[name], name=name, dtype=options.dtype)
        if scanned is None:
            entry.__dict__[ARRAYS[2]] = _log_probs(data, entry.__dict__[ARRAYS[2]], narrow=options.narrow)
    return entry


def _log_probs(data: bytes, values: list[float], *, narrow: bool) -> npt.NDArray[Any]:
    """Log-probs that pydantic read, as an array; float32 from their text again, so that each is rounded once."""
    if narrow:
        texts = json.loads(data, parse_float=str, parse_int=str, parse_constant=str)[ARRAYS[2]]
        scanned = _core.scan_record(f'{{"{ARRAYS[2]}":[{",".join(map(str, texts))}]}}'.encode(), True)
        if scanned is not None and scanned[1][2] is not None:
            return scanned[1][2]
    with np.errstate(over="ignore"):  # a number beyond float32 is infinite, as its text is beyond float64
        return np.asarray(values, np.float32 if narrow else np.float64)


def _build_scanned(model: type[Model], rest: bytes, arrays: tuple[npt.NDArray[Any] | None, ...]) -> Model | None:
    """The record, or None where only pydantic can say what is wrong with the whole line."""
    try:
        entry = model.model_validate_json(rest)
    except ValidationError:
        return None
    _, ids, log_probs = arrays
    # The rest was validated with empty arrays, so this rule is left.
    if ids is None or log_probs is None or len(ids) != len(log_probs):
        return None
    entry.__dict__.update(zip(ARRAYS, arrays, strict=True))
    return entry


def dump(entry: BaseModel) -> bytes:
    """The line of a record, without its line break.

    Raises:
        ValueError: The entry would not be read back: what is wrong, by field.
    """
    # Validated again, because assignment is not: only what a reader takes back may be written.
    entry = type(entry).model_validate(dict(entry))
    values = entry.__dict__
    if not math.isfinite(values["created_at"]):
        raise ValueError(f"created_at is {values['created_at']}: JSON has no such number")
    fields = _dump_fields(entry)
    for name in ARRAYS:
        fields[name] = values[name]
    if isinstance(fields[ARRAYS[2]], np.ndarray):
        fields[ARRAYS[2]] = np.ascontiguousarray(fields[ARRAYS[2]], np.float64)
    return _core.record_line(fields)


def _dump_fields(entry: BaseModel) -> dict[str, Any]:
    try:
        return entry.model_dump(mode="json", exclude=set(ARRAYS))
    except ValueError as error:
        # pydantic does not say which field it was.
        for name, value in entry:
            if name not in ARRAYS:
                try:
                    entry.model_dump(mode="json", include={name})
                except ValueError as found:
                    raise ValueError(f"{name}: {one_line(found)} (it is {type(value).__name__})") from error
        raise
