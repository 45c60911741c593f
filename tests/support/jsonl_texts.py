"""Records as JSON text: in any order and spacing, with some odd spots."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from random import Random

_NUMBERS = """
0 -0 1 -1 7 00 01 -01 1. .5 1.0 -1.0 1e3 1E3 1e-3 1e+2 0.1e1 1e400 -1e400 1e-400 -0.0 0e0 - + +1 1.5 2.50 1e0000000001
true false null NaN Infinity -Infinity nan -NaN [1] {} [] 1e 1e+ 1.e5 0x10 1_0 '1' 1e15 1e16 1e18 1e19 1e22
"NaN" "Infinity" "-Infinity" "nan" "inf" "7" "1_0" "0x1" "1.0" "1e3" "" "-0.5" "\\u0037" "+7" "007" "\\t7"
2147483647 2147483648 -2147483648 -2147483649 4294967295 12345678 99999999 100000000 123456789 1000000000000000000
9223372036854775807 9223372036854775808 -9223372036854775808 -9223372036854775809 9999999999999999999
18446744073709551615 18446744073709551616 -18446744073709551616 123456789012345678901234567890 9007199254740993
0.1 -0.30000000000000004 1.00000005960464477540 9007199254740993.0 2.2250738585072011e-308 4.9e-324
179769313486231580000000000000e280 0.00000000000000000000000000001
"""
_VALUES = """
null true false 1 0 2 -1 1.5 1e22 "r" "1" "" [] {} [{}] [{"a":1}] [{"a":[1,{"]":"}"}]}] NaN 1e400 1.0 "p" "x\\ny"
"\\u00e9" "\\ud83d\\ude00" "\\ud800" "\\"\\\\" "root" "resolved" "unresolved" "é😀" [[[[]]]] {"a":1,"a":2}
[1,2 [1} "\\x" tru 'a' 123456789012345678901234567890
"""
_ARRAYS = 'null {} "[1]" [ [1 [1]] [[1]] [1,] [,1] [,] [1,,2] ["]"] 7 [1]1 [1],[2] [{"a":1}] ] ""'
_OTHERS = """
schema_version token_item_index cum_len created_at fingerprint_version model routed_experts output_items response_id
digest prompt_is_delta prefix_requested parent_call_id parent_resolution x é self a\\u0062 \\\\ \\" model\\u005fcall_id
prompt\\u005ftoken_ids __class__ model_dump \\ud800
"""
_SPACED = '" 7 "|- 1|1 2|\x0b1|\ufeff1|1\xa0|\u0661'
_LONG = ["1" * 160, "0." + "3" * 400, "1" * 250 + ".5", "0" * 20 + "1", "-" + "9" * 18, "9" * 19, "1" * 5000]
ODD_NUMBERS = [*_NUMBERS.split(), *_SPACED.split("|"), *_LONG]
ODD_VALUES, ODD_ARRAYS, OTHERS = _VALUES.split(), _ARRAYS.split(), [*_OTHERS.split(), ""]
SPACES = [*[""] * 12, " ", "\t", "\r", "  ", " \t\r ", "\n"]
ODD_SPACES = ["\x0c", "\xa0", "\0", "\x0b", "/**/", ",", "\ufeff"]
SEPARATORS = [*[","] * 9, *[", "] * 3, " ,", ",\t", " , ", ",\r", ",  "]

Member = tuple[str, "str | list[str]"]


def record(rng: Random, odd_spots: int) -> bytes:
    """A record's text; without odd spots it holds what real files hold."""
    members = _members(rng)
    for _ in range(odd_spots):
        _make_odd(rng, members)
    rng.shuffle(members)
    separator = rng.choice(SEPARATORS)
    spaces = SPACES if rng.random() < 0.5 else [""]

    def space() -> str:
        return rng.choice(ODD_SPACES) if odd_spots and rng.random() < 0.002 else rng.choice(spaces)

    def text(value: str | list[str]) -> str:
        return value if isinstance(value, str) else f"[{space()}{separator.join(value)}{space()}]"

    parts = [f'{space()}"{key}"{space()}:{space()}{text(value)}{space()}' for key, value in members]
    return ("{" + ",".join(parts) + "}").encode()


def _members(rng: Random) -> list[Member]:
    generated = rng.choice([0, 1, 2, 3, 20])
    return [
        ("rollout_id", '"r"'),
        ("model_call_id", '"c"'),
        ("prompt_token_ids", _ids(rng, rng.choice([0, 1, 5, 50]))),
        ("generation_token_ids", _ids(rng, generated)),
        ("generation_log_probs", [_log_prob(rng) for _ in range(generated)]),
    ]


def _ids(rng: Random, count: int) -> list[str]:
    limit = rng.choice([10, 150_000, 150_000, 10**8, 2**31, 2**33, 2**64, 2**66])
    low = rng.choice([0, 0, 0, 0, -limit])
    return [str(rng.randrange(low, limit)) for _ in range(count)]


def _log_prob(rng: Random) -> str:
    anywhere = rng.random() * 10.0 ** rng.randint(-320, 307)
    value = rng.choice([-rng.random() * 20, -rng.random(), anywhere, -(2.0 ** rng.randint(-1000, 1000))])
    ways = ("r", "r", ".6e", ".3f", ".25f", "integer")
    way = rng.choice(ways)
    return repr(value) if way == "r" else str(rng.randint(-30, 30)) if way == "integer" else format(value, way)


def _make_odd(rng: Random, members: list[Member]) -> None:
    place = rng.randrange(len(members))
    key, value = members[place]
    kind = rng.random()
    if kind < 0.6:
        places = [i for i, (_, items) in enumerate(members) if isinstance(items, list) and items]
        if places:
            items = members[rng.choice(places)][1]
            assert isinstance(items, list)
            items[rng.randrange(len(items))] = rng.choice(ODD_NUMBERS)
    elif kind < 0.65:
        members[place] = (key, rng.choice(ODD_ARRAYS if isinstance(value, list) else ODD_VALUES))
    elif kind < 0.7:
        members.append((key, value))
    elif kind < 0.72:
        del members[place]
    elif kind < 0.75:
        members[place] = (key.replace("o", "\\u006f", 1), value)
    else:
        members.append((rng.choice(OTHERS), rng.choice([*ODD_VALUES, *ODD_NUMBERS])))
