"""What a page of rollouts holds, read back out of its text: without a browser, and without the code that wrote it."""

from __future__ import annotations

import base64
import json
import zlib
from html.parser import HTMLParser
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from pathlib import Path


class Page(HTMLParser):
    """The elements of a page that have an id, by id, with the text in them; and all text that is seen."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.source = path.read_text(encoding="utf-8")
        self.by_id: dict[str, str] = {}
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.seen = ""
        self._open: list[tuple[str, str | None]] = []
        self.feed(self.source)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = dict(attrs)
        self.tags.append((tag, attributes))
        self.seen += "" if tag in ("span", "strong", "button") else " "
        if tag not in ("meta", "rect", "line", "link"):
            self._open.append((tag, attributes.get("id")))

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        while self._open and self._open.pop()[0] != tag:
            pass

    def handle_data(self, data: str) -> None:
        for _, name in self._open:
            if name is not None:
                self.by_id[name] = self.by_id.get(name, "") + data
        if not any(tag in ("script", "style") for tag, _ in self._open):
            self.seen += data

    @property
    def words(self) -> str:
        """The text that is seen, each gap one space."""
        return " ".join(self.seen.split())

    @property
    def rows(self) -> list[dict[str, Any]]:
        return json.loads(self.by_id["rows"])

    @property
    def pieces(self) -> dict[str, list[str]] | None:
        return json.loads(self.by_id["pieces"])

    def details(self, place: int = 0) -> dict[str, Any]:
        return json.loads(self.by_id[f"details-{place}"])

    def sequence(self, call: str, place: int = 0) -> tuple[list[int], list[float | None], list[bool]]:
        """Ids, log-probs (None for prompts) and masks of the whole sequence of a call."""
        details = self.details(place)
        data = zlib.decompress(base64.b64decode(self.by_id[f"arrays-{place}"]))
        found: list[Any] = []
        for each in details["calls"]:
            new, generated = each["length"] - each["start"], each["length"] - each["prompt"]
            stored = each["stored"]
            ids, data = take(data, stored["ids"], new)
            log_probs, data = take(data, stored["log_probs"], generated)
            mask, data = take(data, "uint8", generated) if stored["mask"] else ([1] * generated, data)
            added = ids, [None] * (new - generated) + log_probs, [True] * (new - generated) + [bool(x) for x in mask]
            before = ([], [], []) if each["parent"] is None else found[each["parent"]]
            found.append(tuple([*a, *b] for a, b in zip(before, added, strict=True)))
        assert data == b""
        return found[[each["id"] for each in details["calls"]].index(call)]


def take(data: bytes, dtype: str, count: int) -> tuple[list[Any], bytes]:
    size = np.dtype(dtype).itemsize * count
    return np.frombuffer(data[:size], np.dtype(dtype).newbyteorder("<")).tolist(), data[size:]
