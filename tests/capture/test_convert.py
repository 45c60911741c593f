"""Files of one kind become files of another; what is read back must be what was read."""

import re
from pathlib import Path

import numpy as np
import pytest
from support.factories import bare, conversation, line, make_entry
from tokenrecords import RecordError, write_jsonl
from tokenrecords.arrow import read_parquet, write_parquet
from tokenrecords.capture import convert as module
from tokenrecords.capture.convert import Count, convert, targets

ENTRIES = [*conversation(deltas=True), make_entry(rollout_id="s", reward=1.5, tags={"b": 1, "a": [None]})]


def names(directory):
    return sorted(file.name for file in directory.iterdir())


@pytest.mark.parametrize("ending", [".tokens.jsonl", ".jsonl.gz", ".jsonl.zst", ".parquet"])
def test_each_kind_becomes_each_other(tmp_path, ending):
    write_jsonl(tmp_path / "in.tokens.jsonl", ENTRIES)
    there, back = tmp_path / f"there{ending}", tmp_path / "back.jsonl"
    for source, target in ((tmp_path / "in.tokens.jsonl", there), (there, back)):
        count = convert([source], target)
        assert (count.records, count.ids) == (4, 12)
    assert back.read_bytes() == (tmp_path / "in.tokens.jsonl").read_bytes()
    assert names(tmp_path) == sorted(["in.tokens.jsonl", there.name, "back.jsonl"])


def test_several_files_become_one(tmp_path):
    files = [tmp_path / "a.tokens.jsonl", tmp_path / "b.parquet", tmp_path / "c.tokens.jsonl.gz"]
    write_jsonl(files[0], ENTRIES[:1])
    write_parquet(files[1], ENTRIES[1:3])
    write_jsonl(files[2], ENTRIES[3:])
    convert(files, tmp_path / "all.parquet")
    assert read_parquet(tmp_path / "all.parquet") == ENTRIES


def test_wide_ids(tmp_path):
    source, out = tmp_path / "in.jsonl", tmp_path / "out.parquet"
    entries = [make_entry(prompt_token_ids=[2**63, 1]), make_entry()]
    write_jsonl(source, entries)
    with pytest.raises(ValueError, match=r"prompt_token_ids\[0\] is 9223372036854775808: it does not fit int32$"):
        convert([source], out)
    assert not out.exists()
    convert([source], out, ids="uint64")
    assert read_parquet(out) == entries


def test_which_files_become_which():
    files = [Path("in/a.tokens.jsonl"), Path("in/b.tokens.jsonl.gz"), Path("in/c.jsonl"), Path("in/d.parquet")]
    assert targets(files, Path("x.parquet")) == [(files, Path("x.parquet"))]
    assert targets(files, Path("x.jsonl.zst")) == [(files, Path("x.jsonl.zst"))]
    made = ["a.parquet", "b.parquet", "c.parquet", "d.tokens.jsonl"]
    assert targets(files, Path("out")) == [([file], Path("out", name)) for file, name in zip(files, made, strict=True)]
    message = "a.parquet would be made of several files: different names are needed"
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        targets([files[0], Path("other/a.tokens.jsonl")], Path("out"))


@pytest.mark.parametrize("ending", [".jsonl", ".parquet"])
@pytest.mark.parametrize("bad", [b"{bad\n", b"{}\n"])
def test_a_bad_line_leaves_the_old_file(tmp_path, ending, bad):
    source, out = tmp_path / "in.jsonl", tmp_path / f"out{ending}"
    out.write_bytes(b"old")
    for text in (bad + line(), line() + bad):
        source.write_bytes(text)
        with pytest.raises(RecordError, match=rf"^{re.escape(str(source))}:[12]: "):
            convert([source], out)
        assert out.read_bytes() == b"old"
    assert names(tmp_path) == ["in.jsonl", out.name]


def test_what_json_has_not_stays_in_parquet(tmp_path):
    source, out = tmp_path / "in.parquet", tmp_path / "out.jsonl"
    write_parquet(source, [make_entry(reward=float("nan"))])
    message = (
        rf"{out} would hold other records than were read: (records: 1, ids: 3, digest: )(\w{{64}}), not \1(\w{{64}})"
    )
    with pytest.raises(ValueError, match=f"^{message}$"):
        convert([source], out)
    assert names(tmp_path) == ["in.parquet"]


@pytest.mark.parametrize(
    "changes",
    [
        {"prompt_token_ids": [1, 3]},
        {"prompt_token_ids": [1, 2, 3], "generation_token_ids": [], "generation_log_probs": []},
        {"generation_token_ids": [4]},
        {"generation_log_probs": [0.5]},
        {"model": "m"},
        {"output_items": [{}]},
        {"reward": None},
        {"routed_experts": "x"},
        {"created_at": 1.0},
    ],
)
def test_whatever_changes_is_noticed(tmp_path, monkeypatch, changes):
    write_jsonl(tmp_path / "in.jsonl", [make_entry()])
    wrong = [make_entry(**changes)]
    monkeypatch.setattr(module, "write_jsonl", lambda path, entries: (list(entries), write_jsonl(path, wrong)))
    with pytest.raises(ValueError, match=r" would hold other records than were read: "):
        convert([tmp_path / "in.jsonl"], tmp_path / "out.jsonl")


def test_a_record_that_is_lost_or_twice_there_is_noticed(tmp_path, monkeypatch):
    write_jsonl(tmp_path / "in.jsonl", [make_entry(), make_entry()])
    for wrong in ([make_entry()], [make_entry()] * 4, []):
        monkeypatch.setattr(module, "write_jsonl", lambda path, got, wrong=wrong: (list(got), write_jsonl(path, wrong)))
        with pytest.raises(ValueError, match=r", not records: 2, ids: 6, digest: "):
            convert([tmp_path / "in.jsonl"], tmp_path / "out.jsonl")


def digest(*entries):
    count = Count()
    list(count.counted(entries))
    return count.digest


def test_what_holds_the_values_does_not_count():
    nan = float("nan")
    entry = make_entry(generation_log_probs=[nan], a=1, b={"c": 1, "d": 2})
    other = make_entry(
        b={"d": 2, "c": 1},
        a=1,
        prompt_token_ids=np.array([1, 2], np.uint64),
        generation_token_ids=np.array([3], np.int8),
        generation_log_probs=np.array([np.copysign(nan, -1)]),
    )
    assert digest(entry) == digest(other)
    assert digest(entry, make_entry()) == digest(make_entry(), entry)
    assert digest(entry, entry) != digest()


def test_values_that_are_not_the_same():
    ids = [[-1], [2**64 - 1], [2**64], [1]]
    assert len({digest(make_entry(prompt_token_ids=each)) for each in ids}) == 4
    assert digest(make_entry(generation_log_probs=[-0.0])) != digest(make_entry(generation_log_probs=[0.0]))
    two = bare("c", [1, 2])
    one = make_entry(prompt_token_ids=[], generation_token_ids=[1], generation_log_probs=[2 * 5e-324])  # the bytes of 2
    assert digest(two) != digest(one)
