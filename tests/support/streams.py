"""Streams as bytes, what is read of them, and streams with faults."""

from __future__ import annotations

import copy
import dataclasses
import json
from typing import TYPE_CHECKING, Any

import tokenrecords
from tokenrecords.tokens.names import ARRAY_FIELDS

from support.bodies import spelled, with_fault

if TYPE_CHECKING:
    import random
    from collections.abc import Callable

_IDS = (41, 2, 1999)
_TEXTS = ("o", "k", "", "token_id:7", "\N{PILE OF POO}", '"\\')


def sse(*chunks: Any) -> bytes:
    """The stream of these chunks."""
    return b"".join(b"data: %s\n\n" % json.dumps(part, ensure_ascii=False).encode() for part in chunks)


def outcome(merge: Callable[[], Any]) -> str:
    """What a call gives, or how it fails."""
    try:
        return repr(merge())
    except Exception as error:  # noqa: BLE001 - equal, whatever it is
        return repr(error)


def merged(chunks: Any, **options: Any) -> str:
    return outcome(lambda: tokenrecords.merge_stream(chunks, **options))


def choices_of(payload: Any, **options: Any) -> list[Any]:
    """The choices of a payload: ids and log-probs as lists of floats, all else as it is held, with its types."""
    found = [dataclasses.asdict(choice) for choice in tokenrecords.read_response(payload, **options)]
    return [
        {**{name: list(map(float, choice.pop(name))) for name in ARRAY_FIELDS}, "others": repr(choice)}
        for choice in found
    ]


def _entry(**fields: Any) -> dict[str, Any]:
    return {"token": "token_id:41", "logprob": -0.5, "bytes": [111], "top_logprobs": [], **fields}


def _chunk(**choice: Any) -> dict[str, Any]:
    head = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    return {**head, "choices": [{"index": 0, **choice, "finish_reason": None}], "usage": {"completion_tokens": 1}}


def _text_event(name: str = "output_text", **fields: Any) -> dict[str, Any]:
    place = {"sequence_number": 1, "item_id": "i", "output_index": 0, "content_index": 0}
    return {"type": f"response.{name}.delta", **place, "delta": "o", **fields}


def _block_event(kind: str, piece: str, **fields: Any) -> dict[str, Any]:
    return {"type": "content_block_delta", "index": 0, "delta": {"type": kind, piece: "o"}, **fields}


_FUNCTION = {"index": 0, "function": {"arguments": "o"}}
_LISTS = {"tokens": ["token_id:41"], "token_logprobs": [-0.5], "top_logprobs": [{"o": -0.5}], "text_offset": [0]}
_META = {"id": "c", "completion_tokens": 1, "output_token_logprobs": [[-0.5, 41, None]]}

# Chunks by kind of stream: each as servers send many alike.
CHUNKS: dict[str, list[dict[str, Any]]] = {
    "chat": [
        _chunk(delta={"content": "o"}, logprobs={"content": [_entry()]}, token_ids=[41]),
        _chunk(delta={"content": "o", "tool_calls": None}, logprobs=None, token_ids=[41]) | {"prompt_token_ids": [1]},
        _chunk(delta={"reasoning": "o", "role": "assistant"}, logprobs={"content": [_entry(token="o")]}),
        _chunk(delta={"reasoning_content": "o"}, logprobs={"content": None, "reasoning": [_entry(token_id=41)]}),
        _chunk(delta={"tool_calls": [_FUNCTION]}, logprobs={"content": [_entry(id=41)]}, token_ids=[41]),
        _chunk(delta={"tool_calls": [{**_FUNCTION, "id": "t", "type": "function"}]}),
        _chunk(delta={"function_call": {"arguments": "o"}}),
        _chunk(delta={"content": "o", "token_ids": [41]}, generation_log_probs=[-0.5]),
        _chunk(delta={"content": "o", "token_id": 41}, logprobs=-0.5),
        _chunk(delta={"content": "o"}, logprobs={"content": [_entry()], "refusal": [_entry()]}),
        _chunk(delta={"content": "o"}, logprobs=[_entry()]),
        _chunk(delta={"content": "o"}, meta_info=_META),
    ],
    "text": [
        _chunk(text="o", logprobs=_LISTS, token_ids=[41]),
        _chunk(text="o", logprobs={**_LISTS, "top_logprobs": None, "token_ids": [41]}),
    ],
    "generate": [
        {"request_id": "c", "choices": [{"index": 0, "logprobs": {"content": [_entry()]}, "token_ids": [41]}]}
    ],
    "responses": [
        _text_event(logprobs=[_entry()]),
        _text_event("reasoning_text", token_ids=[41], logprobs=[]),
        _text_event("function_call_arguments", output_token_logprobs=[[-0.5, 41]], prompt_token_ids=[1]),
        _text_event("reasoning_summary_text", summary_index=0),
    ],
    "messages": [
        _block_event("text_delta", "text", output_ids=[41], output_token_logprobs=[[-0.5, 41]]),
        _block_event("thinking_delta", "thinking"),
        _block_event("input_json_delta", "partial_json", prompt_token_ids=[1]),
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "o", "token_ids": [41]}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "citations_delta", "citation": {"a": 1}}},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 1}},
    ],
    "llama.cpp": [
        {"index": 0, "content": "o", "tokens": [41], "stop": False, "tokens_predicted": 1},
        {"content": "o", "tokens": [41], "completion_probabilities": [_entry(id=41)], "stop": False, "timings": {}},
    ],
    "tgi": [{"index": 1, "token": {"id": 41, "text": "o", "logprob": -0.5}, "generated_text": None}],
    "sglang": [{"text": "o", "output_ids": [41], "meta_info": _META}],
}


def alike(value: Any, chance: random.Random, often: float) -> Any:
    """The value with other texts and numbers in some places, and with lists of other lengths."""
    if isinstance(value, dict):
        return {key: alike(held, chance, often) for key, held in value.items()}
    if isinstance(value, list):
        times = chance.choice((0, 2, 3)) if chance.random() < often / 3 else 1
        return [alike(held, chance, often) for held in value * times]
    if value is None or isinstance(value, bool) or chance.random() > often:
        return value
    return chance.choice(_TEXTS) if isinstance(value, str) else chance.choice(_IDS)


def _samples(chance: random.Random) -> list[Any]:
    """Chunks of SGLang's generate: what is new, all again, or now this and now that; counts and lists may be wrong."""
    ids = [chance.choice(_IDS) for _ in range(9)]
    places = sorted(chance.sample(range(1, 10), chance.randint(1, 7)))
    is_again, often = chance.random() < 0.5, chance.choice((0.0, 0.0, 0.2))
    chunks = []
    for before, place in zip([0, *places], places, strict=False):
        is_again ^= chance.random() < often / 2
        wrong = [chance.choice((-1, 0, 1)) if chance.random() < often else 0 for _ in range(3)]
        start = 0 if is_again else before
        part = ids[max(start + wrong[0], 0) : place + wrong[1]]
        meta = {"id": "g", "completion_tokens": place + wrong[2], "finish_reason": None, "e2e": chance.random()}
        made = {"text": "o" * len(part), "output_ids": part, "meta_info": meta}
        if chance.random() > often / 2:
            meta["output_token_logprobs"] = [[-0.5, id_, None] for id_ in part]
        if chance.random() < often:
            (made if chance.random() < 0.5 else meta).pop(chance.choice(("text", "id", "output_ids")), None)
        chunks.append(made)
    return chunks


def stream_of(kind: str, chance: random.Random) -> list[bytes]:
    """The texts of the chunks of a stream: some alike, some that are not, up to two with a fault."""
    chunks: list[Any] = _samples(chance) if kind == "sglang" else []
    for _ in range(chance.randint(0 if chunks else 1, 3)):
        often = chance.choice((0.0, 0.1, 0.3))
        first = chance.choice(CHUNKS[kind])
        if chance.random() < 0.3:
            first = with_fault(first, chance)
        chunks += [alike(first, chance, often) if often else copy.deepcopy(first) for _ in range(chance.randint(1, 4))]
    for _ in range(chance.choice((0, 0, 1, 2))):
        place = chance.randrange(len(chunks))
        chunks[place] = with_fault(chunks[place], chance)
    if chance.random() < 0.1:
        other = chance.choice(({"type": "ping"}, {"error": "dead"}, chance.choice(CHUNKS[chance.choice(list(CHUNKS))])))
        chunks.insert(chance.randint(0, len(chunks)), other)
    return [json.dumps(part).encode() if chance.random() < 0.7 else spelled(part, chance) for part in chunks]
