"""TRL `trl vllm-serve`: flat lists; completion i belongs to prompt i // n."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tokenrecords.engines.choice import RawChoice, ResponseFault, said
from tokenrecords.engines.payload import Body, Payload, count, listed
from tokenrecords.tokens.names import GENERATION, LOG_PROBS, PROMPT


def is_trl(payload: Payload) -> bool:
    """True for the lists of TRL's server."""
    return "completion_ids" in payload.body or "prompt_ids" in payload.body


def read_trl(payload: Payload) -> list[RawChoice]:
    """One choice a completion."""
    body = payload.body
    prompts, completions, rows = (_rows(body, name) for name in ("prompt_ids", "completion_ids", "logprobs"))
    if prompts is None and completions is None:
        return []
    if prompts is None or completions is None:
        lone = said((PROMPT, "prompt_ids", _row(prompts, 0)), (GENERATION, "completion_ids", _row(completions, 0)))
        return [RawChoice(index=0, sources=lone)]
    n, rest = divmod(len(completions), len(prompts)) if len(prompts) else (0, len(completions))
    if rest or (len(prompts) and not n):
        raise ResponseFault(f"{len(completions)} completion_ids for {len(prompts)} prompt_ids")
    if rows is not None and len(rows) != len(completions):
        raise ResponseFault(f"{len(completions)} completion_ids and {len(rows)} logprobs")
    return [
        RawChoice(
            index=place,
            sources=said(
                (PROMPT, "prompt_ids", prompts[place // n]),
                (GENERATION, "completion_ids", completion),
                (LOG_PROBS, "logprobs", _log_probs(body, place)),
            ),
        )
        for place, completion in enumerate(completions)
    ]


def _rows(body: Body, name: str) -> Any:
    rows = body.get(name)
    if rows is not None and (isinstance(rows, str | bytes | Mapping) or not hasattr(rows, "__len__")):
        raise ResponseFault(f"{name} is {type(rows).__name__}: a list of lists is needed")
    return rows


def _row(rows: Any, place: int) -> Any:
    return rows[place] if rows is not None and place < len(rows) else None


def _log_probs(body: Body, place: int) -> Any:
    """The log-probs of a completion; where each token has candidates, those of the sampled ids, by id."""
    row = _row(body.get("logprobs"), place)
    if not listed(row) or not isinstance(row[0], list | tuple):
        return row
    candidates = _row(body.get("logprob_token_ids"), place)
    if count(candidates) != len(row):
        return None
    sampled = body["completion_ids"][place]
    return [_sampled(ids, values, sampled, k) for k, (ids, values) in enumerate(zip(candidates, row, strict=True))]


def _sampled(ids: Any, values: Any, sampled: Any, k: int) -> Any:
    found = dict(zip(ids, values, strict=False)) if count(ids) is not None and count(ids) == count(values) else {}
    return found.get(_row(sampled, k))
