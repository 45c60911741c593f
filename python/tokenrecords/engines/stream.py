"""The chunks of a streamed completion joined into the payload that the same call gives without streaming."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from tokenrecords.engines.dialects import detect_dialect
from tokenrecords.engines.openai import ids_from_words
from tokenrecords.engines.payload import count, mapping, plain
from tokenrecords.tokens.arrays import join_arrays
from tokenrecords.tokens.names import GENERATION, LOG_PROBS, PROMPT, ROUTED_EXPERTS

_TEXTS: Final = frozenset({"text", "content", "reasoning", "reasoning_content", "refusal"})
_LISTS: Final = frozenset({"token_ids", GENERATION, LOG_PROBS})
# Said once for the whole response; said again, it must be the same.
_ONCE: Final = frozenset({PROMPT, ROUTED_EXPERTS, "engine_data"})
# Said in each chunk: the first one stays.
_FIRST: Final = frozenset({"id", "object", "created", "model", "role"})
# Said again from the start in each chunk, with what is new at the end.
_GROWING: Final = frozenset({"completion_token_ids", "output_token_logprobs", "input_token_logprobs"})
_DONE: Final = object()


def merge_stream(chunks: Iterable[Any], *, dialect: str | None = None) -> dict[str, Any]:
    """The full payload of a streamed chat or text completion, as `read_response` takes it.

    Text, reasoning and refusals are joined, tool calls by their index, ids and log-probs by choice; prompt
    ids come from the chunk that has them (the first). Of other values the last one that is not null stays.

    Args:
        chunks: the chunks in order, as dicts, pydantic objects of a client, or lines of the SSE stream (str
            or bytes; comments, blank lines and other fields are skipped, `data: [DONE]` ends it). A whole
            stream in one str or bytes is split into lines.
        dialect: the name that errors give; None to detect it.

    Returns:
        A new dict in the shape of `chat.completion` or `text_completion`. Chunks are not changed.

    Raises:
        ValueError: for a chunk with text or log-probs but without ids while others of its choice carry ids,
            for unequal numbers of both in one chunk, for a value said twice in two ways, for chunks of two
            responses, for an error sent in the stream, for a line that is neither SSE nor JSON, and for a
            stream without chunks. Messages count chunks from 0.

    >>> merged = merge_stream([
    ...     'data: {"object": "chat.completion.chunk", "prompt_token_ids": [1],'
    ...     ' "choices": [{"index": 0, "delta": {"content": "o"}, "token_ids": [41]}]}', '',
    ...     'data: {"object": "chat.completion.chunk",'
    ...     ' "choices": [{"index": 0, "delta": {"content": "k"}, "token_ids": [2]}]}', '',
    ...     'data: [DONE]',
    ... ])
    >>> merged["choices"][0]["message"], merged["choices"][0]["token_ids"], merged["prompt_token_ids"]
    ({'role': 'assistant', 'content': 'ok'}, [41, 2], [1])
    """
    head: dict[str, Any] = {}
    joined: dict[int | None, _Choice] = {}
    for k, chunk in enumerate(_parsed(chunks)):
        _check_chunk(k, chunk, head)
        _merge(head, {key: value for key, value in chunk.items() if key != "choices"}, k)
        choices = chunk.get("choices")
        for choice in map(mapping, choices if isinstance(choices, (list, tuple)) else ()):
            index = choice.get("index")
            if index is not None and (isinstance(index, bool) or not isinstance(index, int)):
                raise ValueError(f"chunk {k}: choice index must be an integer, got {index!r}")
            joined.setdefault(index, _Choice()).add(k, choice)
    if not head and not joined:
        raise ValueError("the stream has no chunks")
    return _payload(head, joined, dialect)


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
    parts: list[_Part] = field(default_factory=list)

    def add(self, k: int, choice: Mapping[str, Any]) -> None:
        if "message" in choice:
            raise ValueError(f"chunk {k}: choices[].message belongs to a full response, not to a chunk")
        self.is_text = self.is_text or "text" in choice
        self.parts.append(_part(k, choice))
        # The message first: null where no chunk spoke, as a full response has it.
        message = self.merged.setdefault("message", {})
        _merge(message, mapping(choice.get("delta")), k)
        _merge(self.merged, {key: value for key, value in choice.items() if key not in ("delta", "index")}, k)

    def payload(self, index: int) -> dict[str, Any]:
        """The choice as a full response has it."""
        merged = {"index": index, **_closed(self.merged)}
        message = merged.pop("message")
        if self.is_text:
            return {**merged, "text": merged.get("text") or ""}
        return {**merged, "message": {"role": "assistant", "content": None, **message}}


# --- chunks -----------------------------------------------------------------------------------------------


def _parsed(chunks: Iterable[Any]) -> Iterator[Mapping[str, Any]]:
    for item in [chunks] if isinstance(chunks, (str, bytes)) else chunks:
        if isinstance(item, (str, bytes, bytearray)):
            text = item if isinstance(item, str) else bytes(item).decode()
            # Not splitlines: JSON may hold U+2028 and its like unescaped, and SSE knows CR and LF alone.
            for line in text.replace("\r", "\n").split("\n"):
                chunk = _from_line(line)
                if chunk is _DONE:
                    return
                if chunk is not None:
                    yield chunk
        else:
            chunk = plain(item)
            if not isinstance(chunk, Mapping):
                raise TypeError(f"a chunk must be a mapping, a model or a line, got {type(chunk).__name__}")
            yield chunk


def _from_line(line: str) -> Any:
    name, colon, data = line.strip().partition(":")
    if name.startswith("{"):
        data = line
    elif not name or (colon and name in ("event", "id", "retry")):
        return None
    elif name != "data":
        raise ValueError(f"not a line of an SSE stream: {line[:80]!r}")
    if data.strip() == "[DONE]":
        return _DONE
    try:
        chunk = json.loads(data)
    except ValueError as error:
        raise ValueError(f"a line of the stream is not JSON ({error}): {line[:80]!r}") from None
    if not isinstance(chunk, dict):
        raise ValueError(f"a line of the stream holds no chunk: {line[:80]!r}")
    return chunk


def _check_chunk(k: int, chunk: Mapping[str, Any], head: Mapping[str, Any]) -> None:
    if chunk.get("error") is not None:
        raise ValueError(f"chunk {k}: the server sent an error: {chunk['error']!r}")
    if "choices" not in chunk and "usage" not in chunk:
        raise ValueError(f"chunk {k}: no chunk of a chat or text completion: it has no choices")
    if chunk.get("id") and head.get("id") and chunk["id"] != head["id"]:
        raise ValueError(f"chunk {k}: id {chunk['id']!r} of another response than {head['id']!r}")


def _part(k: int, choice: Mapping[str, Any]) -> _Part:
    delta, logprobs = mapping(choice.get("delta")), mapping(choice.get("logprobs"))
    swept = mapping(choice.get("provider_specific_fields"))
    entries = logprobs.get("content")
    words = [mapping(entry).get("token") for entry in entries] if isinstance(entries, list) else logprobs.get("tokens")
    texts = [choice.get("text"), *(delta.get(name) for name in _TEXTS), delta.get("tool_calls")]
    listed = (choice.get("token_ids"), swept.get("token_ids"), choice.get(GENERATION), delta.get(GENERATION))
    ids = next((value for value in listed if value is not None), None)
    scored = (entries, logprobs.get("token_logprobs"), choice.get(LOG_PROBS), delta.get(LOG_PROBS))
    numbered = isinstance(entries, list) and any(mapping(entry).get("token_id") is not None for entry in entries)
    return _Part(
        chunk=k,
        says=any(texts) or delta.get("function_call") is not None,
        token_ids=None if ids is None else count(ids),
        words=numbered or ids_from_words(words) is not None,
        log_probs=count(next((value for value in scored if value is not None), None)),
    )


# --- joining ----------------------------------------------------------------------------------------------


class _Joined(list[Any]):
    """The parts of a value that is to be joined once all have come."""


def _merge(into: dict[str, Any], values: Mapping[str, Any], k: int) -> None:
    for key, value in values.items():
        if value is None:
            into.setdefault(key, None)
        elif key in _TEXTS or key in _LISTS:
            _append(into, key, value, k)
        elif key in _MERGED:
            into[key] = into[key] if isinstance(into.get(key), dict) else {}
            _MERGED[key](into[key], value, k)
        elif key in _GROWING and into.get(key) is not None and not _grown(into[key], value):
            raise ValueError(f"chunk {k}: {key} does not go on from that of an earlier chunk")
        elif key in _ONCE and into.get(key) is not None and not _same(into[key], value):
            raise ValueError(f"chunk {k}: a second {key} disagrees with the first")
        elif key not in _FIRST or not into.get(key):
            into[key] = value


def _append(into: dict[str, Any], key: str, value: Any, k: int) -> None:
    if not isinstance(value, str) and count(value) is None:
        raise ValueError(f"chunk {k}: {key} is neither text nor a list: {value!r:.80}")
    into[key] = into[key] if isinstance(into.get(key), _Joined) else _Joined()
    into[key].append(value)


def _merge_logprobs(into: dict[str, Any], logprobs: Any, k: int) -> None:
    for key, value in mapping(logprobs).items():
        if value is None:
            into.setdefault(key, None)
        else:
            _append(into, key, value, k)


def _merge_tool_calls(into: dict[int, dict[str, Any]], calls: Any, k: int) -> None:
    for place, call in enumerate(map(mapping, calls if isinstance(calls, (list, tuple)) else ())):
        index = place if call.get("index") is None else call["index"]
        if not isinstance(index, int):
            raise ValueError(f"chunk {k}: the index of a tool call must be an integer, got {index!r}")
        held = into.setdefault(index, {})
        if call.get("index") is None and call.get("id") and held.get("id") not in (None, call["id"]):
            raise ValueError(f"chunk {k}: a second tool call without an index: {call['id']!r}")
        for key, value in call.items():
            if key == "function":
                _merge_function(held.setdefault("function", {}), value, k)
            elif key != "index" and value is not None:
                held.setdefault(key, value)


def _merge_function(into: dict[str, Any], function: Any, k: int) -> None:
    for key, value in mapping(function).items():
        if value is None:
            continue
        if not isinstance(value, str):
            raise ValueError(f"chunk {k}: {key} of a function must be text, got {value!r:.80}")
        held = into.get(key, "")
        # The name comes whole, with some servers in each chunk; arguments come in pieces.
        into[key] = held if key == "name" and held == value else held + value


_MERGED: Final[dict[str, Callable[[dict[Any, Any], Any, int], None]]] = {
    "logprobs": _merge_logprobs,
    "tool_calls": _merge_tool_calls,
    "function_call": _merge_function,
    "meta_info": lambda into, value, k: _merge(into, mapping(value), k),
    "nvext": lambda into, value, k: _merge(into, mapping(value), k),
    "provider_specific_fields": lambda into, value, k: _merge(into, mapping(value), k),
}


def _grown(earlier: Any, later: Any) -> bool:
    length = count(earlier)
    return length is not None and count(later) is not None and _same(earlier, later[:length])


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return bool(np.array_equal(a, b))
    return bool(a == b)


def _closed(value: Any) -> Any:
    """The merged value with every join made."""
    if isinstance(value, _Joined):
        return _join(value)
    if isinstance(value, dict):
        return {key: _close_calls(held) if key == "tool_calls" else _closed(held) for key, held in value.items()}
    return value


def _join(parts: _Joined) -> Any:
    if all(isinstance(part, str) for part in parts):
        return "".join(parts)
    if any(isinstance(part, str) for part in parts):
        raise ValueError("a value of the stream comes as text in some chunks and as a list in others")
    if all(isinstance(part, np.ndarray) for part in parts):
        filled = [part for part in parts if len(part)] or parts[:1]
        if any(part.dtype.kind not in "iu" for part in filled):
            return np.concatenate(filled)
        joined = join_arrays(filled)
        if joined is not None:
            return joined
    return [value for part in parts for value in part]


def _close_calls(calls: Any) -> Any:
    return [calls[index] for index in sorted(calls)] if isinstance(calls, dict) else calls


# --- the payload ------------------------------------------------------------------------------------------


def _payload(head: dict[str, Any], joined: dict[int | None, _Choice], dialect: str | None) -> dict[str, Any]:
    if None in joined and len(joined) > 1:
        raise ValueError(f"chunk {joined[None].parts[0].chunk}: choice index is missing")
    by_index = {0 if index is None else index: choice for index, choice in joined.items()}
    is_text = any(choice.is_text for choice in by_index.values()) or head.get("object") == "text_completion"
    payload = {
        **_closed(head),
        "object": "text_completion" if is_text else "chat.completion",
        "choices": [by_index[index].payload(index) for index in sorted(by_index)],
    }
    for index, choice in by_index.items():
        _check_parts(choice.parts, lambda: dialect or detect_dialect(payload), index)
    return payload


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
