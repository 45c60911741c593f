"""What is taken as several entries."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support.factories import make_entry
from tokenrecords import build_chains, expand_deltas, group_by_rollout, verify


@pytest.mark.parametrize("function", [verify, group_by_rollout, expand_deltas, build_chains])
@pytest.mark.parametrize("wrong", [make_entry(), "r.tokens.jsonl", Path("r"), {"r": [make_entry()]}, b"{}"])
def test_what_is_no_collection_of_entries(function: Any, wrong: Any) -> None:
    with pytest.raises(TypeError, match=rf"^entries is {type(wrong).__name__}: several entries are needed"):
        function(wrong)
