"""TRL `trl vllm-serve`: flat lists; completion i belongs to prompt i // n."""

from __future__ import annotations

from typing import Any

from tokenrecords.engines.choice import RawChoice, ResponseFault, said
from tokenrecords.engines.native import is_row_of_a_trainer
from tokenrecords.engines.payload import Body, Payload, count
from tokenrecords.tokens.names import GENERATION, LOG_PROBS, LOSS_MASK, PROMPT

_MASKS = ("env_mask", "tool_mask")  # which tokens the model sampled, 1, and which a tool or the environment wrote, 0


def is_trl(payload: Payload) -> bool:
    """True for the lists of TRL's server."""
    body = payload.body
    return ("completion_ids" in body or "prompt_ids" in body) and not is_row_of_a_trainer(body)


def read_trl(payload: Payload) -> list[RawChoice]:
    """One choice a completion."""
    body = payload.body
    prompts, completions, rows = (_rows(body, name) for name in ("prompt_ids", "completion_ids", "logprobs"))
    masks = {name: _rows(body, name) for name in _MASKS}
    if completions is None:
        return [] if prompts is None else [RawChoice(index=0, sources=said((PROMPT, "prompt_ids", _first(prompts))))]
    own = [None] * len(completions) if prompts is None else _shared(prompts, len(completions))
    for name, values in {"logprobs": rows, **masks}.items():
        if values is not None and len(values) != len(completions):
            raise ResponseFault(f"{len(completions)} completion_ids and {len(values)} {name}")
    return [
        RawChoice(
            index=place,
            sources=said(
                (PROMPT, "prompt_ids", own[place]),
                (GENERATION, "completion_ids", completion),
                (LOG_PROBS, "logprobs", _log_probs(body, place)),
                *((LOSS_MASK, name, _mask(name, masks[name], place)) for name in _MASKS),
            ),
        )
        for place, completion in enumerate(completions)
    ]


def _shared(prompts: Any, completions: int) -> list[Any]:
    """The prompt of each completion."""
    n, rest = divmod(completions, len(prompts)) if len(prompts) else (0, completions)
    if rest or (len(prompts) and not n):
        raise ResponseFault(f"{completions} completion_ids for {len(prompts)} prompt_ids")
    return [prompts[place // n] for place in range(completions)]


def _rows(body: Body, name: str) -> Any:
    rows = body.get(name)
    if rows is not None and count(rows) is None and getattr(rows, "ndim", 0) < 2:
        raise ResponseFault(f"{name} is {type(rows).__name__}: a list of lists is needed")
    return rows


def _first(rows: Any) -> Any:
    return rows[0] if rows is not None and len(rows) else None


def _at(row: Any, place: int) -> Any:
    """One element; None where there is none."""
    return None if count(row) is None or place >= len(row) else row[place]


def _mask(name: str, masks: Any, place: int) -> Any:
    if masks is None:
        return None
    if masks[place] is None:
        raise ResponseFault(f"{name} is null: a mask of each completion is needed", place)
    return masks[place]


def _log_probs(body: Body, place: int) -> Any:
    """The log-probs of a completion; where each token has candidates, those of the sampled ids, by id."""
    rows = body.get("logprobs")
    row = None if rows is None else rows[place]
    if not isinstance(row, list | tuple) or not row or not isinstance(row[0], list | tuple):
        return row
    candidates = _at(body.get("logprob_token_ids"), place)
    if candidates is None or len(candidates) != len(row):
        return None
    sampled = body["completion_ids"][place]
    return [_sampled(ids, values, _at(sampled, k)) for k, (ids, values) in enumerate(zip(candidates, row, strict=True))]


def _sampled(ids: Any, values: Any, sampled: Any) -> Any:
    """The log-prob of the sampled id; None where the candidates do not have it."""
    if count(ids) is None or count(ids) != count(values):
        return None
    try:
        return dict(zip(ids, values, strict=True)).get(sampled)
    except TypeError:  # what is no id
        return None
