"""Rollouts that NeMo Gym 0.7.0 captured and judged: here they are judged alike.

`tests/support/gym_scenarios.py` made the data with that package; `nox -s scenarios` makes them anew.
"""

from __future__ import annotations

import json
import os
import warnings
from pathlib import Path
from typing import Any

import pytest
from support.places import DATA
from tokenrecords import build_chains, build_rollouts, entries_from_rollout, read_jsonl, verify

SOURCE = Path(os.environ.get("TOKENRECORDS_SCENARIOS", DATA / "gym_scenarios.jsonl"))
CAPTURES = [json.loads(line) for line in SOURCE.read_text(encoding="utf-8").splitlines()]
CASES = [(capture, judgement) for capture in CAPTURES for judgement in capture["judgements"]]
LOST = {
    "lost_in_between": ["b"],
    "lost_at_the_end": ["c"],
    "lost_and_nothing_else": ["a"],
    "lost_beside_the_end": ["title"],
    "context_overflow": ["c"],
    "context_overflow_then_shorter": ["c"],
    "retry_of_a_lost_call": ["b"],
}


def name(value: dict[str, Any]) -> str:
    if "scenario" in value:
        return f"{value['scenario']}-{'delta' if value['delta'] else 'full'}"
    return "known" if value["terminal_response_id"] else "unknown"


def write(directory: Path, files: dict[str, str]) -> None:
    for file, text in files.items():
        (directory / file).write_text(text, encoding="utf-8")


@pytest.mark.parametrize(("capture", "judgement"), CASES, ids=name)
def test_what_is_masked_there_is_not_trainable_here(
    tmp_path: Path, capture: dict[str, Any], judgement: dict[str, Any]
) -> None:
    write(tmp_path, capture["files"])
    known = {capture["rollout_id"]: judgement["terminal_response_id"]} if judgement["terminal_response_id"] else {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # one that lost all its calls has no build
        builds = list(build_rollouts(tmp_path, terminal_response_ids=known))
    row = judgement["row"]
    assert any(build.trainable for build in builds) is not bool(row.get("mask_sample"))
    assert len(builds) == any(file.endswith(".jsonl") for file in capture["files"])
    if builds and builds[0].trainable:
        main = builds[0].main
        assert main is not None
        assert main.output_items(arrays=False) == row["response"]["output"]


@pytest.mark.parametrize("capture", CAPTURES, ids=name)
def test_lost_calls_are_named(tmp_path: Path, capture: dict[str, Any]) -> None:
    write(tmp_path, capture["files"])
    report = verify(tmp_path)
    lost = [finding for finding in report.findings if finding.code == "lost_call"]
    assert [finding.model_call_id for finding in lost] == LOST.get(capture["scenario"], [])
    assert {finding.rollout_id for finding in lost} <= {capture["rollout_id"]}
    assert report.errors == lost


def test_a_rollout_with_a_hole_looks_whole_without_its_side_files(tmp_path: Path) -> None:
    [capture] = [each for each in CAPTURES if each["scenario"] == "lost_at_the_end" and not each["delta"]]
    write(tmp_path, capture["files"])
    entries = read_jsonl(tmp_path)
    assert build_chains(entries).trainable
    [build] = build_rollouts(tmp_path)
    assert build.reasons == ["incomplete"]


@pytest.mark.parametrize(("capture", "judgement"), CASES, ids=name)
def test_a_row_has_the_tokens_of_its_records(
    tmp_path: Path, capture: dict[str, Any], judgement: dict[str, Any]
) -> None:
    write(tmp_path, capture["files"])
    row = judgement["row"]
    entries = entries_from_rollout(row)
    masked = bool(row.get("mask_sample"))
    build = build_chains(entries, terminal_response_id=row["response"]["id"])
    assert build.trainable is not masked
    if masked:
        assert build.reasons[0] == "masked" if entries else ["nothing_to_train"]
        return
    [captured] = build_rollouts(tmp_path, terminal_response_ids={capture["rollout_id"]: row["response"]["id"]})
    if judgement["terminal_response_id"] is None:
        [captured] = build_rollouts(tmp_path)
    assert build.main is not None
    assert captured.main is not None
    assert build.main.token_ids.tolist() == captured.main.token_ids.tolist()
    assert build.main.loss_mask.tolist() == captured.main.loss_mask.tolist()
    assert build.main.log_probs.tolist() == captured.main.log_probs.tolist()
    assert build.main.rollout_id == captured.main.rollout_id
    assert not [finding for finding in verify(entries).findings if finding.severity != "info"]


def test_a_directory_whose_records_were_retired_says_where_the_tokens_are(tmp_path: Path) -> None:
    retired = [judgement["retired"] for _, judgement in CASES if judgement["retired"]]
    assert retired
    for files in retired:
        write(tmp_path, files)
    rollouts = len({file for files in retired for file in files})
    message = (
        rf"holds no \*\.tokens\.jsonl: the records of {rollouts} rollouts were retired once rebuilt, and their tokens "
        r"are in the rows of the run's rollouts\.jsonl$"
    )
    for read in (read_jsonl, verify, build_rollouts):
        with pytest.raises(FileNotFoundError, match=message):
            read(tmp_path)
