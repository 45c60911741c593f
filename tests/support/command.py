"""The commands, run in this process, and what the command `capture` is given and leaves behind."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tokenrecords import TokenEntry
from tokenrecords.cli.app import app
from typer.testing import CliRunner

from support.payloads import native_chat, token_fields

if TYPE_CHECKING:
    from pathlib import Path


def run(*arguments: Any) -> Any:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def row(call: str, prompt: list[Any], generation: list[Any], rollout: str = "r", **more: Any) -> dict[str, Any]:
    """A line of the command's input: a served call with these tokens."""
    response = {"id": f"resp-{call}", "created": 5, "model": "m", **native_chat(**token_fields(prompt, generation))}
    return {"rollout_id": rollout, "model_call_id": call, "response": response, **more}


class Capture:
    """The command `capture`, run on rows in a directory."""

    def __init__(self, directory: Path) -> None:
        self.source = directory / "responses.jsonl"
        self.out = directory / "out"

    def __call__(self, *rows: Any, flags: tuple[str, ...] = ()) -> Any:
        lines = [line if isinstance(line, str) else json.dumps(line) for line in rows]
        self.source.write_text("\n".join(lines) + "\n", encoding="utf-8")
        self.result = run("capture", self.source, "--out", self.out, *flags)
        return self.result

    def records(self, rollout: str = "r") -> list[TokenEntry]:
        text = (self.out / f"{rollout}.tokens.jsonl").read_text(encoding="utf-8")
        assert text.endswith("\n")
        return [TokenEntry.model_validate_json(line) for line in text.splitlines()]

    def parents(self, rollout: str = "r") -> list[tuple[str, str | None, Any, str]]:
        return [
            (e.model_call_id, e.parent_call_id, e.parent_resolution, e.parent_resolution_reason)
            for e in self.records(rollout)
        ]
