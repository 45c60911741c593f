"""The native readers of lines and digests: order, places, what is left to Python, and errors."""

from __future__ import annotations

import gzip
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.factories import line, raw
from tokenrecords import compute_digests
from tokenrecords._core import PendingDigests, RecordScanner, scan_record

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def never(place: int, number: int, offset: int) -> bytes:
    raise AssertionError(f"asked for {place, number, offset}")


def scanner(sources: list[Any], feed: Callable[..., Any] = never, threads: Any = 1, **options: bool) -> RecordScanner:
    named = [(f"s{place}", source) for place, source in enumerate(sources)]
    return RecordScanner(named, feed, threads=threads, **{"arrays": False, "narrow": False, **options})


def taken(reader: RecordScanner) -> list[tuple[str, int, int, bool, bytes]]:
    found = []
    while (each := reader.take()) is not None:
        at = each[0]
        found.append((at.path, at.number, at.offset, at.is_last, at.data))
    return found


def expected(texts: list[bytes]) -> list[tuple[str, int, int, bool, bytes]]:
    """By Python's own lines."""
    found = []
    for place, text in enumerate(texts):
        offset = 0
        for number, each in enumerate(text.split(b"\n"), 1):
            data = each if offset + len(each) == len(text) else each + b"\n"
            shown = data.removeprefix(b"\xef\xbb\xbf") if number == 1 else data
            if shown.strip():
                found.append((f"s{place}", number, offset, not data.endswith(b"\n"), shown))
            offset += len(data)
    return found


def fed(texts: list[bytes]) -> Callable[[int, int, int], bytes]:
    def feed(place: int, number: int, offset: int) -> bytes:
        given, rest = texts[place][:offset], texts[place][offset:]
        assert number == len(given.split(b"\n")) - (not given or given.endswith(b"\n"))
        return b"".join(rest.partition(b"\n")[:2])

    return feed


LINES = st.one_of(
    st.sampled_from([b"", b" \t\r\x0b\x0c", b"\xef\xbb\xbf", b"x", b"{}", b"\x85", b"\xc2\xa0"]),
    st.integers(0, 300_000).map(lambda size: b"y" * size),
)
TEXTS = st.lists(st.tuples(st.lists(LINES, max_size=8), st.booleans()), max_size=5).map(
    lambda texts: [b"\n".join(lines) + b"\n" * ends for lines, ends in texts]
)


@settings(max_examples=60, deadline=None)
@given(texts=TEXTS, kinds=st.randoms(use_true_random=True), threads=st.sampled_from([1, 2, 5]))
def test_lines_are_those_of_python_in_order(
    tmp_path_factory: Any, texts: list[bytes], kinds: Any, threads: int
) -> None:
    directory = tmp_path_factory.mktemp("texts")
    sources: list[Any] = []
    for place, text in enumerate(texts):
        kind = kinds.choice(["memory", "fed", "", ".gz"])
        path = directory / f"{place}{kind}"
        if kind in ("", ".gz"):
            path.write_bytes(gzip.compress(text, 1) if kind else text)
        sources.append({"memory": text, "fed": None}.get(kind, path))
    assert taken(scanner(sources, fed(texts), threads)) == expected(texts)


@pytest.mark.parametrize("threads", [1, 2])
def test_a_line_is_scanned_as_scan_record_does(threads: int) -> None:
    lines = [line(prompt_token_ids=list(range(n))) for n in (0, 5, 70_000)] + [raw(prompt_token_ids='["7"]')] * 3
    for narrow in (False, True):
        reader = scanner([b"".join(lines)], threads=threads, arrays=True, narrow=narrow)
        for each in lines:
            at, found = reader.take()  # type: ignore[misc]
            want = scan_record(each, narrow)
            assert at.data == each
            if want is None:
                assert found is None
            else:
                assert found is not None
                assert found[0] == want[0]
                for ours, theirs in zip(found[1], want[1], strict=True):
                    assert ours.dtype == theirs.dtype
                    assert np.array_equal(ours, theirs)
        assert reader.take() is None


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_what_a_feed_raises_is_raised_in_its_place(threads: int) -> None:
    given_lines = [b"a\n", b"b\n", ZeroDivisionError("planted")]

    def feed(_place: int, number: int, _offset: int) -> bytes:
        each = given_lines[number]
        if isinstance(each, Exception):
            raise each
        return each

    reader = scanner([b"first\n", None, b"last"], feed, threads)
    found = [reader.take()[0].data for _ in range(3)]  # type: ignore[index]
    with pytest.raises(ZeroDivisionError, match="planted"):
        reader.take()
    assert found == [b"first\n", b"a\n", b"b\n"]
    assert taken(reader) == [("s2", 1, 0, True, b"last")]


def test_an_interrupt_of_a_feed_costs_no_line() -> None:
    moments = iter([KeyboardInterrupt, b"a\n", KeyboardInterrupt, b"b\n", b""])

    def feed(*_: int) -> bytes:
        each = next(moments)
        if isinstance(each, bytes):
            return each
        raise each

    reader = scanner([None], feed)
    found = []
    for _ in range(5):
        try:
            each = reader.take()
        except KeyboardInterrupt:
            found.append("interrupt")
        else:
            found.append(each and each[0].data)
    assert found == ["interrupt", b"a\n", "interrupt", b"b\n", None]


def test_a_feed_gives_bytes() -> None:
    reader = scanner([None], lambda *_: "text")
    with pytest.raises(TypeError, match="'str' object"):
        reader.take()


def test_what_is_no_regular_file_is_fed(tmp_path: Path) -> None:
    asked = []

    def feed(*place: int) -> bytes:
        asked.append(place)
        return b""

    assert taken(scanner([tmp_path, tmp_path / "missing"], feed)) == []
    assert asked == [(0, 0, 0), (1, 0, 0)]


def test_nothing_is_taken_of_a_closed_reader() -> None:
    reader = scanner([b"a\nb\n"])
    assert reader.take() is not None
    reader.close()
    reader.close()
    assert reader.take() is None


@pytest.mark.parametrize(
    "make", [lambda threads: scanner([], threads=threads), lambda t: PendingDigests([], threads=t)]
)
def test_threads_are_checked(make: Callable[[Any], Any]) -> None:
    for threads, error, message in (
        (0, ValueError, "threads is 0: it must be at least 1"),
        ("2", TypeError, "threads is '2': it must be an int or None, got str"),
    ):
        with pytest.raises(error, match=f"^{message}$"):
            make(threads)


def test_sources_are_checked() -> None:
    with pytest.raises(TypeError):
        scanner([5])


@pytest.mark.parametrize("threads", [None, 1, 3])
def test_pending_digests_are_those_of_compute_digests(threads: int | None) -> None:
    rng = np.random.default_rng(0)
    arrays = [rng.integers(0, 150_000, n, np.int32) for n in (0, 1, 5_000, 300_000)]
    for sequences in ([], arrays, [[1, 2], range(3), arrays[2]]):
        pending = PendingDigests(sequences, threads=threads)
        assert pending.result() == compute_digests(sequences)
        assert pending.result() == compute_digests(sequences)  # computed again


def test_pending_digests_name_the_faulty_id() -> None:
    message = r"^sequences\[1\], token_ids\[1\] is -9: token ids must be non-negative, got -9$"
    for ids in ([1, -9], (1, -9)):
        with pytest.raises(ValueError, match=message):
            PendingDigests([[1], ids])
    pending = PendingDigests([np.arange(3), np.array([1, -9])])
    with pytest.raises(ValueError, match=message):
        pending.result()


def test_abandoned_digests_keep_nothing() -> None:
    import weakref

    class Array(np.ndarray[Any, Any]):
        pass

    array = np.zeros(200_000, np.int32).view(Array)
    seen = weakref.ref(array)
    pending = PendingDigests([array] * 20)
    del array, pending
    # The other thread gives its references back where the next call of the extension takes them.
    for _ in range(10_000):
        compute_digests([[1]])
        if seen() is None:
            break
    assert seen() is None
