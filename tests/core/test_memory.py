"""Arrays that say that they are longer than any memory."""

import numpy as np
import pytest
from support.factories import make_entry
from tokenrecords import compute_digests

LENGTH = 10**13


def test_offsets_without_end() -> None:
    offsets = np.broadcast_to(np.int64(0), (LENGTH,))
    with pytest.raises(MemoryError):
        compute_digests([1], offsets=offsets)


def test_a_record_without_end() -> None:
    entry = make_entry(prompt_token_ids=np.broadcast_to(np.int32(1), (LENGTH,)))
    with pytest.raises(MemoryError):
        entry.to_json()
