"""How files of records are named."""

from __future__ import annotations

import os
from typing import Final, TypeAlias

PathLike: TypeAlias = str | os.PathLike[str]

SUFFIX: Final = ".tokens.jsonl"
COMPRESSED: Final = (".gz", ".zst")
PARQUET: Final = ".parquet"
RECORD_NAMES: Final = (SUFFIX, *(SUFFIX + ending for ending in COMPRESSED))


def is_compressed(path: PathLike) -> bool:
    """True if the file's name says that it is compressed."""
    return os.fspath(path).endswith(COMPRESSED)


def stem(path: PathLike) -> str | None:
    """The path of a file of records without the suffix, which the files beside it share; None for another name."""
    name = os.fspath(path)
    return next((name.removesuffix(suffix) for suffix in RECORD_NAMES if name.endswith(suffix)), None)
