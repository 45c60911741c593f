"""A pytest plugin for that package's own tests: `install()` before anything of it is imported, or after all of it."""

import contextlib
import importlib
import os
import pkgutil

CAPTURE = "nemo_gym.token_id_capture"


def pytest_configure():
    mode = os.environ["GYM_INSTALL"]
    if mode == "late":
        importlib.import_module("nemo_gym.base_responses_api_model")
        for module in pkgutil.walk_packages(importlib.import_module(CAPTURE).__path__, f"{CAPTURE}."):
            with contextlib.suppress(ModuleNotFoundError):  # an adapter of an engine that is not there
                importlib.import_module(module.name)
    if mode != "never":
        gym = importlib.import_module("tokenrecords.gym")
        installed = gym.install()
        assert (mode == "late") is bool(installed.rebound)
