"""The text of token ids, as a `tokenizer.json` has it; half a character stays the bytes that it is."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tokenrecords.files.names import PathLike

# Plain text and, at odd places, what is written out: bytes that are no character, and characters that can't be seen.
Piece = list[str]

_SPACE = "\u2581"  # stands for a space in pieces of SentencePiece


class Pieces:
    """The pieces of a tokenizer, by id."""

    def __init__(self, path: Path) -> None:
        """Of a `tokenizer.json`.

        Raises:
            ValueError: The file is not one.
        """
        try:
            tokenizer = json.loads(path.read_bytes())
            vocab = tokenizer["model"]["vocab"]
            named = vocab.items() if isinstance(vocab, dict) else ((piece, at) for at, (piece, _) in enumerate(vocab))
            self._pieces = {int(number): str(piece) for piece, number in named}
            self._added = {int(each["id"]): str(each["content"]) for each in tokenizer.get("added_tokens") or ()}
            decoder = json.dumps(tokenizer.get("decoder"), ensure_ascii=False)
        except (ValueError, KeyError, TypeError) as error:
            raise ValueError(f"tokenizer is {path}: a tokenizer.json is needed ({error!r})") from error
        self._is_byte_level = '"ByteLevel"' in decoder
        self._has_spaces = _SPACE in decoder or '"Metaspace"' in decoder

    def of(self, ids: Iterable[int]) -> dict[int, Piece]:
        """The pieces of ids; an id that has none is missing."""
        found = ((number, self._piece(number)) for number in ids)
        return {number: piece for number, piece in found if piece is not None}

    def _piece(self, number: int) -> Piece | None:
        if number in self._added:
            return _alternating(self._added[number])
        piece = self._pieces.get(number)
        if piece is None:
            return None
        if self._is_byte_level and all(map(_BYTES.__contains__, piece)):
            return _alternating(bytes(map(_BYTES.__getitem__, piece)).decode("utf-8", "surrogateescape"))
        if self._has_spaces:
            if len(piece) == len("<0x00>") and piece.startswith("<0x"):  # a byte that no other piece covers
                return _of_byte(piece)
            piece = piece.replace(_SPACE, " ")
        return _alternating(piece)


def find_tokenizer(name: PathLike) -> Path:
    """The `tokenizer.json` of a path, or of a name in the local cache of Hugging Face; nothing is fetched.

    Raises:
        FileNotFoundError: There is none.
    """
    path = Path(name)
    if path.is_file():
        return path
    if (path / "tokenizer.json").is_file():
        return path / "tokenizer.json"
    home = Path(os.environ.get("HF_HOME") or Path.home() / ".cache" / "huggingface")
    cache = Path(os.environ.get("HF_HUB_CACHE") or home / "hub")
    model = cache / f"models--{os.fspath(name).replace('/', '--')}"
    revision = model / "refs" / "main"
    folders = [model / "snapshots" / revision.read_text().strip()] if revision.is_file() else []
    files = [folder / "tokenizer.json" for folder in folders or sorted(model.glob("snapshots/*"))]
    found = next((file for file in files if file.is_file()), None)
    if found is None:
        raise FileNotFoundError(
            f"tokenizer is {os.fspath(name)}: a tokenizer.json is needed, or the name of one in the local cache {cache}"
        )
    return found


def _of_byte(piece: str) -> Piece:
    try:
        value = int(piece[3:5], 16)
    except ValueError:
        return _alternating(piece)
    return _alternating(chr(value)) if value < 0x80 else ["", f"<0x{value:02X}>"]


def _alternating(text: str) -> Piece:
    """The text in parts; a byte that is no character is a lone surrogate here, as Python's `surrogateescape` has it."""
    parts = [""]
    for is_plain, shown in map(_shown, text):
        if is_plain == (len(parts) % 2 == 1):
            parts[-1] += shown
        else:
            parts.append(shown)
    return parts


def _shown(character: str) -> tuple[bool, str]:
    if character.isprintable():
        return True, character
    if "\udc80" <= character <= "\udcff":
        return False, f"<0x{ord(character) - 0xDC00:02X}>"
    return False, ascii(character)[1:-1]


def _byte_level() -> Iterator[tuple[str, int]]:
    """The character that stands for each byte in byte-level pieces, as GPT-2 has it: itself, or one beyond U+00FF."""
    moved = 0
    for byte in range(256):
        if 0x21 <= byte <= 0x7E or 0xA1 <= byte <= 0xAC or byte >= 0xAE:
            yield chr(byte), byte
        else:
            yield chr(256 + moved), byte
            moved += 1


_BYTES: Final[dict[str, Any]] = dict(_byte_level())
