"""The events of TGI's `/generate_stream`: a token each, and the details with the last one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Final

from tokenrecords._core import ChunkRules
from tokenrecords.engines.payload import mapping

if TYPE_CHECKING:
    from collections.abc import Mapping

_OWN: Final = ("index", "token", "top_tokens", "generated_text", "details")


class Tokens:
    """An answer while its tokens come in."""

    RULES: ClassVar = ChunkRules({})  # each chunk stands alone

    def __init__(self, _dialect: str | None, *, check_ids: bool) -> None:  # noqa: ARG002 - TGI's events have no id
        self._body: dict[str, Any] = {}
        self._tokens: list[Any] = []
        self._text: Any = None
        self._details: dict[str, Any] = {}
        self._index: int | None = None

    def add(self, k: int, chunk: Mapping[str, Any]) -> None:
        """Take an event.

        Raises:
            ValueError: It does not follow the one before.
        """
        index = chunk.get("index")
        if isinstance(index, int):
            if self._index is None and index > 1:
                raise ValueError(f"chunk {k}: index {index} comes first: a chunk is missing")
            if self._index is not None and index != self._index + 1:
                raise ValueError(f"chunk {k}: index {index} follows {self._index}: a chunk is missing")
            self._index = index
        if chunk.get("token") is not None:
            self._tokens.append(chunk["token"])
        if chunk.get("generated_text") is not None:
            self._text = chunk["generated_text"]
        self._details |= mapping(chunk.get("details"))
        self._body |= {key: value for key, value in chunk.items() if key not in _OWN and value is not None}

    def payload(self) -> dict[str, Any]:
        """The answer of `/generate`."""
        words = (mapping(token) for token in self._tokens)
        text = self._text
        if text is None:  # the stream was cut off
            text = "".join(str(word.get("text") or "") for word in words if not word.get("special"))
        return {**self._body, "generated_text": text, "details": {**self._details, "tokens": self._tokens}}
