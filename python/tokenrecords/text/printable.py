"""Text of which every character can be seen."""


def printable(text: str) -> str:
    """The text with line breaks, escapes, bidi controls and the like written out, so that a row stays a row."""
    return text if text.isprintable() else "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)
