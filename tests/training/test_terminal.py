"""The terminal call, found by the response that was scored."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from support.command import run
from support.factories import call
from tokenrecords import TokenEntry, build_chains, build_rollouts, write_jsonl

if TYPE_CHECKING:
    from pathlib import Path

    from tokenrecords import ChainBuild

A = call("a", [1], [2], response_id="ra")
B = call("b", [1, 2, 3], [4], "a", response_id="rb")
C = call("c", [1, 2, 5], [6], "a", response_id="rc")
SIDE = call("side", [9], [9], response_id="rs")


def outcome(build: ChainBuild) -> tuple[list[str], str, list[str]]:
    return build.main.call_ids if build.main else [], build.notes.terminal_chain, build.reasons


def test_the_call_of_the_response_ends_the_main_chain() -> None:
    entries = [A, B, C, SIDE]
    for call_id in ("b", "c", "side"):
        by_response = build_chains(entries, terminal_response_id=f"r{call_id[0]}")
        by_call = build_chains(entries, terminal_call_id=call_id)
        assert outcome(by_response) == outcome(by_call)
        assert by_response.trainable
    assert outcome(build_chains(entries, terminal_response_id="rb")) == (["a", "b"], "delivered", [])


def test_an_inner_call_may_be_the_last_one() -> None:
    assert outcome(build_chains([A, B], terminal_response_id="ra")) == (["a"], "delivered", [])


def test_a_response_that_no_call_has_was_not_captured() -> None:
    assert outcome(build_chains([A, B], terminal_response_id="no")) == (
        ["a", "b"],
        "not_captured",
        ["terminal_not_captured"],
    )
    nothing = call("z", [1, 2, 3, 4, 5], [], "b", response_id="rz")
    assert build_chains([A, B, nothing], terminal_response_id="rz").reasons == ["terminal_not_captured"]


def test_a_response_whose_chain_begins_nowhere_is_broken() -> None:
    lost = B.model_copy(update={"parent_call_id": None, "parent_resolution": "unresolved"})
    assert build_chains([A, lost], terminal_response_id="rb").reasons == ["terminal_broken"]


@pytest.mark.parametrize("none", [None, ""])
def test_no_response_is_none(none: str | None) -> None:
    assert build_chains([A, B, C], terminal_response_id=none).reasons == ["several_chains"]
    unnamed = [entry.model_copy(update={"response_id": none}) for entry in (A, B)]
    assert build_chains(unnamed, terminal_response_id=none).notes.terminal_chain == ""


def test_samples_of_a_response_are_ambiguous_and_a_call_captured_twice_is_not() -> None:
    other = call("b2", [1, 2, 3], [5], "a", response_id="rb")
    build = build_chains([A, B, other], terminal_response_id="rb")
    assert outcome(build)[1:] == ("ambiguous", ["terminal_ambiguous"])
    prompt = call("b2", [1, 2, 7], [4], "a", response_id="rb")
    assert build_chains([A, B, prompt], terminal_response_id="rb").reasons == ["terminal_ambiguous"]
    again = B.model_copy(update={"model_call_id": "aa"})
    assert outcome(build_chains([A, B, again], terminal_response_id="rb")) == (["a", "aa"], "delivered", [])


def test_call_and_response_must_be_of_one_call() -> None:
    def both(call_id: str, response_id: str) -> Any:
        build = build_chains([A, B, C], terminal_call_id=call_id, terminal_response_id=response_id)
        return outcome(build)[1:]

    assert both("b", "rb") == ("delivered", [])
    assert both("b", "rc") == ("not_captured", ["terminal_not_captured"])
    # Of several samples the call decides.
    other = call("b2", [1, 2, 3], [5], "a", response_id="rb")
    build = build_chains([A, B, other], terminal_call_id="b2", terminal_response_id="rb")
    assert outcome(build) == (["a", "b2"], "delivered", [])


def test_a_response_id_of_another_kind_is_nobodys() -> None:
    odd = B.model_copy(update={"response_id": np.array(["rb", "rb"])})
    build = build_chains([A, odd], terminal_response_id="rb")
    assert build.notes.terminal_chain == "not_captured"


def of(rollout_id: str, *entries: TokenEntry) -> list[TokenEntry]:
    return [entry.model_copy(update={"rollout_id": rollout_id}) for entry in entries]


def test_many_rollouts_by_their_responses(tmp_path: Path) -> None:
    entries = [*of("r", A, B, C), *of("s", A, B, C), *of("t", A, B)]
    ids = {"r": "rc", "s": "no"}
    builds = list(build_rollouts(entries, terminal_response_ids=ids))
    assert [build.reasons for build in builds] == [[], ["terminal_not_captured"], []]
    assert builds[0].main is not None
    assert builds[0].main.call_ids == ["a", "c"]
    both = build_rollouts(entries, terminal_call_ids={"r": "b", "s": "b"}, terminal_response_ids=ids)
    assert [build.reasons for build in both] == [["terminal_not_captured"], ["terminal_not_captured"], []]
    with pytest.raises(
        TypeError, match=r"^terminal_response_ids is list: a mapping from rollout id to response id is needed$"
    ):
        build_rollouts(entries, terminal_response_ids=["rc"])  # type: ignore[arg-type]
    with pytest.warns(
        UserWarning, match=r"^terminal_response_ids names rollouts without a record \(1 of 2\): 'q'$"
    ) as caught:
        build_rollouts(entries, terminal_response_ids={"q": "x", "r": "rc"})
    assert caught[0].filename == __file__
    write_jsonl(tmp_path / "r.tokens.jsonl", of("r", A, B, C))
    shown = run("show", tmp_path, "--terminal-response", "rb").stdout
    assert "terminal delivered" in shown
    assert "main, terminal" in shown


def test_rollouts_that_lost_a_call_are_not_trainable(tmp_path: Path) -> None:
    for name in "rst":
        write_jsonl(tmp_path / f"{name}.tokens.jsonl", of(name, A, B))
    (tmp_path / "r.tokens.intents").write_text("a\nb\nlost\n")
    (tmp_path / "s.tokens.intents").write_text("a\nb\n")
    (tmp_path / "t.lost").write_text("b\tcut off\n")
    want = {"r": ["incomplete"], "s": [], "t": ["incomplete"]}
    sources = (tmp_path, [tmp_path / f"{name}.tokens.jsonl" for name in "rst"])
    for source in sources:
        for threads in (1, 2):
            builds = build_rollouts(source, threads=threads)
            assert {build.chains[0].rollout_id: build.reasons for build in builds} == want
    [build, *_] = build_rollouts(tmp_path, terminal_response_ids={"r": "rb"})
    assert build.reasons == ["incomplete"]
    (tmp_path / "u.tokens.intents").write_text("a\n")
    with pytest.warns(UserWarning, match=r"^side files name rollouts without a record \(1 of 4\): 'u'$") as caught:
        assert len(list(build_rollouts(tmp_path))) == 3
    assert caught[0].filename == __file__


def test_show_names_the_calls_that_were_lost(tmp_path: Path) -> None:
    write_jsonl(tmp_path / "r.tokens.jsonl", of("r", A, B))
    (tmp_path / "r.intents").write_text("a\nb\nlost\n")
    (tmp_path / "s.lost").write_text("c\tcut\toff\n")
    (tmp_path / "t.tokens.state.json").write_text('{"retired": true}')
    result = run("show", tmp_path)
    assert result.exit_code == 0
    assert "└── lost  it was begun and has no record: it is lost, or still open" in result.stdout
    assert result.stdout.endswith(
        "\nrollout s  0 of 0 generated ids in main\n└── c  it was marked as lost (cut\\toff) and has no record\n"
    )
    assert "lost" not in run("show", tmp_path, "--no-tree").stdout
