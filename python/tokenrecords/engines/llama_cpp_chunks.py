"""The chunks of llama.cpp's `/completion`: text, ids and probabilities in pieces."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Final

from tokenrecords._core import ChunkRules
from tokenrecords.engines.joining import RULES, append, closed, number, set_once
from tokenrecords.tokens.names import PROMPT

if TYPE_CHECKING:
    from collections.abc import Mapping

_PIECES: Final = frozenset({"content", "tokens", "completion_probabilities"})


class Pieces:
    """Answers while their chunks come in."""

    RULES: ClassVar = ChunkRules(
        {
            **RULES,
            **dict.fromkeys(_PIECES, "list"),
            "content": "text",
            **dict.fromkeys((PROMPT, "index"), "same"),
            "*": "last",
        }
    )

    def __init__(self, _dialect: str | None, *, check_ids: bool) -> None:  # noqa: ARG002 - the chunks have no id
        self._bodies: dict[int | None, dict[str, Any]] = {}

    def add(self, k: int, chunk: Mapping[str, Any]) -> None:
        """Take a chunk.

        Raises:
            ValueError: It does not go on from the earlier ones.
        """
        if "content" not in chunk and "tokens" not in chunk:
            raise ValueError(f"chunk {k}: no chunk of an answer of /completion: it has no content")
        body = self._bodies.setdefault(number(chunk.get("index"), "index", k), {})
        for key, value in chunk.items():
            if value is None:
                body.setdefault(key, None)
            elif key in _PIECES:
                append(body, key, value, k)
            elif key == PROMPT:
                set_once(body, key, value, k)
            else:
                body[key] = value

    def payload(self) -> Any:
        """The answer; a list of several prompts' answers."""
        bodies = [closed(body) for body in self._bodies.values()]
        return bodies[0] if len(bodies) == 1 else bodies
