"""Work that asks for digests, so that those of much work can be computed together."""

from __future__ import annotations

from collections.abc import Generator
from typing import TypeAlias, TypeVar, cast

from tokenrecords._core import compute_digests
from tokenrecords.tokens.arrays import IdArray

T = TypeVar("T")

# Yields sequences, once, is sent their digests, and returns what it is for.
Hashing: TypeAlias = Generator[list[IdArray], list[str], T]


def answered(work: Hashing[T], digests: list[str]) -> T:
    """The result of work that has asked."""
    try:
        work.send(digests)
    except StopIteration as done:
        return cast("T", done.value)
    raise RuntimeError("the work asked twice")


def hashed(work: Hashing[T], *, threads: int | None = None) -> T:
    """The result of work."""
    return answered(work, compute_digests(next(work), threads=threads))
