"""Streamed calls: from the bytes of a stream to its payload and its records, against a JSON reader and joined dicts."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

import numpy as np
import orjson
from compare import Effort, Table, measure
from tokenrecords import entries_from_response, merge_stream
from tokenrecords.engines.event_stream import EventStream

CHUNKS = 2_000
PACKET = 8  # events that come together
SIZES = ((64, 16), (4_096, 512), (32_768, 1_024))

Streams = dict[str, list[dict[str, Any]]]


def streams_of(count: int) -> Streams:
    """Streams of so many chunks of one token each, as each kind of server sends them."""
    ids = np.random.default_rng(1).integers(0, 151_936, count).tolist()
    log_probs = (-np.random.default_rng(2).random(count, np.float32)).astype(float).tolist()
    tokens = list(zip(ids, log_probs, strict=True))

    def entry(id_: int, log_prob: float) -> dict[str, Any]:
        return {"token": f"token_id:{id_}", "logprob": log_prob, "bytes": list(b"tide "), "top_logprobs": []}

    def chat(delta: dict[str, Any], id_: int, log_prob: float, index: int = 0) -> dict[str, Any]:
        logprobs = {"content": [entry(id_, log_prob)]}
        choice = {"index": index, "delta": delta, "logprobs": logprobs, "finish_reason": None, "token_ids": [id_]}
        return {"id": "chatcmpl-9", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}

    def text(id_: int, log_prob: float) -> dict[str, Any]:
        logprobs = {"tokens": [f"token_id:{id_}"], "token_logprobs": [log_prob], "text_offset": [0]}
        choice = {"index": 0, "text": "tide ", "logprobs": logprobs, "finish_reason": None, "token_ids": [id_]}
        return {"id": "cmpl-9", "object": "text_completion", "created": 1, "model": "m", "choices": [choice]}

    def event(id_: int, log_prob: float) -> dict[str, Any]:
        place = {"item_id": "i", "output_index": 0, "content_index": 0, "sequence_number": id_}
        return {"type": "response.output_text.delta", **place, "delta": "tide ", "logprobs": [entry(id_, log_prob)]}

    def block(id_: int, log_prob: float) -> dict[str, Any]:
        fields = {"output_ids": [id_], "output_token_logprobs": [[log_prob, id_, None]]}
        return {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "tide "}, **fields}

    def piece(id_: int, log_prob: float) -> dict[str, Any]:
        scored = {"id": id_, "token": "tide ", "logprob": log_prob, "top_logprobs": []}
        return {"index": 0, "content": "tide ", "tokens": [id_], "stop": False, "completion_probabilities": [scored]}

    def sample(end: int, start: int) -> dict[str, Any]:
        triples = [[log_prob, id_, None] for id_, log_prob in tokens[start:end]]
        meta = {"id": "g", "finish_reason": None, "completion_tokens": end, "output_token_logprobs": triples}
        return {"text": "tide " * (end - start), "output_ids": ids[start:end], "meta_info": meta}

    call = {"tool_calls": [{"index": 0, "function": {"arguments": "tide "}}]}
    return {
        "vLLM chat": [chat({"content": "tide "}, *token) for token in tokens],
        "of it a tool call": [chat(call, *token) for token in tokens],
        "two choices in turn": [chat({"content": "tide "}, *token, index=k % 2) for k, token in enumerate(tokens)],
        "text completion": [text(*token) for token in tokens],
        "Responses": [event(*token) for token in tokens],
        "Anthropic Messages": [block(*token) for token in tokens],
        "llama.cpp": [piece(*token) for token in tokens],
        "SGLang, what is new": [sample(end, end - 1) for end in range(1, count + 1)],
        "SGLang, all again, a quarter": [sample(end, 0) for end in range(1, count // 4 + 1)],
    }


def body_of(texts: list[bytes]) -> bytes:
    return b"".join(b"data: %s\n\n" % text for text in texts) + b"data: [DONE]\n\n"


def recorded(payload: Any) -> Any:
    return entries_from_response(payload, rollout_id="r", model_call_id="c", created_at=1.0)


def fed(packets: list[bytes]) -> Any:
    stream = EventStream()
    for packet in packets:
        stream.feed(packet)
    return recorded(stream.payload())


def loaded(texts: list[bytes]) -> Any:
    return recorded(merge_stream([orjson.loads(text) for text in texts]))


def records(effort: Effort) -> Table:
    """How many times faster the packets of a stream become a record."""
    table = Table(
        "stream-records",
        "EventStream, fed with a stream as it comes, to records: times faster than orjson.loads, dicts joined and read",
        "chat of vLLM",
        {"orjson/fed": "with orjson.loads", "loads/fed": "orjson alone"},
    )
    for prompt, count in SIZES:
        ids = np.random.default_rng(3).integers(0, 151_936, prompt).tolist()
        first, *others = streams_of(count)["vLLM chat"]
        texts = [orjson.dumps(chunk) for chunk in (first | {"prompt_token_ids": ids}, *others)]
        events = [b"data: %s\n\n" % text for text in texts]
        packets = [b"".join(events[place : place + PACKET]) for place in range(0, len(events), PACKET)]
        if [entry.as_lists() for entry in fed(packets)] != [entry.as_lists() for entry in loaded(texts)]:
            raise ValueError("the records of the stream differ")
        ways = {"orjson": partial(loaded, texts), "fed": partial(fed, packets)}
        alone = {"loads": lambda texts=texts: [orjson.loads(text) for text in texts]}
        table.ratios(f"{prompt:,} + {count:,}", {**measure(effort, ways), **measure(effort, alone)})
    return table


def streams(effort: Effort) -> list[Table]:
    """How many times faster the bytes of a stream become a payload."""
    table = Table(
        "streams",
        f"merge_stream of the bytes of {CHUNKS:,} chunks: times faster than of what orjson.loads gives of each",
        "stream",
        {"orjson/bytes": "with orjson.loads", "dicts/bytes": "of it the dicts alone", "loads/bytes": "orjson alone"},
    )
    for label, chunks in streams_of(CHUNKS).items():
        texts = [json.dumps(chunk, separators=(",", ":")).encode() for chunk in chunks]
        body = body_of(texts)
        times = measure(
            effort,
            {
                "orjson": lambda texts=texts: merge_stream([orjson.loads(text) for text in texts]),
                "bytes": partial(merge_stream, body),
                "dicts": partial(merge_stream, chunks),
            },
        )
        alone = measure(effort, {"loads": lambda texts=texts: [orjson.loads(text) for text in texts]})
        table.ratios(label, {**times, **alone})
    return [table, records(effort)]
