"""One Ray for all tests of clusters."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="session", autouse=True)
def cluster() -> Iterator[None]:
    from support.clusters import ray

    ray.init(num_cpus=2, include_dashboard=False, logging_level=logging.ERROR)
    context = ray.data.DataContext.get_current()
    context.enable_progress_bars = False
    context.default_hash_shuffle_parallelism = 4  # of 200, for so few rollouts
    yield
    ray.shutdown()
