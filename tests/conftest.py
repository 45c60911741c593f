"""Settings of the whole suite."""

import os

from hypothesis import HealthCheck, settings

# No test depends on time; on a CI server every run sees the same examples.
settings.register_profile(
    "tokenrecords",
    deadline=None,
    derandomize="CI" in os.environ,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.differing_executors],
)
settings.load_profile("tokenrecords")
