"""The finder hands over the modules that it is to hand over, and finds all else as the other finders do."""

import importlib
import sys

import pytest
from tokenrecords.gym.finder import Finder


@pytest.fixture
def imported(tmp_path, monkeypatch):
    """The function that imports a module of a directory with a finder, and says what the finder was asked and gave."""
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    monkeypatch.syspath_prepend(tmp_path)

    def import_module(name, *, is_wanted=True):
        asked, handed = [], []
        wanted = lambda *arguments: asked.append(arguments) or is_wanted
        sys.meta_path.insert(0, Finder({name}, wanted, handed.append))
        importlib.invalidate_caches()
        module = importlib.import_module(name)
        del sys.modules[name]
        return module, asked, handed

    return import_module


@pytest.mark.parametrize("is_wanted", [True, False])
def test_a_module_is_handed_over_where_it_is_wanted(imported, tmp_path, is_wanted):
    path = tmp_path / "found_here.py"
    path.write_text("value = 5\n")
    module, asked, handed = imported("found_here", is_wanted=is_wanted)
    assert asked == [("found_here", str(path))]
    assert handed == [module] * is_wanted
    assert module.value == 5


def test_a_directory_without_a_loader_is_found_and_not_handed_over(imported, tmp_path):
    (tmp_path / "bare_directory").mkdir()
    module, asked, handed = imported("bare_directory")
    assert list(module.__path__) == [str(tmp_path / "bare_directory")]
    assert (asked, handed) == ([], [])


def test_a_finder_that_finds_no_specs_is_passed_over(imported, tmp_path):
    (tmp_path / "found_here.py").touch()
    sys.meta_path.insert(0, object())
    module, _, handed = imported("found_here")
    assert handed == [module]
