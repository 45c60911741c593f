"""The dialects of served responses: one table, in the order in which they are told apart.

docs/add-an-engine.md says what a new one takes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from tokenrecords.engines import (
    completion,
    dynamo,
    fireworks,
    litellm,
    llama_cpp,
    lmdeploy,
    native,
    openai,
    responses,
    sglang,
    tgi,
    tinker,
    together,
    trl,
    vllm,
    vllm_engine,
)
from tokenrecords.engines.body import BODY, parsed
from tokenrecords.engines.payload import Payload, unwrap

if TYPE_CHECKING:
    from collections.abc import Callable

    from tokenrecords.engines.choice import RawChoice


class Dialect(NamedTuple):
    """How one kind of response is known and read.

    Attributes:
        name: What `detect_dialect` gives.
        sign: True for a payload of this kind, if it is of none above it in the table.
        read: The choices of one payload.
        batched: True where the engine also sends lists of payloads.
        counts_in_usage: True where `usage` counts one call; that of a Responses or Messages payload may sum several.
        numbered_apart: True where each payload of a list numbers its choices from 0 again.
    """

    name: str
    sign: Callable[[Payload], bool]
    read: Callable[[Payload], list[RawChoice]]
    batched: bool = False
    counts_in_usage: bool = True
    numbered_apart: bool = False


UNKNOWN: Final = Dialect("unknown", lambda _: True, lambda _: [])

# Token fields in their final form say most; then what only one engine writes; then the shape.
DIALECTS: Final = (
    Dialect("responses", responses.is_responses, responses.read_items, counts_in_usage=False),
    Dialect("chat", native.is_chat_with_tokens, completion.read_choices),
    Dialect("lmdeploy-messages", lmdeploy.is_lmdeploy_messages, lmdeploy.read_messages, counts_in_usage=False),
    Dialect("messages", native.is_messages, native.read_body, counts_in_usage=False),
    Dialect("trl", trl.is_trl, trl.read_trl, counts_in_usage=False),
    Dialect(
        "vllm-engine",
        vllm_engine.is_vllm_engine,
        vllm_engine.read_outputs,
        batched=True,
        counts_in_usage=False,
        numbered_apart=True,
    ),
    Dialect("tinker", tinker.is_tinker, tinker.read_sequences, counts_in_usage=False),
    Dialect(
        "lmdeploy-generate", lmdeploy.is_lmdeploy_generate, sglang.read_generate, batched=True, counts_in_usage=False
    ),
    Dialect("sglang-generate", sglang.is_sglang_generate, sglang.read_generate, batched=True, counts_in_usage=False),
    Dialect("tgi", tgi.is_tgi, tgi.read_tgi, batched=True, counts_in_usage=False),
    Dialect("llama-cpp", llama_cpp.is_llama_cpp, llama_cpp.read_completion, batched=True, counts_in_usage=False),
    Dialect("dynamo", dynamo.is_dynamo, completion.read_choices),
    Dialect("litellm", litellm.is_litellm, completion.read_choices),
    Dialect("fireworks", fireworks.is_fireworks, completion.read_choices),
    Dialect("lmdeploy-chat", lmdeploy.is_lmdeploy_chat, completion.read_choices),
    Dialect("sglang-chat", sglang.is_sglang_chat, completion.read_choices),
    Dialect("together-chat", together.is_together_chat, completion.read_choices),
    Dialect("llama-cpp-chat", llama_cpp.is_llama_cpp_chat, completion.read_choices),
    Dialect("vllm-completions", openai.is_text, completion.read_choices),
    Dialect("vllm-chat", lambda payload: openai.is_chat(payload) and vllm.names_ids(payload), completion.read_choices),
    Dialect("chat", openai.is_chat, completion.read_choices),
    Dialect("vllm-generate", vllm.is_vllm_generate, completion.read_choices),
    Dialect("flat", native.is_flat, native.read_flat, batched=True, counts_in_usage=False),
    UNKNOWN,
)
_GENERATE: Final = {"lmdeploy-generate", "sglang-generate"}
BY_NAME: Final = {dialect.name: dialect for dialect in DIALECTS}


def detect_dialect(payload: Any) -> str:
    """The name of the dialect that a served response is written in, of those in docs/dialects.md, or `unknown`.

    Args:
        payload: One response as a mapping, a pydantic model, an engine's own object or the bytes of its JSON body; for
            an engine that batches (`sglang-generate`, `tgi`, `vllm-engine`, ...) also a list of them.

    Raises:
        ValueError: The bytes are not JSON.
        TypeError: Anything but these, or `choices` that are not a list.

    >>> detect_dialect({"object": "chat.completion", "prompt_token_ids": [1], "choices": [{"message": {}}]})
    'vllm-chat'
    >>> detect_dialect({"generated_text": "ok", "details": None})
    'tgi'
    >>> detect_dialect({"error": "overloaded"})
    'unknown'
    """
    return dialect_of(unwrap(parsed(payload) if isinstance(payload, BODY) else payload)).name


def dialect_of(sent: Payload | list[Payload]) -> Dialect:
    """The dialect of what `unwrap` gave."""
    if isinstance(sent, Payload):
        return next(dialect for dialect in DIALECTS if dialect.sign(sent))
    found = {dialect_of(part).name for part in sent}
    found = {"sglang-generate"} if found == _GENERATE else found  # a sample without log-probs does not say whose it is
    dialect = BY_NAME[found.pop()] if len(found) == 1 else UNKNOWN
    return dialect if dialect.batched else UNKNOWN
