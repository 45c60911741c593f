"""The text of token ids."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest
from tokenrecords.report.pieces import Pieces, find_tokenizer

if TYPE_CHECKING:
    from pathlib import Path


def pieces(folder: Path, vocab: Any, decoder: Any = None, added: Any = ()) -> dict[int, list[str]]:
    path = folder / "tokenizer.json"
    path.write_text(json.dumps({"model": {"vocab": vocab}, "decoder": decoder, "added_tokens": list(added)}))
    return Pieces(path).of(range(20))


BYTE_LEVEL = {"type": "ByteLevel"}


def test_byte_level_pieces_are_the_bytes_that_they_stand_for(tmp_path: Path) -> None:
    vocab = {"Ġthe": 0, "Ċ": 1, "é": 2, "Ã©": 3, "âī": 4, "Ī": 5, "xâĪļâ": 6, "Ġâ̈": 7, "\u0120\u200b": 8, "âĢ®": 9}
    found = pieces(tmp_path, vocab, BYTE_LEVEL)
    assert found == {
        0: [" the"],
        1: ["", r"\n"],
        2: ["", "<0xE9>"],
        3: ["é"],
        4: ["", "<0xE2><0x89>"],
        5: ["", "<0x88>"],
        6: ["x√", "<0xE2>"],
        7: ["Ġâ̈"],  # not of that alphabet: as it is
        8: ["Ġ", r"\u200b"],
        9: ["", r"\u202e"],
    }


def test_the_alphabet_is_that_of_the_library(tmp_path: Path) -> None:
    tokenizers = pytest.importorskip("tokenizers")
    alphabet = tokenizers.pre_tokenizers.ByteLevel.alphabet()
    path = tmp_path / "tokenizer.json"
    vocab = {piece: number for number, piece in enumerate(sorted(alphabet))}
    model = {"type": "BPE", "vocab": vocab, "merges": []}
    path.write_text(json.dumps({"version": "1.0", "added_tokens": [], "model": model, "decoder": ALL_OF_BYTE_LEVEL}))
    library = tokenizers.Tokenizer.from_file(str(path))
    found = Pieces(path).of(range(256))
    assert len(found) == 256
    for number, piece in found.items():
        whole = library.decode([number])
        shown = "".join(piece)
        if whole == "\N{REPLACEMENT CHARACTER}":
            assert re.fullmatch(r"<0x[89A-F][0-9A-F]>", shown)
        elif whole.isprintable():
            assert shown == whole
        else:
            assert shown == ascii(whole)[1:-1]


ALL_OF_BYTE_LEVEL = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False, "use_regex": False}


def test_byte_level_may_be_one_of_several_decoders(tmp_path: Path) -> None:
    assert pieces(tmp_path, {"Ġa": 0}, {"type": "Sequence", "decoders": [BYTE_LEVEL]}) == {0: [" a"]}


@pytest.mark.parametrize(
    "decoder",
    [
        {"type": "Metaspace", "replacement": "_"},
        {"type": "Sequence", "decoders": [{"type": "Replace", "pattern": {"String": "▁"}, "content": " "}]},
    ],
)
def test_pieces_of_sentencepiece_have_spaces_and_bytes(tmp_path: Path, decoder: Any) -> None:
    vocab = [["▁a", -1.0], ["<0xE2>", -2.0], ["<0x0A>", -3.0], ["<0x41>", -3.0], ["<0xZZ>", 0.0], ["<0x123>", 0.0]]
    assert pieces(tmp_path, vocab, decoder) == {
        0: [" a"],
        1: ["", "<0xE2>"],
        2: ["", r"\n"],
        3: ["A"],
        4: ["<0xZZ>"],
        5: ["<0x123>"],
    }


def test_other_pieces_are_as_they_are(tmp_path: Path) -> None:
    assert pieces(tmp_path, {"##ing": 3, "Ġ": 4, "▁": 5}) == {3: ["##ing"], 4: ["Ġ"], 5: ["▁"]}


def test_added_tokens_are_their_content(tmp_path: Path) -> None:
    added = [{"id": 1, "content": "<|endĠ|>"}, {"id": 2, "content": "a\u202eb"}]
    assert pieces(tmp_path, {"x": 1}, BYTE_LEVEL, added) == {1: ["<|endĠ|>"], 2: ["a", r"\u202e", "b"]}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{", "JSONDecodeError"),
        ("[]", "TypeError"),
        ("{}", "KeyError('model')"),
        ('{"model": {"vocab": {"a": "x"}}}', "ValueError"),
        ('{"model": {"vocab": 5}}', "TypeError"),
    ],
)
def test_what_is_no_tokenizer_is_named(tmp_path: Path, text: str, why: str) -> None:
    path = tmp_path / "t.json"
    path.write_text(text)
    with pytest.raises(
        ValueError, match=re.escape(f"tokenizer is {path}: a tokenizer.json is needed (") + ".*"
    ) as error:
        Pieces(path)
    assert why in str(error.value)


def cached(home: Path, revision: str, name: str = "models--org--name") -> Path:
    file = home / "hub" / name / "snapshots" / revision / "tokenizer.json"
    file.parent.mkdir(parents=True)
    file.touch()
    return file


def test_a_tokenizer_is_found_by_path_or_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HF_HUB_CACHE", raising=False)
    monkeypatch.setenv("HF_HOME", str(tmp_path / "home"))
    plain = tmp_path / "tokenizer.json"
    plain.touch()
    assert find_tokenizer(plain) == plain
    assert find_tokenizer(str(tmp_path)) == plain
    old, new = (cached(tmp_path / "home", revision) for revision in ("0", "1"))
    assert find_tokenizer("org/name") == old
    refs = tmp_path / "home" / "hub" / "models--org--name" / "refs"
    refs.mkdir()
    (refs / "main").write_text("1\n")
    assert find_tokenizer("org/name") == new
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "home" / "hub"))
    monkeypatch.setenv("HF_HOME", "elsewhere")
    assert find_tokenizer("org/name") == new
    monkeypatch.delenv("HF_HUB_CACHE")
    monkeypatch.delenv("HF_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".cache" / "huggingface").mkdir(parents=True)
    (tmp_path / "home" / "hub").rename(tmp_path / ".cache" / "huggingface" / "hub")
    assert find_tokenizer("org/name").parts[-1] == "tokenizer.json"


def test_a_tokenizer_that_is_nowhere_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    why = f"tokenizer is org/name: a tokenizer.json is needed, or the name of one in the local cache {tmp_path}"
    with pytest.raises(FileNotFoundError, match=f"^{re.escape(why)}$"):
        find_tokenizer("org/name")
