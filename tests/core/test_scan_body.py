"""What `scan_body` takes out of a body, and what stays in the rest."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic_core import from_json
from support.watch import others_run_during, with_the_gil
from tokenrecords._core import IdWords, scan_body

MARK = 4611686018400000000


def scanned(payload: Any, **options: Any) -> tuple[Any, list[Any]]:
    """The rest as parsed, and what was found."""
    rest, found = scan_body(json.dumps(payload, **options).encode(), 16)
    return from_json(rest), found


def array(values: list[Any], key: str = "token_ids") -> np.ndarray:
    """The only value that is found in a body with it."""
    rest, [(path, mark, found)] = scanned({key: values})
    assert (rest, path, mark) == ({key: MARK}, (key,), MARK)
    assert isinstance(found, np.ndarray)
    assert found.flags.writeable
    return found


def is_left(payload: Any) -> bool:
    return scan_body(json.dumps(payload).encode(), 16) is None


@pytest.mark.parametrize(
    ("values", "dtype"),
    [
        ([0, 2**31 - 1, -(2**31)], np.int32),
        ([2**31], np.int64),
        ([-(2**63), 2**63 - 1], np.int64),
        ([2**63, 2**64 - 1], np.uint64),
    ],
)
@pytest.mark.parametrize("length", [16, 17, 1_023, 1_024, 5_000])
def test_integers_have_the_first_dtype_that_holds_them(values, dtype, length):
    values = (values * length)[:length]
    found = array(values)
    assert found.dtype == dtype
    assert found.tolist() == values


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=16, max_size=40))
def test_floats_are_those_of_python(values):
    found = array(values, "logprobs")
    assert found.dtype == np.float64
    assert found.tobytes() == np.array(values).tobytes()


@given(
    st.lists(st.decimals(allow_nan=False, allow_infinity=False, places=30, min_value=-100, max_value=0), min_size=16)
)
def test_longer_decimals_are_rounded_as_python_does(values):
    texts = [f"{value:f}" for value in values]
    _, [(_, _, found)] = scan_body(f'{{"logprobs":[{",".join(texts)}]}}'.encode(), 16)
    assert found.tolist() == [float(text) for text in texts]


@pytest.mark.parametrize("odd", [None, "x", [1], 2**64, True, math.nan, math.inf, "NaN", 10**15 + 0.5])
def test_what_is_unusual_stays(odd):
    payload = {"logprobs": [0.5] * 20 + [odd], "token_ids": [7] * 20 + [odd]}
    if odd == 10**15 + 0.5:
        assert [path for path, _, _ in scanned(payload)[1]] == [("logprobs",), ("token_ids",)]
    else:
        assert is_left(payload)


def test_large_integers_among_floats_stay():
    assert array([0.5] * 20 + [10**15 - 1], "logprobs")[-1] == 10**15 - 1
    assert is_left({"logprobs": [0.5] * 20 + [10**15]})


def test_small_arrays_stay():
    assert is_left({"token_ids": [7] * 15})
    assert is_left({"content": [{"logprob": -0.5}] * 15})
    assert is_left({"tokens": ["token_id:7"] * 15})


def test_nothing_is_found_in_what_is_not_json():
    for body in (b"", b"{", b'{"token_ids":[' + b"7," * 20, b"\xff", b"[1"):
        assert scan_body(body, 16) is None


def test_lists_of_words_that_are_ids():
    _, [(path, _, found)] = scanned({"logprobs": {"tokens": [f"token_id:{i}" for i in range(20)]}})
    assert path == ("logprobs", "tokens")
    assert isinstance(found, IdWords)
    assert found.ids.dtype == np.int32
    assert found.ids.tolist() == list(range(20))
    assert len(found) == 20
    assert is_left({"tokens": [*[f"token_id:{i}" for i in range(20)], "x"]})


def test_the_least_that_is_found():
    for count in (1, 2, 15):
        held = {"token_ids": [7] * count, "tokens": ["token_id:7"] * count, "logprobs": [{"logprob": -1.0}] * count}
        body = json.dumps({**held, "x": [], "ids": []}).encode()
        assert scan_body(body, count + 1) is None
        rest, found = scan_body(body, count)
        assert [path for path, _, _ in found] == [("token_ids",), ("tokens",), ("logprobs",)]
        assert json.loads(rest)["x"] == json.loads(rest)["ids"] == []


def test_words_of_given_ids():
    ids = np.array([7], np.int32)
    assert IdWords(ids).ids is ids
    for odd in (np.array([7]), [7], None):
        with pytest.raises(TypeError):
            IdWords(odd)


def test_entries_become_columns():
    entries = [
        {"token": f"token_id:{i}", "logprob": -i / 7, "id": i, "token_id": 2 * i, "bytes": [i], "top_logprobs": []}
        for i in range(20)
    ]
    rest, [(path, _, found)] = scanned({"choices": [{"logprobs": {"content": entries}}]}, indent=2)
    assert rest == {"choices": [{"logprobs": {"content": MARK}}]}
    assert path == ("choices", 0, "logprobs", "content")
    assert list(found) == ["logprob", "token_id", "id", "token"]
    assert found["logprob"].tolist() == [entry["logprob"] for entry in entries]
    assert found["id"].tolist() == list(range(20))
    assert found["token_id"].tolist() == [2 * i for i in range(20)]
    assert found["token"].ids.tolist() == list(range(20))


def test_rows_become_columns():
    rows = [[-i / 7, i, "x"] for i in range(20)]
    _, [(_, _, found)] = scanned({"meta_info": {"output_token_logprobs": rows}})
    assert [type(column) for column in found] == [np.ndarray, np.ndarray, type(None)]
    assert found[0].tolist() == [row[0] for row in rows]
    assert found[1].tolist() == list(range(20))
    _, [(_, _, (log_probs, ids))] = scanned({"input_token_logprobs": [[None, 7], *[[-0.5, 8]] * 19]})
    assert log_probs is None
    assert ids.tolist() == [7, *[8] * 19]


@pytest.mark.parametrize("body", ["{}", bytearray(b"{}"), memoryview(b"{}"), None, {}])
def test_a_body_is_bytes(body):
    with pytest.raises(TypeError):
        scan_body(body, 16)


@with_the_gil
def test_while_a_large_body_is_scanned_other_threads_run():
    body = json.dumps({"token_ids": list(range(2_000_000))}).encode()
    assert others_run_during(lambda: scan_body(body, 16))


LITTLE_MEMORY = """
import resource, sys
from tokenrecords._core import scan_body
body = b'{"token_ids":[' + b"7," * 30_000_000 + b"7]}"
with open("/proc/self/statm") as statm:
    pages = int(statm.read().split()[0])
resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + (50 << 20),) * 2)
try:
    scan_body(body, 16)
except MemoryError:
    print("no memory")
"""


def test_too_little_memory_is_a_memory_error():
    done = subprocess.run([sys.executable, "-c", LITTLE_MEMORY], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "no memory\n", "")
