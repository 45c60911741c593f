"""What a request must ask for so that the response says its tokens, and where the response says them.

Told apart by engine and endpoint; docs/dialects.md says the same in words.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

# Names of members of a response; what is under a name that has others: of an object, or of each object in a list.
Shown: TypeAlias = "dict[str, Shown | None]"


_TRUE: Final = frozenset({"1", "t", "true", "y", "yes", "on"})


def is_true(said: Any) -> bool:
    """True for what engines read as True: their requests are pydantic models, which take 1 and "true" for it.

    >>> is_true(True), is_true(1), is_true("Yes"), is_true("false"), is_true(None)
    (True, True, True, False, False)
    """
    return bool(said == 1) or (isinstance(said, str) and said.lower() in _TRUE)


class Ask(NamedTuple):
    """A member of a request that an engine needs.

    Attributes:
        path: Its name, or the name of the object that it is in before.
        value: True; the least number; or names that must be in the list.
        shown: What the response says because of it.
        streamed: False for one that engines refuse in a streamed call, True for one that only such a call needs.
        is_of_null: True for one that is needed only where the request says null.
    """

    path: tuple[str, ...]
    value: bool | int | list[str]
    shown: Shown
    streamed: bool | None = None
    is_of_null: bool = False

    def is_met_by(self, said: Any) -> bool:
        """True where the request asks for it itself."""
        if isinstance(self.value, list):
            return isinstance(said, list) and all(name in said for name in self.value)
        if isinstance(self.value, bool):
            return is_true(said)
        return isinstance(said, int) and said is not False and said >= self.value

    def of(self, said: Any) -> Any:
        """The value that asks for it, and for what the request says."""
        if isinstance(self.value, list):
            return [*(said if isinstance(said, list) else ()), *self.value]
        return self.value


def _of_choices(*names: str) -> Shown:
    return {"choices": dict.fromkeys(names)}


def _anywhere(*names: str) -> Shown:
    """In a Messages or Responses payload, or in what an event of its stream holds."""
    return dict.fromkeys(names) | {holder: dict.fromkeys(names) for holder in ("message", "response", "delta", "item")}


_LOGPROBS: Final = _of_choices("logprobs")
_TEXT_LOGPROBS: Final[Shown] = {"logprobs": None, "part": {"logprobs": None}, "content": {"logprobs": None}}
_CHAT_LOGPROBS: Final = Ask(("logprobs",), value=True, shown=_LOGPROBS)
# A null is none for vLLM, which then sends no log-probs; without the member it takes 0.
_TOP_LOGPROBS: Final = Ask(("top_logprobs",), value=0, shown={}, is_of_null=True)
_CHOICE_IDS: Final[Shown] = dict.fromkeys(("token_ids", "prompt_token_ids"))
_IDS: Final = Ask(("return_token_ids",), value=True, shown={"prompt_token_ids": None, "choices": _CHOICE_IDS})
_VLLM_COMPLETIONS: Final = (_IDS, Ask(("logprobs",), value=0, shown=_LOGPROBS))
_VLLM: Final = {
    "chat": (_IDS, _CHAT_LOGPROBS, _TOP_LOGPROBS),
    "completions": _VLLM_COMPLETIONS,
    "responses": (
        Ask(("enable_response_messages",), value=True, shown=_anywhere("input_messages", "output_messages")),
        Ask(
            ("include",),
            ["message.output_text.logprobs"],
            _TEXT_LOGPROBS | {"output": _TEXT_LOGPROBS, "response": {"output": _TEXT_LOGPROBS}, "item": _TEXT_LOGPROBS},
        ),
    ),
    "messages": (
        Ask(
            ("return_token_ids",),
            value=True,
            shown=_anywhere("prompt_token_ids", "token_ids", "generation_token_ids", "generation_log_probs"),
        ),
    ),
    "vllm-generate": (Ask(("sampling_params", "logprobs"), value=0, shown=_LOGPROBS),),
}
_LMDEPLOY: Final = dict.fromkeys(("prompt_token_ids", "output_ids", "output_token_logprobs"))
_LMDEPLOY_NAMES: Final = tuple(_LMDEPLOY)
_LMDEPLOY_SHOWN: Final[Shown] = _anywhere(*_LMDEPLOY_NAMES) | {"choices": _LMDEPLOY, "meta_info": _LMDEPLOY}
_LMDEPLOY_ASKS: Final = (
    Ask(("return_token_ids",), value=True, shown=_LMDEPLOY_SHOWN),
    Ask(("return_logprob",), value=True, shown=_LMDEPLOY_SHOWN),
)

# By the engine, then by the endpoint.
ASKS: Final[Mapping[str, Mapping[str, tuple[Ask, ...]]]] = {
    "vllm": _VLLM,
    "sglang": {
        "chat": (
            _IDS._replace(streamed=False),
            Ask(("return_input_ids",), value=True, shown={"sglext": {"input_ids": None}}, streamed=True),
            Ask(("return_output_ids",), value=True, shown={"sglext": {"output_ids": None}}, streamed=True),
            _CHAT_LOGPROBS,
        ),
        "completions": _VLLM_COMPLETIONS,
        "generate": (
            Ask(
                ("return_logprob",),
                value=True,
                shown={"meta_info": dict.fromkeys(("input_token_logprobs", "output_token_logprobs"))},
            ),
            Ask(("return_prompt_token_ids",), value=True, shown={"meta_info": {"prompt_token_ids": None}}),
        ),
    },
    "lmdeploy": dict.fromkeys(("chat", "messages", "generate"), _LMDEPLOY_ASKS),
    "llama-cpp": {
        "chat": (_CHAT_LOGPROBS,),
        "completion": (
            Ask(("return_tokens",), value=True, shown={"tokens": None}),
            Ask(("n_probs",), value=1, shown={"completion_probabilities": None}),
        ),
    },
    "together": {
        "chat": (
            Ask(("logprobs",), value=1, shown=_LOGPROBS),
            Ask(("echo",), value=True, shown={"prompt": None}, streamed=False),
        ),
    },
    "dynamo": {
        "chat": (
            _CHAT_LOGPROBS,
            Ask(
                ("nvext", "extra_fields"),
                ["engine_data", "prompt_token_ids"],
                {"nvext": dict.fromkeys(("engine_data", "prompt_token_ids"))},
            ),
        ),
    },
    "tgi": {
        "generate": (
            Ask(("parameters", "details"), value=True, shown={"details": None}),
            Ask(("parameters", "decoder_input_details"), value=True, shown={"details": {"prefill": None}}),
        ),
    },
    "litellm": {
        **_VLLM,
        "chat": (
            _IDS._replace(shown={**_IDS.shown, "choices": {**_CHOICE_IDS, "provider_specific_fields": _CHOICE_IDS}}),
            _CHAT_LOGPROBS,
        ),
    },
}

# What a server answers under each path, below its own root.
ENDPOINTS: Final = {
    "/v1/chat/completions": "chat",
    "/v1/completions": "completions",
    "/v1/responses": "responses",
    "/v1/messages": "messages",
    "/inference/v1/generate": "vllm-generate",
    "/generate": "generate",
    "/generate_stream": "generate",
    "/completion": "completion",
}


def merged(shown: Iterable[Shown]) -> Shown:
    """All that several show."""
    found: Shown = {}
    for names in shown:
        for name, within in names.items():
            known = found.get(name, {})
            found[name] = None if within is None or known is None else merged([known, within])
    return found


def asking(asks: Iterable[Ask], request: Mapping[str, Any], *, streamed: bool) -> tuple[dict[str, Any], list[Ask]]:
    """The members of a request that must change, and the asks that it does not make itself.

    >>> changed, added = asking(ASKS["vllm"]["chat"], {"model": "m", "logprobs": True}, streamed=False)
    >>> changed, [ask.path for ask in added]
    ({'return_token_ids': True}, [('return_token_ids',)])
    """
    changed: dict[str, Any] = {}
    added = []
    for ask in asks:
        if ask.streamed not in (None, streamed):
            continue
        name, *inner = ask.path
        holder = changed.get(name, request.get(name))
        said = holder if not inner else holder.get(inner[0]) if isinstance(holder, dict) else None
        if ask.is_met_by(said) or (ask.is_of_null and name not in request):
            continue
        value = ask.of(said)
        changed[name] = {**(holder if isinstance(holder, dict) else {}), inner[0]: value} if inner else value
        added.append(ask)
    return changed, added
