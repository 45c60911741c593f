"""`compute_digests`: equal to a loop of `compute_digest`, whatever the kinds, lengths and threads."""

from __future__ import annotations

import array
import itertools
import signal
import subprocess
import sys
import threading
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.watch import others_run_during, with_the_gil
from tokenrecords import compute_digest, compute_digests

if TYPE_CHECKING:
    from collections.abc import Iterator

THREADS = [None, 1, 2, 5]
DTYPES = [np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64]


def ids(n: int, seed: int = 0, dtype: Any = np.int32) -> np.ndarray:
    high = min(np.iinfo(dtype).max, 151_936)
    return np.random.default_rng(seed).integers(0, high, n).astype(dtype)


def one_by_one(sequences: Any) -> list[str]:
    return [compute_digest(sequence) for sequence in sequences]


@pytest.mark.parametrize("threads", THREADS)
@pytest.mark.parametrize("count", [*range(20), 31, 32, 33, 100])
def test_every_number_of_sequences(count: int, threads: int | None) -> None:
    sequences = [ids(37 * i % 100, i) for i in range(count)]
    assert compute_digests(sequences, threads=threads) == one_by_one(sequences)


@pytest.mark.parametrize("threads", THREADS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype_at_every_block_edge(dtype: Any, threads: int | None) -> None:
    sequences = [ids(n, n, dtype) for n in [*range(30), *range(120, 136), *range(250, 262)]]
    assert compute_digests(sequences, threads=threads) == one_by_one([x.tolist() for x in sequences])


@pytest.mark.parametrize("threads", THREADS)
def test_a_ragged_batch_larger_than_a_window(threads: int | None) -> None:
    lengths = np.random.default_rng(1).integers(3, 200_000, 60).tolist()
    sequences = [ids(n, n) for n in lengths]
    assert sum(lengths) > 1 << 22
    assert compute_digests(iter(sequences), threads=threads) == one_by_one(sequences)


@pytest.mark.parametrize("threads", THREADS)
def test_lists_that_another_thread_hashes_while_the_next_are_copied(threads: int | None) -> None:
    sequences: list[Any] = [ids(4_000 + i, i).tolist() for i in range(200)]
    expected = one_by_one(sequences)
    assert compute_digests(iter(sequences), threads=threads) == expected
    sequences[90:90] = [np.arange(7), []]  # a window of mixed kinds in between
    assert compute_digests(sequences, threads=threads) == [
        *expected[:90],
        *one_by_one(sequences[90:92]),
        *expected[90:],
    ]
    sequences[180] = [1, 2, -9]
    with pytest.raises(ValueError, match=r"^sequences\[180\], token_ids\[2\] is -9"):
        compute_digests(sequences, threads=threads)


def test_kinds_may_be_mixed() -> None:
    sequences = [
        [1, 2, 3], (1, 2, 3), range(1, 4), np.array([1, 2, 3], ">u2"), np.arange(6)[::-2], array.array("q", [1, 2, 3]),
        np.array([1, 2, 3], object), [], (), np.array([]), [2**64 - 1], [True], np.broadcast_to(np.int16(7), 300),
    ]  # fmt: skip
    assert compute_digests(sequences) == one_by_one(sequences)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.lists(st.integers(0, 2**64 - 1), max_size=40), max_size=40), st.sampled_from(THREADS))
def test_any_lists(sequences: list[list[int]], threads: int | None) -> None:
    assert compute_digests(sequences, threads=threads) == one_by_one(sequences)


def test_any_iterable_is_taken() -> None:
    rows = np.arange(12, dtype=np.int32).reshape(4, 3)
    expected = one_by_one(rows.tolist())
    for iterable in (rows, tuple(rows), iter(rows.tolist()), (row for row in rows), dict(enumerate(rows)).values()):
        assert compute_digests(iterable) == expected
    assert compute_digests([]) == []


@pytest.mark.parametrize("flat", [ids(1_000), ids(1_000).tolist(), tuple(ids(1_000).tolist()), ids(2_000)[::2]])
@pytest.mark.parametrize("kind", [list, tuple, lambda x: np.array(x, np.int32), lambda x: np.array(x, np.uint64)])
def test_one_flat_sequence_with_offsets(flat: Any, kind: Any) -> None:
    bounds = [0, 0, 5, 6, 6, 300, 999, 1_000]
    pieces = [flat[a:b] for a, b in itertools.pairwise(bounds)]
    assert compute_digests(flat, offsets=kind(bounds)) == one_by_one(pieces)


def test_offsets_need_not_cover_all_ids() -> None:
    assert compute_digests([7, 1, 2, 8], offsets=[1, 3]) == [compute_digest([1, 2])]
    assert compute_digests([7], offsets=[1]) == []
    assert compute_digests([], offsets=[0]) == []


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"offsets": []}, ValueError, "offsets is empty: n sequences need n + 1 offsets"),
        ({"offsets": [0, 3, 2]}, ValueError, "offsets[2] is 2: offsets must not decrease, got 3 before"),
        ({"offsets": [0, 2, 9]}, ValueError, "offsets[2] is 9: it lies beyond the 4 ids of sequences"),
        ({"offsets": [0, 2**64 - 1]}, ValueError, "offsets[1] is 18446744073709551615: it lies beyond the 4 ids"),
        ({"offsets": [-1, 2]}, ValueError, "offsets[0] is -1: "),
        ({"offsets": [0, 1.0]}, TypeError, "offsets[1] is 1.0: "),
        ({"offsets": 4}, TypeError, "offsets is 4: "),
        ({"threads": 0}, ValueError, "threads is 0: it must be at least 1"),
        ({"threads": -2}, ValueError, "threads is -2: it must be at least 1"),
        ({"threads": 1.5}, TypeError, "threads is 1.5: it must be an int or None, got float"),
        ({"threads": "2"}, TypeError, "threads is '2': it must be an int or None, got str"),
    ],
)
def test_wrong_arguments(arguments: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error) as raised:
        compute_digests([1, 2, 3, 4], **arguments)
    assert str(raised.value).startswith(message)


@pytest.mark.parametrize("threads", THREADS)
@pytest.mark.parametrize(
    ("bad", "error", "message"),
    [
        (np.array([5, 6, -9]), ValueError, "sequences[7], token_ids[2] is -9: token ids must be non-negative, got -9"),
        ([5, 6, -9], ValueError, "sequences[7], token_ids[2] is -9: token ids must be non-negative, got -9"),
        ([5, 2**64], ValueError, "sequences[7], token_ids[1] is 18446744073709551616: token ids must be below 2**64"),
        ([5, 1.0], TypeError, "sequences[7], token_ids[1] is 1.0: token ids must be integers, got float"),
        (None, TypeError, "sequences[7], token_ids is None: a sequence of token ids is needed"),
        (b"ab", TypeError, "sequences[7], token_ids is of type bytes: bytes are not a token sequence"),
        (np.ones((2, 2), int), ValueError, "sequences[7], token_ids has shape (2, 2): one dimension is needed, got 2"),
    ],
)
def test_an_error_names_the_first_bad_sequence(bad: Any, error: Any, message: str, threads: int | None) -> None:
    later = [np.array([1, -1]), [1, -2], None]
    sequences = [ids(5_000, i) for i in range(7)] + [bad] + [ids(9_000, i) for i in range(20)] + later
    with pytest.raises(error) as raised:
        compute_digests(sequences, threads=threads)
    assert str(raised.value).startswith(message)


def test_a_bad_array_before_a_bad_list_is_named_first() -> None:
    with pytest.raises(ValueError, match=r"sequences\[1\], token_ids\[1\] is -5"):
        compute_digests([[1], np.array([3, -5]), [1, -2]])
    with pytest.raises(ValueError, match=r"sequences\[2\], token_ids\[0\] is -5"):
        compute_digests([1, 2, 3, -5, -6], offsets=[0, 1, 3, 5])


def test_an_iterator_that_fails_is_heard() -> None:
    def broken() -> Iterator[list[int]]:
        yield [1]
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        compute_digests(broken())


@pytest.mark.parametrize(
    ("sequences", "message"),
    [
        (None, "sequences is None: an iterable of token sequences is needed, got NoneType"),
        (5, "sequences is 5: an iterable of token sequences is needed, got int"),
        ({(1, 2)}, "sequences is a set: it is unordered, and so would be the digests"),
        ([1, 2], "sequences[0], token_ids is 1: a sequence of token ids is needed, got int"),
    ],
)
def test_what_is_no_batch(sequences: Any, message: str) -> None:
    with pytest.raises(TypeError) as raised:
        compute_digests(sequences)
    assert str(raised.value) == message


def test_stop_iteration_does_not_escape() -> None:
    class Odd:
        def __iter__(self) -> Any:
            raise StopIteration

    with pytest.raises(TypeError, match="sequences: StopIteration was raised while it was read"):
        compute_digests(Odd())


@with_the_gil
def test_other_threads_run_meanwhile() -> None:
    sequences = [ids(400_000, i) for i in range(8)]
    assert others_run_during(lambda: compute_digests(sequences, threads=1))


def test_many_threads_over_the_same_arrays() -> None:
    shared = [ids(n, n) for n in (0, 1, 13, 500, 5_000, 50_000)]
    expected = one_by_one(shared)
    wrong: list[Any] = []

    def hammer() -> None:
        for _ in range(20):
            results = (compute_digests(shared, threads=2), one_by_one(shared))
            wrong.extend(result for result in results if result != expected)

    threads = [threading.Thread(target=hammer) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_an_array_that_changes_meanwhile_gives_some_digest_or_a_clean_error() -> None:
    changing = ids(300_000)
    stop = threading.Event()

    def write() -> None:
        while not stop.is_set():
            changing[::7] = -1
            changing[::7] = 1

    thread = threading.Thread(target=write)
    thread.start()
    try:
        for _ in range(20):
            try:
                assert len(compute_digests([changing] * 4)[0]) == 64
            except ValueError as error:
                assert "token ids must be non-negative" in str(error)  # noqa: PT017 - either outcome is right
    finally:
        stop.set()
        thread.join()


@pytest.mark.parametrize("threads", [1, 2])
def test_ctrl_c_ends_a_long_batch(threads: int) -> None:
    code = f"""
import numpy as np, signal, sys, tokenrecords
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell ignores it for what runs in the background
big = np.zeros(1 << 22, np.int32)
try:
    print("ready", flush=True)
    tokenrecords.compute_digests([big] * 100_000, threads={threads})
except KeyboardInterrupt:
    sys.exit(7)
"""
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            assert process.stdout.readline() == "ready\n"
            # Once: a second one could hit the interpreter while it ends.
            process.send_signal(signal.SIGINT)
            assert process.wait(timeout=120) == 7
        finally:
            process.kill()  # where it was not ended, it hashes for minutes
