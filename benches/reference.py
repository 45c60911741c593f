"""The published records module that tokenrecords replaces, for comparisons: its wheel, downloaded once and unpacked.

It is data here, not a dependency: its metadata asks for a newer Python than its modules need.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import ModuleType

NAME, VERSION = "nemo-gym", "0.7.0"
CACHE = Path(__file__).with_name(".cache")
PACKAGE = "nemo_gym/token_id_capture/"


def reference_wheel() -> Path | None:
    """The wheel: what TOKENRECORDS_REFERENCE_WHEEL names, or the cached download; None where it can't be had."""
    if given := os.environ.get("TOKENRECORDS_REFERENCE_WHEEL"):
        return Path(given)
    if not _cached():
        options = ["--no-deps", "--only-binary=:all:", "--python-version", "3.13.14", "--quiet", "--retries", "1"]
        CACHE.mkdir(exist_ok=True)
        with tempfile.TemporaryDirectory(dir=CACHE) as fresh:  # another process may look for it meanwhile
            subprocess.run(
                [sys.executable, "-m", "pip", "download", *options, f"{NAME}=={VERSION}", "--dest", fresh],
                check=False,
                capture_output=True,
            )
            for wheel in Path(fresh).iterdir():
                wheel.rename(CACHE / wheel.name)
    return _cached()


def _cached() -> Path | None:
    return next(CACHE.glob(f"{NAME.replace('-', '_')}-{VERSION}-*.whl"), None)


def reference_path() -> Path | None:
    """The directory to put on `sys.path` for `nemo_gym.token_id_capture`, and that package alone."""
    wheel = reference_wheel()
    if wheel is None:
        return None
    path = CACHE / f"{NAME}-{VERSION}"
    if not path.exists():
        fresh = path.with_name(f"{path.name}.{os.getpid()}")
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(fresh, [name for name in archive.namelist() if name.startswith(PACKAGE)])
        try:
            fresh.rename(path)
        except OSError:  # another process was faster
            if not path.exists():
                raise
            shutil.rmtree(fresh)
    return path


def reference_records() -> ModuleType | None:
    """The published records module itself, loaded by its path."""
    path = reference_path()
    if path is None:
        return None
    spec = importlib.util.spec_from_file_location("reference_records", path / PACKAGE / "records.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module
