"""`encode_token_ids` and `compute_digest` give the right values, for every length."""

import inspect
import json
import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import oracle
from support.places import DATA
from support.watch import others_run_during, with_the_gil
from tokenrecords import compute_digest, encode_token_ids

VECTORS = json.loads((DATA / "digest_v1.json").read_text())

# The first SHA block holds 5 ids, each later one 8; 253 ids make more than 2,048 bytes; ids are read by 128.
LENGTHS = [*range(23), *range(60, 66), *range(126, 131), *range(250, 260), 383, 384, 385, 1_000, 1_024, 1_025, 100_000]

# The edges of the ways that ints are stored and read.
EDGES = sorted({max(0, 2**bits + step) for bits in (7, 8, 15, 16, 30, 31, 32, 60, 62, 63, 64) for step in (-1, 0)})[:-1]
ids = st.lists(st.one_of(st.integers(0, 200_000), st.integers(0, 2**64 - 1), st.sampled_from(EDGES)))


def name_of(vector):
    return vector["name"]


@pytest.mark.parametrize("vector", VECTORS["explicit"], ids=name_of)
def test_explicit_golden_values(vector):
    for kind in (list, tuple, lambda ids: np.array(ids, np.uint64)):
        assert encode_token_ids(kind(vector["token_ids"])).hex() == vector["encoded_hex"]
        assert compute_digest(kind(vector["token_ids"])) == vector["digest"]


@pytest.mark.parametrize("vector", VECTORS["generated"], ids=name_of)
def test_generated_golden_values(vector):
    values = [(i * vector["multiplier"] + vector["increment"]) % vector["modulus"] for i in range(vector["n"])]
    for kind in (list, tuple, lambda ids: np.array(ids, np.int32), lambda ids: np.array(ids, ">u8")):
        assert compute_digest(kind(values)) == vector["digest"]


def test_the_oracle_has_the_golden_values():
    for vector in VECTORS["explicit"]:
        assert oracle.encode(vector["token_ids"]).hex() == vector["encoded_hex"]
        assert oracle.digest(vector["token_ids"]) == vector["digest"]


@pytest.mark.parametrize("length", LENGTHS)
def test_every_length(length):
    values = [(i * 2_654_435_761 + 11) % 151_936 for i in range(length)]
    encoded, digest = oracle.encode(values), oracle.digest(values)
    wide = np.zeros(2 * length, np.int64)
    wide[::2] = values
    for token_ids in (values, tuple(values), range_like(values), np.array(values, np.int32), wide[::2]):
        assert encode_token_ids(token_ids) == encoded
        assert compute_digest(token_ids) == digest


def range_like(values):
    """A sequence that is none of the kinds with a way of their own."""

    class Sequence:
        def __len__(self):
            return len(values)

        def __getitem__(self, index):
            return values[index]

    return Sequence()


@given(ids)
def test_lists_equal_the_oracle(values):
    assert encode_token_ids(values) == oracle.encode(values)
    assert compute_digest(values) == oracle.digest(values)


@given(ids)
def test_arrays_equal_the_oracle(values):
    array = np.array(values, np.uint64)
    assert encode_token_ids(array) == oracle.encode(values)
    assert compute_digest(array) == oracle.digest(values)


def test_results_are_plain_bytes_and_text():
    assert type(encode_token_ids([1])) is bytes
    assert type(compute_digest([1])) is str


@pytest.mark.parametrize("function", [encode_token_ids, compute_digest])
def test_the_parameter_has_its_name(function):
    assert str(inspect.signature(function)) == "(token_ids)"
    assert function(token_ids=[1]) == function([1])
    with pytest.raises(TypeError):
        function()


@with_the_gil
def test_large_arrays_are_hashed_without_the_gil():
    array = np.arange(1_000_000, dtype=np.int32)
    assert others_run_during(lambda: compute_digest(array))


def test_threads_get_the_same_digest():
    array = np.arange(50_000, dtype=np.int32)
    found = []
    threads = [threading.Thread(target=lambda: found.append(compute_digest(array))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [oracle.digest(array)] * 8


def test_an_array_that_changes_meanwhile_gives_some_digest_and_no_crash():
    array = np.zeros(200_000, np.int64)
    stop = threading.Event()

    def write():
        while not stop.is_set():
            array[:] = -1
            array[:] = 1

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for _ in range(30):
            try:
                assert len(compute_digest(array)) == 64
            except ValueError as error:
                assert str(error).endswith("is -1: token ids must be non-negative, got -1")  # noqa: PT017
    finally:
        stop.set()
        writer.join()
