"""The events of a stream: how lines become events, wherever the bytes are cut."""

import json
import re
from typing import Any

import pytest
from tokenrecords import merge_stream
from tokenrecords._core import SseEvents

Found = list[tuple[str, int, bytes]]


def events_of(*packets: bytes) -> tuple[Found, bool]:
    """The events of a whole stream, and whether `[DONE]` came."""
    held = SseEvents()
    for packet in packets:
        held.feed(packet)
    held.end()
    assert held.body == b"".join(packets)
    return [held[place] for place in range(len(held))], held.is_done


def data_of(text: str) -> list[str]:
    return [data.decode() for kind, _, data in events_of(text.encode())[0] if kind == "data"]


STREAMS = {
    "plain": ('data: {"a":1}\n\ndata: {"b":2}\n\n', ['{"a":1}', '{"b":2}']),
    "no space": ('data:{"a":1}\n\ndata:{"b":2}\n\n', ['{"a":1}', '{"b":2}']),
    "crlf": ('data: {"a":1}\r\n\r\ndata: {"b":2}\r\n\r\n', ['{"a":1}', '{"b":2}']),
    "cr": ('data: {"a":1}\r\rdata: {"b":2}\r\r', ['{"a":1}', '{"b":2}']),
    "lf behind cr behind lf": ('data: {"a":1\ndata:}\n\r\ndata: {"b":2}\r\n\n', ['{"a":1\n}', '{"b":2}']),
    "no end": ('data: {"a":1}\n\ndata: {"b":2}', ['{"a":1}', '{"b":2}']),
    "no blank lines": ('data: {"a":1}\ndata: {"b":2}\ndata: [DONE]\n', ['{"a":1}', '{"b":2}', "[DONE]"]),
    "json lines": ('{"a":1}\n{"b":2}\n', ['{"a":1}', '{"b":2}']),
    "several lines": ('data: {"a":\ndata: 1,\ndata:\ndata: "b": {}}\n\n', ['{"a":\n1,\n\n"b": {}}']),
    "lists of objects": ('data: {"a": [{}\ndata: ,{}]}\n\n', ['{"a": [{}\n,{}]}']),
    "comments": (': hello\n\n:\n\n: x\ndata: {"a":1}\n: y\n\n: bye\n', ['{"a":1}']),
    "other fields": ('event: m\nid: 7\nretry: 5\ndata: {"a":1}\n\nid\n\n', ['{"a":1}']),
    "white space": (' \t data:\t {"a":1} \n  \n\t{"b":2}\n \n', ['{"a":1}', '{"b":2}']),
    "byte order marks": ('\ufeffdata: {"a":1}\n\n\ufeff{"b":2}\n\n', ['{"a":1}', '{"b":2}']),
    "other separators": ('data: {"a":"\u2028\x85\x0b\u2029"}\n\n', ['{"a":"\u2028\x85\x0b\u2029"}']),
    "done": ('data: {"a":1}\n\ndata: [DONE]\n\ndata: {"b":2}\n\nwhat\n', ['{"a":1}', "[DONE]"]),
    "done of several lines": ("data: [DONE]x\n\ndata: [\ndata: DONE]\n\n", ["[DONE]x", "[\nDONE]"]),
    "done inside": ('data: [1,\ndata: [DONE]\ndata: ]\n\n{"b":2}\n', ["[1,\n[DONE]\n]", '{"b":2}']),
    "nothing": ("\n\r\n\r: x\ndata\n\ndata:\n\nevent: error\n\n", []),
    "empty": ("", []),
}


@pytest.mark.parametrize("name", STREAMS)
def test_lines_become_events(name):
    text, want = STREAMS[name]
    assert data_of(text) == want


ODD = {
    "an error": (
        'event: error\ndata: {"a":\ndata: 1}\n\ndata: {}\n\n',
        [("error", 0, b'{"a":\n1}'), ("data", 35, b"{}")],
    ),
    "an error said before": ("data: x\nevent: error\n\n", [("error", 0, b"x")]),
    "an error of a comment": ("event: error\n: dead\n\n: x\n", [("error", 0, b"dead")]),
    "an error field": ("data: {}\n\nerror: dead\ndata: x\n\n", [("data", 0, b"{}"), ("error", 10, b"dead")]),
    "data of an error before its comment": ("event: error\n: dead\ndata: x\n\n", [("error", 0, b"x")]),
    "an error that is done": (
        "event: error\ndata: [DONE]\n\ndata: x\n\n",
        [("error", 0, b"[DONE]"), ("data", 27, b"x")],
    ),
    "an event that is none": ("event: error\nevent: x\ndata: x\n\n", [("data", 0, b"x")]),
    "an unknown line": ("data: {}\n<html>: x\n", [("data", 0, b"{}"), ("unknown", 9, b"<html>: x")]),
    "where events begin": ("\n: x\ndata: x\n\n\ndata: y\n\n", [("data", 1, b"x"), ("data", 15, b"y")]),
    "where lines begin": (
        ' {"a":1}\r\n{"b":2}\r\n\r\n{}',
        [("data", 0, b'{"a":1}'), ("data", 10, b'{"b":2}'), ("data", 21, b"{}")],
    ),
}


@pytest.mark.parametrize("name", ODD)
def test_what_events_are_and_where_they_begin(name):
    text, want = ODD[name]
    assert events_of(text.encode())[0] == want


@pytest.mark.parametrize("text", [text for text, _ in [*STREAMS.values(), *ODD.values()]])
def test_packets_may_be_cut_anywhere(text):
    body = text.encode()
    want = events_of(body)
    for place in range(len(body) + 1):
        assert events_of(body[:place], b"", body[place:]) == want
    assert events_of(*(body[place : place + 1] for place in range(len(body)))) == want


def test_events_are_whole_once_their_end_has_come():
    held = SseEvents()
    counts = []
    for packet in (b'data: {"a":', b"1}", b"\n", b"\n", b'{"b":2}\n', b'{"c":3}\n', b"data: [DONE]", b"\n"):
        held.feed(packet)
        counts.append((len(held), held.is_done))
    assert counts == [(0, False)] * 3 + [(1, False)] * 2 + [(2, False)] * 2 + [(4, True)]
    held.end()
    held.end()
    assert len(held) == 4
    with pytest.raises(IndexError):
        held[4]


CHUNK: dict[str, Any] = {"id": "c", "choices": [{"index": 0, "delta": {"content": "o\u2028k"}}]}


@pytest.mark.parametrize("indent", [1, None])
def test_a_chunk_of_several_lines_of_data(indent):
    text = json.dumps(CHUNK, indent=indent, ensure_ascii=False)
    body = "".join(f"data: {line}\n" for line in text.split("\n")) + "\n"
    merged = merge_stream(body + body)
    assert merged["choices"][0]["message"]["content"] == "o\u2028ko\u2028k"
    for form in (body.encode() * 2, bytearray(body.encode() * 2), memoryview(body.encode() * 2), [body, body]):
        assert merge_stream(form) == merged


def test_lines_among_chunks():
    chunks: list[Any] = [{"choices": [{"index": 0, "delta": {"content": word}}]} for word in "abcd"]
    line = f"data: {json.dumps(CHUNK)}"
    for place in range(16):
        mixed = [f"data: {json.dumps(part)}" if place >> k & 1 else part for k, part in enumerate(chunks)]
        assert merge_stream(mixed)["choices"][0]["message"]["content"] == "abcd"
    assert merge_stream([line, "data: [DONE]", CHUNK])["choices"][0]["message"]["content"] == "o\u2028k"


def test_nothing_is_taken_behind_the_last_line():
    def lines() -> Any:
        yield f"data: {json.dumps(CHUNK)}"
        yield "data: [DONE]"
        raise AssertionError

    assert merge_stream(lines())["id"] == "c"


def test_an_error_whose_words_are_done():
    with pytest.raises(ValueError, match=r"chunk 0: the server sent an error: \[DONE\]"):
        merge_stream("event: error\ndata: [DONE]\n\n")


def test_half_a_character_is_no_fault():
    body = b'data: {"choices": [{"index": 0, "delta": {"content": "\\ud83d"}}]}\n\n'
    assert merge_stream(body)["choices"][0]["message"]["content"] == "\ud83d"
    assert merge_stream(body.decode().replace("\\ud83d", "\ud83d"))["choices"][0]["message"]["content"] == "\ud83d"
    with pytest.raises(ValueError, match="can't decode"):
        merge_stream(body.replace(b"\\ud83d", b"\xff"))


def test_words_of_an_error_that_are_nested_beyond_all_bounds():
    with pytest.raises(ValueError, match=r"^chunk 0: the server sent an error: \[\[\["):
        merge_stream("event: error\ndata: " + "[" * 100_000 + "\n\n")


@pytest.mark.parametrize(
    ("data", "said"),
    [('{"message": "x"}', "x"), ('{"error": "y", "message": "x"}', "y"), ('["z"]', "['z']"), ("z", "z"), ("5", "5")],
)
def test_the_words_of_an_error(data, said):
    with pytest.raises(ValueError, match=f"^chunk 0: the server sent an error: {re.escape(said)}$"):
        merge_stream(f"event: error\ndata: {data}\n\n")


def test_bytes_that_are_no_text():
    with pytest.raises(ValueError, match=r"^a line of the stream is not UTF-8 \(.*\): b'\\x1f\\x8b"):
        merge_stream(b"\x1f\x8b\x08\x00data: {}\n\n")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b"x" * 81, f"not a line of an SSE stream: '{'x' * 80}'"),
        (b"data: " + b"x" * 81, f": '{'x' * 80}'"),
        (b'data: "' + b"x" * 80 + b'"', f"a line of the stream holds no chunk: '\"{'x' * 79}'"),
        (b"data: \xff" + b"x" * 80, f": {bytes([255]) + b'x' * 79!r}"),
    ],
)
def test_a_message_shows_the_beginning_of_a_line(line, message):
    with pytest.raises(ValueError, match=f"{re.escape(message)}$"):
        merge_stream(line)


@pytest.mark.parametrize(
    "first",
    [
        {"choices": [{"index": 0, "delta": {"content": "o"}}]},
        {"index": 1, "token": {"id": 41, "logprob": -0.5, "text": "o"}},
        {"type": "message_start", "message": {"type": "message", "role": "assistant", "content": []}},
        {"type": "response.created", "response": {"object": "response", "output": []}},
    ],
)
@pytest.mark.parametrize(
    ("data", "said"), [('{"error": null, "message": "x"}', "x"), ('{"error": null}', "None"), ("null", "null")]
)
def test_an_error_that_says_null(first, data, said):
    with pytest.raises(ValueError, match=f"^chunk 1: the server sent an error: .*{said}"):
        merge_stream(f"data: {json.dumps(first)}\n\nevent: error\ndata: {data}\n\n")
