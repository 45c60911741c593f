"""Small served responses of each engine: the prompt 1, 7 and the generated ids 41, 2."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from pydantic import BaseModel, ConfigDict
from tokenrecords import read_response

if TYPE_CHECKING:
    from tokenrecords import ServedChoice

TOKENS = ([1, 7], [41, 2], [-0.125, -0.5])


class Model(BaseModel):
    """An object of a client library: any fields, as they are."""

    model_config = ConfigDict(extra="allow", arbitrary_types_allowed=True)


def token_fields(prompt: Any, ids: Any, log_probs: Any = None) -> dict[str, Any]:
    """The three fields of a native payload; log-probs of -0.5 where none are given."""
    log_probs = [-0.5] * len(ids) if log_probs is None else log_probs
    return {"prompt_token_ids": prompt, "generation_token_ids": ids, "generation_log_probs": log_probs}


def native(**fields: Any) -> dict[str, Any]:
    return {**token_fields([1, 7], [41, 2], [-0.125, -0.5]), **fields}


def native_chat(**fields: Any) -> dict[str, Any]:
    """A chat of one choice whose message carries the native fields."""
    return {"choices": [{"message": {"content": "x", **native(**fields)}}]}


def native_item(**fields: Any) -> dict[str, Any]:
    """An output item that carries the native fields."""
    return {"type": "message", "role": "assistant", "content": [], **native(**fields)}


def log_prob_entry(token: Any, logprob: Any, **more: Any) -> dict[str, Any]:
    """One entry of `logprobs.content`."""
    return {"token": token, "logprob": logprob, "bytes": None, "top_logprobs": [], **more}


def words(ids: Any, log_probs: Any) -> dict[str, Any]:
    """`logprobs` whose words are the ids."""
    return {"content": [log_prob_entry(f"token_id:{i}", lp) for i, lp in zip(ids, log_probs, strict=True)]}


def numbered(ids: Any, log_probs: Any) -> dict[str, Any]:
    """`logprobs` whose entries have their ids beside the words."""
    return {"content": entries(ids, log_probs, "token_id")}


def entries(ids: Any, log_probs: Any, key: str) -> list[dict[str, Any]]:
    """Entries of log-probs that have their ids under a key."""
    return [log_prob_entry("x", lp, **{key: i}) for i, lp in zip(ids, log_probs, strict=True)]


def duos(ids: Any, log_probs: Any) -> list[list[Any]]:
    """Pairs of log-prob and id, as LMDeploy has them."""
    return [[lp, i] for i, lp in zip(ids, log_probs, strict=True)]


def engine_output(index: int, ids: Any, log_probs: Any) -> dict[str, Any]:
    """An output of vLLM in process: the log-prob of each sampled id beside that of a candidate."""
    scored = [{str(i): {"logprob": lp}, "-1": {"logprob": -99.0}} for i, lp in zip(ids, log_probs, strict=True)]
    return {"index": index, "text": "x", "token_ids": ids, "logprobs": scored, "finish_reason": "stop"}


def pairs(ids: Any, log_probs: Any) -> list[list[Any]]:
    """Triples of log-prob, id and no word, as SGLang has them."""
    return [[lp, i, None] for i, lp in zip(ids, log_probs, strict=True)]


def vllm_choice(index: Any = 0, ids: Any = (41, 2), log_probs: Any = (-0.125, -0.5), **more: Any) -> dict[str, Any]:
    return {
        "index": index,
        "finish_reason": "stop",
        "token_ids": list(ids),
        "message": {"role": "assistant", "content": "ok"},
        "logprobs": words(ids, log_probs),
        **more,
    }


def vllm_chat(*choices: Any, **more: Any) -> dict[str, Any]:
    return {
        "id": "chatcmpl-9",
        "object": "chat.completion",
        "created": 1700000000,
        "model": "m",
        "prompt_token_ids": [1, 7],
        "choices": list(choices) or [vllm_choice()],
        **more,
    }


def sglang_sample(**meta: Any) -> dict[str, Any]:
    own = {
        "id": "g1",
        "prompt_tokens": 2,
        "completion_tokens": 2,
        "finish_reason": {"type": "length", "length": 2},
        "input_token_logprobs": [[None, 1, None], [-2.0, 7, None]],
        "output_token_logprobs": [[-0.125, 41, None], [-0.5, 2, None]],
    }
    return {"text": "ok", "output_ids": [41, 2], "meta_info": {**own, **meta}}


def dynamo(choices: Any = None, engine: Any = None, **nvext: Any) -> dict[str, Any]:
    engine = engine or {"prompt_token_ids": [1, 7], "completion_token_ids": [41, 2]}
    return {
        "object": "chat.completion",
        "choices": choices or [{"index": 0, "message": {"role": "assistant", "content": "ok"}}],
        "nvext": {"engine_data": {"completion_logprobs": [-0.125, -0.5], **engine}, **nvext},
    }


def tgi(**details: Any) -> dict[str, Any]:
    own = {
        "finish_reason": "length",
        "generated_tokens": 2,
        "prefill": [{"id": 1, "text": "<s>", "logprob": None}, {"id": 7, "text": "a", "logprob": -3.0}],
        "tokens": [{"id": 41, "text": "o", "logprob": -0.125}, {"id": 2, "text": "k", "logprob": -0.5}],
    }
    return {"generated_text": "ok", "details": {**own, **details}}


def piece(text: Any = None, ids: Any = None, index: Any = 0, **more: Any) -> dict[str, Any]:
    """A choice of a chunk: its text, and its ids in both places."""
    entries = None if ids is None else [{"token": f"token_id:{i}", "logprob": -float(i) / 8} for i in ids]
    return {
        "index": index,
        "delta": {} if text is None else {"content": text},
        "logprobs": None if entries is None else {"content": entries},
        "token_ids": ids,
        "finish_reason": None,
        **more,
    }


def chunk(*choices: dict[str, Any], **more: Any) -> dict[str, Any]:
    """A chunk of a chat's stream."""
    head = {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    return {**head, "choices": list(choices), **more}


def tokens_of(choice: ServedChoice) -> tuple[list[Any], list[Any], list[Any]]:
    return list(choice.prompt_token_ids), list(choice.generation_token_ids), list(choice.generation_log_probs)


def refused(payload: Any, *words: str, **options: Any) -> None:
    """The payload is an error, whose message holds each of the words."""
    with pytest.raises(ValueError, match=r".") as caught:
        read_response(payload, **options)
    for word in words:
        assert word in str(caught.value)
