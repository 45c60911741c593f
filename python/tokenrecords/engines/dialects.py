"""Where each engine writes the tokens of a response: a small function for each place, a table of dialects.

A reader gathers every place in which a payload speaks of a token field and judges nothing: two places may
disagree, a list may be short, a log-prob may be null. `tokenrecords.engines.response` settles what was gathered.
So a second source is never overlooked because the first one looked complete.

A new dialect is one reader in `READERS` and one line in `_SIGNS`. A new place in an OpenAI-shaped choice is
one generator in `_CHOICE_PLACES`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final

from pydantic import BaseModel

from tokenrecords.engines.token_fields import response_to_output_items, strip_token_fields
from tokenrecords.tokens.names import TOKEN_FIELDS

PROMPT, GENERATION, LOG_PROBS, EXPERTS = TOKEN_FIELDS

# One place where a payload speaks of a token field: the field, the place's name for errors, the value found.
Source = tuple[str, str, Any]

# Fields that engines put on messages, items and content blocks for the trainer, not for the reader of the
# text.
_PRIVATE_FIELDS: Final = frozenset(
    {
        *TOKEN_FIELDS,
        *("token_ids", "completion_token_ids", "output_ids"),
        *("logprobs", "prompt_logprobs", "top_logprobs", "token_logprobs", "completion_logprobs"),
        *("output_token_logprobs", "input_token_logprobs"),
        *("meta_info", "nvext", "engine_data", "sglext", "sgl_ext"),
    }
)
_ID_WORD: Final = "token_id:"


@dataclass(slots=True)
class RawChoice:
    """One choice as the engine wrote it, before anything is checked.

    `index` is None where the payload numbers no choices. `counts` holds how many tokens the engine counted
    for this choice alone, by token field.
    """

    index: Any
    sources: list[Source]
    output_items: list[dict[str, Any]] = field(default_factory=list)
    token_item_index: int | None = None
    finish_reason: str | None = None
    response_id: str | None = None
    counts: dict[str, Any] = field(default_factory=dict)

    def values(self, name: str) -> list[tuple[str, Any]]:
        """The (place, value) pairs of one token field, the best place first."""
        return [(place, value) for field_name, place, value in self.sources if field_name == name]

    @property
    def carries_ids(self) -> bool:
        """Whether any place holds token ids; log-probs and routes alone are no tokens."""
        return any(name in (PROMPT, GENERATION) for name, _, _ in self.sources)


Reader = Callable[[Any, str], list[RawChoice]]


# --- plain data -------------------------------------------------------------------------------------------


def plain(value: Any) -> Any:
    """A pydantic model as the dict it was read from (extra fields and arrays kept); all else unchanged."""
    # by_alias: the names of the wire. No warnings: clients build their models without validation.
    return value.model_dump(by_alias=True, warnings=False) if isinstance(value, BaseModel) else value


def plain_payload(payload: Any) -> Any:
    """The payload as a dict, or a list of dicts, with the pydantic models of a client as dicts.

    Raises:
        TypeError: for anything but a mapping, a pydantic model, or a list of these.
    """
    if isinstance(payload, (list, tuple)):
        return [_plain_mapping(part) for part in payload]
    return _plain_mapping(payload)


def _plain_mapping(value: Any) -> Mapping[str, Any]:
    payload = plain(value)
    if not isinstance(payload, Mapping):
        raise TypeError(f"payload must be a mapping or a pydantic model, got {type(payload).__name__}")
    lists = {key: payload[key] for key in ("choices", "output") if _listed(payload.get(key))}
    models = {key: parts for key, parts in lists.items() if any(isinstance(p, BaseModel) for p in parts)}
    return {**payload, **{key: [plain(p) for p in parts] for key, parts in models.items()}} if models else payload


def mapping(value: Any) -> Mapping[str, Any]:
    """The value if it is a mapping (or a model of one), else an empty mapping."""
    value = plain(value)
    return value if isinstance(value, Mapping) else {}


def count(value: Any) -> int | None:
    """How many elements a list, tuple, array or other sequence holds; None for anything else."""
    if isinstance(value, (str, bytes, bytearray, Mapping, AbstractSet)) or not hasattr(value, "__len__"):
        return None
    return None if getattr(value, "ndim", 1) != 1 else len(value)


def _listed(value: Any) -> Sequence[Any]:
    return value if isinstance(value, (list, tuple)) else ()


def _choices(payload: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    # Something that is no choice stays in the list as an empty one: it is a choice that lost its tokens.
    return [mapping(choice) for choice in _listed(payload.get("choices"))]


def _present(sources: Iterable[Source]) -> Iterator[Source]:
    return (source for source in sources if source[2] is not None)


def _prefixed(prefix: str, sources: Iterable[Source]) -> Iterator[Source]:
    return ((name, f"{prefix}.{place}", value) for name, place, value in sources)


# --- lists of entries -------------------------------------------------------------------------------------


def _column(entries: Any, key: str | int) -> list[Any] | None:
    """One value of each entry: None where an entry lacks it, None for all where there are no entries."""
    if not isinstance(entries, (list, tuple)):
        return None
    try:
        return [entry[key] for entry in entries]
    except (IndexError, KeyError, TypeError):
        return [_item(entry, key) for entry in entries]


def _item(entry: Any, key: str | int) -> Any:
    try:
        return plain(entry)[key]
    except (IndexError, KeyError, TypeError):
        return None


def _ends(values: Any) -> list[Any]:
    """The first and the last element: enough to see whether a list is of a kind, at no cost."""
    return [values[0], values[-1]] if _listed(values) else []


def _id_column(entries: Any) -> list[Any] | None:
    """The `token_id` of each entry, or None where the entries have none."""
    if all(_item(entry, "token_id") is None for entry in _ends(entries)):
        return None
    return _column(entries, "token_id")


def _word_column(entries: Any) -> list[int | None] | None:
    """The id of each entry whose token is the word "token_id:<id>", or None where the tokens are text."""
    if not any(_is_id_word(_item(entry, "token")) for entry in _ends(entries)):
        return None
    return ids_from_words(_column(entries, "token"))


def ids_from_words(words: Any) -> list[int | None] | None:
    """The ids of tokens written as "token_id:<id>", None for any other word; None where all are text.

    >>> ids_from_words(["token_id:41", "token_id:2"])
    [41, 2]
    >>> ids_from_words(["token_id:41", "w"])
    [41, None]
    >>> ids_from_words(["o", "k"])
    """
    if not any(map(_is_id_word, _ends(words))):
        return None
    try:
        return list(map(_id_of_word, words))
    except (AttributeError, TypeError):  # a word that is no string
        return [_id_of_word(word) if isinstance(word, str) else None for word in words]


def _is_id_word(word: Any) -> bool:
    return isinstance(word, str) and _id_of_word(word) is not None


# A vocabulary's words come again, and to parse them each time costs more than the rest of a response.
@lru_cache(maxsize=1 << 16)
def _id_of_word(word: str) -> int | None:
    digits = word.removeprefix(_ID_WORD)
    return int(digits) if digits != word and digits.isdecimal() and digits.isascii() else None


# --- places in an OpenAI-shaped choice --------------------------------------------------------------------


def _token_fields(holder: Mapping[str, Any]) -> Iterator[Source]:
    """NeMo Gym: the four token fields of a record, on the message or the item itself."""
    return ((name, name, holder.get(name)) for name in TOKEN_FIELDS)


def _on_message(payload: Mapping[str, Any], choice: Mapping[str, Any]) -> Iterator[Source]:
    return _prefixed("message", _token_fields(mapping(choice.get("message"))))


def _on_nvext(payload: Mapping[str, Any], choice: Mapping[str, Any]) -> Iterator[Source]:
    """NVIDIA Dynamo, request `nvext.extra_fields: ["engine_data"]`: what the engine itself reported."""
    for nvext in (mapping(choice.get("nvext")), mapping(payload.get("nvext"))):
        engine = mapping(nvext.get("engine_data"))
        yield PROMPT, "nvext.engine_data.prompt_token_ids", engine.get("prompt_token_ids")
        yield GENERATION, "nvext.engine_data.completion_token_ids", engine.get("completion_token_ids")
        yield GENERATION, "nvext.completion_token_ids", nvext.get("completion_token_ids")
        yield LOG_PROBS, "nvext.engine_data.completion_logprobs", engine.get("completion_logprobs")
        yield EXPERTS, "nvext.engine_data.routed_experts", engine.get("routed_experts")
        yield EXPERTS, "nvext.routed_experts", nvext.get("routed_experts")


def _on_choice(payload: Mapping[str, Any], choice: Mapping[str, Any]) -> Iterator[Source]:
    """vLLM, and SGLang 0.5.13 on: request `return_token_ids`."""
    yield PROMPT, "prompt_token_ids", payload.get("prompt_token_ids")
    yield PROMPT, "choices[].prompt_token_ids", choice.get("prompt_token_ids")
    yield GENERATION, "token_ids", choice.get("token_ids")
    yield EXPERTS, "routed_experts", choice.get("routed_experts")


def _on_logprobs(payload: Mapping[str, Any], choice: Mapping[str, Any]) -> Iterator[Source]:
    """OpenAI log-probs, request `logprobs`: one entry a token (chat), or parallel lists (text completions).

    The ids are there as well where the request asked for `return_tokens_as_token_ids` (vLLM: the token is the
    word "token_id:41"), and from an SGLang that writes `token_id` into each entry.
    """
    logprobs = choice.get("logprobs")
    entries = logprobs if isinstance(logprobs, list) else mapping(logprobs).get("content")
    yield GENERATION, "logprobs.content[].token_id", _id_column(entries)
    yield GENERATION, "logprobs.content[].token", _word_column(entries)
    yield LOG_PROBS, "logprobs.content[].logprob", _column(entries, "logprob")
    lists = mapping(logprobs)
    yield GENERATION, "logprobs.tokens", ids_from_words(lists.get("tokens"))
    yield LOG_PROBS, "logprobs.token_logprobs", lists.get("token_logprobs")
    asked = isinstance(logprobs, Mapping) and entries is None and lists.get("token_logprobs") is None
    if asked and count(choice.get("token_ids")) == 0:
        # Null because nothing was generated: no log-prob is missing.
        yield LOG_PROBS, "logprobs", []


def _on_meta_info(payload: Mapping[str, Any], choice: Mapping[str, Any]) -> Iterator[Source]:
    """SGLang, request `return_meta_info` (chat) or `return_logprob` (generate): [log-prob, id, text]."""
    meta = mapping(choice.get("meta_info"))
    entries = meta.get("output_token_logprobs")
    yield PROMPT, "meta_info.prompt_token_ids", meta.get("prompt_token_ids")
    yield PROMPT, "meta_info.input_token_logprobs", _whole_prompt(meta)
    yield GENERATION, "meta_info.output_token_logprobs", _column(entries, 1)
    yield LOG_PROBS, "meta_info.output_token_logprobs", _column(entries, 0)
    yield EXPERTS, "meta_info.routed_experts", meta.get("routed_experts")


def _whole_prompt(meta: Mapping[str, Any]) -> list[Any] | None:
    """The prompt ids of `input_token_logprobs`, or None where they are not the whole prompt.

    The list starts at the request's `logprob_start_len`: it is empty without one, and a tail above 0.
    """
    entries = _listed(meta.get("input_token_logprobs"))
    counted = meta.get("prompt_tokens")
    if not entries or (isinstance(counted, int) and len(entries) < counted):
        return None
    return _column(entries, 1)


def _on_sglext(payload: Mapping[str, Any], choice: Mapping[str, Any]) -> Iterator[Source]:
    """SGLang, request `return_routed_experts`: on the choice or the payload, under either of two names."""
    for holder in (choice, payload):
        for name in ("sglext", "sgl_ext"):
            yield EXPERTS, f"{name}.routed_experts", mapping(holder.get(name)).get("routed_experts")


def _on_provider_fields(payload: Mapping[str, Any], choice: Mapping[str, Any]) -> Iterator[Source]:
    """LiteLLM: what OpenAI's types do not know is swept off the choice and the message into this field."""
    for holder in (choice, mapping(choice.get("message"))):
        swept = mapping(holder.get("provider_specific_fields"))
        if not swept:
            continue
        places = (
            _token_fields(swept),
            _on_choice({}, swept),
            _on_meta_info({}, swept),
            _on_sglext({}, swept),
        )
        for sources in places:
            yield from _prefixed("provider_specific_fields", sources)


# The best place first: what a trainer put on the message, what the engine reported, what its server wrote.
_CHOICE_PLACES: Final = (
    _on_message,
    _on_nvext,
    _on_choice,
    _on_meta_info,
    _on_sglext,
    _on_provider_fields,
    _on_logprobs,
)
# Places on the payload that hold one choice's values.
_OF_ONE_CHOICE: Final = ("nvext", "sglext", "sgl_ext")


# --- output items -----------------------------------------------------------------------------------------


def _without_private(part: Any) -> Any:
    # A null is kept: it holds no tokens, and the part stays the caller's own object.
    if isinstance(part, Mapping) and any(part.get(name) is not None for name in _PRIVATE_FIELDS & part.keys()):
        return {name: value for name, value in part.items() if name not in _PRIVATE_FIELDS or value is None}
    return part


def public_item(item: dict[str, Any]) -> dict[str, Any]:
    """The item without token arrays and log-probs: its own, its content blocks', and what LiteLLM swept.

    Deeper levels are the model's own words (a tool's arguments may well be named `logprobs`) and stay.
    """
    item = dict(_without_private(item))
    if isinstance(item.get("content"), list):
        item["content"] = [_without_private(block) for block in item["content"]]
    if "provider_specific_fields" in item:
        item["provider_specific_fields"] = _without_private(item["provider_specific_fields"])
    return item


def _public_items(items: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [public_item(item) for item in items]


def _text_items(text: Any) -> list[dict[str, Any]]:
    if not isinstance(text, str) or not text:
        return []
    return [{"type": "message", "role": "assistant", "content": text}]


def _choice_items(choice: Mapping[str, Any]) -> list[dict[str, Any]]:
    message = choice.get("message")
    if message is None:
        return _text_items(choice.get("text"))
    items = response_to_output_items({"choices": [{"message": dict(mapping(message))}]})
    return _public_items(strip_token_fields(items)[0])


def _finish_reason(value: Any) -> str | None:
    # SGLang's generate gives {"type": "stop", "matched": 2} where the others give the type alone.
    reason = value.get("type") if isinstance(value, Mapping) else value
    return None if reason is None else str(reason)


# --- readers ----------------------------------------------------------------------------------------------


def _read_items(payload: Mapping[str, Any], dialect: str) -> list[RawChoice]:
    """`responses` and `messages`: the token fields on one output item, or on the Anthropic body."""
    items = response_to_output_items(dict(payload))
    carriers = [i for i, item in enumerate(items) if _carries(item)]
    if len(carriers) > 1 or (carriers and payload.get("output") and _carrying_messages(payload)):
        raise ValueError(f"{dialect} choice 0: multiple output items carry token fields")
    details = mapping(payload.get("incomplete_details"))
    return [
        RawChoice(
            index=0,
            sources=list(_present(_token_fields(items[carriers[0]]))) if carriers else [],
            output_items=_public_items(strip_token_fields(items)[0]),
            token_item_index=carriers[0] if carriers else None,
            finish_reason=_finish_reason(details.get("reason") or payload.get("stop_reason") or payload.get("status")),
        )
    ]


def _read_choices(payload: Mapping[str, Any], dialect: str) -> list[RawChoice]:
    """Every dialect in OpenAI's shape. All places are read, so that two that disagree are seen."""
    choices = _choices(payload)
    if len(choices) > 1:
        _refuse_unassigned(payload, dialect)
    # Without any choice the payload may still carry ids (of the prompt): then its choice was lost.
    return [_read_choice(payload, choice) for choice in choices or [{}]]


def _read_choice(payload: Mapping[str, Any], choice: Mapping[str, Any]) -> RawChoice:
    sources = [source for place in _CHOICE_PLACES for source in _present(place(payload, choice))]
    items = _choice_items(choice)
    meta = mapping(choice.get("meta_info"))
    return RawChoice(
        index=choice.get("index"),
        sources=_without_postprocessed(sources),
        output_items=items,
        token_item_index=0 if items else None,
        finish_reason=_finish_reason(choice.get("finish_reason")),
        counts={GENERATION: meta.get("completion_tokens"), PROMPT: meta.get("prompt_tokens")},
    )


def _without_postprocessed(sources: list[Source]) -> list[Source]:
    """The sources without a Dynamo choice's own log-probs where its frontend dropped tokens from them.

    The frontend may end the choice before the engine's stop token, so the choice's log-probs can be fewer
    than `nvext.engine_data` holds (https://github.com/NVIDIA-NeMo/Gym/pull/1963). Those of equal number are
    checked.
    """
    engine = [value for name, place, value in sources if name == LOG_PROBS and place.startswith("nvext.")]
    if not engine:
        return sources
    shown = [value for name, place, value in sources if name == LOG_PROBS and place.startswith("logprobs.")]
    if all(count(value) == count(engine[0]) for value in shown):
        return sources
    return [source for source in sources if not source[1].startswith("logprobs.")]


def _refuse_unassigned(payload: Mapping[str, Any], dialect: str) -> None:
    for holder in _OF_ONE_CHOICE:
        found = mapping(payload.get(holder))
        engine = mapping(found.get("engine_data"))
        named = {GENERATION: "completion_token_ids", LOG_PROBS: "completion_logprobs", EXPERTS: EXPERTS}
        for name, key in named.items():
            if found.get(key) is not None or engine.get(key) is not None:
                raise ValueError(
                    f"{dialect} choice 0: {name} is missing: {holder} does not say which choice its {key} belongs to"
                )


def _read_sglang_generate(payload: Any, dialect: str) -> list[RawChoice]:
    """SGLang `/generate`: one object, or a list of them for several samples or prompts."""
    return [_read_sglang_sample(sample) for sample in _samples(payload)]


def _read_sglang_sample(sample: Mapping[str, Any]) -> RawChoice:
    meta = mapping(sample.get("meta_info"))
    items = _text_items(sample.get("text"))
    own: list[Source] = [
        (PROMPT, "prompt_token_ids", sample.get("prompt_token_ids")),
        (GENERATION, "output_ids", sample.get("output_ids")),
        (EXPERTS, "routed_experts", sample.get("routed_experts")),
    ]
    return RawChoice(
        index=sample.get("index"),
        sources=list(_present([*own, *_on_meta_info({}, sample), *_on_sglext({}, sample)])),
        output_items=items,
        token_item_index=0 if items else None,
        finish_reason=_finish_reason(meta.get("finish_reason")),
        response_id=meta.get("id"),
        counts={GENERATION: meta.get("completion_tokens"), PROMPT: meta.get("prompt_tokens")},
    )


def _read_tgi(payload: Any, dialect: str) -> list[RawChoice]:
    """Text Generation Inference `/generate`: `details`, with further choices in `best_of_sequences`."""
    choices = []
    for sample in _samples(payload):
        details = mapping(sample.get("details"))
        prefill = _tgi_prefill("details", details)
        choices.append(_read_tgi_sequence("details", sample.get("generated_text"), details, prefill))
        for i, other in enumerate(map(mapping, _listed(details.get("best_of_sequences")))):
            place = f"best_of_sequences[{i}]"
            # One request has one prompt: each sequence's own prefill must be that of the first.
            prompts = [*_tgi_prefill(place, other), *prefill]
            choices.append(_read_tgi_sequence(place, other.get("generated_text"), other, prompts))
    return choices


def _tgi_prefill(place: str, details: Mapping[str, Any]) -> list[Source]:
    # Empty unless the request set decoder_input_details: no prompt is empty.
    prefill = _listed(details.get("prefill"))
    return [(PROMPT, f"{place}.prefill", _column(prefill, "id"))] if prefill else []


def _read_tgi_sequence(place: str, text: Any, details: Mapping[str, Any], prompts: list[Source]) -> RawChoice:
    tokens = details.get("tokens")
    items = _text_items(text)
    own: list[Source] = [
        (GENERATION, f"{place}.tokens", _column(tokens, "id")),
        (LOG_PROBS, f"{place}.tokens", _column(tokens, "logprob")),
    ]
    return RawChoice(
        index=None,
        sources=list(_present([*prompts, *own])),
        output_items=items,
        token_item_index=0 if items else None,
        finish_reason=_finish_reason(details.get("finish_reason")),
        counts={GENERATION: details.get("generated_tokens")},
    )


def _read_trl(payload: Mapping[str, Any], dialect: str) -> list[RawChoice]:
    """TRL `trl vllm-serve`: flat lists; completion i belongs to prompt i // n."""
    names = ("prompt_ids", "completion_ids", "logprobs")
    prompts, completions, rows = (_rows(payload, name, dialect) for name in names)
    if prompts is None and completions is None:
        return []
    if prompts is None or completions is None:
        lone = [
            (PROMPT, "prompt_ids", _row(prompts, 0)),
            (GENERATION, "completion_ids", _row(completions, 0)),
        ]
        return [RawChoice(index=0, sources=list(_present(lone)))]
    n, rest = divmod(len(completions), len(prompts)) if len(prompts) else (0, len(completions))
    if rest or (len(prompts) and not n):
        raise ValueError(f"{dialect}: {len(completions)} completion_ids for {len(prompts)} prompt_ids")
    if rows is not None and len(rows) != len(completions):
        raise ValueError(f"{dialect}: {len(completions)} completion_ids and {len(rows)} logprobs")
    choices = []
    for i, completion in enumerate(completions):
        sources: list[Source] = [
            (PROMPT, "prompt_ids", prompts[i // n]),
            (GENERATION, "completion_ids", completion),
            (LOG_PROBS, "logprobs", _trl_log_probs(payload, i)),
        ]
        choices.append(RawChoice(index=i, sources=list(_present(sources))))
    return choices


def _rows(payload: Mapping[str, Any], name: str, dialect: str) -> Any:
    rows = payload.get(name)
    if rows is not None and (isinstance(rows, (str, bytes, Mapping)) or not hasattr(rows, "__len__")):
        raise ValueError(f"{dialect}: {name} must be a list of lists, got {type(rows).__name__}")
    return rows


def _row(rows: Any, i: int) -> Any:
    return rows[i] if rows is not None and i < len(rows) else None


def _trl_log_probs(payload: Mapping[str, Any], i: int) -> Any:
    """The log-probs of completion i; where each token has candidates, those of the sampled ids, by id."""
    row = _row(payload.get("logprobs"), i)
    if not _listed(row) or not isinstance(row[0], (list, tuple)):
        return row
    candidates = _row(payload.get("logprob_token_ids"), i)
    if count(candidates) != len(row):
        return None
    sampled = payload["completion_ids"][i]
    return [_sampled(ids, values, sampled, k) for k, (ids, values) in enumerate(zip(candidates, row, strict=True))]


def _sampled(ids: Any, values: Any, sampled: Any, k: int) -> Any:
    found = dict(zip(ids, values, strict=False)) if count(ids) is not None and count(ids) == count(values) else {}
    return found.get(_row(sampled, k))


def _read_unknown(payload: Any, dialect: str) -> list[RawChoice]:
    return []


def _samples(payload: Any) -> list[Mapping[str, Any]]:
    return [mapping(part) for part in payload] if isinstance(payload, list) else [mapping(payload)]


READERS: Final[dict[str, Reader]] = {
    "responses": _read_items,
    "messages": _read_items,
    "chat": _read_choices,
    "dynamo": _read_choices,
    "litellm": _read_choices,
    "sglang-chat": _read_choices,
    "vllm-chat": _read_choices,
    "vllm-completions": _read_choices,
    "vllm-generate": _read_choices,
    "sglang-generate": _read_sglang_generate,
    "tgi": _read_tgi,
    "trl": _read_trl,
    "unknown": _read_unknown,
}


# --- detection --------------------------------------------------------------------------------------------


def _carries(holder: Mapping[str, Any]) -> bool:
    return any(holder.get(name) is not None for name in (PROMPT, GENERATION, LOG_PROBS))


def _carrying_messages(payload: Mapping[str, Any]) -> bool:
    return any(_carries(mapping(choice.get("message"))) for choice in _choices(payload))


def _is_responses(payload: Mapping[str, Any]) -> bool:
    items = _listed(payload.get("output"))
    if any(_carries(mapping(item)) for item in items):
        return True
    return (payload.get("object") == "response" or bool(items)) and not _listed(payload.get("choices"))


def _is_messages(payload: Mapping[str, Any]) -> bool:
    return payload.get("type") == "message" and payload.get("role") == "assistant"


def _is_chat(payload: Mapping[str, Any]) -> bool:
    return payload.get("object") == "chat.completion" or any("message" in c for c in _choices(payload))


def _is_text(payload: Mapping[str, Any]) -> bool:
    return payload.get("object") == "text_completion" or any("text" in c for c in _choices(payload))


def _has_nvext(payload: Mapping[str, Any]) -> bool:
    return any(mapping(holder.get("nvext")) for holder in (payload, *_choices(payload)))


def _has_provider_fields(payload: Mapping[str, Any]) -> bool:
    holders = (holder for c in _choices(payload) for holder in (c, mapping(c.get("message"))))
    return any(mapping(holder.get("provider_specific_fields")) for holder in holders)


def _is_sglang_chat(payload: Mapping[str, Any]) -> bool:
    if not _is_chat(payload):
        return False
    choices = _choices(payload)
    signs = ("meta_info", "sglext", "sgl_ext")
    if any(mapping(holder.get(sign)) for holder in (payload, *choices) for sign in signs):
        return True
    if any(_id_column(mapping(choice.get("logprobs")).get("content")) for choice in choices):
        return True
    # vLLM says the prompt of a chat once, on the payload.
    return payload.get("prompt_token_ids") is None and any(
        choice.get("prompt_token_ids") is not None for choice in choices
    )


def _names_ids(payload: Mapping[str, Any]) -> bool:
    holders = (payload, *_choices(payload))
    if any(holder.get(name) is not None for holder in holders for name in ("prompt_token_ids", "token_ids")):
        return True
    return any(name == GENERATION for c in _choices(payload) for name, _, _ in _present(_on_logprobs(payload, c)))


_Sign = Callable[[Mapping[str, Any]], bool]

# Read from the top. Token fields in their final form say most; then what only one engine writes; then the
# shape.
_SIGNS: Final[tuple[tuple[str, _Sign], ...]] = (
    ("responses", _is_responses),
    ("chat", _carrying_messages),
    ("messages", _is_messages),
    ("trl", lambda payload: "completion_ids" in payload or "prompt_ids" in payload),
    (
        "sglang-generate",
        lambda payload: "choices" not in payload and bool({"meta_info", "output_ids"} & payload.keys()),
    ),
    ("tgi", lambda payload: "generated_text" in payload and "token" not in payload),
    ("dynamo", _has_nvext),
    ("litellm", _has_provider_fields),
    ("sglang-chat", _is_sglang_chat),
    ("vllm-completions", _is_text),
    ("vllm-chat", lambda payload: _is_chat(payload) and _names_ids(payload)),
    ("chat", _is_chat),
    (
        "vllm-generate",
        lambda payload: "choices" in payload and ("request_id" in payload or _names_ids(payload)),
    ),
)
BATCHED: Final = ("sglang-generate", "tgi")


def detect_dialect(payload: Any) -> str:
    """The dialect that a served response is written in.

    Args:
        payload: one response as a mapping or a pydantic model; for `sglang-generate` and `tgi` also a list
            of them.

    Returns:
        `responses`, `chat`, `messages`, `vllm-chat`, `vllm-completions`, `vllm-generate`, `sglang-generate`,
        `sglang-chat`, `dynamo`, `tgi`, `litellm`, `trl`, or `unknown`.

    Raises:
        TypeError: for anything but a mapping, a pydantic model, or a list of these.

    >>> detect_dialect({"object": "chat.completion", "prompt_token_ids": [1], "choices": [{"message": {}}]})
    'vllm-chat'
    >>> detect_dialect({"generated_text": "ok", "details": None})
    'tgi'
    >>> detect_dialect({"error": "overloaded"})
    'unknown'
    """
    return detect_plain(plain_payload(payload))


def detect_plain(payload: Any) -> str:
    """`detect_dialect` for what `plain_payload` gave."""
    if isinstance(payload, list):
        found = {detect_plain(part) for part in payload}
        return found.pop() if len(found) == 1 and found <= set(BATCHED) else "unknown"
    return next((dialect for dialect, sign in _SIGNS if sign(payload)), "unknown")
