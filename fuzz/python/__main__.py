"""Runs a target of the Python layer: `python fuzz/python read_response [the arguments of libFuzzer]`."""

import sys
from pathlib import Path

import atheris

sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))  # for its `support`

with atheris.instrument_imports(include=["tokenrecords"]):
    import tokenrecords.engines.response
    import tokenrecords.engines.stream
    import tokenrecords.files.jsonl
    import tokenrecords.files.list_pages  # noqa: F401
    from targets import TARGETS

target = TARGETS[sys.argv.pop(1)]
atheris.Setup(sys.argv, target)
atheris.Fuzz()
