"""NVIDIA Dynamo: what the engine itself reported, request `nvext.extra_fields`: `engine_data`, or the ids alone."""

from __future__ import annotations

from tokenrecords.engines.choice import ResponseFault, Source, said
from tokenrecords.engines.payload import Body, Payload, count, mapping
from tokenrecords.engines.provenance import PER_TOKEN, kept
from tokenrecords.engines.sglang import EXTENSIONS
from tokenrecords.tokens.names import GENERATION, LOG_PROBS, PROMPT, ROUTED_EXPERTS

_KEYS = {GENERATION: "completion_token_ids", LOG_PROBS: "completion_logprobs", ROUTED_EXPERTS: ROUTED_EXPERTS}
_KEYS |= {name: name for name in sorted(PER_TOKEN)}


def is_dynamo(payload: Payload) -> bool:
    """True where the payload or a choice has an `nvext`."""
    return any(mapping(holder.get("nvext")) for holder in (payload.body, *payload.choices))


def on_nvext(holder: Body) -> list[Source]:
    """The `nvext` of a choice or of the payload."""
    nvext = mapping(holder.get("nvext"))
    if not nvext:
        return []
    engine = mapping(nvext.get("engine_data"))
    sources = said(
        (PROMPT, "nvext.engine_data.prompt_token_ids", engine.get("prompt_token_ids")),
        (PROMPT, "nvext.prompt_token_ids", nvext.get("prompt_token_ids")),
        (GENERATION, "nvext.engine_data.completion_token_ids", engine.get("completion_token_ids")),
        (GENERATION, "nvext.completion_token_ids", nvext.get("completion_token_ids")),
        (LOG_PROBS, "nvext.engine_data.completion_logprobs", engine.get("completion_logprobs")),
        (ROUTED_EXPERTS, "nvext.engine_data.routed_experts", engine.get("routed_experts")),
        (ROUTED_EXPERTS, "nvext.routed_experts", nvext.get("routed_experts")),
    )
    return [*sources, *kept("nvext.", nvext), *kept("nvext.engine_data.", engine)]


def without_postprocessed(sources: list[Source]) -> list[Source]:
    """The sources without a choice's own log-probs where Dynamo's frontend dropped tokens from them.

    The frontend may end the choice before the engine's stop token, so the choice's log-probs can be fewer than
    `nvext.engine_data` holds (https://github.com/NVIDIA-NeMo/Gym/pull/1963). Those of equal number are checked.
    """
    scored = [source for source in sources if source.field == LOG_PROBS]
    engine = [source.value for source in scored if source.place.startswith("nvext.")]
    shown = [source.value for source in scored if source.place.startswith("logprobs.")]
    if not engine or all(count(value) == count(engine[0]) for value in shown):
        return sources
    return [source for source in sources if not source.place.startswith("logprobs.")]


def refuse_unassigned(body: Body) -> None:
    """Refuse the values of one choice on a payload of several.

    Raises:
        ResponseFault: There are some.
    """
    for holder in ("nvext", *EXTENSIONS):
        found = mapping(body.get(holder))
        engine = mapping(found.get("engine_data"))
        for name, key in _KEYS.items():
            if found.get(key) is not None or engine.get(key) is not None:
                why = f"{name} is missing: {holder} does not say which choice its {key} belongs to"
                raise ResponseFault(why, 0)
