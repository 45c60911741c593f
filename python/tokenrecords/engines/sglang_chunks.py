"""The chunks of SGLang's or LMDeploy's `/generate`: each from the start, or only what is new."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Final

from tokenrecords._core import ChunkRules
from tokenrecords.engines.joining import RULES, Growing, closed, number, set_once
from tokenrecords.engines.payload import count, ends, listed, mapping
from tokenrecords.tokens.arrays import same
from tokenrecords.tokens.names import PROMPT

if TYPE_CHECKING:
    from collections.abc import Mapping

_IDS: Final = "output_ids"
_ENTRIES: Final = "output_token_logprobs"
_PROMPT_ENTRIES: Final = "input_token_logprobs"
# Of `meta_info`. The last two of chunks taken as one are the last chunk's: pieces, which must be read one by one, are
# refused then.
_GROWING: Final = (_IDS, _ENTRIES, "output_token_sampling_mask", "output_token_sampling_logprobs")


class Generate:
    """Samples while their chunks come in."""

    RULES: ClassVar = ChunkRules(
        {
            **RULES,
            "text": "told",
            _IDS: "grows",
            **dict.fromkeys((PROMPT, "index"), "same"),
            "meta_info": {
                "completion_tokens": "count",
                **dict.fromkeys((_IDS, _ENTRIES), "grows"),
                **dict.fromkeys((_PROMPT_ENTRIES, "id"), "same"),
                "*": "last",
            },
            "*": "last",
        }
    )

    def __init__(self, _dialect: str | None, *, check_ids: bool) -> None:
        self._check_ids = check_ids
        self._samples: dict[int, _Sample] = {}

    def add(self, k: int, chunk: Mapping[str, Any]) -> None:
        """Take a chunk.

        Raises:
            ValueError: It does not go on from the earlier ones of its sample.
        """
        if "meta_info" not in chunk and _IDS not in chunk:
            raise ValueError(f"chunk {k}: no chunk of an answer of /generate: it has no meta_info")
        index = number(chunk.get("index"), "index", k)
        self._samples.setdefault(index or 0, _Sample()).add(k, chunk, check_ids=self._check_ids)

    def payload(self) -> Any:
        """The sample; a list of several in order of index."""
        samples = [self._samples[index].payload() for index in sorted(self._samples)]
        return samples[0] if len(samples) == 1 else samples


class _Sample:
    """One sample while its chunks come in."""

    def __init__(self) -> None:
        self._body: dict[str, Any] = {}
        self._meta: dict[str, Any] = {}
        self._texts: list[str] = []
        self._whole: bool | None = None  # each chunk from the start, or in pieces; None while nothing tells

    def add(self, k: int, chunk: Mapping[str, Any], *, check_ids: bool) -> None:
        meta = mapping(chunk.get("meta_info"))
        own, held = meta.get("id"), self._meta.get("id")
        if check_ids and own and held and own != held:
            raise ValueError(f"chunk {k}: id {own!r} of another response than {held!r}")
        counted, text = meta.get("completion_tokens"), chunk.get("text")
        if counted is None:
            self._whole = self._guess(text, meta)
        for into, holder, name in ((self._body, chunk, _IDS), *((self._meta, meta, name) for name in _GROWING)):
            if holder.get(name) is not None:
                grown = into.setdefault(name, Growing(name)).add(k, holder[name], counted, whole=self._whole)
                self._whole = self._whole if grown is None else grown
        self._say(text)
        self._keep(k, chunk, meta)

    def _keep(self, k: int, chunk: Mapping[str, Any], meta: Mapping[str, Any]) -> None:
        """Keep what neither grows nor comes in pieces."""
        for key, value in chunk.items():
            if key == PROMPT and value is not None:
                set_once(self._body, key, value, k)
            elif key not in ("text", "meta_info", _IDS) and (value is not None or key not in self._body):
                self._body[key] = value
        for key, value in meta.items():
            if key == _PROMPT_ENTRIES:
                _set_prompt(self._meta, value, k)
            elif key not in _GROWING and (value is not None or key not in self._meta):
                self._meta[key] = value

    def _guess(self, text: Any, meta: Mapping[str, Any]) -> bool | None:
        """Whether an engine that counts nothing sends all from the start: LMDeploy's pairs come in pieces."""
        if any(len(listed(entry)) == 2 for entry in ends(meta.get(_ENTRIES))):
            return False
        if self._whole is not None or not isinstance(text, str):
            return self._whole
        held = "".join(self._texts)
        return text.startswith(held) if held and text != held else None

    def _say(self, text: Any) -> None:
        if not isinstance(text, str):
            return
        if self._whole or (self._whole is None and text.startswith("".join(self._texts))):
            self._texts = [text]
        else:
            self._texts.append(text)

    def payload(self) -> dict[str, Any]:
        text = {"text": "".join(self._texts)} if self._texts else {}
        return {**text, **closed(self._body), "meta_info": closed(self._meta)}


def _set_prompt(meta: dict[str, Any], entries: Any, k: int) -> None:
    """Note the prompt's entries; later chunks may have none."""
    held = meta.get(_PROMPT_ENTRIES)
    if not count(entries) and held is not None:
        return
    if count(held) and not same(held, entries):
        raise ValueError(f"chunk {k}: a second {_PROMPT_ENTRIES} disagrees with the first")
    meta[_PROMPT_ENTRIES] = entries
