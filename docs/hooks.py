"""Hooks of `mkdocs build`: the page of the wire format is the docs of the Rust crate; sessions have prompts."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mkdocs.structure.pages import Page

CRATE = Path(__file__).parent.parent / "rust" / "lib.rs"
PLACE = "<!-- rust/lib.rs -->"


def crate_docs(source: str) -> str:
    """The docs of a crate as Markdown: from its first heading on, without the lines of code that rustdoc hides."""
    lines = [line[4:] for line in source.splitlines() if line.startswith("//!")]
    text = "\n".join(lines[next(at for at, line in enumerate(lines) if line.startswith("# ")) + 1 :])
    blocks = re.split(r"^(```.*?^```)$", text, flags=re.MULTILINE | re.DOTALL)
    blocks[1::2] = [
        re.sub(r"^# .*\n", "", code.replace("```", "```rust", 1), flags=re.MULTILINE) for code in blocks[1::2]
    ]
    return "".join(blocks).strip()


def on_page_markdown(markdown: str, page: Page, **_: object) -> str:
    """Put the docs of the crate into the page of the wire format, and name sessions as Pygments does."""
    if page.file.src_uri == "format.md":
        if PLACE not in markdown:
            raise ValueError(f"format.md has no {PLACE}: the crate's docs stand there")
        markdown = markdown.replace(PLACE, crate_docs(CRATE.read_text(encoding="utf-8")))
    return markdown.replace("```python\n>>> ", "```pycon\n>>> ")
