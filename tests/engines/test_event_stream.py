"""Streams while their bytes come in: where they end, what went wrong, and what they give."""

import pytest
from support.payloads import chunk, piece
from support.streams import sse
from tokenrecords import merge_stream
from tokenrecords.engines.event_stream import EventStream

CHAT = [chunk(piece("o", [41]), prompt_token_ids=[1, 7]), chunk(piece("\N{PILE OF POO}", [2]))]


CHAT_BODY = sse(*CHAT)
TEXT = {"type": "response.output_text.delta", "output_index": 0, "content_index": 0, "delta": "x"}
WORDS = "response.completed message_stop error"


def fed(*packets: bytes) -> EventStream:
    stream = EventStream()
    for packet in packets:
        stream.feed(packet)
    return stream


@pytest.mark.parametrize(
    ("before", "end"),
    [
        (CHAT_BODY, b"data: [DONE]\n\n"),
        (CHAT_BODY, b": bye\r\ndata:[DONE]\r\n"),
        (sse(TEXT), sse({"type": "response.completed", "response": {"id": "r", "output": []}})),
        (sse(TEXT), b"event: response.incomplete\n" + sse({"type": "response.incomplete", "response": {"id": "r"}})),
        (sse({"type": "message_start", "message": {"id": "m"}}), sse({"type": "message_stop"})),
    ],
)
def test_where_a_stream_ends(before, end):
    stream = fed(before, end[:-2])
    stream.feed(end[-2:])
    stream.feed(b": more\n\n")
    assert (stream.end_at, stream.is_ended, stream.error) == (len(before), True, None)
    assert stream.body == before + end + b": more\n\n"
    assert stream.payload().parsed == merge_stream(before + end)
    assert fed(before).end_at is None


TOKEN = {"index": 1, "token": {"id": 41, "text": "o", "logprob": -0.5, "special": False}, "generated_text": None}
WHOLE = {**TOKEN, "index": 2, "generated_text": "oo", "details": {"finish_reason": "length"}}
PIECE = {"content": "o", "tokens": [41], "stop": False}


@pytest.mark.parametrize(("piece", "last"), [(TOKEN, WHOLE), (PIECE, {**PIECE, "stop": True, "stop_type": "limit"})])
def test_an_answer_ends_with_what_says_so_where_a_stream_has_no_end(piece, last):
    stream = fed(sse(piece), sse(last)[:-1])
    assert (stream.end_at, stream.before_end()) == (None, sse(piece))
    stream.feed(b"\n" + sse(piece))
    assert (stream.end_at, stream.is_ended) == (len(sse(piece)), False)
    assert (stream.before_end(), stream.rest(), stream.rest()) == (b"", sse(last) + sse(piece), b"")


def test_a_reason_ends_no_answer_of_chat():
    stream = fed(sse(chunk(piece("o", [41])) | {"stop": "length", "generated_text": None}))
    assert (stream.end_at, stream.is_ended) == (None, False)


def test_the_first_end_counts():
    done = sse({"type": "response.completed", "response": {"id": "r"}})
    assert fed(sse(TEXT), done, b"data: [DONE]\n\n").end_at == len(sse(TEXT))


@pytest.mark.parametrize(
    "chunks",
    [
        [chunk(piece(text, [1])) for text in ("[DONE]", WORDS, *WORDS.split(), '"message_stop"')],
        [TEXT | {"delta": text} for text in ("[DONE]", *WORDS.split(), '{"type": "response.completed"}')],
        [chunk(piece("x", [1])) | {"error": None}],
    ],
)
def test_words_of_the_model_end_nothing(chunks):
    stream = fed(sse(*chunks))
    assert (stream.end_at, stream.error) == (None, None)
    assert stream.payload().parsed == merge_stream(chunks)


@pytest.mark.parametrize(
    "event",
    [
        sse({"error": {"message": "engine dead"}}),
        sse({"detail": "engine dead"}),
        sse({"errors": "engine dead"}),
        sse(chunk({"index": 0, "delta": {}, "error": {"message": "engine dead"}})),
        sse({"type": "error", "error": {"message": "engine dead"}}),
        sse({"object": "error", "message": "engine dead"}),
        b"event: error\ndata: engine dead\n\n",
        b'error: {"message": "engine dead"}\n\n',
    ],
)
def test_an_error_that_passes(event):
    stream = fed(CHAT_BODY)
    assert stream.error is None
    stream.feed(event)
    assert (stream.error, stream.end_at) == ("engine dead", None)
    stream.feed(sse({"error": "another"}) + b"data: [DONE]\n\n")
    assert (stream.error, stream.end_at is None) == ("engine dead", False)
    with pytest.raises(ValueError, match="chunk 2: the server sent an error: engine dead"):
        stream.payload()


def test_a_response_that_failed():
    failed = {"type": "response.failed", "response": {"id": "r", "error": {"message": "engine dead"}}}
    stream = fed(sse(TEXT, failed))
    assert (stream.error, stream.end_at) == ("engine dead", len(sse(TEXT)))
    with pytest.raises(ValueError, match="chunk 1: the server sent an error: engine dead"):
        stream.payload()


def test_what_is_no_chunk_is_for_the_payload_to_say():
    stream = fed(sse(*CHAT), b'data: {"error"\n\n', b"<html>\n")
    assert (stream.error, stream.end_at) == (None, None)
    with pytest.raises(ValueError, match="a line of the stream is not JSON"):
        stream.payload()


def test_an_error_of_that_word_is_no_end():
    stream = fed(sse(TEXT), b"event: error\ndata: [DONE]\n\n")
    assert (stream.error, stream.end_at) == ("[DONE]", None)


@pytest.mark.parametrize("kind", [["error"], {"message_stop": 1}, None, 5])
def test_types_that_are_no_words_end_nothing(kind):
    stream = fed(sse({"type": kind, "choices": [], "message": None}))
    assert (stream.error, stream.end_at) == (None, None)


def test_an_event_without_its_end_counts_at_the_end():
    stream = fed(sse(*CHAT) + b"data: [DONE]")
    assert stream.end_at is None
    assert stream.payload().parsed == merge_stream(CHAT)
    assert stream.end_at == len(sse(*CHAT))


def test_packets_may_be_cut_anywhere():
    body = sse(*CHAT).replace(b"\n", b"\r\n") + b"data: [DONE]\r\n\r\n"
    want = merge_stream(CHAT)
    for place in range(len(body)):
        stream = fed(body[:place], bytearray(body[place:]), memoryview(b""))
        assert stream.payload().parsed == want
        assert stream.end_at == len(body) - 16
        assert stream.body == body


def test_an_event_is_looked_at_once(monkeypatch):
    looked: list[bytes] = []
    monkeypatch.setattr(EventStream, "_watch", lambda _self, _kind, _begin, data: looked.append(data))
    stream = fed(sse({"detail": "x"}), sse(*CHAT), b"data: [DONE]\n")
    stream.feed(b"\n")
    assert looked == [b'{"detail": "x"}']


def test_a_stream_that_has_ended_stays_so():
    done = sse({"type": "response.completed", "response": {"id": "r"}})
    stream = fed(sse(TEXT), done, sse({**PIECE, "stop": True}))
    assert (stream.end_at, stream.is_ended) == (len(sse(TEXT)), True)


def test_the_first_error_is_told():
    stream = fed(sse({"error": "one"}), sse({"error": "two"}))
    assert stream.error == "one"
