"""What this installation is, and what it computes with, as text for people and their reports."""

import platform

import numpy as np
import pydantic

from tokenrecords._core import DEBUG, __version__, machine


def installation() -> str:
    """One line for each thing: versions, build, kernels with their lanes, JSON instructions, threads."""
    one, batch, json, threads = machine()
    lines = {
        "tokenrecords": f"{__version__}, {'debug' if DEBUG else 'release'} build",
        "kernel of one digest": one,
        "kernel of a batch": batch,
        "ids in JSON": json,
        "threads": threads,
        platform.python_implementation(): platform.python_version(),
        "numpy": np.__version__,
        "pydantic": pydantic.VERSION,
    }
    return "\n".join(f"{name}: {value}" for name, value in lines.items())
