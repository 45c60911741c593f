"""What a reader gathers of one choice, before anything is judged."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from tokenrecords.tokens.names import GENERATION, PROMPT

# What a model may have said beside its content.
_WORDS: Final = ("reasoning", "reasoning_content", "refusal", "tool_calls", "function_call", "arguments", "summary")


class Source(NamedTuple):
    """One place where a payload speaks of a field.

    Attributes:
        field: A token field, the loss mask, or an extra field of the record.
        place: The place as an error names it.
        value: What stands there.
        clipped: True where an id may be 0 in place of what the engine ran on.
    """

    field: str
    place: str
    value: Any
    clipped: bool = False


class ResponseFault(ValueError):  # noqa: N818 - an error once its dialect is said
    """What is wrong with a response: with one choice, with those up to `last`, or with the whole (None)."""

    def __init__(self, why: str, choice: Any = None, last: int | None = None) -> None:
        super().__init__(why, choice, last)
        self.why = why
        self.choice = choice
        self.last = choice if last is None else last

    def of(self, dialect: str) -> str:
        """The message, with the dialect's name."""
        if self.choice is None:
            return f"{dialect}: {self.why}"
        which = f"choice {self.choice}" if self.last == self.choice else f"choices {self.choice} to {self.last}"
        return f"{dialect} {which}: {self.why}"


class MissingField(ResponseFault):
    """No place speaks of a field that every choice needs."""


@dataclass(slots=True)
class RawChoice:
    """One choice as the engine wrote it.

    A reader names every place that speaks of a token field, the best one first: two places may disagree, a list may be
    short, a log-prob null. So a second place is never overlooked because the first one looked complete.

    Attributes:
        index: The engine's number of the choice, None where the payload numbers no choices.
        sources: The places.
        output_items: What the model said, without token arrays.
        token_item_index: The item that the tokens belong to.
        finish_reason: Why the generation ended, in the engine's word.
        response_id: Where the engine gives one to each choice.
        counts: How many tokens the engine counted for this choice alone, by token field.
    """

    index: Any
    sources: list[Source]
    output_items: list[dict[str, Any]] = field(default_factory=list)
    token_item_index: int | None = None
    finish_reason: str | None = None
    response_id: Any = None
    counts: dict[str, Any] = field(default_factory=dict)

    def of(self, name: str) -> list[Source]:
        """The places of one field, the best one first."""
        return [source for source in self.sources if source.field == name]

    @property
    def carries_ids(self) -> bool:
        """True if any place holds token ids; log-probs and routes alone are not tokens."""
        return any(source.field in (PROMPT, GENERATION) for source in self.sources)

    @property
    def aborted(self) -> bool:
        """True if the engine says that it gave the call up."""
        return self.finish_reason == "abort"

    @property
    def silent(self) -> bool:
        """True if the model said nothing: then there may be no tokens."""
        return not any(map(_speaks, self.output_items))


def _speaks(item: dict[str, Any]) -> bool:
    content = item.get("content")
    if isinstance(content, list):  # of blocks: those of empty texts say nothing
        content = [block for block in content if not isinstance(block, dict) or block.get("text") != ""]
    return bool(content) or any(item.get(name) for name in _WORDS)


def said(*places: tuple[str, str, Any]) -> list[Source]:
    """The places that hold something."""
    return [Source(*place) for place in places if place[2] is not None]


def below(prefix: str, sources: list[Source]) -> list[Source]:
    """The places of something that lies below `prefix`."""
    return [source._replace(place=f"{prefix}.{source.place}") for source in sources]
