"""The command `tokenrecords capture`."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tokenrecords import ParentResolutionStatus, TokenEntry, __version__, compute_digest
from tokenrecords.cli.app import app
from typer.testing import CliRunner

EXAMPLES = Path(__file__).parent.parent / "examples"
ROOT, RESOLVED, UNRESOLVED = (
    ParentResolutionStatus.ROOT,
    ParentResolutionStatus.RESOLVED,
    ParentResolutionStatus.UNRESOLVED,
)


def fields(prompt: list[int], generation: list[int]) -> dict[str, Any]:
    log_probs = [-0.5] * len(generation)
    return {"prompt_token_ids": prompt, "generation_token_ids": generation, "generation_log_probs": log_probs}


def row(call: str, prompt: list[int], generation: list[int], rollout: str = "r", **more: Any) -> dict[str, Any]:
    message = {"content": "x", **fields(prompt, generation)}
    response = {"id": f"resp-{call}", "created": 5, "model": "m", "choices": [{"message": message}]}
    return {"rollout_id": rollout, "model_call_id": call, "response": response, **more}


class Capture:
    def __init__(self, directory: Path) -> None:
        self.source = directory / "responses.jsonl"
        self.out = directory / "out"

    def __call__(self, *rows: Any, flags: tuple[str, ...] = ()) -> Any:
        lines = [line if isinstance(line, str) else json.dumps(line) for line in rows]
        self.source.write_text("\n".join(lines) + "\n", encoding="utf-8")
        self.result = CliRunner().invoke(app, ["capture", str(self.source), "--out", str(self.out), *flags])
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


@pytest.fixture
def capture(tmp_path: Path) -> Capture:
    return Capture(tmp_path)


def test_a_call_becomes_a_record(capture: Capture) -> None:
    assert capture(row("a", [1, 2], [3])).exit_code == 0
    (entry,) = capture.records()
    assert entry.model_dump(exclude_defaults=True) == {
        "rollout_id": "r",
        "model_call_id": "a",
        "model": "m",
        "prompt_token_ids": [1, 2],
        "generation_token_ids": [3],
        "generation_log_probs": [-0.5],
        "output_items": [{"type": "message", "role": "assistant", "content": "x"}],
        "token_item_index": 0,
        "response_id": "resp-a",
        "created_at": 5.0,
        "cum_len": 3,
        "digest": compute_digest([1, 2, 3]),
        "parent_resolution": ROOT,
        "finish_reason": None,
    }


def test_the_table_shows_counts_parent_and_digest(capture: Capture) -> None:
    lines = capture(row("a", [1, 2], [3]), row("b", [1, 2, 3, 4], []), row("c", [9], [8])).stdout.splitlines()
    digests = [compute_digest(ids)[:12] for ids in ([1, 2, 3], [1, 2, 3, 4], [9, 8])]
    assert [line.split() for line in lines] == [
        ["rollout", "call", "prompt", "generated", "parent", "digest"],
        ["r", "a", "2", "1", "root", digests[0]],
        ["r", "b", "4", "0", "resolved", "a", digests[1]],
        ["r", "c", "1", "1", "unresolved", "no_prefix_parent", digests[2]],
        f"3 calls of 1 rollout written to {capture.out}".split(),
    ]


def test_where_no_parent_is_said_the_longest_prefix_is_it(capture: Capture) -> None:
    capture(
        row("a", [1], [2]),
        row("b", [1, 2, 3], [4]),
        row("c", [1, 2, 3, 4, 5], [6]),
        row("again", [1], [9]),
        row("lost", [7, 7], [7]),
    )
    assert capture.parents() == [
        ("a", None, ROOT, ""),
        ("b", "a", RESOLVED, ""),
        ("c", "b", RESOLVED, ""),
        ("again", None, ROOT, ""),
        ("lost", None, UNRESOLVED, "no_prefix_parent"),
    ]


def test_a_parent_that_is_said_is_checked(capture: Capture) -> None:
    capture(
        row("a", [1], [2]),
        row("b", [1, 2, 3], [4], parent_call_id="a"),
        row("c", [1, 2, 9], [4], parent_call_id="b"),
        row("d", [1, 2, 3], [4], parent_call_id="never"),
        row("e", [1, 2, 3], [4], parent_call_id=None),
    )
    assert capture.parents() == [
        ("a", None, ROOT, ""),
        ("b", "a", RESOLVED, ""),
        ("c", None, UNRESOLVED, "prefix_mismatch"),
        ("d", None, UNRESOLVED, "prefix_mismatch"),
        ("e", None, ROOT, ""),
    ]


def test_rollouts_do_not_mix(capture: Capture) -> None:
    capture(row("a", [1], [2]), row("a", [1, 2, 3], [4], rollout="s"), row("b", [1, 2, 5], [6]))
    assert capture.parents("s") == [("a", None, ROOT, "")]
    assert capture.parents() == [("a", None, ROOT, ""), ("b", "a", RESOLVED, "")]


FAULTS = {
    "no tokens": ({"rollout_id": "r", "model_call_id": "a", "response": {}}, "the response carries no token ids"),
    "torn JSON": ('{"rollout_id": "r"', "EOF while parsing"),
    "no object": ([1], "an object is needed, got list"),
    "no call id": ({"rollout_id": "r", "response": row("a", [1], [2])["response"]}, "model_call_id is missing"),
    "rollout id of another type": ({**row("a", [1], [2]), "rollout_id": 7}, "rollout_id is int, str is needed"),
    "parent of another type": (row("a", [1], [2], parent_call_id=7), "parent_call_id is int, str is needed"),
    "unequal lengths": (
        {**row("a", [1], [2]), "response": {"output": [{**fields([1], [2]), "generation_log_probs": []}]}},
        "responses choice 0: 1 generation_token_ids and 0 generation_log_probs",
    ),
    "negative id": (row("a", [1, -9], [2]), "chat choice 0: prompt_token_ids[1] is -9: token ids must be non-neg"),
    "text for an id": (row("a", ["x"], [2]), "chat choice 0: prompt_token_ids[0] is 'x', not a token id"),
    "a path": (row("a", [1], [2], rollout="../x"), "rollout_id '../x' can't name a file"),
    "the directory": (row("a", [1], [2], rollout=".."), "rollout_id '..' can't name a file"),
    "this directory": (row("a", [1], [2], rollout="."), "rollout_id '.' can't name a file"),
    "empty": (row("a", [1], [2], rollout=""), "rollout_id '' can't name a file"),
    "a line break": (row("a", [1], [2], rollout="r\n"), "rollout_id 'r\\n' can't name a file"),
    "too long": (row("a", [1], [2], rollout="r" * 243), "rollout_id is too long for a file name: 243 characters"),
}  # fmt: skip


@pytest.mark.parametrize(("line", "reason"), FAULTS.values(), ids=FAULTS)
def test_a_bad_line_is_reported_and_the_others_are_written(capture: Capture, line: Any, reason: str) -> None:
    result = capture(row("first", [1], [2]), "", line, row("last", [1, 2, 3], [4]))
    assert result.exit_code == 1
    assert f"{capture.source}:3: {reason}" in result.stderr
    assert "1 line left out" in result.stderr
    assert [entry.model_call_id for entry in capture.records()] == ["first", "last"]
    assert [path.name for path in capture.out.iterdir()] == ["r.tokens.jsonl"]


def test_a_call_id_seen_before_counts_once_or_is_reported(capture: Capture) -> None:
    result = capture(row("a", [1], [2]), row("a", [1], [2]), row("a", [1], [3]))
    assert result.exit_code == 1
    assert result.stderr.splitlines()[0] == f"{capture.source}:3: model call 'a' was seen before with other tokens"
    assert [entry.generation_token_ids for entry in capture.records()] == [[2]]


def test_a_file_that_is_there_is_refused(capture: Capture) -> None:
    capture(row("a", [1], [2]))
    before = (capture.out / "r.tokens.jsonl").read_bytes()
    result = capture(row("x", [1], [2], rollout="other"), row("b", [1, 2, 3], [4]))
    assert result.exit_code == 2
    assert "--append or --overwrite" in result.stderr
    assert (capture.out / "r.tokens.jsonl").read_bytes() == before
    assert not (capture.out / "other.tokens.jsonl").exists()


def test_append_goes_on_where_the_file_ends(capture: Capture) -> None:
    capture(row("a", [1], [2]))
    assert capture(row("a", [1], [2]), row("b", [1, 2, 3], [4]), flags=("--append",)).exit_code == 0
    assert capture.parents() == [("a", None, ROOT, ""), ("b", "a", RESOLVED, "")]
    assert capture(row("a", [1], [9]), flags=("--append",)).exit_code == 1
    assert len(capture.records()) == 2
    assert "0 calls of 0 rollouts" in capture(row("a", [1], [2]), flags=("--append",)).stdout
    assert capture.result.stdout.rstrip().endswith(", 1 there already")


def test_overwrite_starts_again(capture: Capture) -> None:
    capture(row("a", [1], [2]))
    assert capture(row("b", [1, 2, 3], [4]), flags=("--overwrite",)).exit_code == 0
    assert capture.parents() == [("b", None, ROOT, "")]


@pytest.mark.parametrize("flags", [("--append", "--overwrite"), ("--never",)])
def test_a_wrong_call_has_status_2(capture: Capture, flags: tuple[str, ...]) -> None:
    assert capture(row("a", [1], [2]), flags=flags).exit_code == 2
    assert not capture.out.exists()


def test_the_version() -> None:
    result = CliRunner().invoke(app, ["--version"])
    assert (result.exit_code, result.stdout) == (0, f"tokenrecords {__version__}\n")


def test_a_missing_file_has_status_2(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["capture", str(tmp_path / "none"), "--out", str(tmp_path)])
    assert result.exit_code == 2


VLLM = {
    "object": "chat.completion",
    "prompt_token_ids": [1, 7],
    "choices": [
        {
            "index": index,
            "finish_reason": "stop",
            "token_ids": ids,
            "message": {"role": "assistant", "content": "ok"},
            "logprobs": {"content": [{"token": "w", "logprob": -0.5} for _ in ids]},
        }
        for index, ids in enumerate(([41], [42, 2]))
    ],
}


def test_any_dialect_is_taken_and_each_choice_is_a_call(capture: Capture) -> None:
    assert capture({"rollout_id": "r", "model_call_id": "a", "response": VLLM}).exit_code == 0
    calls = [(entry.model_call_id, entry.generation_token_ids) for entry in capture.records()]
    assert calls == [("a#0", [41]), ("a#1", [42, 2])]
    assert [e.parent_resolution for e in capture.records()] == [ROOT, ROOT]


def test_the_dialect_can_be_said(capture: Capture) -> None:
    line = {"rollout_id": "r", "model_call_id": "a", "response": VLLM}
    assert capture(line, flags=("--dialect", "vllm-chat")).exit_code == 0
    assert capture(line, flags=("--dialect", "vlm", "--overwrite")).exit_code == 2
    assert capture(line, flags=("--dialect", "tgi", "--overwrite")).exit_code == 1


def test_the_time_of_capture_stands_in_for_none(capture: Capture) -> None:
    line = row("a", [1], [2])
    line["response"]["created"] = 0
    capture(line)
    assert capture.records()[0].created_at > 1.7e9


def test_a_bom_is_no_fault(capture: Capture) -> None:
    assert capture("\ufeff" + json.dumps(row("a", [1], [2]))).exit_code == 0


def test_the_examples_are_what_their_program_makes() -> None:
    made = subprocess.run(
        [sys.executable, EXAMPLES / "make_responses.py"], capture_output=True, text=True, check=True
    ).stdout
    assert made == (EXAMPLES / "served_responses.jsonl").read_text(encoding="utf-8")


def test_nothing_but_the_table_goes_to_a_pipe(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tokenrecords", "capture", EXAMPLES / "served_responses.jsonl", "--out", tmp_path]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    assert "\x1b" not in done.stdout
    assert len(done.stdout.splitlines()) == 12


def test_without_its_extra_the_command_says_so() -> None:
    code = "import sys; sys.modules['typer'] = None; import tokenrecords.__main__ as m; m.main()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "pip install 'tokenrecords[cli]'" in done.stderr
