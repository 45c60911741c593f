"""Sequences that the core's index of prefixes can't tell apart: see rust/prefixes.rs."""

from __future__ import annotations


def twin(first: int, second: int, other: int) -> int:
    """The id that makes `[other, id]` have the fingerprint of `[first, second]`."""
    return second ^ _rotated(first) ^ _rotated(other)


def _rotated(id_: int) -> int:
    state = id_ * 0x9E37_79B9_7F4A_7C15 % 2**64
    return (state << 23 | state >> 41) % 2**64
