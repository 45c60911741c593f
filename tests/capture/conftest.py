"""What the tests of capturing share."""

from pathlib import Path

import pytest
from support.command import Capture


@pytest.fixture
def capture(tmp_path: Path) -> Capture:
    return Capture(tmp_path)
