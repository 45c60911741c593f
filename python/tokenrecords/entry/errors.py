"""Exceptions as one line."""

from __future__ import annotations

from pydantic import ValidationError


def one_line(error: Exception) -> str:
    """What is wrong, in one line: of a ValidationError each fault with its field and position."""
    if not isinstance(error, ValidationError):
        return " ".join(str(error).split())
    return "; ".join(
        "".join(f"{part}: " for part in fault["loc"]) + fault["msg"].removeprefix("Value error, ")
        for fault in error.errors(include_url=False, include_context=False, include_input=False)
    )
