"""The examples in docstrings run, and the stub says what the extension says."""

import ast
import doctest
import importlib.resources
import inspect

import numpy as np
import pytest
import tokenrecords
from tokenrecords import _core, arrow, report
from tokenrecords.engines import token_fields
from tokenrecords.entry import model
from tokenrecords.lineage import parents
from tokenrecords.tokens import routed_experts


def documented():
    """Every public function and class, and the methods of the classes, by name."""
    for module, names in (
        (tokenrecords, tokenrecords.__all__),
        (arrow, arrow.__all__),
        (report, report.__all__),
        (_core, [name for name in vars(_core) if not name.startswith("_")]),
        *((module, vars(module)) for module in (model, parents, token_fields, routed_experts)),
    ):
        for name in names:
            found = getattr(module, name)
            home = getattr(found, "__module__", "") or ""
            if not (inspect.isroutine(found) or inspect.isclass(found)) or not home.startswith("tokenrecords"):
                continue
            yield f"{home}.{name}", found
            if inspect.isclass(found):
                yield from ((f"{home}.{name}.{key}", value) for key, value in vars(found).items() if callable(value))


OBJECTS = {name: found for name, found in documented() if ">>>" in (found.__doc__ or "")}
PUBLIC = [
    getattr(module, name)
    for module in (tokenrecords, arrow, report)
    for name in module.__all__
    if inspect.isroutine(getattr(module, name)) or inspect.isclass(getattr(module, name))
]


@pytest.mark.parametrize("name", OBJECTS)
def test_examples(name):
    found = OBJECTS[name]
    home = inspect.getmodule(inspect.unwrap(found)) or _core
    names = {**vars(tokenrecords), **vars(home), "np": np}
    example = doctest.DocTestParser().get_doctest(found.__doc__, names, name, None, None)
    assert example.examples
    runner, report = doctest.DocTestRunner(), []
    runner.run(example, out=report.append)
    assert not runner.failures, "".join(report)


def test_every_public_function_has_an_example():
    for found in PUBLIC:
        assert found.__doc__
        if inspect.isroutine(found):
            assert ">>>" in found.__doc__, found.__name__


def test_there_are_examples():
    assert {name.rpartition(".")[2] for name in OBJECTS} >= {
        "encode_token_ids", "compute_digest", "cumulative_tokens", "stamp_lineage", "resolve_parent",
        "extract_token_fields", "response_to_output_items", "strip_token_fields", "TokenEntry", "as_lists", "as_arrays",
    }  # fmt: skip


STUB = ast.parse(importlib.resources.files(tokenrecords).joinpath("_core.pyi").read_text())
STUB_FUNCTIONS = {node.name: node for node in STUB.body if isinstance(node, ast.FunctionDef)}
CORE_FUNCTIONS = {name: found for name, found in vars(_core).items() if inspect.isroutine(found)}


def test_the_stub_has_the_functions_of_the_extension():
    assert set(STUB_FUNCTIONS) == set(CORE_FUNCTIONS)
    constants = {node.target.id for node in STUB.body if isinstance(node, ast.AnnAssign)} - {"_TokenSequence"}
    classes = {node.name for node in STUB.body if isinstance(node, ast.ClassDef)}
    assert constants | classes == {
        name
        for name, found in vars(_core).items()
        if name not in CORE_FUNCTIONS and (name == "__version__" or not name.startswith("_"))
    }


@pytest.mark.parametrize("name", STUB_FUNCTIONS)
def test_the_stub_has_the_docstrings_of_the_extension(name):
    assert ast.get_docstring(STUB_FUNCTIONS[name]) == inspect.getdoc(CORE_FUNCTIONS[name])


@pytest.mark.parametrize("name", STUB_FUNCTIONS)
def test_the_stub_has_the_parameters_of_the_extension(name):
    found = STUB_FUNCTIONS[name].args
    parameters = [argument.arg for argument in (*found.posonlyargs, *found.args, *found.kwonlyargs)]
    parameters += [argument.arg for argument in (found.vararg, found.kwarg) if argument]
    assert parameters == list(inspect.signature(CORE_FUNCTIONS[name]).parameters)


def test_the_stub_has_the_module_docstring():
    assert ast.get_docstring(STUB).splitlines()[0] in inspect.getdoc(_core)
