"""LMDeploy: pairs [log-prob, id] beside `output_ids`, on a choice, an Anthropic body or an answer of `/generate`."""

from __future__ import annotations

from tokenrecords.engines.choice import RawChoice, Source, said
from tokenrecords.engines.native import read_body
from tokenrecords.engines.openai import is_chat
from tokenrecords.engines.payload import Body, Payload, column, ends, listed, mapping
from tokenrecords.engines.sglang import is_sglang_generate
from tokenrecords.engines.token_fields import is_messages_body
from tokenrecords.tokens.names import GENERATION, LOG_PROBS, ROUTED_EXPERTS

_OUTPUT = frozenset({"output_ids", "output_token_logprobs", "gen_tokens"})


def on_output(holder: Body) -> list[Source]:
    """Requests `return_token_ids` and `return_logprob`; a chat message's ids are its `gen_tokens`."""
    if _OUTPUT.isdisjoint(holder):
        return []
    entries = holder.get("output_token_logprobs")
    return said(
        (GENERATION, "output_ids", holder.get("output_ids")),
        (GENERATION, "gen_tokens", holder.get("gen_tokens")),
        (GENERATION, "output_token_logprobs", column(entries, 1)),
        (LOG_PROBS, "output_token_logprobs", column(entries, 0)),
    )


def _has_output(holder: Body) -> bool:
    return not _OUTPUT.isdisjoint(holder) and any(holder.get(name) is not None for name in _OUTPUT)


def is_lmdeploy_chat(payload: Payload) -> bool:
    """True for a chat completion with LMDeploy's ids."""
    return is_chat(payload) and any(map(_has_output, (*payload.choices, *payload.messages)))


def is_lmdeploy_messages(payload: Payload) -> bool:
    """True for an Anthropic Messages body with LMDeploy's ids."""
    return is_messages_body(payload.body) and _has_output(payload.body)


def is_lmdeploy_generate(payload: Payload) -> bool:
    """True for an answer of `/generate` whose entries are pairs; SGLang's have the token's text as a third."""
    entries = mapping(payload.body.get("meta_info")).get("output_token_logprobs")
    return is_sglang_generate(payload) and any(len(listed(entry)) == 2 for entry in ends(entries))


def read_messages(payload: Payload) -> list[RawChoice]:
    """An Anthropic Messages body of one call."""
    [choice] = read_body(payload)
    choice.sources += on_output(payload.body)
    if not choice.of(ROUTED_EXPERTS):  # they stand on the body, whoever says the prompt
        choice.sources += said((ROUTED_EXPERTS, "routed_experts", payload.body.get("routed_experts")))
    choice.counts = {GENERATION: mapping(payload.body.get("usage")).get("output_tokens")}
    return [choice]
