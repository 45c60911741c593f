"""Served bodies: from the bytes to records, against a JSON reader and the reading of what it gives."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

import numpy as np
import orjson
from compare import Effort, Table, measure
from tokenrecords import TokenEntry, entries_from_response

# Prompt and generated ids: of a long and a usual call, of one whose log-probs dominate, and of a short one.
CHATS = ((32_768, 1_024), (4_096, 512), (2_000, 4_000), (64, 16))
SGLANG = (32_768, 1_024)


def _ids(count: int, seed: int) -> list[int]:
    return np.random.default_rng(seed).integers(0, 151_936, count).tolist()


def _log_probs(count: int) -> list[float]:
    """As engines print them: computed in float32, with the digits of a float64."""
    return (-np.random.default_rng(2).random(count, np.float32)).astype(float).tolist()


def chat(prompt: int, generated: int) -> bytes:
    """A vLLM chat with `return_token_ids` and log-probs whose words are the ids."""
    ids = _ids(generated, 1)
    entries = [
        {"token": f"token_id:{id_}", "logprob": log_prob, "bytes": list(str(id_).encode()), "top_logprobs": []}
        for id_, log_prob in zip(ids, _log_probs(generated), strict=True)
    ]
    choice = {
        "index": 0,
        "finish_reason": "stop",
        "token_ids": ids,
        "message": {"role": "assistant", "content": "tide " * generated},
        "logprobs": {"content": entries},
    }
    return _body(
        {
            "id": "chatcmpl-9",
            "object": "chat.completion",
            "created": 1_764_400_000,
            "model": "m",
            "prompt_token_ids": _ids(prompt, 0),
            "choices": [choice],
            "usage": {"prompt_tokens": prompt, "completion_tokens": generated},
        }
    )


def generate(prompt: int, generated: int) -> bytes:
    """An answer of SGLang's `/generate` whose prompt comes as triples."""
    ids = _ids(generated, 1)

    def triples(log_probs: list[float | None], ids: list[int]) -> list[list[Any]]:
        return [[log_prob, id_, None] for log_prob, id_ in zip(log_probs, ids, strict=True)]

    meta = {
        "id": "g",
        "finish_reason": {"type": "stop"},
        "prompt_tokens": prompt,
        "completion_tokens": generated,
        "input_token_logprobs": triples([None, *_log_probs(prompt - 1)], _ids(prompt, 0)),
        "output_token_logprobs": triples([*_log_probs(generated)], ids),
    }
    return _body({"text": "tide " * generated, "output_ids": ids, "meta_info": meta})


def _body(payload: dict[str, Any]) -> bytes:
    return json.dumps(payload, separators=(",", ":")).encode()


def _records(payload: Any) -> list[TokenEntry]:
    return entries_from_response(payload, rollout_id="r", model_call_id="c", parent=None, created_at=1.0)


def bodies(effort: Effort) -> list[Table]:
    """How many times faster the bytes of a response become records."""
    table = Table(
        "bodies",
        "entries_from_response of a body's bytes: times faster than of what orjson.loads gives",
        "body",
        {"orjson/bytes": "with orjson.loads", "lists/bytes": "of it the lists alone", "loads/bytes": "orjson alone"},
    )
    rows = {f"{prompt:,} + {generated:,}": chat(prompt, generated) for prompt, generated in CHATS}
    rows[f"SGLang, {SGLANG[0]:,} + {SGLANG[1]:,}"] = generate(*SGLANG)
    for label, body in rows.items():
        payload = orjson.loads(body)
        times = measure(
            effort,
            {
                "orjson": lambda body=body: _records(orjson.loads(body)),
                "bytes": partial(_records, body),
                "lists": partial(_records, payload),
            },
        )
        alone = measure(effort, {"loads": partial(orjson.loads, body)})
        table.ratios(label, {**times, **alone})
    return [table]
