"""What stands beside the records of a rollout."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from support.factories import call, conversation
from tokenrecords import append_jsonl, read_jsonl, write_jsonl
from tokenrecords.files.side_files import Note, beside, read_side_files, retired, still_there

if TYPE_CHECKING:
    from pathlib import Path

    from tokenrecords.files.side_files import SideFiles


def write(directory: Path, **texts: str) -> None:
    """Files of a rollout `r`: `__` in a name stands for a dot."""
    for ending, text in texts.items():
        (directory / f"r.{ending.replace('__', '.')}").write_text(text, encoding="utf-8")


def side(directory: Path) -> SideFiles:
    [found] = read_side_files([directory]).values()
    return found


def state(**fields: Any) -> str:
    known = {"entry_digests": {}, "frozen": False, "incomplete": False, "indexed_size": 0, "retired": False}
    return json.dumps({**known, "snapshot_id": "", "version": 1, **fields})


@pytest.mark.parametrize("ending", ["tokens__intents", "intents"])
def test_calls_that_were_begun_are_read_from_either_layout(tmp_path: Path, ending: str) -> None:
    write(tmp_path, **{ending: "a\n b \r\n\n \na\nc"})
    path = str(tmp_path / f"r.{ending.replace('__', '.')}")
    found = side(tmp_path)
    assert found.begun == {call: Note(path, line, "it was begun") for call, line in (("a", 1), ("b", 2), ("c", 6))}
    assert found.lost(["b"]) == ["a", "c"]
    assert found.lost(["c", "b", "a", "d"]) == []
    assert (found.is_incomplete("ab"), found.is_incomplete("abc")) == (True, False)


@pytest.mark.parametrize("ending", ["tokens__incomplete", "lost"])
def test_calls_that_were_lost_are_read_from_either_layout(tmp_path: Path, ending: str) -> None:
    write(tmp_path, **{ending: "a\nb\tthe disk is full\n\n\tnobody knows\n"})
    found = side(tmp_path)
    assert {call: (note.line, note.why) for call, note in found.marks.items()} == {
        "a": (1, "it was marked as lost"),
        "b": (2, "it was marked as lost (the disk is full)"),
        "": (3, "a call without a name was marked as lost"),
    }
    assert (found.lost(["a"]), found.lost(())) == (["b"], ["a", "b"])
    assert found.is_incomplete(["a", "b"])  # one of them was lost all the same


def test_a_call_that_the_engine_refused_is_taken_back_by_the_gateway_alone(tmp_path: Path) -> None:
    write(tmp_path, intents="a\n b \n b \tthe engine refused it\nnever begun\tfor nothing\n")
    assert list(side(tmp_path).begun) == ["a"]
    (tmp_path / "r.intents").unlink()
    write(tmp_path, tokens__intents="a\nb\nb\tof a name with a tab\n")
    assert list(side(tmp_path).begun) == ["a", "b", "b\tof a name with a tab"]


def test_lost_calls_come_as_they_were_begun_then_recorded_then_marked(tmp_path: Path) -> None:
    write(tmp_path, lost="c\nb\n", intents="z\na\n", tokens__state__json=state(entry_digests={"b": "", "y": ""}))
    assert side(tmp_path).lost(()) == ["z", "a", "b", "y", "c"]


def test_retired_rollouts_are_counted(tmp_path: Path) -> None:
    for name, is_retired in (("a", True), ("b", False), ("c", True)):
        (tmp_path / f"{name}.tokens.state.json").write_text(state(retired=is_retired))
    assert retired(tmp_path) == 2


def test_a_line_ends_at_a_line_feed_alone(tmp_path: Path) -> None:
    write(tmp_path, intents="a\u2028b\x0bc\n")
    assert list(side(tmp_path).begun) == ["a\u2028b\x0bc"]


def test_several_choices_of_a_call_are_its_record(tmp_path: Path) -> None:
    write(tmp_path, intents="a\nb#1\nc\n")
    assert side(tmp_path).lost(["a#0", "a#1", "b#1#0"]) == ["c"]


def test_a_call_that_was_recorded_once_is_not_forgotten(tmp_path: Path) -> None:
    write(tmp_path, tokens__state__json=state(entry_digests={"a": "0", "b": "0"}, frozen=True))
    found = side(tmp_path)
    assert found.lost(["a"]) == ["b"]
    assert found.once["b"] == Note(str(tmp_path / "r.tokens.state.json"), 1, "it was recorded once")
    assert (found.is_frozen, found.retired, found.marks) == (True, None, {})


def test_the_state_says_that_a_rollout_is_incomplete_where_no_call_is_named(tmp_path: Path) -> None:
    write(tmp_path, tokens__state__json=state(incomplete=True))
    assert {call: note.why for call, note in side(tmp_path).marks.items()} == {
        "": "the rollout was marked as incomplete"
    }
    write(tmp_path, tokens__incomplete="a\n")
    assert list(side(tmp_path).marks) == ["a"]


@pytest.mark.parametrize("text", ['{"frozen": tr', "[]", ""])
def test_a_state_that_cannot_be_read_proves_nothing(tmp_path: Path, text: str) -> None:
    write(tmp_path, tokens__state__json=text)
    assert {call: note.why for call, note in side(tmp_path).marks.items()} == {
        "": "the state of the rollout can't be read"
    }
    assert side(tmp_path).is_incomplete(())


def test_values_of_other_kinds_in_the_state_say_nothing(tmp_path: Path) -> None:
    write(tmp_path, tokens__state__json='{"entry_digests": [1], "frozen": 1, "retired": "no"}')
    found = side(tmp_path)
    assert (found.once, found.marks, found.is_frozen, found.retired) == ({}, {}, False, None)


def test_bytes_that_are_no_text_are_a_call_that_has_no_record(tmp_path: Path) -> None:
    (tmp_path / "r.intents").write_bytes(b"a\n\xff\n")
    assert side(tmp_path).lost(["a"]) == ["\ufffd"]


def test_a_file_of_records_leads_to_the_files_beside_it(tmp_path: Path) -> None:
    write(tmp_path, tokens__intents="a\n")
    for name in ("r.tokens.jsonl", "r.tokens.jsonl.gz", "r.tokens.jsonl.zst"):
        assert list(read_side_files([tmp_path / name])) == [str(tmp_path / "r")]
    for name in ("r.jsonl", "q.tokens.jsonl", "r.tokens.jsonl.bak"):
        assert read_side_files([tmp_path / name]) == {}


def test_rollouts_of_a_directory_are_found_by_any_of_their_files(tmp_path: Path) -> None:
    for name in ("c.tokens.state.json", "b.tokens.intents", "b.intents", "a.lost", "d.tokens.jsonl", "e.tokens.lock"):
        (tmp_path / name).write_text("{}")
    found = read_side_files([tmp_path])
    assert list(found) == [str(tmp_path / name) for name in "abc"]
    assert list(found[str(tmp_path / "b")].begun) == ["{}"]
    assert read_side_files([tmp_path, tmp_path]).keys() == found.keys()


def test_records_are_those_of_the_files_beside_them(tmp_path: Path) -> None:
    write(tmp_path, intents="c0\nc1\nc2\n")
    (tmp_path / "s.intents").write_text("c0\n")
    write_jsonl(
        tmp_path / "r.tokens.jsonl", [entry.model_copy(update={"rollout_id": "R"}) for entry in conversation(2)]
    )
    write_jsonl(tmp_path / "other.tokens.jsonl", [call("c2", [1], [2]), call("c0", [1], [2])])
    r, s = beside(read_side_files([tmp_path]), [*read_jsonl(tmp_path), call("c2", [1], [2])])
    assert (r.rollout_ids, r.recorded, r.side.lost(r.recorded), r.is_incomplete) == (
        {"R"},
        {"c0", "c1"},
        ["c2"],
        True,
    )
    assert (s.rollout_ids, s.recorded, s.is_incomplete) == ({"s"}, set(), True)
    append_jsonl(tmp_path / "r.tokens.jsonl", [call("c2", [1], [2])])
    r, s = beside(read_side_files([tmp_path]), read_jsonl(tmp_path))
    assert (r.rollout_ids, r.is_incomplete, s.is_incomplete) == ({"R", "r"}, False, True)


def test_what_became_of_a_rollout_meanwhile_counts_where_it_has_no_record(tmp_path: Path) -> None:
    for name in "abc":
        (tmp_path / f"{name}.tokens.intents").write_text("x\n")
    before = read_side_files([tmp_path])
    (tmp_path / "a.tokens.intents").unlink()
    (tmp_path / "a.tokens.state.json").write_text(state(retired=True))
    (tmp_path / "b.tokens.intents").unlink()
    (tmp_path / "c.tokens.intents").write_text("x\ny\n")  # what is begun now may be open
    now = still_there(before)
    assert list(now) == [str(tmp_path / name) for name in "ac"]
    a, c = now.values()
    assert (a.retired, a.is_incomplete(())) == (str(tmp_path / "a.tokens.state.json"), False)
    assert list(c.begun) == ["x"]


def test_side_files_are_never_changed(tmp_path: Path) -> None:
    write(tmp_path, tokens__intents="a\nb", tokens__incomplete="a\n", tokens__state__json=state(), tokens__lock="")
    before = {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in tmp_path.iterdir()}
    for path in tmp_path.iterdir():
        path.chmod(0o400)
    tmp_path.chmod(0o500)
    try:
        assert side(tmp_path).is_incomplete(())
    finally:
        tmp_path.chmod(0o700)
    assert {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in tmp_path.iterdir()} == before
