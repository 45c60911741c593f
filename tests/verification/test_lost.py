"""What `verify` says of calls that have no record, and of files of all kinds."""

from __future__ import annotations

import json
from contextlib import contextmanager
from itertools import chain
from typing import TYPE_CHECKING

import pytest
from support.command import row, run
from support.factories import call, conversation
from support.payloads import vllm_chat, vllm_choice
from support.watch import threads_asked
from tokenrecords import Report, TokenEntry, append_jsonl, verify, write_jsonl
from tokenrecords.capture import served
from tokenrecords.capture.served import call_files
from tokenrecords.verification.by_file import verify_files

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def capture(tmp_path: Path) -> Path:
    """A directory with a rollout `r` of the calls c0 and c1, of which nothing is lost."""
    write_jsonl(tmp_path / "r.tokens.jsonl", conversation(2))
    (tmp_path / "r.tokens.intents").write_text("c0\nc1\n")
    return tmp_path


def found(report: Report) -> list[tuple[str, str | None, str | None, str]]:
    return [(each.code, each.rollout_id, each.model_call_id, each.message) for each in report.findings]


def test_a_rollout_that_lost_nothing_has_no_finding(capture: Path) -> None:
    for source in (capture, str(capture), [capture], capture / "r.tokens.jsonl", iter([capture / "r.tokens.jsonl"])):
        report = verify(source)
        assert (report.findings, report.records, len(report.sound)) == ([], 2, 2)


def test_a_call_that_was_begun_and_never_recorded_is_lost(capture: Path) -> None:
    (capture / "r.tokens.intents").write_text("c0\nc1\nc2\n")
    for source in (capture, capture / "r.tokens.jsonl"):
        report = verify(source)
        open_ = "it was begun and has no record: it is lost, or still open"
        assert found(report) == [("lost_call", "r", "c2", open_)]
        [finding] = report.findings
        assert (finding.path, finding.line, finding.severity) == (str(capture / "r.tokens.intents"), 3, "error")
        assert report.sound == {("r", "c0"), ("r", "c1")}
    (capture / "r.tokens.state.json").write_text('{"frozen": true}')
    assert found(verify(capture)) == [("lost_call", "r", "c2", "it was begun and has no record")]


def test_the_reason_of_a_lost_call_is_said(capture: Path) -> None:
    (capture / "r.intents").write_text("c0\nc1\nc2\n")
    (capture / "r.lost").write_text("c2\tthe agent left\n")
    expected = "it was marked as lost (the agent left) and has no record"
    assert found(verify(capture)) == [("lost_call", "r", "c2", expected)]


def test_a_record_that_is_gone_is_a_lost_call(capture: Path) -> None:
    (capture / "r.tokens.intents").write_text("c0\nc1\nc2\n")
    (capture / "r.tokens.state.json").write_text('{"frozen": false, "entry_digests": {"c1": "", "c2": ""}}')
    assert found(verify(capture)) == [("lost_call", "r", "c2", "it was recorded once and has no record")]


def test_a_rollout_whose_lost_call_nobody_can_name_is_incomplete(capture: Path) -> None:
    (capture / "r.lost").write_text("\nc1\tcut off\n")
    assert found(verify(capture)) == [
        ("incomplete_rollout", "r", None, "a call without a name was marked as lost"),
        ("incomplete_rollout", "r", "c1", "it was marked as lost (cut off), and has a record"),
    ]


def test_a_rollout_without_any_record_is_named_after_its_files(capture: Path) -> None:
    (capture / "s.tokens.intents").write_text("a\n")
    write_jsonl(capture / "t.tokens.jsonl", [])
    (capture / "t.intents").write_text("b\n")
    open_ = "it was begun and has no record: it is lost, or still open"
    assert found(verify(capture)) == [("lost_call", "s", "a", open_), ("lost_call", "t", "b", open_)]
    assert found(verify(capture / "t.tokens.jsonl")) == [("lost_call", "t", "b", open_)]
    (capture / "r.tokens.jsonl").unlink()
    (capture / "t.tokens.jsonl").unlink()
    assert [each.model_call_id for each in verify(capture).findings] == ["c0", "c1", "a", "b"]


def test_a_record_that_cannot_be_read_is_a_lost_call(capture: Path) -> None:
    lines = (capture / "r.tokens.jsonl").read_bytes().splitlines()
    (capture / "r.tokens.jsonl").write_bytes(lines[0] + b"\nbad" + lines[1] + b"\n")
    assert [(code, id_) for code, _, id_, _ in found(verify(capture))] == [
        ("unreadable_line", None),
        ("lost_call", "c1"),
    ]


def test_a_directory_without_records_has_to_have_lost_some(tmp_path: Path) -> None:
    (tmp_path / "r.tokens.intents").write_text("")
    with pytest.raises(FileNotFoundError, match=r"holds no \*\.tokens\.jsonl$"):
        verify(tmp_path)
    other = tmp_path / "other"
    other.mkdir()
    (other / "r.tokens.intents").write_text("a\n")
    with pytest.raises(FileNotFoundError, match=r"holds no \*\.tokens\.jsonl$"):
        verify([other, tmp_path])
    (tmp_path / "r.tokens.state.json").write_text('{"retired": true}')
    with pytest.raises(
        FileNotFoundError, match=r": the records of 1 rollout were retired once rebuilt, and their tokens"
    ):
        verify(tmp_path)


def test_retired_records_beside_others_are_said_to_be_that(capture: Path) -> None:
    (capture / "s.tokens.state.json").write_text('{"retired": true, "frozen": true, "entry_digests": {}}')
    report = verify(capture)
    message = "its records were deleted once it was rebuilt: the tokens are in its row of the run's rollouts.jsonl"
    assert found(report) == [("records_retired", "s", None, message)]
    assert report.ok
    assert [(each.path, each.line) for each in report.findings] == [(str(capture / "s.tokens.state.json"), 1)]
    write_jsonl(capture / "s.tokens.jsonl", [call("a", [1], [2])])  # they were put back
    assert verify(capture).findings == []


def test_a_call_that_is_recorded_meanwhile_is_not_lost(capture: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (capture / "r.tokens.intents").write_text("c0\nc1\nc2\n")
    scan = served.scan_jsonl

    def later(*arguments: object, **options: object) -> object:
        append_jsonl(capture / "r.tokens.jsonl", [call("c2", [1], [2])])
        (capture / "r.tokens.intents").write_text("c0\nc1\nc2\nc3\n")
        return scan(*arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(served, "scan_jsonl", later)
    assert verify(capture).ok


@pytest.mark.parametrize("when", ["before", "while"])
@pytest.mark.parametrize("threads", [1, 2])
def test_a_rollout_that_is_retired_meanwhile_is_not_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, when: str, threads: int
) -> None:
    names = [f"{number:03}" for number in range(300)]
    for name in names:
        (tmp_path / f"{name}.tokens.jsonl").write_bytes(call("c", [1], [2], rollout_id=name).to_json() + b"\n")
        (tmp_path / f"{name}.tokens.intents").write_text("c\n")
    scan = served.scan_jsonl
    gone = names[-1]

    def retire() -> None:
        if (tmp_path / f"{gone}.tokens.jsonl").exists():
            (tmp_path / f"{gone}.tokens.jsonl").unlink()
            (tmp_path / f"{gone}.tokens.intents").unlink()
            (tmp_path / f"{gone}.tokens.state.json").write_text('{"retired": true}')

    @contextmanager
    def later(*arguments: object, **options: object) -> Iterator[Iterator[TokenEntry]]:
        with scan(*arguments, **options) as reader:  # type: ignore[arg-type]
            first = next(reader)
            retire()
            yield chain([first], reader)

    def now(*arguments: object, **options: object) -> object:
        retire()
        return scan(*arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(served, "scan_jsonl", now if when == "before" else later)
    report = verify(tmp_path, threads=threads)
    assert (report.ok, report.records) == (True, 299)
    assert [(each.code, each.rollout_id) for each in report.findings] == [("records_retired", gone)]


def test_files_of_served_calls_and_records_are_read_in_their_order(capture: Path) -> None:
    rows = [
        row("a", [1], [2], "s"),
        {"rollout_id": "s", "response": {}},
        row("b", [1, 2, 3], [4], "s"),
        row("a", [1], [2], "t"),
    ]
    responses = capture / "responses.jsonl"
    responses.write_text("\n" + "".join(json.dumps(each) + "\n" for each in rows))
    (capture / "bad.jsonl").write_text("{\n")
    report = verify([responses, capture, capture / "bad.jsonl", responses])
    assert [(each.code, each.path, each.line) for each in report.findings] == [
        ("unreadable_line", str(responses), 3),
        ("unreadable_line", str(capture / "bad.jsonl"), 1),
        ("unreadable_line", str(responses), 3),
    ]
    assert (report.records, report.sound) == (8, {("s", "a"), ("s", "b"), ("t", "a"), ("r", "c0"), ("r", "c1")})


def test_the_command_names_lost_calls(capture: Path) -> None:
    assert run("verify", capture).exit_code == 0
    (capture / "r.tokens.intents").write_text("c0\nc1\nc2\n")
    (capture / "s.lost").write_text("a\tcut off\n")
    result = run("verify", capture)
    assert result.exit_code == 1
    assert [line.split()[:4] for line in result.stdout.splitlines()[1:-1]] == [
        ["r", "c2", "error", "lost_call"],
        ["s", "a", "error", "lost_call"],
    ]
    assert result.stdout.splitlines()[-1].startswith("2 records with 9 ids: 2 errors, ")
    report = json.loads(run("verify", capture / "r.tokens.jsonl", "--json").stdout)
    assert (report["ok"], report["counts"]) == (False, {"lost_call": 1})
    for path in capture.iterdir():
        path.unlink()
    (capture / "r.tokens.state.json").write_text('{"retired": true}')
    for command in ("verify", "show"):
        gone = run(command, capture)
        assert gone.exit_code == 2
        assert "retired" in gone.stderr
        assert "rollouts.jsonl" in gone.stderr


def test_entries_at_hand_are_not_looked_up(capture: Path) -> None:
    (capture / "r.tokens.intents").write_text("c0\nc1\nc2\n")
    assert verify(conversation(2)).ok


def test_the_vocabulary_counts_for_files_too(capture: Path) -> None:
    assert verify(capture, vocab_size=302).ok
    assert verify(capture, vocab_size=301).counts == {"id_outside_vocab": 1}


@pytest.mark.parametrize("threads", [1, 2])
def test_files_are_read_and_checked_by_as_many_threads(
    capture: Path, monkeypatch: pytest.MonkeyPatch, threads: int
) -> None:
    asked = threads_asked(monkeypatch)
    verify(capture, threads=threads)
    assert len(asked) > 1
    assert set(asked) == {threads}


def test_a_file_that_is_named_twice_is_checked_twice(capture: Path) -> None:
    path = capture / "r.tokens.jsonl"
    write_jsonl(path, [call("c0", [1], [2], digest="0" * 64), call("c1", [1, 2], [3], "c0")])
    report = verify([path, path])
    assert (report.counts, report.records) == ({"digest_mismatch": 2}, 4)


def test_what_was_lost_is_said_before_what_is_wrong_with_records(capture: Path) -> None:
    write_jsonl(capture / "r.tokens.jsonl", [call("c0", [1], [2], digest="0" * 64)])
    with (capture / "r.tokens.jsonl").open("ab") as file:
        file.write(b"bad\n")
    assert [code for code, *_ in found(verify(capture))] == ["unreadable_line", "lost_call", "digest_mismatch"]


def test_the_side_files_of_a_file_of_several_rollouts_are_of_the_first_by_name(capture: Path) -> None:
    write_jsonl(capture / "r.tokens.jsonl", [call("c0", [1], [2], rollout_id=name) for name in "bac"])
    assert [(rollout_id, id_) for _, rollout_id, id_, _ in found(verify(capture))] == [("a", "c1")]


def test_the_choices_of_a_line_are_checked_with_the_calls_that_follow(tmp_path: Path) -> None:
    choices = [vllm_choice(index, [9 - index], [-0.5]) for index in (0, 1)]
    first = {"rollout_id": "r", "model_call_id": "a", "response": vllm_chat(*choices)}
    path = tmp_path / "responses.jsonl"
    path.write_text(json.dumps(first) + "\n" + json.dumps(row("b", [1, 7, 9, 3], [4])) + "\n")
    report = verify(path)
    assert report.sound == {("r", "a#0"), ("r", "a#1"), ("r", "b")}
    assert report.counts == {}


def test_a_mark_beside_a_lost_call_says_nothing_more(capture: Path) -> None:
    (capture / "r.intents").write_text("c0\nc1\nc2\n")
    (capture / "r.lost").write_text("c1\tcut off\n")
    assert [(code, id_) for code, _, id_, _ in found(verify(capture))] == [("lost_call", "c2")]


def test_each_file_that_has_lines_has_a_report(capture: Path) -> None:
    write_jsonl(capture / "s.tokens.jsonl", [])
    (capture / "t.tokens.jsonl").write_bytes(b"bad\n")
    reports = list(verify_files(*call_files([capture])))
    assert [path for path, *_ in reports] == [str(capture / "r.tokens.jsonl"), str(capture / "t.tokens.jsonl")]
    assert [(len(entries), report.records) for _, entries, report in reports] == [(2, 2), (0, 0)]
