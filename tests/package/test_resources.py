"""Nothing is kept: no buffer, no reference, no memory."""

import array
import contextlib
import sys
import tracemalloc

import numpy as np
import pytest
from support.factories import make_entry
from support.holders import Index
from tokenrecords import compute_digest, cumulative_tokens, encode_token_ids, stamp_lineage

# Above the 256 ints that Python keeps, in types with a way of their own.
ITEMS = [10_001, 2**40, 2**63, np.int64(7)]
COUNTED = hasattr(sys, "_is_gil_enabled") and not sys._is_gil_enabled()


def attempt(function, *arguments):
    with contextlib.suppress(TypeError, ValueError, RuntimeError):
        function(*arguments)


@pytest.mark.parametrize("function", [encode_token_ids, compute_digest])
def test_buffers_are_released(function):
    memory = bytearray(b"\x01\x00\x02\x00")
    view = memoryview(memory).cast("H")
    function(view)
    view.release()
    memory.extend(b"more")  # BufferError while anything is exported

    numbers = array.array("i", [1, 2, 3])
    function(numbers)
    numbers.append(4)

    negative = array.array("i", [-1])
    attempt(function, negative)
    negative.append(1)

    for refused in (array.array("d", [1.0]), bytearray(b"12")):
        attempt(function, refused)
        refused.append(1)
    packed = memoryview(bytearray(2))
    attempt(function, packed)
    packed.release()


def test_an_entry_over_a_buffer_keeps_it_while_it_lives():
    numbers = array.array("i", [1, 2, 3])
    entry = make_entry(prompt_token_ids=numbers)
    numbers[0] = 9
    assert entry.prompt_token_ids.tolist() == [9, 2, 3]
    with pytest.raises(BufferError):
        numbers.append(4)
    del entry
    numbers.append(4)


@pytest.mark.skipif(COUNTED, reason="without the GIL, references are counted in several places")
@pytest.mark.parametrize("function", [encode_token_ids, compute_digest])
def test_reference_counts_stay(function):
    for good in (list(ITEMS), tuple(ITEMS), np.arange(5), np.array(ITEMS, object), array.array("q", [1])):
        for token_ids in (good, [*ITEMS, None], (*ITEMS, -1), np.array([1, -1]), np.array([1.0])):
            before = [sys.getrefcount(token_ids), *map(sys.getrefcount, ITEMS)]
            for _ in range(100):
                attempt(function, token_ids)
            assert [sys.getrefcount(token_ids), *map(sys.getrefcount, ITEMS)] == before


@pytest.mark.skipif(COUNTED, reason="without the GIL, references are counted in several places")
def test_reference_counts_stay_in_entries():
    ids, log_probs = np.arange(5), np.zeros(5)

    def use(prompt):
        entry = make_entry(prompt_token_ids=prompt, generation_token_ids=ids, generation_log_probs=log_probs)
        cumulative_tokens(entry)
        stamp_lineage(entry, None, cumulative=[*entry.prompt_token_ids, *range(5)])
        assert entry == entry.as_lists() == entry.as_arrays()

    before = [sys.getrefcount(ids), sys.getrefcount(log_probs), *map(sys.getrefcount, ITEMS)]
    for _ in range(100):
        use(ids)
        use(ITEMS)
        attempt(use, [*ITEMS, 1.5])
        attempt(use, [*ITEMS, -1])
    assert [sys.getrefcount(ids), sys.getrefcount(log_probs), *map(sys.getrefcount, ITEMS)] == before


LEAKS = {
    "list": list(range(1_000, 1_020)),
    "array": np.arange(20),
    "big-endian array": np.arange(20, dtype=">i8"),
    "object array": np.array(ITEMS, object),
    "range": range(1_000, 1_020),
    "buffer": array.array("i", range(20)),
    "memoryview": memoryview(array.array("i", range(20))),
    "bad element": [1, "x"],
    "bad value": [1, -(2**70)],
    "negative array": np.array([1, -1]),
    "refused": b"12",
    "bad index": [Index(StopIteration)],
}


@pytest.mark.parametrize("name", LEAKS)
def test_calls_leak_nothing(name):
    token_ids = LEAKS[name]
    for _ in range(200):
        attempt(encode_token_ids, token_ids)
        attempt(compute_digest, token_ids)
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        for _ in range(5_000):
            attempt(encode_token_ids, token_ids)
            attempt(compute_digest, token_ids)
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert after - before < 5_000  # less than a byte a call


def test_many_calls_do_not_grow_the_process():
    resource = pytest.importorskip("resource")
    small, large = list(range(1_000, 1_100)), np.arange(100_000)

    def work(calls):
        for _ in range(calls):
            encode_token_ids(small)
            compute_digest(small)
            attempt(encode_token_ids, [-1])
        for _ in range(calls // 100):
            encode_token_ids(large)

    work(1_000)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    work(100_000)
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert after - before < 20_000  # KiB on Linux: a leak of one list, one result or one error a call is far more
