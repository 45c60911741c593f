"""Adoption inside a running NeMo Gym: `install()`, and from then on this process runs on this package.

`tokenrecords.gym.staging` is the drop-in namespace of its staging digests. `FileLineageStore` is for its configuration:
`lineage_store: tokenrecords.gym:FileLineageStore`; who takes it from here has installed.
"""

from __future__ import annotations

import importlib
from typing import Any

from tokenrecords.gym.adoption import Installed, install, status, uninstall
from tokenrecords.gym.contract import UnknownReleaseError

__all__ = ["FileLineageStore", "Installed", "UnknownReleaseError", "install", "status", "uninstall"]

FileLineageStore: type[Any]
"""The `FileLineageStore` of `nemo_gym`, with its parents as arrays and each line read once; who takes it has installed.

It is made of that package's class when it is asked for. `max_cached_tokens` bounds the ids that it keeps.
"""


def __getattr__(name: str) -> Any:
    if name != "FileLineageStore":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    install()
    from tokenrecords.gym.lineage import file_lineage_store  # noqa: PLC0415 - for those alone who use it

    extended = importlib.import_module("nemo_gym.token_id_capture.lineage").FileLineageStore
    return globals().setdefault(name, file_lineage_store(extended))
