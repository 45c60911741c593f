"""Files of calls, one after the other, while some of them vanish and readers are left."""

import json

import pytest
from support.command import row
from support.factories import make_entry
from support.watch import open_files, threads_are, threads_asked
from tokenrecords import RecordError, write_jsonl
from tokenrecords.arrow import write_parquet
from tokenrecords.capture.served import CallReader, read_calls


@pytest.fixture
def files(tmp_path):
    """More files than are read ahead, of two records each."""
    made = [tmp_path / f"r{number:03}.tokens.jsonl" for number in range(120)]
    for file in made:
        write_jsonl(file, [make_entry(rollout_id=file.name, model_call_id=call) for call in ("a", "b")])
    return made


def rollouts(entries):
    return [entry.rollout_id for entry in entries]


def twice(files):
    return [file.name for file in files for _ in range(2)]


@pytest.mark.parametrize("threads", [1, 2])
def test_files_that_are_gone_before_the_first_is_read_are_passed_over(files, threads):
    gone = {0, 1, 57, 119}
    for place in gone:
        files[place].unlink()
    left = [file for place, file in enumerate(files) if place not in gone]
    assert rollouts(read_calls(files, threads=threads)) == twice(left)


@pytest.mark.parametrize("threads", [1, 2])
def test_a_file_that_vanishes_while_others_are_read_is_passed_over(files, threads):
    entries = read_calls(files, threads=threads)
    first = next(entries)
    gone = {60, 61, 119}
    for place in gone:
        files[place].unlink()
    left = [file for place, file in enumerate(files) if place not in gone]
    assert rollouts([first, *entries]) == twice(left)


def test_no_file_is_left(files):
    for file in files:
        file.unlink()
    assert list(read_calls(files)) == []


@pytest.fixture
def large(tmp_path):
    """More than is read ahead, with a fault in its midst."""
    path = tmp_path / "r.tokens.jsonl"
    write_jsonl(path, [make_entry(model_call_id=f"c{call}", prompt_token_ids=range(5_000)) for call in range(600)])
    records = path.read_bytes()
    path.write_bytes(records + b"{\n" + records)
    return path


def test_who_leaves_a_reader_leaves_no_thread_and_no_open_file(large):
    entries = read_calls([large], threads=2)
    next(entries)
    assert open_files(large)
    entries.close()
    assert threads_are(there=False)
    assert open_files(large) == []


def test_a_fault_leaves_no_thread_and_no_open_file(large):
    with pytest.raises(ValueError, match=r"r\.tokens\.jsonl:601: Invalid JSON") as info:
        list(read_calls([large], threads=2))
    assert threads_are(there=False)
    assert open_files(large) == []
    assert info.value.line == 601


def test_a_reader_goes_on_behind_a_fault(files):
    files[1].write_bytes(b"{\n" + files[1].read_bytes())
    reader = CallReader(files, threads=2)
    assert rollouts(reader) == twice(files)
    assert [(error.path, error.line) for error in reader.errors] == [(str(files[1]), 1)]


@pytest.mark.parametrize("threads", [1, 2])
def test_as_many_threads_read_as_are_asked_for(files, monkeypatch, threads):
    asked = threads_asked(monkeypatch)
    assert len(list(read_calls(files, threads=threads))) == 240
    assert set(asked) == {threads}


def test_files_of_all_kinds_are_read_in_their_order(files, tmp_path):
    served = tmp_path / "calls.jsonl"
    served.write_text("\n".join(json.dumps(row(call, [1], [2], "served")) for call in ("b", "a")))
    columns = tmp_path / "r.parquet"
    write_parquet(columns, [make_entry(rollout_id="columns")])
    order = [files[1], served, columns, files[0], served]
    one, other = files[1].name, files[0].name
    assert rollouts(CallReader(order)) == [one, one, "served", "served", "columns", other, other, "served", "served"]


def test_the_first_of_several_faults_is_raised_before_a_later_record(tmp_path):
    path = tmp_path / "calls.jsonl"
    path.write_text("\n".join(map(json.dumps, [row("a", [1], [2]), {}, {}, row("b", [1], [2])])))
    entries = read_calls([path])
    assert next(entries).model_call_id == "a"
    with pytest.raises(ValueError, match=r"calls\.jsonl:2: response is missing$"):
        next(entries)
    reader = CallReader([path])
    assert [(entry.model_call_id, [error.line for error in reader.errors]) for entry in reader] == [
        ("a", []),
        ("b", [2, 3]),
    ]


def test_a_file_of_another_name_that_is_gone_is_passed_over(files, tmp_path):
    assert rollouts(read_calls([tmp_path / "gone.jsonl", files[0]])) == twice(files[:1])


@pytest.mark.parametrize("line", ["{", "[]", "7", '{"response": 1, "prompt_token_ids": []}'])
def test_what_is_no_call_is_a_record_that_is_wrong(tmp_path, line):
    path = tmp_path / "lines.jsonl"
    path.write_text(f"{line}\n")
    with pytest.raises(RecordError, match=r"lines\.jsonl:1: "):
        list(read_calls([path]))
