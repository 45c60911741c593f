"""Chunks that are taken as one: the bytes of a stream give what its parsed chunks give, in values and in errors."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.bodies import damaged
from support.payloads import chunk, piece
from support.streams import CHUNKS, merged, outcome, sse, stream_of
from tokenrecords import merge_stream
from tokenrecords._core import ChunkRules, SseEvents
from tokenrecords.engines import stream
from tokenrecords.engines.sse import parsed, parts


def merged_as_one(body: bytes) -> str:
    """What the joined chunks give; never with the help of those that are parsed one by one."""
    [events] = parts(body)
    chunks = stream._joined(events)
    assert chunks is not None
    return repr(stream._merge(chunks, None, check_ids=True))


@pytest.mark.parametrize("kind", CHUNKS)
@settings(max_examples=150)
@given(chance=st.randoms(use_true_random=False))
def test_streams_with_faults_give_equal_results_or_equal_errors(kind, chance):
    texts = stream_of(kind, chance)
    body = b"".join(b"data: %s\n\n" % text.replace(b"\n", b"\ndata:") for text in texts) + b"data: [DONE]\n\n"
    if chance.random() < 0.1:
        body = damaged(body, chance)
    check_ids = chance.random() < 0.5

    def chunk_by_chunk() -> Any:
        return stream._merge(parsed(parts(body)), None, check_ids=check_ids)

    assert merged(body, check_ids=check_ids) == outcome(chunk_by_chunk)


def joined(chunks: list[Any], rules: dict[str, Any]) -> list[Any] | None:
    """The chunks after those that may be were taken as one."""
    events = SseEvents()
    events.feed(sse(*chunks))
    text = events.joined(ChunkRules(rules))
    return None if text is None else json.loads(text)


@pytest.mark.parametrize(
    ("rule", "values", "want"),
    [
        ("text", ["a", "", "\n"], ["a\n"]),
        ("text", ["a", None, None, "b", 1, 1, ["c"], ["c"]], ["a", None, "b", 1, 1, ["c"], ["c"]]),
        ("list", [[1], [2], [[3]], [{"a": 1}], [{"b": 1}]], [[1, 2], [[3]], [{"a": 1}, {"b": 1}]]),
        ("list", [[], [], [1], [2, 3], []], [[], [1, 2, 3], []]),
        ("list", [["a", 1], ["b", 2]], [["a", 1, "b", 2]]),
        (
            "list",
            [["a", 1], [1, "a"], [True], [False], [None], [None]],
            [["a", 1], [1, "a"], [True], [False], [None, None]],
        ),
        ("list", ["a", "a", 5, 5], ["a", "a", 5, 5]),
        ("list", [["a"], ["token_id:1"], ["token_id:22"], ["b"]], [["a"], ["token_id:1", "token_id:22"], ["b"]]),
        ("list", [["token_id:x"]] * 2 + [["token_id:"]] * 2, [["token_id:x"]] * 2 + [["token_id:"]] * 2),
        ("list", [["token_id:1234567890"]] * 2, [["token_id:1234567890"]] * 2),
        ("entries", [[{"a": 1}], [{"a": 2}], [{"b": 2}]], [[{"a": 1}, {"a": 2}], [{"b": 2}]]),
        ("entries", [[{"a": 1}], [{"a": None}], [{"a": "x"}]], [[{"a": 1}], [{"a": None}], [{"a": "x"}]]),
        ("entries", [[{"a": [1]}], [{"a": [2, {}]}]], [[{"a": [1]}, {"a": [2, {}]}]]),
        ("entries", [[{"a": "x"}], [{"a": "token_id:1"}]], [[{"a": "x"}], [{"a": "token_id:1"}]]),
        ("entries", [[{}], [{}], [1], [1]], [[{}, {}], [1, 1]]),
        ("same", [1, 1, 2, {"a": [1]}, {"a": [1]}], [1, 2, {"a": [1]}]),
        (("a", "b"), ["a", "a", "b", "b", "c", "c", 1, 1], ["a", "b", "c", "c", 1, 1]),
        ("last", [1, "a", {"a": [1]}, None, None, True], [{"a": [1]}, None, True]),
        ("last", [[], [], [1], [1]], [[], [1], [1]]),
        ("never", [1, 1, None, None], [1, 1, None]),
        ({"b": "text"}, [{"b": "x"}, {"b": "y"}, 1, 1], [{"b": "xy"}, 1, 1]),
        ({"b": "text"}, [{"c": 1}] * 2 + [{}] * 2, [{"c": 1}] * 2 + [{}]),
        ([{"b": "text"}], [[{"b": "x"}], [{"b": "y"}], [], []], [[{"b": "xy"}], []]),
        ([{"b": "text"}], [[{"b": "x"}] * 2] * 2 + [[1]] * 2, [[{"b": "x"}] * 2] * 2 + [[1]] * 2),
    ],
)
def test_rules(rule, values, want):
    assert joined([{"a": value} for value in values], {"a": rule}) == [{"a": value} for value in want]
    assert joined([{"x": value} for value in values], {"a": rule, "*": rule}) == [{"x": value} for value in want]
    assert joined([{"x": value} for value in values], {"a": rule})[:1] == [{"x": values[0]}]


@pytest.mark.parametrize(
    ("chunks", "want"),
    [
        ([{"a": "x"}, {"b": "x"}, {"a": "x", "b": "x"}, {"b": "x", "a": "x"}], 4),
        ([{"a": "x", "b": "x"}] * 3, 1),
        ([{"l": [1], "m": [1]}, {"l": [2, 3], "m": [2, 3]}], 1),
        ([{"l": [1], "m": [1]}, {"l": [2, 3], "m": [2]}], 2),
        ([{"l": [1, 2], "m": [1]}, {"l": [2, 3], "m": [2]}], 1),
        ([{"l": [1], "m": []}, {"l": [1, 2], "m": []}], 2),
        ([{"l": [1], "o": {"l": [1]}}] * 2, 2),
        ([{"e": [{}], "o": {"f": [{}]}}] * 2, 2),
        ([{"e": [{}], "o": {"f": None}}] * 2, 1),
    ],
)
def test_chunks_that_go_on(chunks, want):
    lists = {**dict.fromkeys("lm", "list"), **dict.fromkeys("ef", "entries"), "*": "text"}
    found = joined(chunks, {**lists, "o": lists})
    assert found is not None
    assert len(found) == want


GROWS = {"l": "grows", "m": "grows", "t": "told", "n": "count", "*": "last"}


def grown(total: int, *ids: int, text: str = "o", **fields: Any) -> dict[str, Any]:
    return {"t": text, "n": total, "l": list(ids), **fields}


@pytest.mark.parametrize(
    ("chunks", "want"),
    [
        ([grown(1, 5), grown(2, 5, 6), grown(4, 5, 6, 7, 8, text="x"), grown(4, 5, 6, 7, 8)], [0, 3]),
        ([grown(1, 5), grown(2, 6), grown(4, 7, 8)], [0, grown(4, 6, 7, 8, text="oo")]),
        (
            [grown(1, 5), grown(2, 5, 6), grown(3, 7), grown(4, 8), grown(5, 1, 2, 3, 4, 5)],
            [0, 1, grown(4, 7, 8, text="oo"), 4],
        ),
        ([grown(2, 5, 6), grown(1, 5), grown(1, 5), grown(1, 5)], [0, 1, 3]),
        ([grown(1, 5), grown(2, 15, 6), grown(3, 15, 61, 7)], [0, 1, 2]),
        ([grown(1, 5), grown(2, 55, 6)], [0, 1]),
        ([grown(1, 5), grown(4, 5, 6), grown(5, 5, 6)], [0, 1, 2]),
        ([grown(0, 5), grown(1, 5), grown(1, 5)], [0, 1, 2]),
        ([grown(1), grown(1), grown(1)], [0, 1, 2]),
        ([{"t": "o", "n": 1}] * 3, [0, 1, 2]),
        ([{"t": "o", "l": [1]}] * 3, [0, 1, 2]),
        ([grown(1, 5, m=[1]), grown(2, 5, 6, m=[1, 2]), grown(3, 5, 6, 7, m=[1, 2, 3])], [0, 2]),
        ([grown(1, 5, m=[1]), grown(2, 5, 6, m=[2, 2]), grown(3, 5, 6, 7, m=[1, 2, 3])], [0, 1, 2]),
        ([grown(1, 5, m=[1, 2]), grown(2, 5, 6, m=[1, 2, 3]), grown(3, 5, 6, 7, m=[1, 2, 3, 4])], [0, 1, 2]),
        ([grown(1, 5, x=1), grown(2, 5, 6, x=2), grown(3, 5, 6, 7, x=3)], [0, 2]),
        ([grown(1, 5, x=None), grown(2, 5, 6, x=None), grown(3, 5, 6, 7, x=3)], [0, 1, 2]),
        ([grown(-1, 5), grown(-1, 5), grown(-1, 5)], [0, 1, 2]),
        ([grown(True, 5), grown(True, 5), grown(True, 5)], [0, 1, 2]),
        ([grown(1, 5, text=5), grown(2, 6, text=5), grown(3, 7, text=5)], [0, 1, 2]),
    ],
)
def test_what_grows(chunks, want):
    assert joined(chunks, GROWS) == [chunks[part] if isinstance(part, int) else part for part in want]
    assert len(joined(chunks, {**GROWS, "x": "text", "l": "list"}) or ()) == len(chunks)


@pytest.mark.parametrize(
    "text",
    [
        *("[1]", "1", '{"a":1', '{"a":1}}', '{"a":1}x', '{"a":01}', '{"a":1.}', '{"a":-}', '{"a":1e}', '{"a":NaN}'),
        *('{"a":tru}', '{"a" 1}', '{"a":1,}', "{,}", '{"a":[1,]}', '{"a":[1}', '{"\\u0061":1}', '{"a":"\\ud83d"}'),
        *('{"a":"\\x"}', '{"a":"\t"}', '{"a":' + "[" * 70 + "]" * 70 + "}", '{"a":' + "1" * 1002 + "}"),
    ],
)
def test_what_is_odd_is_left_to_the_reader_of_chunks(text):
    for rule in ("last", "same", "never", "list", {"a": "last"}, [{"a": "last"}]):
        events = SseEvents()
        events.feed(b'data: {"a":1}\n\ndata: %s\n\n' % text.encode())
        assert events.joined(ChunkRules({"*": rule})) is None


def test_what_is_odd_and_would_be_left_out():
    for text in (b'{"a":"\xff"}', b'{"a":"\xed\xa0\x80"}'):
        events = SseEvents()
        events.feed(b'data: {"a":1}\n\ndata: %s\n\ndata: {"a":2}\n\n' % text)
        assert events.joined(ChunkRules({"*": "last"})) is None


@pytest.mark.parametrize("text", ["1e5", "-0.5E-7", "0", "-0", "10", "1" * 999, "1.25e+3"])
def test_numbers_of_any_length(text):
    events = SseEvents()
    events.feed(b'data: {"a": 1}\n\ndata: {"a" : %s }\n\n' % text.encode())
    assert events.joined(ChunkRules({"a": "last"})) == b'[{"a": %s}]' % text.encode()


@pytest.mark.parametrize("body", [b"data: {}\n\nevent: error\ndata: {}\n\n", b"data: {}\n\nwhat\n"])
def test_a_stream_of_other_than_data_is_left_to_the_reader_of_chunks(body):
    events = SseEvents()
    events.feed(body)
    assert events.joined(ChunkRules({})) is None


def test_spelled_words():
    for spelling in ("\\u0074oken_id:5", "t\\u006fken_id:5"):
        texts = [f'{{"a":["{word}"]}}' for word in ("x", spelling, spelling, "\\ud83d\\ude00")]
        events = SseEvents()
        events.feed("".join(f"data: {text}\n\n" for text in texts).encode())
        assert events.joined(ChunkRules({"a": "list"})) == f"[{','.join(texts)}]".encode()


@pytest.mark.parametrize("rule", ["never so", 5, [], ["text"], (1,), {"a": "x"}, {1: "text"}])
def test_rules_that_are_none(rule):
    with pytest.raises((TypeError, IndexError)):
        ChunkRules({"a": rule})


TAKEN_AS_ONE = [(kind, place) for kind, held in CHUNKS.items() for place in range(len(held))]
ALONE = {*(("chat", place) for place in (8, 9, 10, 11)), ("messages", 4), ("messages", 5), ("tgi", 0)}


@pytest.mark.parametrize(("kind", "place"), TAKEN_AS_ONE)
def test_which_chunks_are_taken_as_one(kind, place):
    [events] = parts(sse(*[CHUNKS[kind][place]] * 50))
    chunks = stream._joined(events)
    assert chunks is not None
    # What grows is measured by a chunk that stays.
    assert len(chunks) == (50 if (kind, place) in ALONE else 2 if kind == "sglang" else 1)


def test_a_long_stream():
    ids = list(range(100, 600))
    chunks = [chunk(piece("", None), prompt_token_ids=[1, 7]), *(chunk(piece(f"{id_} ", [id_])) for id_ in ids)]
    chunks[-1]["choices"][0]["finish_reason"] = "stop"
    chunks.append(chunk(usage={"prompt_tokens": 2, "completion_tokens": 500}))
    body = sse(*chunks) + b"data: [DONE]\n\n"
    assert merged_as_one(body) == repr(merge_stream(chunks))
    [events] = parts(body)
    assert len(stream._joined(events)) == 4


def test_faults_have_the_place_of_their_chunk():
    chunks = [chunk(piece("x", [1])) for _ in range(9)]
    chunks[7]["choices"][0]["token_ids"] = [1, 2]
    with pytest.raises(ValueError, match="chunk 7: 2 generation_token_ids and 1 generation_log_probs"):
        merge_stream(sse(*chunks))
