"""A Ray of this machine, and rollouts in files; without Ray the tests that import this are skipped."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

import pytest
from tokenrecords import TokenEntry, write_jsonl

from support.factories import conversation

pytest.importorskip("ray.data")  # `ray` alone is also the folder of its tests
ray: Any = importlib.import_module("ray")

if TYPE_CHECKING:
    from pathlib import Path


def rollout(rollout_id: str, turns: int = 3) -> list[TokenEntry]:
    return [entry.model_copy(update={"rollout_id": rollout_id}) for entry in conversation(turns)]


def write_rollouts(directory: Path, count: int) -> None:
    """Files of a rollout each, of one to five turns."""
    directory.mkdir(exist_ok=True)
    for number in range(count):
        write_jsonl(directory / f"r{number:03}.tokens.jsonl", rollout(f"r{number:03}", 1 + number % 5))
