"""Which object each name of NeMo Gym's imported modules means."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from tokenrecords.gym.contract import PACKAGE

if TYPE_CHECKING:
    from collections.abc import Iterable


def rebind(pairs: Iterable[tuple[Any, Any]]) -> list[str]:
    """Let the second of each pair take the place of the first, wherever a module of NeMo Gym names it.

    Returns:
        The names, with their modules.
    """
    by_identity = {id(old): (old, new) for old, new in pairs}
    found = []
    for home, module in list(sys.modules.items()):
        if home != PACKAGE and not home.startswith(f"{PACKAGE}."):
            continue
        for name, value in list(getattr(module, "__dict__", {}).items()):
            old, new = by_identity.get(id(value), (None, None))
            if old is value and old is not None:
                setattr(module, name, new)
                found.append(f"{home}.{name}")
    return sorted(found)
