"""Which prompt a choice has where there may be several."""

from __future__ import annotations

from typing import Any

from tokenrecords.engines.choice import ResponseFault
from tokenrecords.engines.payload import is_row


def prompt_of(prompts: Any, rank: int, choices: int, whose: str) -> Any:
    """The prompt of a choice: choice i of n for each prompt belongs to prompt i // n.

    Args:
        prompts: One prompt, or a list of them.
        rank: The place of the choice in the order of their numbers.
        choices: How many there are.
        whose: What an error calls the prompts.

    Raises:
        ResponseFault: The prompts do not share the choices evenly.
    """
    several = isinstance(prompts, list | tuple) and len(prompts) > 0 and all(map(is_row, prompts))
    if not several and getattr(prompts, "ndim", 1) != 2:
        return prompts
    n, rest = divmod(choices, len(prompts)) if len(prompts) else (0, choices)
    if rest or not n:
        raise ResponseFault(f"{choices} choices for {len(prompts)} {whose}")
    return prompts[rank // n]
