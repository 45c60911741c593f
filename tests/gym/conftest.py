"""The published package, imported from its wheel, and forgotten again."""

import importlib
import importlib.util
import sys

import pytest
from support.fake_gym import forget_package
from support.places import REPOSITORY
from tokenrecords import gym as ours


@pytest.fixture
def nemo_gym(monkeypatch):
    """The function that imports a module of its capture package, of which nothing is imported yet."""
    spec = importlib.util.spec_from_file_location("reference", REPOSITORY / "benches" / "reference.py")
    reference = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(reference)
    path = reference.reference_path()
    if path is None:
        pytest.skip("the wheel nemo-gym 0.7.0 can't be downloaded, and TOKENRECORDS_REFERENCE_WHEEL names none")
    monkeypatch.setattr(sys, "path", [str(path), *sys.path])

    def import_module(name):
        try:
            return importlib.import_module(f"nemo_gym.token_id_capture.{name}")
        except ModuleNotFoundError as error:
            pytest.skip(f"the wheel's modules need another package: {error}")

    yield import_module
    ours.uninstall()
    vars(ours).pop("FileLineageStore", None)
    forget_package()
