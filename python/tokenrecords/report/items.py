"""What the output items of a call say, as text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from tokenrecords.text.printable import printable

if TYPE_CHECKING:
    from collections.abc import Iterator

_SAYS: Final = frozenset({"text", "content", "reasoning_content", "summary", "name", "arguments", "output", "refusal"})
_MOST = 20_000  # characters of a call; what is cut off is said


def text_of(items: list[dict[Any, Any]]) -> str:
    """A paragraph an item, headed by its type; line breaks stay, all else that can't be seen is written out."""
    whole = "\n\n".join("\n".join([f"[{_type(item)}]", *_said(item)]) for item in items)
    cut = f"\n... {len(whole) - _MOST:,} more characters" if len(whole) > _MOST else ""
    return "\n".join(map(printable, whole[:_MOST].split("\n"))) + cut


def _type(item: Any) -> Any:
    return item.get("type", "item") if isinstance(item, dict) else "item"


def _said(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for each in value:
            yield from _said(each)
    elif isinstance(value, dict):
        for key, each in value.items():
            if key in _SAYS:
                yield from _said(each)
