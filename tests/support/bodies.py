"""Bodies of responses: payloads as JSON text in any spelling, with faults."""

from __future__ import annotations

import copy
import json
import math
from typing import TYPE_CHECKING, Any

from support.sound_payloads import sound_payloads

if TYPE_CHECKING:
    import random

# What may stand anywhere, however wrong.
ODD_VALUES: tuple[Any, ...] = (
    *(None, True, False, "x", "", "token_id:3", "token_id:03", "NaN", [], {}, [None], [[]], [{}]),
    *(0, -1, 7, 2**31, 2**63, 2**64, -(2**63) - 1, 10**30, 0.0, -0.0, 1.5, -2.0, 1e300, math.nan, -math.inf),
    *([3] * 20, [0.5] * 20, [[-0.5, 3, None]] * 20, [{"logprob": -0.5, "id": 3}] * 20, ["token_id:3"] * 20),
    *([*[3] * 20, None], [*[3] * 20, 1.5], [[3] * 20, [4] * 20], [*[3] * 20, 2**63], [*[-3] * 20, 2**64]),
    *({"token_ids": [3] * 20}, {"logprob": -0.5}, "token_ids", 4611686018400000000, "4611686018400000000"),
)
ODD_KEYS = ("token_ids", "prompt_token_ids", "logprobs", "content", "id", "token_id", "logprob", "tokens", "x")


def large_payload(dialect: str, chance: random.Random) -> Any:
    """A sound payload whose lists are long enough to be read natively; no two places share a list."""
    ids = [chance.sample(range(200_000), chance.choice((16, 17, 40))) for _ in range(chance.randint(2, 4))]
    samples = [(row, [-chance.random() * 9 for _ in row]) for row in ids[1:]]
    return json.loads(json.dumps(sound_payloads(ids[0], samples)[dialect]))


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The paths of all values, from the outermost in."""
    members = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(place for key, held in members for place in places(held, (*path, key)))]


def with_fault(payload: Any, chance: random.Random) -> Any:
    """The payload with another value in one place, or without it, or with one more."""
    whole = [copy.deepcopy(payload)]
    path = chance.choice(places(whole[0]))
    # Long lists have many places and most faults are alike there: as often a place is one of the others.
    if chance.random() < 0.5:
        path = path[: chance.randint(0, len(path))]
    holder: Any = whole
    steps = (0, *path)
    for step in steps[:-1]:
        holder = holder[step]
    odd = copy.deepcopy(chance.choice(ODD_VALUES))
    match chance.choice(("replace", "replace", "drop", "add", "double", "flat")):
        case "drop" if path:
            del holder[steps[-1]]
        case "add" if isinstance(holder[steps[-1]], dict):
            holder[steps[-1]][chance.choice(ODD_KEYS)] = odd
        case "add" if isinstance(holder[steps[-1]], list):
            holder[steps[-1]].insert(chance.randint(0, 3), odd)
        case "double" if isinstance(holder, list) and path:
            holder.insert(0, copy.deepcopy(holder[steps[-1]]))
        case "flat" if isinstance(holder[steps[-1]], list):
            holder[steps[-1]] = [_number_in(held, odd) for held in holder[steps[-1]]]
        case _:
            holder[steps[-1]] = odd
    return whole[0]


def _number_in(value: Any, otherwise: Any) -> Any:
    """A number that stands in an entry."""
    members = list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else [value]
    return next((held for held in members[::-1] if isinstance(held, int | float)), otherwise)


def spelled(value: Any, chance: random.Random) -> bytes:
    """The payload as JSON in some spelling: white space, escapes, exponents, keys that come twice."""
    space = chance.choice(("", "", " ", "\n\t "))
    rare = chance.choice((0.0, 0.0, 0.02))  # how often something unusual comes

    def text(part: Any) -> str:
        if isinstance(part, dict):
            members = list(part.items())
            if members and chance.random() < rare:
                key = chance.choice(members)[0]
                members.insert(chance.randint(0, len(members)), (key, chance.choice((part[key], *ODD_VALUES))))
            return "{" + f",{space}".join(f"{text(key)}{space}:{space}{text(held)}" for key, held in members) + "}"
        if isinstance(part, list):
            return "[" + f",{space}".join(map(text, part)) + f"{space}]"
        spellings = _spellings(part) if chance.random() < rare else ()
        return chance.choice(spellings or (json.dumps(part),))

    return text(value).encode()


def _spellings(value: Any) -> tuple[str, ...]:
    """Unusual ones of a string or a number: some are of another value, or none of JSON."""
    if isinstance(value, str):
        escaped = f'"\\u{ord(value[0]):04x}{json.dumps(value[1:])[1:]}' if value else '""'
        return escaped, json.dumps(value + "\N{PILE OF POO}"), json.dumps(value + "é", ensure_ascii=False)
    if isinstance(value, bool) or value is None:
        return ()
    if isinstance(value, int):
        return f"{value}.0", f"{value}e0", f"-{value}", f"0{value}", f"{value}0000000000"
    zeros = "" if "e" in repr(value) else "000"
    return (f"{value:.25e}", f"{value:.30f}", repr(value) + zeros) if math.isfinite(value) else ()


def damaged(body: bytes, chance: random.Random) -> bytes:
    """The bytes with one fault of the transport, or of whoever wrote them."""
    place = chance.randint(0, len(body))
    match chance.choice(("cut", "byte", "gone", "bom", "latin", "deep", "more", "control")):
        case "cut":
            return body[:place]
        case "byte":
            return body[:place] + bytes([chance.choice(b'"\\{}[],:0-9.eE \n\0\xff')]) + body[place + 1 :]
        case "gone":
            return body[:place] + body[place + 1 :]
        case "bom":
            return b"\xef\xbb\xbf" + body
        case "latin":
            return body.replace(b'"x"', b'"\xe9"')
        case "deep":
            depth = chance.choice((30, 100, 250, 100_000))
            return body.replace(b'"x"', b"[" * depth + b"]" * depth, 1)
        case "more":
            return body + chance.choice((b" \n", b"{}", b",", b"\0", b"]"))
        case _:
            return body.replace(b'"x"', b'"\x01"')
