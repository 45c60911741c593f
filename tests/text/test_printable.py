"""Text of which every character can be seen."""

import pytest
from tokenrecords.text.printable import printable


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain é 語", "plain é 語"),
        ("a\nb\t", r"a\nb\t"),
        ("\x1b[31m", r"\x1b[31m"),
        ("\u202e\u2066", r"\u202e\u2066"),
        ("\u2028", r"\u2028"),
        ("\ud800", r"\ud800"),
        ("\U000e0001", r"\U000e0001"),
        ("<script>", "<script>"),
    ],
)
def test_what_can_not_be_seen_is_written_out(text: str, shown: str) -> None:
    assert printable(text) == shown
