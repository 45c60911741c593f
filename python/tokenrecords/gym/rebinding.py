"""Which object each name of NeMo Gym's imported modules means, each method of its classes, each value of its tables."""

from __future__ import annotations

import dataclasses
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from tokenrecords.gym.contract import PACKAGE, Made

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from types import ModuleType


@dataclass(frozen=True)
class Replacement:
    """An object of NeMo Gym, and what takes its place.

    Attributes:
        name: Its full name.
        owner: The class whose method it is, or the table that holds it; None for what a module declares.
        original: The object.
        ours: What takes its place.
    """

    name: str
    owner: type | dict[str, Any] | None
    original: Any
    ours: Any


def replacements(module: ModuleType, replaced: Mapping[str, Any]) -> list[Replacement]:
    """The replacements of what a module has of these names."""
    found = []
    for name, ours in replaced.items():
        owner_name, _, key = name.rpartition(".")
        owner = getattr(module, owner_name, None) if owner_name else None
        held = owner if isinstance(owner, dict) else vars(module if not owner_name else owner or object)
        if key in held:
            made = ours.of(held[key]) if isinstance(ours, Made) else ours
            found.append(Replacement(f"{module.__name__}.{name}", owner, held[key], made))
    return found


def replace(replaced: Sequence[Replacement]) -> list[str]:
    """Put ours in place, wherever a module of NeMo Gym names the original.

    Returns:
        The names of modules and classes that mean ours now.
    """
    for each in replaced:
        _set(each, each.ours)
    names = _rebind({id(each.original): (each.original, each.ours) for each in replaced if each.owner is None})
    return names + [each.name for each in replaced if each.owner is not None]


def restore(replaced: Sequence[Replacement]) -> None:
    """Put the originals back, wherever a module of NeMo Gym names ours."""
    for each in replaced:
        _set(each, each.original)
    _rebind({id(each.ours): (each.ours, each.original) for each in replaced if each.owner is None})


def _set(each: Replacement, function: Any) -> None:
    name = each.name.rpartition(".")[2]
    if isinstance(each.owner, dict):
        each.owner[name] = function
    elif each.owner is not None:
        setattr(each.owner, name, function)
        if issubclass(each.owner, BaseModel):
            _set_validator(each.owner, name, function)


def _set_validator(model: type[BaseModel], name: str, function: Any) -> None:
    """Let pydantic call the function, in the model and those that are made of it: it keeps what it was given first."""
    validators = model.__pydantic_decorators__.model_validators
    validators[name] = dataclasses.replace(validators[name], func=function)
    model.model_rebuild(force=True)
    for subclass in model.__subclasses__():
        _set_validator(subclass, name, function)


def _rebind(by_identity: Mapping[int, tuple[Any, Any]]) -> list[str]:
    found = []
    for home, module in list(sys.modules.items()):
        if home != PACKAGE and not home.startswith(f"{PACKAGE}."):
            continue
        for name, value in list(getattr(module, "__dict__", {}).items()):
            if id(value) in by_identity:
                setattr(module, name, by_identity[id(value)][1])
                found.append(f"{home}.{name}")
    return found
