"""Random and mutated records: the fast reader and pydantic agree on every one of them.

TOKENRECORDS_EXAMPLES sets how many are tried.
"""

from __future__ import annotations

import os
import random
import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, ValidationError
from support.jsonl_texts import ODD_NUMBERS, record
from support.twin import Twin, exact, id_dtype
from tokenrecords import RecordError, TokenEntry, read_jsonl

EXAMPLES = int(os.environ.get("TOKENRECORDS_EXAMPLES", "4000"))
ID_FIELDS = ("prompt_token_ids", "generation_token_ids")

# Mutations of the bytes: (kind, where, how long, what), the places as parts of the length.

PIECES = [
    *(number.encode() for number in ODD_NUMBERS if len(number) < 40),
    *(
        b'"',
        b"\\",
        b",",
        b":",
        b"{",
        b"}",
        b"[",
        b"]",
        b" ",
        b"\n",
        b"\r",
        b"\t",
        b"\0",
        b"\x1f",
        b"\x7f",
        b"\xff",
        b"e",
    ),
    *(
        b"\xc3",
        b"\xed\xa0\x80",
        b"\xef\xbb\xbf",
        b"\xc2\xa0",
        b"\\u0000",
        b"\\ud800",
        b'","',
        b"],[",
        b"-",
        b".",
        b"/*x*/",
    ),
    *(b'"prompt_token_ids":[1],', b'"x":1,', b'"generation_log_probs":[],', b'"\\u0078":{},', b"[" * 205, b"]" * 205),
]
NUMBER = re.compile(rb"-?\d[\d.eE+-]*")
part = st.floats(0, 1, exclude_max=True, allow_subnormal=False)
mutations = st.lists(
    st.tuples(
        st.sampled_from(["delete", "duplicate", "insert", "swap", "truncate", "number"]),
        part,
        st.integers(1, 12),
        st.sampled_from(PIECES),
    ),
    max_size=3,
)


def mutated(data: bytes, kind: str, where: float, length: int, piece: bytes) -> bytes:
    at = int(where * (len(data) + 1))
    head, middle, tail = data[:at], data[at : at + length], data[at + length :]
    match kind:
        case "delete":
            return head + tail
        case "duplicate":
            return head + middle + middle + tail
        case "insert":
            return head + piece + middle + tail
        case "swap":
            return head + tail[:length] + middle + tail[length:]
        case "truncate":
            return head
        case _:
            numbers = list(NUMBER.finditer(data))
            if not numbers:
                return data
            start, end = numbers[int(where * len(numbers))].span()
            return data[:start] + piece + data[end:]


def read_by(model: type[BaseModel], data: bytes) -> str | None:
    """All that the record holds; None where it is refused."""
    try:
        return exact(model.model_validate_json(data))
    except ValidationError:
        return None


def read_fast(data: bytes, **options: Any) -> TokenEntry | None:
    try:
        found = TokenEntry.from_json(data, **options)
    except ValidationError:
        found = None
    # A line may not hold a line break, is passed over if blank, and may start with a byte order mark.
    if b"\n" not in data and not data.isspace() and data and not data.startswith(b"\xef\xbb\xbf"):
        try:
            (line,) = read_jsonl(data + b"\n", **options)
        except RecordError:
            assert found is None
        else:
            assert found is not None
            assert exact(line) == exact(found)
    return found


def check(data: bytes) -> bool:
    """Compare all ways to read a record; whether it is one."""
    wanted = read_by(Twin, data)
    assert read_by(TokenEntry, data) == wanted
    lists, arrays = read_fast(data, arrays=False), read_fast(data)
    with np.errstate(over="ignore"):
        narrow = read_fast(data, log_prob_dtype="float32")
    if wanted is None:
        assert (lists, arrays, narrow) == (None, None, None)
        return False
    assert lists is not None
    assert arrays is not None
    assert narrow is not None
    assert exact(lists) == exact(arrays) == wanted
    for name in ID_FIELDS:
        ids, dtype = getattr(arrays, name), id_dtype(getattr(lists, name))
        assert type(ids) is (list if dtype is None else np.ndarray)
        assert dtype is None or ids.dtype == dtype
    assert type(arrays.generation_log_probs) is np.ndarray
    assert arrays.generation_log_probs.dtype == np.float64
    assert type(narrow.generation_log_probs) is np.ndarray
    assert narrow.generation_log_probs.dtype == np.float32
    # Rounded twice it may be the neighbour of the right one; that is tested elsewhere.
    with np.errstate(over="ignore"):
        twice = arrays.generation_log_probs.astype(np.float32)
    neighbours = [np.nextafter(twice, np.float32(end)) for end in (-np.inf, np.inf)]
    near = [np.equal(narrow.generation_log_probs, other) for other in (twice, *neighbours)]
    assert np.all(np.logical_or.reduce(near) | np.isnan(twice))
    return True


seeds, spots = st.integers(0, 2**64), st.integers(0, 3)
many = settings(max_examples=EXAMPLES // 2, deadline=None)


@many
@given(seeds, spots)
def test_random_records(seed: int, odd_spots: int) -> None:
    check(record(random.Random(seed), odd_spots))


@many
@given(seeds, spots, mutations)
def test_mutated_records(seed: int, odd_spots: int, changes: list[tuple[str, float, int, bytes]]) -> None:
    data = record(random.Random(seed), odd_spots)
    for change in changes:
        data = mutated(data, *change)
    check(data)


@pytest.mark.parametrize(("odd_spots", "low", "high"), [(0, 0.95, 1.0), (1, 0.3, 0.9), (3, 0.1, 0.7)])
def test_some_are_records_and_some_are_not(odd_spots: int, low: float, high: float) -> None:
    rng = random.Random(7)
    found = [check(record(rng, odd_spots)) for _ in range(300)]
    assert low <= sum(found) / len(found) <= high
