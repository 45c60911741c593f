"""The chunks of a stream joined into the payload that the same call gives without streaming."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from itertools import chain
from typing import Any, ClassVar, Final, Protocol

from pydantic_core import from_json

from tokenrecords._core import ChunkRules, SseEvents
from tokenrecords.engines import anthropic_events, responses_events
from tokenrecords.engines.anthropic_events import Messages
from tokenrecords.engines.body import Served, natively, spliced
from tokenrecords.engines.completion_chunks import Completion
from tokenrecords.engines.joining import WORDS
from tokenrecords.engines.llama_cpp_chunks import Pieces
from tokenrecords.engines.payload import listed, mapping, plain
from tokenrecords.engines.responses_events import Response
from tokenrecords.engines.sglang_chunks import Generate
from tokenrecords.engines.sse import Chunk, parsed, parts
from tokenrecords.engines.tgi_chunks import Tokens

# What comes in between to keep a connection open.
_SIGNS_OF_LIFE: Final = ("ping", "keepalive")
# Lists that are worth an array each; more of them are chunks that could not be joined.
_MOST_LISTS: Final = 64
# What a response has where an error has its words.
_PARTS: Final = frozenset({"choices", "usage", "output", "content", "text", "token", "output_ids", "meta_info"})


class _Stream(Protocol):
    RULES: ClassVar[ChunkRules]  # which chunks it may take as one

    def __init__(self, dialect: str | None, /, *, check_ids: bool) -> None: ...

    def add(self, k: int, chunk: Chunk, /) -> None: ...

    def payload(self) -> Any: ...


def merge_stream(chunks: Iterable[Any], *, dialect: str | None = None, check_ids: bool = True) -> Any:
    """The full payload of a streamed call, as `read_response` takes it.

    Joined are the chunks of chat and text completions, of the native endpoints of vLLM, SGLang, LMDeploy, TGI and
    llama.cpp, and the events of Responses and Anthropic Messages. Text, reasoning and refusals are joined, tool calls
    by their id and index, ids and log-probs by choice; prompt ids come from the chunk that has them (the first). Of
    other values the last one that is not null stays.

    Args:
        chunks: The chunks in order, as dicts, pydantic objects of a client, or lines of the SSE stream (str or bytes;
            comments, blank lines and other fields are skipped, `data: [DONE]` ends it). A whole stream may be one str,
            bytes, bytearray or memoryview.
        dialect: The name that errors give; None to detect it.
        check_ids: False to take chunks of different ids for those of one response: some servers give each its own.

    Returns:
        A new dict, or for several samples of an engine that sends lists of them such a list. Chunks are not changed.

    Raises:
        ValueError: A chunk has text or log-probs but no ids while others of its choice carry ids, or unequal numbers of
            both; a value is said twice in two ways; chunks are of two responses; the server sent an error, whose
            message it has; a line is neither SSE nor JSON; or the stream has no chunks. Messages count chunks from 0.
        TypeError: A chunk is neither a mapping nor a model nor a line.

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
    given = parts(chunks)
    first, second = next(given, None), next(given, None)
    if isinstance(first, SseEvents) and second is None:
        return merge_events(first, dialect=dialect, check_ids=check_ids)
    held = (part for part in (first, second) if part is not None)
    return _merge(parsed(chain(held, given)), dialect, check_ids=check_ids)


def merge_events(events: SseEvents, *, dialect: str | None = None, check_ids: bool = True) -> Any:
    """What `merge_stream` gives of the events of a stream, of which many chunks are parsed and joined as one.

    Raises:
        ValueError: As `merge_stream`.
    """
    return _parsed(events, _joined(events), partial(_merge, dialect=dialect, check_ids=check_ids))


def serve_events(events: SseEvents) -> Served:
    """The payload of the events of a stream, of which the lists of tokens are read as arrays if they can be.

    Raises:
        ValueError: As `merge_stream`.
    """
    text = _joined(events)
    # However short the lists of a chunk are, those of all chunks are long, but not if each chunk stays one.
    chunks = None if text is None else spliced(text, least=1, most=_MOST_LISTS)
    native = natively(chunks, lambda native: native.turned_into(_merge(native.payload)))
    return Served(native, partial(_parsed, events, text, _merge))


def _parsed(events: SseEvents, text: bytes | None, merge: Callable[[Iterable[Chunk]], Any]) -> Any:
    if text is not None:
        try:
            return merge(from_json(text))
        except MemoryError:
            raise
        except Exception:  # noqa: BLE001, S110 - whatever it is: chunk by chunk it has its place
            pass
    return merge(parsed([events]))


def _joined(events: SseEvents) -> bytes | None:
    """The chunks as a JSON array, those as one that may be taken so; None where they are for `parsed` to read."""
    try:
        held = map(_glanced_at, (events[place][2] for place in range(len(events))))
        kind = next(_kind(chunk) for chunk in held if not _is_sign_of_life(chunk))
        return events.joined(kind.RULES)
    except (ValueError, StopIteration, AttributeError, TypeError):  # the first of them is no chunk
        return None


def _glanced_at(data: bytes) -> Chunk:
    """A chunk as far as its keys go: a prompt may be long, and is not parsed twice."""
    native = spliced(data)
    return from_json(data) if native is None else native.payload  # type: ignore[no-any-return]


def _merge(chunks: Iterable[Chunk], dialect: str | None = None, *, check_ids: bool = True) -> Any:
    stream: _Stream | None = None
    for k, chunk in enumerate(chunks):
        error = server_error(chunk)
        if error is not None:
            raise ValueError(f"chunk {k}: the server sent an error: {error}")
        if _is_sign_of_life(chunk):
            continue
        if stream is None:
            stream = _kind(chunk)(dialect, check_ids=check_ids)
        stream.add(k, chunk)
    if stream is None:
        raise ValueError("the stream has no chunks")
    return stream.payload()


def _is_sign_of_life(chunk: Chunk) -> bool:
    return chunk.get("type") in _SIGNS_OF_LIFE and "choices" not in chunk


def _kind(chunk: Chunk) -> type[_Stream]:
    """What the first chunk of a stream says of the others."""
    if _is_event(chunk):
        return Response if str(chunk["type"]).startswith(responses_events.PREFIX) else Messages
    if "choices" in chunk:
        return Completion
    if "token" in chunk:
        return Tokens
    if "meta_info" in chunk or "output_ids" in chunk:
        return Generate
    return Pieces if "content" in chunk and "stop" in chunk else Completion


def server_error(chunk: Chunk) -> str | None:
    """What a server says went wrong, in its own words, of a chunk or a whole body; None where it says nothing of it."""
    of_choices = (mapping(choice).get("error") for choice in listed(chunk.get("choices")))
    error = next((said for said in (chunk.get("error"), *of_choices) if said is not None), None)
    if error is None and not _is_error(chunk):
        return None
    # The words are in the error, or beside it.
    said = mapping(error).get("message") or error or next(filter(None, map(chunk.get, WORDS)), None)
    return str(said or dict(chunk))


def _is_error(chunk: Chunk) -> bool:
    """True for an object that calls itself an error, and for words where a response has its parts."""
    if "error" in (chunk.get("object"), chunk.get("type")):
        return True
    return _PARTS.isdisjoint(chunk) and not _is_event(chunk) and any(map(chunk.get, WORDS))


def _is_event(chunk: Chunk) -> bool:
    kind = chunk.get("type")
    return isinstance(kind, str) and (kind.startswith(responses_events.PREFIX) or kind in anthropic_events.EVENTS)


def is_stream(payloads: Any) -> bool:
    """True for a list of the chunks of a stream, and not of the payloads that an engine sends as a list."""
    if not isinstance(payloads, list | tuple):
        return False
    # The samples of a list have an id each, the chunks of a sample one.
    ids = [repr((mapping(mapping(part).get("meta_info")).get("id"), mapping(part).get("index"))) for part in payloads]
    again = len(set(ids)) < len(ids)
    return any(_is_chunk(plain(part), again=again) for part in payloads)


def _is_chunk(chunk: Any, *, again: bool) -> bool:
    if isinstance(chunk, str | bytes):
        return True
    if not isinstance(chunk, Mapping):
        return False
    if _is_event(chunk):
        return True
    if "choices" in chunk:
        return not any("message" in mapping(choice) for choice in listed(chunk["choices"]))
    meta = mapping(chunk.get("meta_info"))
    unfinished = bool(meta) and meta.get("finish_reason") is None and (again or "finish_reason" in meta)
    return unfinished or "token" in chunk or chunk.get("stop") is False
