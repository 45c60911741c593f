"""A package `nemo_gym` with the declarations that are known, to be imported in place of the published one."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from tokenrecords.gym.contract import DIGEST, RECORDS

if TYPE_CHECKING:
    from pathlib import Path

IMPORTS = """
from __future__ import annotations
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any
from pydantic import BaseModel, ConfigDict, Field, model_validator
import sys as computed
"""
CONSUMER = """
from nemo_gym.token_id_capture.records import TokenEntry as Entry, compute_digest
from nemo_gym.token_id_capture.staging.digest import encode_token_ids, hash_token_ids

class Store:
    entry = Entry
"""
FOLDERS = ("nemo_gym", "nemo_gym/token_id_capture", "nemo_gym/token_id_capture/staging")
NAMES = ("Entry", "compute_digest", "encode_token_ids", "hash_token_ids")
CAPTURE = "nemo_gym.token_id_capture"


def write_package(root: Path, *, records: str = RECORDS.known, digest: str | None = DIGEST.known) -> Path:
    """Write the package to a folder, with a module `consumer` that imports names of both replaced ones."""
    for folder in FOLDERS:
        (root / folder).mkdir(exist_ok=True)
        (root / folder / "__init__.py").touch()
    capture = root / "nemo_gym" / "token_id_capture"
    (capture / "records.py").write_text(IMPORTS + records)
    if digest is not None:
        (capture / "staging" / "digest.py").write_text(IMPORTS + digest)
    (capture / "consumer.py").write_text(CONSUMER)
    return root


def forget_package() -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "nemo_gym"]:
        del sys.modules[name]
