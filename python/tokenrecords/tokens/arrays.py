"""The judge of token ids and log-probs: which array holds them, and what is wrong with them."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, TypeAlias, cast

import numpy as np
import numpy.typing as npt

from tokenrecords import _core
from tokenrecords._core import copy_float_list, copy_int_list, int32_array

IdArray: TypeAlias = npt.NDArray[np.integer[Any]]
LogProbArray: TypeAlias = npt.NDArray[np.floating[Any]]
MaskArray: TypeAlias = npt.NDArray[np.bool_]
TokenIds: TypeAlias = list[int] | IdArray
LogProbs: TypeAlias = list[float] | LogProbArray

INTEGERS: Final = "token ids must be integers"
NUMBERS: Final = "log-probs must be numbers"
MASKS: Final = "a mask must hold 0 and 1"

_SHOWN = 80  # more characters of a value help nobody
_DTYPES: Final = (np.dtype(np.int32), np.dtype(np.int64), np.dtype(np.uint64))


class Fault(ValueError):  # noqa: N818 - an error once its caller has worded it
    """What is wrong with a sequence of token ids or log-probs; the caller words it with the name of its field.

    Attributes:
        shown: The value in question as a message shows it.
        needed: What is needed instead, and what was got.
        index: The position of the value, None where it is the whole sequence.
        kind: The exception that a function with such an argument raises: TypeError or ValueError.
    """

    def __init__(
        self, shown: str, needed: str, index: int | None = None, *, kind: type[TypeError | ValueError] = ValueError
    ) -> None:
        super().__init__(shown, needed, index)
        self.shown = shown
        self.needed = needed
        self.index = index
        self.kind = kind

    def of(self, name: str) -> str:
        """The message for a field: `name[2] is -9: token ids must be non-negative, got -9`."""
        place = name if self.index is None else f"{name}[{self.index}]"
        return f"{place} is {self.shown}: {self.needed}"

    def error(self, name: str) -> TypeError | ValueError:
        """The exception for an argument or a field of this name."""
        return self.kind(self.of(name))

    def __str__(self) -> str:
        return self.needed if self.shown in self.needed else self.of("the value")


def shown(value: Any) -> str:
    """A value as a message shows it: its `repr`, shortened."""
    try:
        text = repr(value)
    except ValueError:  # an int of more than 4,300 digits refuses to become text
        return f"an int of {value.bit_length():,} bits" if isinstance(value, int) else f"<{type(value).__name__}>"
    return text if len(text) <= _SHOWN else text[: _SHOWN - 3] + "..."


def _wrong_type(value: Any, needed: str, index: int | None = None) -> Fault:
    return Fault(shown(value), f"{needed}, got {type(value).__name__}", index, kind=TypeError)


def _wrong_kind(array: npt.NDArray[Any], needed: str) -> Fault:
    held = f"an array of dtype {array.dtype}"
    return Fault(held, f"{needed}, got {held}", kind=TypeError)


def array_over(value: Any) -> npt.NDArray[Any] | None:
    """The one-dimensional array that `value` is or exports, without a copy; None where it exports none.

    Raises:
        Fault: Packed bytes, a masked array, an export that fails, or other than one dimension.
    """
    if type(value) is np.ndarray and value.ndim == 1:
        return value
    try:
        array = _core.array_over(value)
    except TypeError as error:
        held, _, needed = str(error).removeprefix("the value is ").partition(": ")
        raise Fault(held, needed, kind=TypeError) from error
    if array is not None and array.ndim != 1:
        raise Fault(f"an array of shape {array.shape}", f"one dimension is needed, got {array.ndim}")
    return array


def id_array(value: Any) -> TokenIds:
    """Token ids as an array of shape `(n,)`, without a copy where they are one; negative ids are kept.

    Of a list it has the first of int32, int64 and uint64 that holds all ids. Where none does (2**64, or a negative id
    beside 2**63) they stay a list.

    Raises:
        Fault: It is not a sequence of integers.
    """
    array = value if type(value) is np.ndarray and value.ndim == 1 else int32_array(value)
    if array is None and not isinstance(value, list | tuple):
        array = array_over(value)
    if array is None:
        return _narrowest(value)
    if array.dtype.kind in "iu":
        return array
    if array.dtype.kind == "O":
        return _narrowest(array.tolist())
    if array.size == 0 and array.dtype.kind in "fc":
        return np.empty(0, np.int64)
    raise _wrong_kind(array, INTEGERS)


def _narrowest(value: Any) -> TokenIds:
    if isinstance(value, str | bytes) or not isinstance(value, Sequence):
        raise _wrong_type(value, INTEGERS)
    ids = copy_int_list(list(value)) or [_integer(id_, index) for index, id_ in enumerate(value)]
    low, high = min(ids, default=0), max(ids, default=0)
    dtype = next((dtype for dtype in _DTYPES if _spans(dtype, low, high)), None)
    return ids if dtype is None else np.array(ids, dtype)


def _integer(value: Any, index: int) -> int:
    if not isinstance(value, bool | np.bool_):
        try:
            return operator.index(value)
        except TypeError:
            pass
    raise _wrong_type(value, INTEGERS, index)


def check_ids(ids: TokenIds) -> None:
    """Refuse what `id_array` gives where an id is below 0 or above 2**64 - 1.

    Raises:
        Fault: The first such id.
    """
    if isinstance(ids, list):
        for index, id_ in enumerate(ids):
            if not 0 <= id_ < 1 << 64:
                rule = "non-negative" if id_ < 0 else "below 2**64"
                raise Fault(shown(id_), f"token ids must be {rule}, got {shown(id_)}", index)
        return
    negative = first_negative(ids)
    if negative is not None:
        raise Fault(str(ids[negative]), f"token ids must be non-negative, got {ids[negative]}", negative)


def first_negative(ids: IdArray) -> int | None:
    """The position of the first negative id."""
    if not len(ids) or ids.dtype.kind == "u" or ids.min() >= 0:
        return None
    return int(np.argmax(ids < 0))


def integer_dtype(dtype: npt.DTypeLike) -> np.dtype[Any]:
    """The dtype, if token ids can have it.

    Raises:
        TypeError: It is not an integer dtype.
    """
    wanted = np.dtype(dtype)
    if wanted.kind not in "iu":
        raise TypeError(f"dtype is {wanted}: token ids need an integer dtype")
    return wanted


def as_dtype(ids: TokenIds, dtype: np.dtype[Any]) -> IdArray:
    """What `id_array` gives, as an array of an integer dtype; the same array where it has it.

    Raises:
        Fault: The first id that does not fit.
    """
    if isinstance(ids, np.ndarray) and ids.dtype == dtype:
        return ids
    if len(ids):
        # Python ints, because a comparison of int64 with uint64 arrays would go through float64.
        low, high = (min(ids), max(ids)) if isinstance(ids, list) else (int(ids.min()), int(ids.max()))
        if not _spans(dtype, low, high):
            index = next(index for index, id_ in enumerate(ids) if not _spans(dtype, int(id_), int(id_)))
            raise Fault(shown(int(ids[index])), f"it does not fit {dtype}", index)
    return np.asarray(ids, dtype)


def _spans(dtype: np.dtype[Any], low: int, high: int) -> bool:
    limits = np.iinfo(dtype)
    return bool(limits.min <= low and high <= limits.max)


def log_prob_array(value: Any) -> LogProbArray:
    """Log-probs as an array of shape `(n,)`: float64, or the float dtype that they have.

    Raises:
        Fault: It is not a sequence of numbers.
    """
    array = None if isinstance(value, list | tuple) else array_over(value)
    if array is None:
        return _floats(value)
    kind = array.dtype.kind
    if kind == "f" and array.dtype.itemsize <= 8:
        return array
    if kind == "O":
        return _floats(array.tolist())
    if kind in "iu" or (array.size == 0 and kind in "fc"):
        return array.real.astype(np.float64)
    raise _wrong_kind(array, "log-probs must be float16, float32 or float64")


def _floats(value: Any) -> LogProbArray:
    if isinstance(value, str | bytes) or not isinstance(value, Sequence):
        raise _wrong_type(value, NUMBERS)
    if copy_float_list(value) is None:
        for index, number in enumerate(value):
            if not isinstance(number, float | int | np.floating | np.integer) or isinstance(number, bool):
                raise _wrong_type(number, NUMBERS, index)
            if isinstance(number, int) and abs(number) > _MAX_FLOAT:
                raise Fault(shown(number), f"{NUMBERS} that a float holds", index)
    return np.array(value, np.float64)


def mask_array(value: Any) -> MaskArray:
    """A mask of 0 and 1, of bools or such an array as bools of shape `(n,)`.

    Raises:
        Fault: It is not a sequence of these.
    """
    array = None if isinstance(value, list | tuple) else array_over(value)
    if array is None:
        if isinstance(value, str | bytes) or not isinstance(value, Sequence):
            raise _wrong_type(value, MASKS)
        for index, flag in enumerate(value):
            if not isinstance(flag, int | np.integer | np.bool_):
                raise _wrong_type(flag, MASKS, index)
            if flag not in (0, 1):
                raise Fault(shown(flag), MASKS, index)
        return np.array(value, np.bool_)
    if array.dtype.kind not in "biu" and array.size:
        raise _wrong_kind(array, MASKS)
    wrong = np.flatnonzero((array != 0) & (array != 1))
    if wrong.size:
        raise Fault(str(array[wrong[0]]), MASKS, int(wrong[0]))
    return array.astype(np.bool_)


_MAX_FLOAT: Final = int(np.finfo(np.float64).max)


def as_list(value: Any) -> list[Any]:
    """The values of a field as a list of Python numbers; a list as it is."""
    if isinstance(value, np.ndarray):
        return cast("list[Any]", value.tolist())
    if type(value) is list or isinstance(value, str | bytes) or not isinstance(value, Iterable):
        return cast("list[Any]", value)  # assigned without validation: as it is
    return list(value)


def join_arrays(parts: Sequence[IdArray]) -> IdArray | None:
    """The parts as one new array, None where no dtype holds all ids."""
    dtype = shared_dtype(parts)
    return None if dtype is None else np.concatenate(parts, dtype=dtype, casting="unsafe")


def shared_dtype(parts: Sequence[IdArray]) -> np.dtype[Any] | None:
    """The dtype of the first part, or int64 or uint64 where an id needs it; None where neither holds all ids."""
    if all(ids.dtype == parts[0].dtype for ids in parts):
        return parts[0].dtype
    dtypes = (parts[0].dtype, *_DTYPES[1:])
    return next((dtype for dtype in dtypes if all(_holds(dtype, ids) for ids in parts)), None)


def _holds(dtype: np.dtype[Any], ids: IdArray) -> bool:
    return not len(ids) or np.can_cast(ids.dtype, dtype) or _spans(dtype, int(ids.min()), int(ids.max()))


def same_ids(a: IdArray, b: IdArray) -> bool:
    """True for equal ids, whatever their dtypes."""
    if len(a) != len(b):
        return False
    try:
        return a is b or _core.stands_at(0, token_ids=a, others=b)
    except ValueError:  # a negative one
        return same(a, b)


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
        if all(copy_int_list(x) is not None or copy_float_list(x) is not None for x in (a, b)) and a == b:
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
