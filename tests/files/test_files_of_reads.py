"""Open files that have `read`, and little else."""

import io

import pyarrow as pa
import pytest
from support.factories import THREE, call_ids, line
from tokenrecords import read_jsonl, scan_jsonl


class Reads:
    """No more than `read`, which gives few bytes at once."""

    def __init__(self, data):
        self._data = io.BytesIO(data)
        self.asked = 0

    def read(self, size):
        self.asked += 1
        return self._data.read(min(size, 100))


def from_disk(path):
    path.write_bytes(THREE)
    return pa.OSFile(str(path))


FILES = {
    "buffer": lambda _: pa.BufferReader(THREE),
    "disk": from_disk,
    "python": lambda _: pa.PythonFile(io.BytesIO(THREE), mode="r"),
    "stream": lambda _: pa.input_stream(io.BytesIO(THREE)),
    "reads": lambda _: Reads(THREE),
}


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("threads", [None, 2])
def test_a_file_that_gives_no_lines(path, name, threads):
    file = FILES[name](path)
    assert call_ids(read_jsonl(file, threads=threads)) == ["a", "b", "c"]
    assert read_jsonl(file) == []


def test_a_long_line():
    long = line(model="x" * (3 << 20))
    for file in (pa.BufferReader(long + THREE), Reads(long + THREE)):
        assert call_ids(read_jsonl(file)) == ["c", "a", "b", "c"]


def test_it_is_not_read_byte_by_byte():
    file = Reads(THREE)
    assert len(read_jsonl(file)) == 3
    assert file.asked < len(THREE) / 50


def test_its_owner_reads_on_where_the_records_end(path):
    with from_disk(path) as file, scan_jsonl(file) as entries:
        assert next(entries).model_call_id == "a"
        entries.close()
        assert file.tell() == len(line(model_call_id="a"))
        assert not file.closed


def test_it_is_read_from_where_it_stands(path):
    with from_disk(path) as file:
        file.seek(len(line(model_call_id="a")))
        assert call_ids(read_jsonl(file)) == ["b", "c"]


@pytest.mark.parametrize("error", [AttributeError, TypeError, NotImplementedError, io.UnsupportedOperation])
def test_a_file_may_say_in_any_way_that_it_gives_no_lines(error):
    class Says(Reads):
        def readline(self, *_):
            raise error("no lines")

    assert call_ids(read_jsonl(Says(THREE))) == ["a", "b", "c"]


def test_a_file_whose_lines_are_no_bytes_gives_none():
    class Texts(Reads):
        def readline(self, *_):
            return ""

    assert call_ids(read_jsonl(Texts(THREE))) == ["a", "b", "c"]
