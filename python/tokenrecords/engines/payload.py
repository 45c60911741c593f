"""A served response, unwrapped once: the models of clients as dicts, its choices and items as lists of dicts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from pydantic import BaseModel

Body: TypeAlias = Mapping[str, Any]

_NOTHING: Final[Body] = {}


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
        """The response that a mapping or a pydantic model of any client holds.

        Raises:
            TypeError: It is neither.
        """
        body = plain(value)
        if not isinstance(body, Mapping):
            raise TypeError(f"payload is {type(body).__name__}: a mapping or a pydantic model is needed")
        choices = [mapping(choice) for choice in listed(body.get("choices"))]
        messages = [mapping(choice.get("message")) for choice in choices]
        return cls(body, choices, messages, [plain(item) for item in listed(body.get("output"))])


def unwrap(value: Any) -> Payload | list[Payload]:
    """The payload of a response; a list of them where it is one.

    Raises:
        TypeError: Anything but a mapping, a pydantic model, or a list of these.
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
    value = plain(value)
    return value if isinstance(value, Mapping) else _NOTHING


def listed(value: Any) -> Sequence[Any]:
    """The value if it is a list or tuple, else an empty one."""
    return value if isinstance(value, list | tuple) else ()


def count(value: Any) -> int | None:
    """How many elements a list, tuple, one-dimensional array or other sequence holds; None for anything else."""
    if isinstance(value, str | bytes | bytearray | Mapping | AbstractSet) or not hasattr(value, "__len__"):
        return None
    return None if getattr(value, "ndim", 1) != 1 else len(value)


def column(entries: Any, key: str | int) -> list[Any] | None:
    """One value of each entry of a list: None where an entry lacks it; None for all where there is no list."""
    if not isinstance(entries, list | tuple):
        return None
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
    return (values[0], values[-1]) if listed(values) else ()
