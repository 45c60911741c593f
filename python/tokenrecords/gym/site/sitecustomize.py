"""Run by each Python that starts with this directory on PYTHONPATH: waits for NeMo Gym, and installs before it.

Nothing of this package is imported before NeMo Gym is: a process without it pays for this file alone.
"""

from __future__ import annotations

import importlib
import os
import sys

REQUIRE = os.environ.get("TOKENRECORDS_GYM") == "require"


class Waiting:
    """A finder that finds nothing, and installs when NeMo Gym is looked for."""

    @classmethod
    def find_spec(cls, fullname: str, _path: object = None, _target: object = None) -> None:
        """None; before it, this process runs on this package."""
        if fullname == "nemo_gym" and cls in sys.meta_path:
            sys.meta_path.remove(cls)
            install()


def install() -> None:
    """Install, or say why not; end the process where it was required."""
    try:
        import tokenrecords.gym  # noqa: PLC0415 - not before it is needed
    except ImportError as error:
        message = f"tokenrecords.gym: {sys.executable} can't import tokenrecords: {error}"
        if REQUIRE:
            raise SystemExit(message) from error
        sys.stderr.write(f"{message}; NeMo Gym runs on its own code\n")
    else:
        tokenrecords.gym.install(strict=False, require=REQUIRE, lineage_store=True)


def run_hidden() -> None:
    """Run the `sitecustomize` that this file hides, where there is one, and be it from now on."""
    here = os.path.dirname(os.path.abspath(__file__))  # noqa: PTH100, PTH120 - pathlib takes longer than all else here
    sys.path[:] = [place for place in sys.path if os.path.abspath(place) != here]  # noqa: PTH100
    own = sys.modules.pop(__name__)
    try:
        importlib.import_module(__name__)  # the next one on the path
    except ImportError as error:
        if error.name != __name__:
            raise
    finally:
        sys.modules.setdefault(__name__, own)


if __name__ == "sitecustomize":
    sys.meta_path.insert(0, Waiting)
    run_hidden()
