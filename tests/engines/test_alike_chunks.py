"""Chunks that are taken as one: the bytes of a stream give what its parsed chunks give, in values and in errors."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic_core import from_json
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
    return repr(stream._merge(from_json(stream._joined(events))))


@pytest.mark.parametrize("kind", CHUNKS)
@settings(max_examples=150)
@given(chance=st.randoms(use_true_random=True))
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
        ([grown(1, 5, 5, m=[1]), grown(2, 5, 5, 6, m=[1, 2]), grown(3, 5, 5, 6, 7, m=[1, 2, 3])], [0, 1, 2]),
        ([grown(2, 5, m=[1, 2])] * 3, [0, 1, 2]),
        ([grown(3, 5), grown(2, 5, 6), grown(3, 5, 6, 7)], [0, 1, 2]),
        ([grown(1, 5), grown(2, 5, 6), grown(9, 5, 6, 7)], [0, 1, 2]),
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


def test_what_grows_beside_a_text_in_pieces():
    chunks = [grown(n, *[5] * n, x="x") for n in (1, 2, 3)]
    assert joined(chunks, {**GROWS, "x": "text"}) == chunks


def test_what_grows_is_not_measured_by_another_list():
    chunks = [{"x": [5, 6], "m": [7], "n": 1}, *({"m": [5, 6, 1, 4, 8][:n], "n": n - 1} for n in (3, 4, 5))]
    assert joined(chunks, {**GROWS, "x": "list"}) == chunks


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
    chunks = from_json(stream._joined(events))
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
    assert len(from_json(stream._joined(events))) == 4


def test_faults_have_the_place_of_their_chunk():
    chunks = [chunk(piece("x", [1])) for _ in range(9)]
    chunks[7]["choices"][0]["token_ids"] = [1, 2]
    with pytest.raises(ValueError, match="chunk 7: 2 generation_token_ids and 1 generation_log_probs"):
        merge_stream(sse(*chunks))


# Chunks that a rule too few would take as one.
FOUR_WORDS = [chunk(piece(word, [1])) for word in "wxyz"]
APART: dict[str, list[dict[str, Any]]] = {
    "calls of two ids": [
        chunk({"index": 0, "delta": {"tool_calls": [{"id": i, "function": {"arguments": "{}"}}]}}) for i in "ab"
    ],
    "a call's name twice": [
        chunk({"index": 0, "delta": {"tool_calls": [{"function": {"name": n}}]}}) for n in ("f", "g", "g")
    ],
    "an error by its type": [
        part | {"type": said} for part, said in zip(FOUR_WORDS, ("error", "x", "x", "x"), strict=True)
    ],
    "an error by its object": [
        part | {"object": said} for part, said in zip(FOUR_WORDS, ("x", "error", "x", "x"), strict=True)
    ],
    "an error": [part | {"error": said} for part, said in zip(FOUR_WORDS, ("dead", "", False, 0), strict=True)],
    "words of an error": [
        {"type": "response.x", "output_index": 0},
        *({"type": "x", "message": said} for said in ("dead", "")),
    ],
    "words beside tokens": [
        {"content": "x", "stop": False},
        *({"tokens": [1], "detail": said} for said in ("dead", "")),
    ],
    "an error of a choice": [chunk(piece("x", [1], error=said)) for said in ("dead", "", False)],
    "an id of another": [part | {"id": said} for part, said in zip(FOUR_WORDS, "aaba", strict=True)],
    "another prompt": [
        part | {"prompt_token_ids": ids} for part, ids in zip(FOUR_WORDS, ([1], [1], [2], [1]), strict=True)
    ],
    "first said": [part | {"created": said} for part, said in zip(FOUR_WORDS, (0, 1, 2, 3), strict=True)],
    "choices in turn": [chunk(piece(word, [1], index=index)) for word, index in zip("abcd", (0, 1, 0, 1), strict=True)],
    "one id each": [chunk({"index": 0, "delta": {"content": "x", "token_id": 5}, "logprobs": -0.5})] * 3,
    "parts in turn": [
        chunk({"index": 0, "logprobs": {"content": [{"token": a}], "refusal": [{"token": b}]}}) for a, b in ("ab", "cd")
    ],
    "a hole": [chunk({"index": 0, "logprobs": {"content": [{"token": "x", "id": i}]}}) for i in (1, None, 2, "x")],
    "a hole of words": [
        chunk({"index": 0, "logprobs": {"tokens": [word]}, "text": "x"}) for word in ("token_id:1", "x", "token_id:2")
    ],
    "unequal numbers": [
        chunk({**piece("x", ids), "generation_log_probs": [0.5], "logprobs": None}) for ids in ([1, 2], [1], [])
    ],
    "said in extensions": [chunk(piece("x", [1]), sglext={"output_ids": [i]}) for i in (1, 1, 2)],
    "heads of a response": [{"type": "response.in_progress", "response": {"id": "r", key: 1}} for key in "ab"],
    "heads of two responses": [{"type": "response.in_progress", "response": {"id": id_}} for id_ in "aba"],
    "an item's events": [{"type": "response.output_item.added", "output_index": 0, "item": {key: 1}} for key in "ab"],
    "items in turn": [{"type": "response.output_text.delta", "output_index": i % 2, "delta": "x"} for i in range(4)],
    "parts of an item in turn": [
        {"type": "response.output_text.delta", "output_index": 0, "content_index": i % 2, "delta": "x"}
        for i in range(4)
    ],
    "prompts of an item": [{"type": "response.x", "output_index": 0, "prompt_token_ids": [i]} for i in (1, 1, 2)],
    "lists of an item": [{"type": "response.x", "output_index": 0, "x": [i]} for i in (1, 1, 2)],
    "counts of a message": [
        {"type": "content_block_delta", "index": 0, "delta": {}, "usage": {key: 1}} for key in "ab"
    ],
    "text of a message": [{"type": "message_delta", "delta": {"text": word}} for word in "ab"],
    "no type": [{"type": "content_block_delta"}, *({"delta": {"text": word}} for word in "ab")],
    "a null type": [{"type": "content_block_delta"}, *({"type": None, "delta": {"text": word}} for word in "ab")],
    "blocks in turn": [{"type": "content_block_delta", "index": i % 2, "delta": {"text": "x"}} for i in range(4)],
    "citations": [{"type": "content_block_delta", "index": 0, "delta": {"citation": i}} for i in (1, 2, None, None)],
    "prompts of a message": [{"type": "content_block_delta", "prompt_token_ids": [i]} for i in (1, 1, 2, 1)],
    "blocks that begin with something": [
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": "a", "citations": [1]}},
        *({"type": "content_block_delta", "index": 0, "delta": {"text": "x", "citation": i}} for i in (2, 3)),
    ],
    "ids of an event and its delta": [
        {"type": "content_block_delta", "delta": {"token_ids": [i]}, "token_ids": [i + 1]} for i in (1, 3, 5)
    ],
    "answers in turn": [{"index": i % 2, "content": "x", "stop": False} for i in range(4)],
    "prompts of an answer": [{"content": "x", "stop": False, "prompt_token_ids": [i]} for i in (1, 2, 1)],
    "samples in turn": [
        {"index": index, "output_ids": ids, "meta_info": {"completion_tokens": len(ids)}}
        for index, ids in ((0, [5]), (1, [5, 6]), (0, [5, 6, 7]), (1, [5, 6, 7, 8]))
    ],
    "samples of two ids": [
        {"output_ids": [5] * i, "meta_info": {"id": "aba"[i - 1], "completion_tokens": i}} for i in (1, 2, 3)
    ],
    "prompts of a sample": [
        {"output_ids": [5] * i, "meta_info": {"completion_tokens": i}, "prompt_token_ids": [i % 2]} for i in (1, 2, 3)
    ],
    "entries of a sample's prompt": [
        {"output_ids": [5] * i, "meta_info": {"completion_tokens": i, "input_token_logprobs": [[None, i % 2]]}}
        for i in (1, 2, 3)
    ],
    "texts of a sample": [
        {"text": word, "output_ids": [i], "meta_info": {"completion_tokens": i}} for i, word in enumerate("abcd", 1)
    ],
    "counts that are wrong": [
        {"text": "x", "output_ids": [5], "meta_info": {"completion_tokens": i}} for i in (1, 3, 3, 4)
    ],
}


@pytest.mark.parametrize("name", APART)
def test_streams_whose_chunks_are_alike_but_for_what_counts(name):
    chunks = APART[name]
    for held in (chunks, chunks[::-1], [part for part in chunks for _ in range(2)]):
        assert merged(sse(*held)) == merged(held)


def test_signs_of_life_do_not_say_what_comes():
    [events] = parts(sse({"type": "ping"}, *[CHUNKS["chat"][0]] * 50))
    assert len(from_json(stream._joined(events))) == 2


def test_too_little_memory_is_no_reason_to_read_a_stream_again(monkeypatch):
    failures: list[Exception] = [MemoryError()]

    def merge(*_arguments: Any, **_options: Any) -> Any:
        if failures:
            raise failures.pop()
        return "read again"

    monkeypatch.setattr(stream, "_merge", merge)
    with pytest.raises(MemoryError):
        merge_stream(sse(*FOUR_WORDS))
    failures.append(ValueError())
    assert merge_stream(sse(*FOUR_WORDS)) == "read again"
