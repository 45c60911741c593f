"""The published module that `tokenrecords` replaces: its wheel, cached, and its modules loaded by path."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import ModuleType

CACHE = Path(__file__).parent / ".cache"
REQUIREMENT = "nemo-gym==0.7.0"
_PACKAGE = "nemo_gym/token_id_capture"


def reference_wheel() -> Path | None:
    """The wheel, from the cache or from the package index; None where it can't be had."""
    found = sorted(CACHE.glob("nemo_gym-0.7.0-*.whl"))
    if found:
        return found[0]
    # Its metadata wants a newer Python than the modules need, so that it is fetched but not installed.
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:"]
    command += ["--python-version", "3.13.14", "--dest", str(CACHE), REQUIREMENT]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        print(f"{REQUIREMENT} can't be had: {done.stderr.strip().splitlines()[-1:]}", file=sys.stderr)
        return None
    return next(CACHE.glob("nemo_gym-0.7.0-*.whl"))


def reference_directory() -> Path | None:
    """The unpacked directory that holds the package `nemo_gym`, None where the wheel can't be had."""
    directory = CACHE / "nemo-gym-0.7.0"
    if not directory.exists():
        wheel = reference_wheel()
        if wheel is None:
            return None
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(directory, [name for name in archive.namelist() if name.startswith(_PACKAGE)])
    return directory


def load_reference(module: str = "records") -> ModuleType | None:
    """A module of the reference's package by its file, None where the wheel can't be had."""
    directory = reference_directory()
    if directory is None:
        return None
    spec = importlib.util.spec_from_file_location(f"reference_{module}", directory / _PACKAGE / f"{module}.py")
    loaded = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = loaded
    spec.loader.exec_module(loaded)
    return loaded
