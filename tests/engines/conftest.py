"""Every stream of these tests is read a second time from its bytes."""

import json
from typing import Any

import pytest
import tokenrecords
from support.streams import merged, sse


def merge_both_ways(chunks: Any, **options: Any) -> Any:
    """What `merge_stream` gives of the chunks; of their bytes it gives the same."""
    if isinstance(chunks, list) and all(isinstance(part, dict) for part in chunks):
        try:
            parsed = json.loads(json.dumps(chunks))
        except TypeError:  # arrays and the like are of no bytes
            parsed = []
        assert merged(sse(*parsed), **options) == merged(parsed, **options)
    return tokenrecords.merge_stream(chunks, **options)


@pytest.fixture(autouse=True)
def _streams_are_read_both_ways(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if getattr(request.module, "merge_stream", None) is tokenrecords.merge_stream:
        monkeypatch.setattr(request.module, "merge_stream", merge_both_ways)
