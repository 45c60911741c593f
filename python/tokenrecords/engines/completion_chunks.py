"""The chunks of a chat or text completion, or of vLLM's generate, joined into the payload of the same call."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Final

from tokenrecords._core import ChunkRules
from tokenrecords.engines.body import Entries, is_entries
from tokenrecords.engines.dialects import detect_dialect
from tokenrecords.engines.joining import RULES, Growing, append, closed, number, set_once, unpacked
from tokenrecords.engines.openai import ENTRY_LISTS, entries_of, ids_from_words
from tokenrecords.engines.payload import choices_of, count, listed, mapping
from tokenrecords.engines.tool_calls import ToolCalls, merge_function
from tokenrecords.tokens.arrays import shown
from tokenrecords.tokens.names import GENERATION, LOG_PROBS, LOSS_MASK, PROMPT, ROUTED_EXPERTS

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

_TEXTS: Final = frozenset({"text", "content", "reasoning", "reasoning_content", "refusal"})
_IDS: Final = ("token_ids", "output_ids", "gen_tokens", GENERATION)
_SCORES: Final = ("output_token_logprobs", LOG_PROBS)
_LISTS: Final = frozenset({*_IDS, "completion_token_ids", *_SCORES, LOSS_MASK, "sampling_mask"})
# Said once for the whole response; said again, it must be the same.
_ONCE: Final = frozenset({PROMPT, ROUTED_EXPERTS, "engine_data", "raw_output", "indexer_topk"})
_ONCE_IN_EXTENSIONS: Final = frozenset({"input_ids", "output_ids"})
# What engines add as an object.
_OF_ENGINES: Final = ("meta_info", "nvext", "sglext", "sgl_ext", "provider_specific_fields")
# Said in each chunk: the first one stays.
_FIRST: Final = frozenset({"id", "request_id", "object", "created", "model", "role"})
# Said again from the start in each chunk, with what is new at the end, or in pieces.
_GROWING: Final = frozenset({"output_token_logprobs", "input_token_logprobs"})

_FUNCTION: Final = {"name": "never", "*": "text"}
_RULES: Final = {
    **RULES,
    **dict.fromkeys(_TEXTS, "text"),
    **dict.fromkeys(_LISTS, "list"),
    **dict.fromkeys(_ONCE | _FIRST, "same"),
    **dict.fromkeys(("token_id", *_OF_ENGINES), "never"),
    "logprobs": {**dict.fromkeys(ENTRY_LISTS, "entries"), "*": "list"},
    "function_call": _FUNCTION,
    "tool_calls": [{"function": _FUNCTION, "*": "same"}],
    "*": "last",
}


class Completion:
    """A completion while its chunks come in.

    Args:
        dialect: The name that errors give; None to detect it.
        check_ids: True to refuse chunks of two responses.
    """

    RULES: ClassVar = ChunkRules({**_RULES, "choices": [{**_RULES, "index": "same", "delta": _RULES}]})

    def __init__(self, dialect: str | None, *, check_ids: bool) -> None:
        self._dialect = dialect
        self._check_ids = check_ids
        self._head: dict[str, Any] = {}
        self._choices: dict[int | None, _Choice] = {}

    def add(self, k: int, chunk: Mapping[str, Any]) -> None:
        """Take a chunk.

        Raises:
            ValueError: It does not go on from the earlier ones.
        """
        if "choices" not in chunk and "usage" not in chunk:
            raise ValueError(
                f"chunk {k}: no chunk of a chat or text completion: it has no choices: {shown(dict(chunk))}"
            )
        for name in ("id", "request_id") if self._check_ids else ():
            own, held = chunk.get(name), self._head.get(name)
            if own and held and own != held:
                raise ValueError(f"chunk {k}: {name} {own!r} of another response than {held!r}")
        _merge(self._head, {key: value for key, value in chunk.items() if key != "choices"}, k)
        for choice in map(mapping, choices_of(chunk)):
            index = number(choice.get("index"), "choice index", k)
            self._choices.setdefault(index, _Choice()).add(k, choice)

    def payload(self) -> dict[str, Any]:
        """The payload that the same call gives without streaming.

        Raises:
            ValueError: A chunk lacks what the others of its choice have.
        """
        if None in self._choices and len(self._choices) > 1:
            raise ValueError(f"chunk {self._choices[None].parts[0].chunk}: choice index is missing")
        by_index = {0 if index is None else index: choice for index, choice in self._choices.items()}
        kind = self._kind(by_index.values())
        payload = {
            **closed(self._head),
            **({"object": kind} if kind else {}),
            "choices": [by_index[index].payload(index, kind) for index in sorted(by_index)],
        }
        for index, choice in by_index.items():
            _check_parts(choice.parts, lambda: self._dialect or detect_dialect(payload), index)
        return payload

    def _kind(self, choices: Collection[_Choice]) -> str | None:
        """The `object` of the payload; vLLM's generate has none."""
        is_chat = any(choice.is_chat for choice in choices)
        if self._head.get("object") == "text_completion" or (not is_chat and any(choice.is_text for choice in choices)):
            return "text_completion"
        if is_chat or "object" in self._head or not choices:
            return "chat.completion"
        return None


@dataclass(slots=True)
class _Part:
    """What one chunk brought to one choice."""

    chunk: int
    says: bool
    token_ids: int | None
    words: bool
    log_probs: int | None


@dataclass(slots=True)
class _Choice:
    """One choice while its chunks come in."""

    merged: dict[str, Any] = field(default_factory=dict)
    is_text: bool = False
    is_chat: bool = False
    parts: list[_Part] = field(default_factory=list)

    def add(self, k: int, choice: Mapping[str, Any]) -> None:
        if "message" in choice:
            raise ValueError(f"chunk {k}: choices[].message belongs to a full response, not to a chunk")
        self.is_text = self.is_text or "text" in choice
        self.is_chat = self.is_chat or "delta" in choice
        self.parts.append(_part(k, choice))
        # The message first: null where no chunk spoke, as a full response has it.
        message = self.merged.setdefault("message", {})
        _merge(message, mapping(choice.get("delta")), k)
        _merge(self.merged, {key: value for key, value in choice.items() if key not in ("delta", "index")}, k)

    def payload(self, index: int, kind: str | None) -> dict[str, Any]:
        """The choice as a full response of this kind has it."""
        merged = {"index": index, **closed(self.merged)}
        message = merged.pop("message")
        if kind == "text_completion":
            return {**merged, "text": merged.get("text") or ""}
        if kind is None:
            return merged
        return {**merged, "message": {"role": "assistant", "content": None, **message}}


def _part(k: int, choice: Mapping[str, Any]) -> _Part:
    delta, logprobs = mapping(choice.get("delta")), mapping(choice.get("logprobs"))
    swept = [mapping(holder.get("provider_specific_fields")) for holder in (choice, delta)]
    entries = choice["logprobs"] if is_entries(choice.get("logprobs")) else entries_of(logprobs)
    texts = [choice.get("text"), *(delta.get(name) for name in _TEXTS), delta.get("tool_calls")]
    ids = _first_of(*((holder, _IDS) for holder in (choice, *swept, delta)), (logprobs, ("token_ids",)))
    scored = _first_of((logprobs, ("token_logprobs",)), (choice, _SCORES), (delta, _SCORES))
    ids, scored = unpacked(GENERATION, ids, k), unpacked(LOG_PROBS, scored, k)
    return _Part(
        chunk=k,
        says=any(texts) or delta.get("function_call") is not None,
        token_ids=None if ids is None else count(ids),
        words=_have_ids(entries) if is_entries(entries) else _are_ids(logprobs.get("tokens")),
        log_probs=count(scored if entries is None else entries),
    )


def _first_of(*places: tuple[Mapping[str, Any], Iterable[str]]) -> Any:
    return next((holder[name] for holder, names in places for name in names if holder.get(name) is not None), None)


def _have_ids(entries: list[Any] | Entries) -> bool:
    if type(entries) is Entries:
        return any(map(entries.holds, ("token_id", "id", "token")))
    entries = list(map(mapping, entries))
    return any(map(_has_id, entries)) or _are_ids([entry.get("token") for entry in entries])


def _has_id(entry: Mapping[str, Any]) -> bool:
    return any(entry.get(key) is not None and not isinstance(entry[key], str) for key in ("token_id", "id"))


def _are_ids(words: Any) -> bool:
    return ids_from_words(words) is not None


def _merge(into: dict[str, Any], values: Mapping[str, Any], k: int, once: frozenset[str] = _ONCE) -> None:
    for key, value in values.items():
        if value is None:
            into.setdefault(key, None)
        elif key in once:
            set_once(into, key, value, k)
        elif key in _TEXTS or key in _LISTS:
            append(into, key, value, k)
        elif key == "token_id":
            append(into, key, [value], k)  # one a chunk: all of them, so that none is lost unseen
        elif key in _MERGED:
            into[key] = into[key] if isinstance(into.get(key), dict) else {}
            _MERGED[key](into[key], value, k)
        elif key == "tool_calls":
            into[key] = into[key] if isinstance(into.get(key), ToolCalls) else ToolCalls()
            into[key].add(k, listed(value))
        elif key not in _FIRST or not into.get(key):
            into[key] = value


def _merge_logprobs(into: dict[str, Any], logprobs: Any, k: int) -> None:
    if is_entries(logprobs):
        logprobs = {"content": logprobs}
    elif isinstance(logprobs, int | float):
        logprobs = {"token_logprobs": [logprobs]}  # Together: that of the chunk's token
    lists = mapping(logprobs)
    # All entries in one list, in the order in which they were generated: parts may take turns.
    entries = entries_of(lists)
    if entries is not None:
        append(into, "content", entries, k)
    for key, value in lists.items():
        if value is None:
            into.setdefault(key, None)
        elif key not in ENTRY_LISTS:
            append(into, key, value, k)


def _merge_growing(into: dict[str, Any], values: Any, k: int) -> None:
    """Merge `meta_info` or `nvext`."""
    values = mapping(values)
    counted = values.get("completion_tokens")
    for key, value in values.items():
        if key in _GROWING and value is not None:
            into[key] = into[key] if isinstance(into.get(key), Growing) else Growing(key)
            into[key].add(k, value, counted if key == "output_token_logprobs" else None)
        else:
            _merge(into, {key: value}, k)


_MERGED: Final[dict[str, Callable[[dict[str, Any], Any, int], None]]] = {
    "logprobs": _merge_logprobs,
    "function_call": merge_function,
    "meta_info": _merge_growing,
    "nvext": _merge_growing,
    "sglext": lambda into, value, k: _merge(into, mapping(value), k, _ONCE | _ONCE_IN_EXTENSIONS),
    "sgl_ext": lambda into, value, k: _merge(into, mapping(value), k, _ONCE | _ONCE_IN_EXTENSIONS),
    "provider_specific_fields": lambda into, value, k: _merge(into, mapping(value), k),
}


def _check_parts(parts: list[_Part], dialect: Callable[[], str], index: int) -> None:
    """Refuse a stream with a hole: a chunk that speaks without ids where others of its choice have them."""
    listed = any(part.token_ids is not None for part in parts)
    carried = listed or any(part.words for part in parts)
    for part in parts:
        has_ids = part.token_ids is not None if listed else part.words
        if carried and (part.says or part.log_probs) and not has_ids:
            raise ValueError(f"{dialect()} choice {index}: chunk {part.chunk}: {GENERATION} is missing")
        if part.token_ids is not None and part.log_probs is not None and part.token_ids != part.log_probs:
            raise ValueError(
                f"{dialect()} choice {index}: chunk {part.chunk}: "
                f"{part.token_ids} {GENERATION} and {part.log_probs} {LOG_PROBS}"
            )
