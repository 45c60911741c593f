"""What a module offers is read from its text: declarations in, private helpers and computed values out."""

import pytest
from tokenrecords.gym.surface import Surface

DECLARED = {
    "LIMIT = 3": {"LIMIT": "3"},
    "_PRIVATE = b'x'": {"_PRIVATE": "b'x'"},
    "COMPUTED = dict(a=1)": {"COMPUTED": None},
    "config = ConfigDict(extra='allow')": {"config": "ConfigDict(extra='allow')"},
    "first, second = 1, 2": {},
    "size: int": {"size": "int"},
    "size: int = 3": {"size": "int = 3"},
    "def f(a, *, b: int = 1) -> str: ...": {"f": "def(a, *, b: int=1) -> str"},
    "def f(): ...": {"f": "def()"},
    "async def f(a): ...": {"f": "async def(a)"},
    "def _f(): ...": {"_f": "def()"},
    "class A(B, C): ...": {"A": "B, C"},
    "class A:\n x: int = 1\n def f(self): ...\n def _f(self): ...": {"A": "", "A.x": "int = 1", "A.f": "def(self)"},
    "class A:\n @model_validator(mode='after')\n def _f(self): ...": {"A": "", "A._f": "def(self)"},
    "if True:\n x = 1": {},
}


@pytest.mark.parametrize("text", DECLARED)
def test_declarations_are_read(text):
    assert Surface.of(text).declared == DECLARED[text]


def differences(found, known, *optional):
    return Surface.of(found).differences(Surface.of(known), frozenset(optional))


def test_differences_are_said_in_words():
    assert differences("a = 1\nb = 2", "a = 1\nb = 3\nc = 4") == ["b is `2`, not `3`", "c is missing"]
    assert differences("a = 1\nb = 2", "a = 1") == ["b is unknown"]
    assert differences("a = 1", "a = 1\nb = 2", "b") == []
    assert differences("a = 1\nb = 3", "a = 1\nb = 2", "b") == ["b is `3`, not `2`"]


def test_private_names_may_come_but_not_go():
    known = "class A: ..."
    assert differences("_a = 1\nclass A:\n _x = 1", known) == []
    assert differences("class A:\n x = 1", known) == ["A.x is unknown"]
    assert differences(known, f"_a = 1\n{known}") == ["_a is missing"]
