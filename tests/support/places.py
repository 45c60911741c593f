"""Where the files stand that tests read."""

from pathlib import Path

REPOSITORY = Path(__file__).parents[2]
DATA = REPOSITORY / "tests" / "data"
DOCS = REPOSITORY / "docs"
EXAMPLES = REPOSITORY / "examples"
