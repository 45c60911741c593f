"""Tinker: the answer of `sample`, one sequence a sample; the prompt is the caller's."""

from __future__ import annotations

from tokenrecords.engines.choice import RawChoice, said
from tokenrecords.engines.items import finish_reason
from tokenrecords.engines.payload import Payload, listed, mapping
from tokenrecords.engines.provenance import kept
from tokenrecords.tokens.names import GENERATION, LOG_PROBS, LOSS_MASK, PROMPT


def is_tinker(payload: Payload) -> bool:
    """True for a list of sequences."""
    return isinstance(payload.body.get("sequences"), list | tuple)


def read_sequences(payload: Payload) -> list[RawChoice]:
    """One choice a sequence."""
    prompt = payload.body.get("prompt_token_ids")
    return [
        RawChoice(
            index=place,
            sources=[
                *said(
                    (PROMPT, "prompt_token_ids", prompt),
                    (GENERATION, "tokens", sequence.get("tokens")),
                    (LOG_PROBS, "logprobs", sequence.get("logprobs")),
                    (LOSS_MASK, LOSS_MASK, sequence.get(LOSS_MASK)),
                ),
                *kept("sequences[].", sequence),
            ],
            finish_reason=finish_reason(sequence.get("stop_reason")),
        )
        for place, sequence in enumerate(map(mapping, listed(payload.body.get("sequences"))))
    ]
