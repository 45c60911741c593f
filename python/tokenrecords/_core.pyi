"""The native half of `tokenrecords`."""

from collections.abc import Callable, Iterable, Sequence
from os import PathLike
from typing import Any, Final, Self, TypeAlias, final

import numpy as np
import numpy.typing as npt

# What the functions take is decided at run time: no type says "integers, but not bytes".
_TokenSequence: TypeAlias = Any

__all__ = [
    "ChunkRules",
    "DEBUG",
    "DIGEST_DOMAIN",
    "DIGEST_VERSION",
    "IdWords",
    "MemberCutter",
    "PendingDigests",
    "PrefixIndex",
    "RecordLine",
    "RecordScanner",
    "SseEvents",
    "__version__",
    "array_over",
    "compute_digest",
    "compute_digests",
    "copy_float_list",
    "copy_int_list",
    "copy_stretches",
    "encode_token_ids",
    "int32_array",
    "joined_ids",
    "joint_digest",
    "kept_ids",
    "kept_log_probs",
    "machine",
    "prefix_digest",
    "record_line",
    "scan_body",
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

def machine() -> tuple[str, str, str, int]:
    """What this process computes with.

    Returns:
        The kernel of one digest and that of a batch, each with its number of lanes (`sha-ni-x1`: one), the instructions
        that read and write ids in JSON, and the number of CPUs that the process may use (affinity and cgroup quota).
    """

def prefix_digest(length: int, /, **sequence: _TokenSequence) -> str:
    """Digest of the first `length` ids of a sequence. Errors name it by its keyword.

    Raises:
        ValueError: There are fewer; or as `compute_digest`.
    """

def copy_stretches(
    source: npt.NDArray[np.uint8],
    target: npt.NDArray[np.uint8],
    starts: npt.NDArray[np.int64],
    lengths: npt.NDArray[np.int64],
    places: npt.NDArray[np.int64],
    width: int,
    /,
) -> None:
    """Copy stretches of an array's elements to places of another array.

    Args:
        source: The bytes of elements: contiguous, of shape `(n * width,)`.
        target: Those that are written, in other memory.
        starts: Where each stretch starts, in elements: contiguous, of shape `(stretches,)`.
        lengths: How many elements each has.
        places: Where each goes, in elements of `target`.
        width: Bytes an element.

    Raises:
        TypeError: An array is of another dtype, not contiguous or not to be written.
        ValueError: The last three are not of one length.
        IndexError: A stretch is not within its array; those before it are copied.
    """

def joined_ids(first: object, second: object, /) -> list[int] | npt.NDArray[np.integer[Any]] | None:
    """Two exact lists, or two one-dimensional integer arrays of one dtype, one after the other; None for all else.

    Returns:
        A new list, or a new array of shape `(first + second,)` and that dtype.
    """

def kept_ids(otherwise: Callable[[Any, Any], Any], value: Any, handler: Any, /) -> Any:
    """What a field of token ids holds that is given `value`, as a wrap validator of pydantic.

    Returns:
        `value` if it is a one-dimensional array of integers, a copy of an exact list of exact ints, else what
        `otherwise(value, handler)` gives.
    """

def kept_log_probs(otherwise: Callable[[Any, Any], Any], value: Any, handler: Any, /) -> Any:
    """The same for log-probs: float16, float32 and float64 arrays, and exact floats."""

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

def scan_body(body: bytes, least: int) -> tuple[bytes, list[tuple[tuple[str | int, ...], int, Any]]] | None:
    """What is large in the body of a served response, as arrays, and the rest of it.

    None where nothing is, or where only a full reader can say what the body is.

    Args:
        body: JSON text.
        least: What has fewer elements stays in the rest.

    Returns:
        `(rest, found)`. `found` has `(path, mark, value)` of each: its keys and indices from the whole body on; the
        integer that stands there in the rest, JSON text, and nowhere else. A value is one of these:

        - an array of numbers under a key that speaks of tokens: int32, int64 or uint64, the first that holds them,
          or float64 where one has a fraction or an exponent;
        - `IdWords` for a list of words like "token_id:41" under such a key;
        - a list of objects with a `logprob` each, as a dict of columns: `logprob` (float64; lacking where one is
          null), `id` and `token_id` (int32) and `token` (`IdWords`) where all objects have them;
        - a list of rows of log-prob, id, and text or null, as a tuple of columns: float64 (None where one is null),
          int32, and None for each text.

        Each has as many elements as are the least.

    Raises:
        MemoryError: There is none for what the body holds.

    >>> rest, [(path, mark, ids)] = scan_body(b'{"a":[{"token_ids":[%s]}]}' % b",".join([b"7"] * 16), 16)
    >>> rest, path, mark, ids.dtype, len(ids)
    (b'{"a":[{"token_ids":4611686018400000000}]}', ('a', 0, 'token_ids'), 4611686018400000000, dtype('int32'), 16)
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
class ChunkRules:
    """What becomes of each member of a stream's chunks where several that are alike are taken as one.

    Args:
        rules: By key; `"*"` for all others, which a chunk must lack otherwise. A rule is one of these:

            - `"text"`: texts are joined;
            - `"list"`: lists are joined; a chunk with two under one key stands alone;
            - `"entries"`: likewise, where objects tell by their keys what they say of tokens; one such list a chunk;
            - `"same"`: the value is the same in each, as it is written;
            - a tuple: likewise, and one of these texts, which must be there;
            - `"grows"`: a list that comes again from its start, or in pieces; all such lists are as long;
            - `"told"`: a text that comes as what grows does;
            - `"count"`: how long the lists that grow are by now, which tells how they come;
            - `"last"`: the last value stays; none is a list;
            - `"never"`: a chunk that has a value stands alone;
            - a dict: the value is an object with rules of its own;
            - a list of a dict: it is a list of one such object.

            Null is the same in each, whatever the rule. Lists that are as long as each other in one are so in all.
    """

    def __new__(cls, rules: dict[str, Any]) -> Self: ...

@final
class IdWords:
    """A list of words like "token_id:41", of which it holds the ids alone."""

    def __new__(cls, ids: npt.NDArray[np.int32]) -> Self: ...
    @property
    def ids(self) -> npt.NDArray[np.int32]:
        """The ids, of shape `(words,)`."""
    def __len__(self) -> int: ...

@final
class MemberCutter:
    """Cuts members out of JSON texts; all else stays byte for byte.

    Args:
        members: Names of members: None cuts the member out, a mapping is for the object under that name, or for each
            object in the list there.

    >>> cutter = MemberCutter({"id": None, "choices": {"logprobs": None}})
    >>> cutter.cut(b'{"id":1,"choices":[{"index":0,"logprobs":[]}]}')
    b'{"choices":[{"index":0}]}'
    """

    def __new__(cls, members: dict[str, Any]) -> Self: ...
    def cut(self, text: bytes) -> bytes | None:
        """The text without them, itself where it has none; None where it is surely no JSON.

        Raises:
            MemoryError: There is none for the text.
        """

@final
class PendingDigests:
    """Digests as `compute_digests` gives them, computed by other threads meanwhile.

    Args:
        sequences: Token sequences; arrays must not change until the result is there.
        threads: The most threads that compute; by default one for each CPU that this process may use, but one.

    >>> PendingDigests([[1, 2]]).result() == [compute_digest([1, 2])]
    True
    """

    def __new__(cls, sequences: Sequence[_TokenSequence], *, threads: int | None = None) -> Self: ...
    def result(self) -> list[str]:
        """The digests, once they are there.

        Raises:
            ValueError: A negative id.
        """

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

@final
class RecordLine:
    """A line of a file.

    Attributes:
        data: Its bytes, with the line break: a new object each time.
        path: The file's name.
        number: The line's number, from 1.
        offset: Bytes before the line, uncompressed.
        is_last: True if it has no line break.
    """

    @property
    def data(self) -> bytes: ...
    @property
    def path(self) -> str: ...
    @property
    def number(self) -> int: ...
    @property
    def offset(self) -> int: ...
    @property
    def is_last(self) -> bool: ...

@final
class RecordScanner:
    """The lines of several sources in order, each as `scan_record` reads it, without blank ones.

    Other threads read, decompress and scan ahead. They start one by one as `take` has to do their work; where none can
    be started, it does all of it. Held are 1 MiB of text for each thread, but at least a block for each (whole lines of
    128 KiB together, or one longer line), and what was read of it; of fed lines `threads + 1`.

    Args:
        sources: Name and origin of each: a path, bytes, or None where `feed` gives the lines. A file's name says how it
            is compressed. What is not a regular file, can't be opened or is damaged is left to `feed`, from there on.
        feed: Called as `feed(place, number, offset)`: the next line of the source at that position, after so many lines
            and bytes of it; empty at its end. What it raises ends the source and is raised by `take` in its place.
        threads: The most threads, of which the calling one is the first; by default the CPUs that this process may use.
        arrays: False leaves the lines unscanned.
        narrow: As for `scan_record`.
    """

    def __new__(
        cls,
        sources: Sequence[tuple[str, PathLike[str] | bytes | None]],
        feed: Callable[[int, int, int], bytes],
        *,
        threads: int | None,
        arrays: bool,
        narrow: bool,
    ) -> Self: ...
    def take(self) -> tuple[RecordLine, tuple[bytes, tuple[npt.NDArray[Any] | None, ...]] | None] | None:
        """The next line and what `scan_record` gives of it; None behind the last one.

        Raises:
            RuntimeError: The threads are in the process that this one was forked from.
        """

    def close(self) -> None:
        """End the threads; nothing is to be taken then."""

@final
class SseEvents:
    """The events of a stream, cut from its bytes as they come in, up to `data: [DONE]`.

    Lines of data of one event are joined by LF. A line of JSON alone counts as data, too; of objects on lines one below
    the other each is an event. White space around a line, and a byte order mark before it, are nothing.

    Args:
        words: What makes an event telling; of 1 to 63 bytes each, without quotes and backslashes. None: no event is.
    """

    def __new__(cls, words: Sequence[str] | None = None) -> Self: ...
    @property
    def body(self) -> bytes:
        """All bytes so far."""

    @property
    def is_done(self) -> bool:
        """Whether `data: [DONE]` came."""

    def feed(self, data: bytes) -> None:
        """Take the next bytes, cut anywhere."""

    def end(self) -> None:
        """Take what has come of an event as all of it."""

    def joined(self, rules: ChunkRules) -> bytes | None:
        """The chunks as the text of a JSON array, those as one that the rules let be one.

        None where an event is no object that is surely well-formed.
        """

    def pass_on(self, cutter: MemberCutter | None = None, end: int | None = None) -> bytes:
        """The bytes of whole events that were not passed on yet.

        Args:
            cutter: What their data loses. Data that had several lines is on one then.
            end: Where the bytes end that may be passed on, in place of where those of the whole events do.

        Raises:
            MemoryError: There is none for them.
        """

    def telling(self) -> list[int]:
        """The places of telling events, of those that have become whole since it was asked last.

        They are no data, or are `[DONE]`, or hold one of the words between quotes.
        """

    def __len__(self) -> int:
        """How many events are whole."""

    def __getitem__(self, index: int, /) -> tuple[str, int, bytes]:
        """What an event is, where its first line begins, and what it says.

        It is `"data"`, an `"error"` with its words, or an `"unknown"` line, which no stream has.
        """
