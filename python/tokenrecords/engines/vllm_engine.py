"""vLLM in process: a `RequestOutput`, or the list of them that `LLM.generate` gives."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tokenrecords.engines.choice import RawChoice, ResponseFault, said
from tokenrecords.engines.items import finish_reason, text_items
from tokenrecords.engines.payload import Body, Payload, count, listed, mapping
from tokenrecords.engines.provenance import kept
from tokenrecords.tokens.names import GENERATION, LOG_PROBS, PROMPT, ROUTED_EXPERTS


def is_vllm_engine(payload: Payload) -> bool:
    """True for outputs with ids beside the prompt's."""
    outputs = listed(payload.body.get("outputs"))
    return bool(outputs) and "prompt_token_ids" in payload.body and all("token_ids" in mapping(out) for out in outputs)


def read_outputs(payload: Payload) -> list[RawChoice]:
    """One choice an output.

    Raises:
        ResponseFault: The request is not finished.
    """
    body = payload.body
    if body.get("finished") is False:
        raise ResponseFault("finished is false: the output of a finished request is needed")
    return [_read_output(body, mapping(output)) for output in listed(body.get("outputs"))]


def _read_output(body: Body, output: Body) -> RawChoice:
    ids = output.get("token_ids")
    items = text_items(output.get("text"))
    return RawChoice(
        index=output.get("index"),
        sources=[
            *said(
                (PROMPT, "prompt_token_ids", body.get("prompt_token_ids")),
                (GENERATION, "token_ids", ids),
                (LOG_PROBS, "logprobs", _log_probs(ids, output.get("logprobs"))),
                (ROUTED_EXPERTS, "routed_experts", output.get("routed_experts")),
            ),
            *kept("outputs[].", output),
        ],
        output_items=items,
        token_item_index=0 if items else None,
        finish_reason=finish_reason(output.get("finish_reason")),
        response_id=body.get("request_id"),
    )


def _log_probs(ids: Any, entries: Any) -> Any:
    """The log-prob of each sampled id, which its position's candidates have by id; None for one that they lack."""
    if count(entries) is None or count(ids) is None:
        return None
    if len(entries) != len(ids):
        return [None] * len(entries)  # the lengths are an error, whatever stands there
    return [_sampled(id_, candidates) for id_, candidates in zip(ids, entries, strict=True)]


def _sampled(id_: Any, candidates: Any) -> Any:
    if not isinstance(candidates, Mapping):
        return candidates
    try:
        found = candidates.get(id_, candidates.get(str(id_)))
    except TypeError:  # what is no id
        return None
    return found.get("logprob") if isinstance(found, Mapping) else getattr(found, "logprob", found)
