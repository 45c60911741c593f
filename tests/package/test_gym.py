"""The published wheel's own modules run on our records, put there or installed, as on the module that is replaced."""

import importlib.util
import json
import os
import subprocess
import sys

import pytest
from support.factories import DELTA, make_entry
from support.places import REPOSITORY
from support.served import CALLS, capture
from tokenrecords import cumulative_tokens, resolve_parent, stamp_lineage

PROGRAM = REPOSITORY / "tests" / "support" / "gym_run.py"


def load_by_path(path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def gym():
    path = load_by_path(REPOSITORY / "benches" / "reference.py").reference_path()
    if path is None:
        pytest.skip("the wheel nemo-gym 0.7.0 can't be downloaded, and TOKENRECORDS_REFERENCE_WHEEL names none")
    return path


def chain(rollout_id):
    """Three turns, a branch, a retry, a call that continues nothing, and one without generated ids."""
    calls = []
    for name, prompt, generation in (
        ("a", [1, 2, 3], [4, 5]),
        ("b", [1, 2, 3, 4, 5, 6], [7]),
        ("c", [1, 2, 3, 4, 5, 6, 7, 8, 9], [10, 11]),
        ("d", [1, 2, 3, 4, 5, 99], [7]),
        ("e", [1, 2, 3], [4, 6]),
        ("f", [50, 51], [52]),
        ("g", [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12], []),
    ):
        entry = make_entry(
            rollout_id=rollout_id,
            model_call_id=name,
            prompt_token_ids=prompt,
            generation_token_ids=generation,
            generation_log_probs=[-0.25 * (place + 1) for place in range(len(generation))],
            output_items=[{"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": name}]}],
            token_item_index=0,
            created_at=float(len(calls)),
        )
        parent, status, reason = resolve_parent(entry, calls)
        calls.append(stamp_lineage(entry, parent, status))
        entry.parent_resolution_reason = reason
    return calls


def with_a_delta(rollout_id):
    first, second, *_ = chain(rollout_id)
    whole = cumulative_tokens(second)
    delta = make_entry(
        **{**second.model_dump(), **DELTA, "parent_call_id": "a", "prompt_token_ids": second.prompt_token_ids[5:]}
    )
    return [first, stamp_lineage(delta, "a", "resolved", whole)]


def real():
    entries = []
    for call in CALLS:
        entry = capture(call)
        parent, status, _ = resolve_parent(entry, entries)
        entries.append(stamp_lineage(entry, parent, status))
    return entries


def lines():
    return [entry.model_dump_json() + "\n" for entry in (*chain("chain"), *with_a_delta("delta"), *real())]


def run(gym, directory, records, held_as):
    result = subprocess.run(
        [sys.executable, str(PROGRAM), records, held_as, str(directory)],
        input="".join(lines()),
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(gym), *filter(None, [os.environ.get("PYTHONPATH")])])},
        capture_output=True,
        text=True,
        check=False,
    )
    if records == "own" and "ModuleNotFoundError" in result.stderr:
        pytest.skip(f"the wheel's modules need another package: {result.stderr.strip().splitlines()[-1]}")
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


@pytest.fixture(scope="module")
def own(gym, tmp_path_factory):
    return run(gym, tmp_path_factory.mktemp("own"), "own", "lists")


def test_the_comparison_says_something(own):
    chain_ = own["results"]["chain"]
    assert chain_["appended"][:7] == [None] * 7
    assert [entry["model_call_id"] for entry in chain_["read"]] == list("abcdefg")
    assert len(chain_["frozen"]["entries"]) == 7
    assert chain_["built"]["chains"]
    assert chain_["response"]["output"]
    assert set(own["results"]) == {"chain", "delta", *(call["rollout_id"] for call in CALLS)}
    assert len(own["files"]) == len(own["results"])


@pytest.mark.parametrize("records", ["ours", "early", "late"])
@pytest.mark.parametrize("held_as", ["lists", "arrays"])
def test_store_and_builder(gym, own, tmp_path, held_as, records):
    ours = run(gym, tmp_path, records, held_as)
    assert ours["files"] == own["files"]  # to the byte
    for rollout, wanted in own["results"].items():
        for step in wanted:
            assert ours["results"][rollout][step] == wanted[step], (rollout, step)
