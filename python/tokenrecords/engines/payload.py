"""A served response, unwrapped once: the models of clients as dicts, its choices and items as lists of dicts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from pydantic import BaseModel

from tokenrecords.engines.body import Entries
from tokenrecords.tokens.envelopes import is_envelope

Body: TypeAlias = Mapping[str, Any]

LISTS: Final = (list, tuple, Entries)
_NOTHING: Final[Body] = {}
# What an engine's own objects say, where an engine runs in this process.
_REQUEST: Final = ("request_id", "prompt_token_ids", "outputs", "finished")
_COMPLETION: Final = ("index", "text", "token_ids", "logprobs", "finish_reason")


@dataclass(frozen=True, slots=True)
class Payload:
    """One response.

    Attributes:
        body: The response itself.
        choices: What `choices` holds. What is not a choice stays as an empty one: it is a choice that lost its tokens.
        messages: The message of each choice, empty where it has none.
        items: What `output` holds.
    """

    body: Body
    choices: list[Body]
    messages: list[Body]
    items: list[Any]

    @classmethod
    def of(cls, value: Any) -> Payload:
        """The response that a mapping, a pydantic model of any client or an engine's own object holds.

        Raises:
            TypeError: It is none of these, or its `choices` are not a list.
        """
        body = plain(value)
        if not isinstance(body, Mapping):
            body = _of_an_engine(body)
        choices = [mapping(choice) for choice in choices_of(body)]
        messages = [mapping(choice.get("message")) for choice in choices]
        return cls(body, choices, messages, [plain(item) for item in listed(body.get("output"))])


def _of_an_engine(value: Any) -> Body:
    """The body of a `RequestOutput`, as vLLM gives it in process, by its attributes."""
    if not all(hasattr(value, name) for name in ("prompt_token_ids", "outputs")):
        raise TypeError(f"payload is {type(value).__name__}: a mapping or a pydantic model is needed")
    body = _attributes(value, _REQUEST)
    return {**body, "outputs": [_attributes(output, _COMPLETION) for output in listed(body["outputs"])]}


def _attributes(value: Any, names: Sequence[str]) -> Body:
    return {**getattr(value, "__dict__", _NOTHING), **{name: getattr(value, name, None) for name in names}}


def choices_of(body: Body) -> Sequence[Any]:
    """The choices of a body, none where it has no such key.

    Raises:
        TypeError: They are not a list.
    """
    choices = body.get("choices")
    if choices is None:
        return ()
    if not isinstance(choices, list | tuple):
        raise TypeError(f"choices is {type(choices).__name__}: a list is needed")
    return choices


def unwrap(value: Any) -> Payload | list[Payload]:
    """The payload of a response; a list of them where it is one.

    Raises:
        TypeError: Anything but a mapping, a pydantic model, an engine's own object, or a list of these.
    """
    return [Payload.of(part) for part in value] if isinstance(value, list | tuple) else Payload.of(value)


def plain(value: Any) -> Any:
    """A pydantic model as the dict it was read from (extra fields and arrays kept); all else unchanged."""
    # by_alias: the names of the wire. No warnings: clients build their models without validation.
    return value.model_dump(by_alias=True, warnings=False) if isinstance(value, BaseModel) else value


def mapping(value: Any) -> Body:
    """The value if it is a mapping (or a model of one), else an empty mapping."""
    if type(value) is dict:
        return value
    if value is None:
        return _NOTHING
    value = plain(value)
    return value if isinstance(value, Mapping) else _NOTHING


def listed(value: Any) -> Sequence[Any]:
    """The value if it is a list, a tuple or `Entries`, else an empty one."""
    return value if isinstance(value, LISTS) else ()


def count(value: Any) -> int | None:
    """How many elements a list, tuple, one-dimensional array or other sequence holds; None for anything else."""
    if isinstance(value, str | bytes | bytearray | Mapping | AbstractSet) or not hasattr(value, "__len__"):
        return None
    return None if getattr(value, "ndim", 1) != 1 else len(value)


def column(entries: Any, key: str | int) -> Any:
    """One value of each entry of a list, None where an entry lacks it; what is not a list as it is.

    Raises:
        LookupError: `Entries` do not hold it.
    """
    if isinstance(entries, Entries):
        return entries.column(key)
    if count(entries) is None:
        return entries
    try:
        return [entry[key] for entry in entries]
    except (IndexError, KeyError, TypeError):
        return [item(entry, key) for entry in entries]


def item(entry: Any, key: str | int) -> Any:
    """One value of an entry, None where it lacks it."""
    try:
        return plain(entry)[key]
    except (IndexError, KeyError, TypeError):
        return None


def ends(values: Any) -> Iterable[Any]:
    """The first and the last element: enough to see whether a list is of a kind, at no cost."""
    return (values[0], values[-1]) if isinstance(values, LISTS) and values else ()


def is_row(value: Any) -> bool:
    """True for a sequence, and for an envelope of one."""
    return count(value) is not None or is_envelope(value)


def first_row(rows: Any) -> Any:
    """The only row of a list or array of one row, such as [[1, 7]]; any other value as it is."""
    if isinstance(rows, list | tuple):
        return rows[0] if len(rows) == 1 and is_row(rows[0]) else rows
    return rows[0] if getattr(rows, "ndim", 1) == 2 and len(rows) == 1 else rows
