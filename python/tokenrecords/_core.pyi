"""The native half of `tokenrecords`."""

from collections.abc import Iterable, Sequence
from typing import Any, Final, Self, TypeAlias, final

import numpy as np
import numpy.typing as npt

# What the functions take is decided at run time: no type says "integers, but not bytes".
_TokenSequence: TypeAlias = Any

__all__ = [
    "DEBUG",
    "DIGEST_DOMAIN",
    "DIGEST_VERSION",
    "PrefixIndex",
    "__version__",
    "array_over",
    "compute_digest",
    "compute_digests",
    "copy_float_list",
    "copy_int_list",
    "encode_token_ids",
    "int32_array",
    "joint_digest",
    "prefix_digest",
    "record_line",
    "scan_record",
    "staged_call_digest",
    "staged_extras_digest",
    "staged_ids",
    "staged_ids_digest",
    "staged_routes",
    "stands_at",
]

DEBUG: Final[bool]
DIGEST_DOMAIN: Final[bytes]
DIGEST_VERSION: Final[int]
__version__: Final[str]

def encode_token_ids(token_ids: _TokenSequence) -> bytes:
    """Encode token ids in the wire format, digest version 1.

    One byte 1, the number of ids, then each id; number and ids as unsigned 64-bit big-endian integers.

    Args:
        token_ids: The ids, 0 to 2**64 - 1: a list or tuple; a one-dimensional integer array of any dtype, byte
            order and stride; anything with the buffer protocol, `__array__` or DLPack on the CPU; another sequence
            of integers.

    Returns:
        `9 + 8 * len(token_ids)` bytes.

    Raises:
        TypeError: `token_ids` is not a sequence of integers (text, bytes, a set, a mapping, an iterator, a scalar, a
            float, bool or masked array), or an element is not an integer.
        ValueError: An id below 0 or above 2**64 - 1, or an array of other than one dimension.

    >>> encode_token_ids([1, 258]).hex(" ", 8)
    '01 0000000000000002 0000000000000001 0000000000000102'
    """

def compute_digest(token_ids: _TokenSequence) -> str:
    """Digest of a token sequence: SHA-256 in lowercase hex.

    Hashed are the 15 bytes `nemo-gym-tokens` and the encoding of `encode_token_ids`; for the empty sequence the
    15 bytes alone.

    Args:
        token_ids: The ids, of the kinds that `encode_token_ids` takes.

    Raises:
        TypeError: As `encode_token_ids`.
        ValueError: As `encode_token_ids`.

    >>> compute_digest([0])
    '0596efeb21b51ec6eb122c9e470703df19a095a7c5ccb96bf87df0ba2447ba59'
    """

def compute_digests(
    sequences: _TokenSequence, *, offsets: _TokenSequence | None = None, threads: int | None = None
) -> list[str]:
    """Digests of many token sequences: as a loop of `compute_digest`, several at once on each core.

    Args:
        sequences: An iterable of token sequences, each of any kind that `encode_token_ids` takes; with `offsets` one
            flat token sequence.
        offsets: Where the sequences stand in the flat one, as in Arrow lists and `cu_seqlens`: n + 1 integers that do
            not decrease; sequence i is `sequences[offsets[i]:offsets[i + 1]]`.
        threads: The most threads to use; by default the CPUs that this process may use (affinity and cgroup quota)
            as far as the work is worth it.

    Returns:
        One digest for each sequence, in order.

    Raises:
        TypeError: As `encode_token_ids`, with the place of the sequence: `sequences[7], token_ids[2] is 1.0: ...`.
        ValueError: As `encode_token_ids`; `offsets` that decrease or lie beyond the ids; `threads` below 1.

    >>> compute_digests([[1, 2], range(3)]) == [compute_digest([1, 2]), compute_digest([0, 1, 2])]
    True
    >>> compute_digests([1, 2, 0, 1, 2], offsets=[0, 2, 5]) == compute_digests([[1, 2], [0, 1, 2]])
    True
    """

def prefix_digest(length: int, /, **sequence: _TokenSequence) -> str:
    """Digest of the first `length` ids of a sequence. Errors name it by its keyword.

    Raises:
        ValueError: There are fewer; or as `compute_digest`.
    """

def joint_digest(**parts: _TokenSequence) -> tuple[int, str]:
    """Length and digest of the parts as one sequence. Errors name a part by its keyword."""

def stands_at(at: int, /, **sequences: _TokenSequence) -> bool:
    """True if the later sequences, one after the other, stand in the first one at position `at`.

    Errors name a sequence by its keyword.
    """

def copy_int_list(value: Any) -> list[int] | None:
    """A new list with the items of `value` if it is an exact list of exact ints, else None."""

def copy_float_list(value: Any) -> list[float] | None:
    """A new list with the items of `value` if it is an exact list of exact floats, else None."""

def int32_array(value: Any) -> npt.NDArray[np.int32] | None:
    """An array of the items of `value` if it is an exact list of exact ints between -2**30 and 2**30, else None."""

def array_over(value: Any) -> npt.NDArray[Any] | None:
    """The array that `value` is, or the zero-copy array over what it exports; None where it exports none.

    Raises:
        TypeError: Packed bytes (other than `bytes` itself), a masked array, or an export that fails.
    """

def scan_record(line: bytes, narrow: bool) -> tuple[bytes, tuple[npt.NDArray[Any] | None, ...]] | None:
    """The arrays of a record's line and the rest of it, or None where only pydantic can say what the line is.

    Returns:
        `(rest, (prompt_token_ids, generation_token_ids, generation_log_probs))`. In the rest, JSON text, `[]` stands
        for each array. Ids are int32, int64 or uint64, the first that holds them; log-probs are float64, or float32 if
        `narrow`. An array is None where the line lacks the field.
    """

def record_line(fields: dict[str, Any]) -> bytes:
    """A record's line, without its line break: keys sorted, no spaces, floats in shortest form.

    Args:
        fields: JSON values as pydantic dumps them, and the three arrays as lists or arrays (log-probs as float64).

    Raises:
        ValueError: A field that JSON can't hold or no reader takes back, by name.
    """

def staged_ids(token_ids: _TokenSequence) -> bytes:
    """Encode token ids as staged calls do: their number, then each, as unsigned 64-bit big-endian integers.

    Raises:
        TypeError: As the records' `encode_token_ids` where `token_ids` is not a sequence.
        ValueError: An element of a list that is not an exact int from 0 to 2**64 - 1; a negative one of an array.
    """

def staged_ids_digest(head: bytes, /, **sequence: _TokenSequence) -> str:
    """SHA-256, in lowercase hex, of `head` and the encoding of `staged_ids`. Errors name the ids by their keyword.

    Raises:
        TypeError: As `staged_ids`.
        ValueError: As `staged_ids`.
    """

def staged_call_digest(
    head: bytes,
    tail: bytes,
    delta_len: int,
    /,
    *,
    token_ids_delta: _TokenSequence,
    token_mask_delta: Any,
    generation_log_probs_delta: Any,
) -> str:
    """SHA-256, in lowercase hex, of `head`, the columns of a staged call, and `tail`.

    Each column stands behind the number of its bytes: the ids as `staged_ids` encodes them; mask and log-probs as
    their number, then each as float32, big-endian.

    Args:
        head: The bytes before the columns.
        tail: The bytes behind them.
        delta_len: The length that each column must have.
        token_ids_delta: Ids, as `staged_ids` takes them.
        token_mask_delta: 0.0 and 1.0: a list or tuple of exact floats, a float array, or what exports one.
        generation_log_probs_delta: Finite floats of float32's range, likewise; 0.0 where the mask is.

    Raises:
        TypeError: A column is not a sequence, or an array of another dtype.
        ValueError: A value that a column can't hold, or another length.
    """

def staged_extras_digest(head: bytes, extras: Any) -> str:
    """SHA-256, in lowercase hex, of `head` and the typed encoding of JSON-like `extras`.

    Raises:
        TypeError: A value whose type is not exactly None, bool, int, float, str, list or dict, or a key that is not
            a str.
        ValueError: An int beyond 64 bits, a float that is not finite, a lone surrogate.
        RecursionError: Values more than 500 deep.
    """

def staged_routes(values: Any) -> npt.NDArray[np.int32] | None:
    """An int32 array of shape `(rows, layers, k)` of nested lists of exact ints between -2**30 and 2**30, else None."""

@final
class PrefixIndex:
    """Many sequences, to be found as prefixes of others; a sequence is given in parts, one after the other.

    It holds a fingerprint of each, no ids, so that what it finds is to be compared. A sequence that holds what is no
    token id is never found, and in a sequence that is looked at such an element is the end.

    >>> index = PrefixIndex([([1], [2]), ([1, 2], [3]), ([1, 2], []), ([1, -9],)])
    >>> index.longest([1, 2, 4], 3), index.longest([1, 2, 3], 3), index.longest([1, -9], 2)
    ([0, 2], [1], [])
    """

    def __new__(cls, sequences: Iterable[Sequence[_TokenSequence]]) -> Self: ...
    def longest(self, token_ids: _TokenSequence, limit: int) -> list[int]:
        """The positions of the longest sequences that start `token_ids` and have at most `limit` ids."""
