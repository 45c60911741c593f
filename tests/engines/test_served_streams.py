"""Streams read as arrays: their choices are those of the parsed chunks, in values and in errors."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic_core import from_json
from support.bodies import damaged, with_fault
from support.payloads import chunk, piece
from support.streams import CHUNKS, choices_of, outcome, sse, stream_of
from tokenrecords import merge_stream, read_response
from tokenrecords._core import IdWords
from tokenrecords.engines.body import Entries, Served, Spliced, join_columns, spliced
from tokenrecords.engines.event_stream import EventStream
from tokenrecords.engines.joining import Joined, join

DONE = b"data: [DONE]\n\n"
IDS = list(range(100, 140))
LOG_PROBS = [-id_ / 7 for id_ in IDS]


def served(*packets: bytes, **options: Any) -> Served:
    stream = EventStream()
    for packet in packets:
        stream.feed(packet)
    return stream.payload(**options)


def same_but_for_arrays(held: Any, want: Any) -> None:
    """The payload with arrays is the parsed one, in which lists stand for them."""
    if isinstance(held, Entries):
        assert len(held) == len(want)
        for key, column in held.columns.items():
            if column is not None:
                same_but_for_arrays(column, [entry[key] for entry in want])
    elif isinstance(held, IdWords):
        assert held.ids.tolist() == [int(word.removeprefix("token_id:")) for word in want]
    elif isinstance(held, np.ndarray):
        assert [float(value) for value in held] == [float(value) for value in want]
    elif isinstance(held, dict):
        assert list(held) == list(want)
        for key, value in held.items():
            same_but_for_arrays(value, want[key])
    elif isinstance(held, list):
        assert len(held) == len(want)
        list(map(same_but_for_arrays, held, want))
    else:
        assert repr(held) == repr(want)


def check_equal(body: bytes, *packets: bytes) -> str:
    """Read the stream both ways; gives what both say, `[` first if these are choices."""
    want = outcome(lambda: choices_of(merge_stream(body)))
    assert outcome(lambda: choices_of(served(*packets or (body,)))) == want
    return want


def chat(**more: Any) -> list[dict[str, Any]]:
    """The chunks of a chat as vLLM sends them."""
    head = chunk({"index": 0, "delta": {"role": "assistant", "content": ""}, "logprobs": None}, prompt_token_ids=[1, 7])
    told = [chunk(piece(f"{id_} ", [id_], **more)) for id_ in IDS]
    told[-1]["choices"][0] |= {"finish_reason": "stop", "stop_reason": None}
    counted = {"prompt_tokens": 2, "completion_tokens": len(IDS)}
    return [head, *told, chunk(usage=counted)]


def said(key: str, id_: int, **delta: Any) -> dict[str, Any]:
    entry = {"token": "x", "logprob": -id_ / 7, "bytes": [120], "top_logprobs": []}
    return chunk({"index": 0, "delta": {key: "x", **delta}, "logprobs": {"content": [entry]}, "token_ids": [id_]})


def call(id_: int) -> dict[str, Any]:
    piece_of = {"index": 0, "function": {"arguments": "{}"}}
    return chunk(
        {
            "index": 0,
            "delta": {"tool_calls": [piece_of]},
            "logprobs": {"content": [{"token": "x", "logprob": -0.5}]},
            "token_ids": [id_],
        }
    )


def text(id_: int, **logprobs: Any) -> dict[str, Any]:
    lists = {
        "tokens": [f"token_id:{id_}"],
        "token_logprobs": [-id_ / 7],
        "text_offset": [0],
        "top_logprobs": [{"x": 0}],
    }
    return {"object": "text_completion", "choices": [{"index": 0, "text": "x", "logprobs": {**lists, **logprobs}}]}


def event(id_: int) -> dict[str, Any]:
    place = {"item_id": "i", "output_index": 0, "content_index": 0}
    entry = {"token": f"token_id:{id_}", "logprob": -id_ / 7}
    return {"type": "response.output_text.delta", **place, "delta": "x", "logprobs": [entry]}


def block(id_: int) -> dict[str, Any]:
    scored = {"output_ids": [id_], "output_token_logprobs": [[-id_ / 7, id_, None]]}
    return {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "x"}, **scored}


def sample(end: int) -> dict[str, Any]:
    meta = {"id": "g", "completion_tokens": end, "output_token_logprobs": [[LOG_PROBS[end - 1], IDS[end - 1], None]]}
    return {"text": "x", "output_ids": IDS[end - 1 : end], "meta_info": meta}


def answer(id_: int) -> dict[str, Any]:
    scored = {"id": id_, "token": "x", "logprob": -id_ / 7, "top_logprobs": []}
    return {"content": "x", "tokens": [id_], "stop": False, "completion_probabilities": [scored], "index": 0}


HEAD = chunk(prompt_token_ids=[1, 7])
SOUND: dict[str, list[dict[str, Any]]] = {
    "chat": chat(),
    "entries under an id": [HEAD, *(chunk(piece("x", None, logprobs=[{"logprob": -0.5, "id": id_}])) for id_ in IDS)],
    "reasoning, then words": [HEAD, *(said("reasoning", i) for i in IDS), *(said("content", i) for i in IDS)],
    "words, then a call": [
        HEAD,
        *(chunk({**call(i)["choices"][0], "delta": {"content": "x"}}) for i in IDS),
        *map(call, IDS),
    ],
    "entries of two parts": [
        HEAD,
        *(chunk(piece("x", [i], logprobs={"reasoning": piece("x", [i])["logprobs"]["content"]})) for i in IDS),
        *(chunk(piece("x", [id_])) for id_ in IDS),
    ],
    "text": [text(id_) | {"prompt_token_ids": [1, 7]} for id_ in IDS],
    "generate": [{"request_id": "g", "choices": [said("x", i)["choices"][0] | {"delta": None}]} for i in IDS],
    "large ids": [HEAD, *(said("content", 2**40 * (i % 2) + i) for i in IDS)],
    "responses": [{"type": "response.created", "response": {"id": "r"}}, *map(event, IDS)],
    "messages": [
        {"type": "message_start", "message": {"id": "m", "content": [], "prompt_token_ids": [1, 7]}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        *map(block, IDS),
    ],
    "sglang": [sample(end) for end in range(1, len(IDS) + 1)],
    "llama.cpp": [*map(answer, IDS), {"content": "", "tokens": [], "stop": True, "index": 0}],
}
SAY_NO_PROMPT = ("generate", "responses", "sglang", "llama.cpp")


@pytest.mark.parametrize("name", SOUND)
def test_sound_streams_are_read_as_arrays(name):
    body = sse(*SOUND[name]) + DONE
    found = served(body)
    assert found.spliced is not None
    same_but_for_arrays(found.spliced.payload, merge_stream(body))
    options = {"prompt_token_ids": [1, 7] if name in SAY_NO_PROMPT else None}
    [choice] = read_response(found.spliced, **options)
    assert isinstance(choice.generation_token_ids, np.ndarray)
    assert isinstance(choice.generation_log_probs, np.ndarray)
    want = outcome(lambda: choices_of(merge_stream(body), **options))
    assert outcome(lambda: choices_of(found, **options)) == want
    assert len(choice.generation_token_ids) in (len(IDS), 2 * len(IDS))


@pytest.mark.parametrize("kind", CHUNKS)
@settings(max_examples=100)
@given(chance=st.randoms(use_true_random=True))
def test_streams_with_faults_give_equal_choices_or_equal_errors(kind, chance):
    body = b"".join(b"data: %s\n\n" % part.replace(b"\n", b"\ndata:") for part in stream_of(kind, chance)) + DONE
    if chance.random() < 0.1:
        body = damaged(body, chance)
    place = chance.randint(0, len(body))
    check_equal(body, body[:place], body[place:])
    found = outcome(lambda: served(body).spliced)
    if isinstance(found, Spliced):
        same_but_for_arrays(found.payload, merge_stream(body))


@pytest.mark.parametrize("name", SOUND)
@settings(max_examples=60)
@given(chance=st.randoms(use_true_random=True))
def test_sound_streams_with_a_fault(name, chance):
    chunks = list(SOUND[name])
    for _ in range(chance.choice((1, 1, 2))):
        place = chance.choice((0, 1, 2, len(chunks) // 2, len(chunks) - 2, len(chunks) - 1))
        chunks[place] = with_fault(chunks[place], chance)
    check_equal(sse(*chunks))


def test_a_stream_may_be_cut_at_any_byte():
    body = sse(*chat()[:6]).replace(b"\n", b"\r\n") + DONE
    want = check_equal(body)
    assert want.startswith("[")
    for place in range(len(body)):
        assert repr(choices_of(served(body[:place], body[place:]))) == want


def test_of_a_stream_that_was_cut_the_whole_events_count():
    body = sse(*chat()[:6])
    ends = [place + 2 for place in range(len(body)) if body.startswith(b"\n\n", place)]
    for place in range(ends[1], len(body) + 1):
        whole = body[: max(end for end in ends if end <= place)]
        found = served(body[:place], is_cut=True)
        assert found.spliced is not None
        assert found.parsed == merge_stream(whole)
    assert outcome(lambda: served(body[: ends[0] - 2], is_cut=True)) == repr(ValueError("the stream has no chunks"))
    with pytest.raises(ValueError, match="is not JSON"):
        served(body[: ends[3] - 9])


def test_many_choices_are_parsed():
    told = [chunk(piece("x", [id_], index=place % 2)) for place, id_ in enumerate(IDS)]
    found = served(sse(HEAD, *told))
    assert found.spliced is None
    assert found.payload == merge_stream([HEAD, *told])
    assert found.payload is found.parsed


@pytest.mark.parametrize(
    ("chunks", "spliced_too"),
    [
        # Values that stand in arrays are looked into, and what is known of an entry is not all that it says.
        ([HEAD, *map(partial(said, "content"), IDS), HEAD], False),
        ([HEAD, *(chunk(piece("x", [i], routing_ids=[i])) for i in IDS)], False),
        ([HEAD, said("content", 1), chunk(piece("x", [2], logprobs={"content": [{"logprob": None}]}))], False),
        ([HEAD, said("content", 1), chunk(piece("x", [2], logprobs={"content": [{"logprob": -1, "id": 2}]}))], False),
        ([HEAD, *(chunk(piece("x", [i], logprobs=[[-0.5, i, None]])) for i in IDS[:5])], True),
        ([text(1, token_logprobs=[None]), *map(text, IDS)], False),
        ([{**sample(k), "output_ids": IDS[:k]} for k in (1, 2, 3)], False),
    ],
)
def test_what_is_odd_is_parsed(chunks, spliced_too):
    body = sse(*chunks)
    assert (served(body).spliced is not None) == spliced_too
    check_equal(body)


def test_entries_that_come_again_are_compared_whole():
    """Columns are equal where an entry's text is not."""
    for word, is_equal in (("a", True), ("b", False)):
        rows = [[-0.5, 41, "a"], [-0.25, 2, None]]
        again = [[-0.5, 41, word], *rows[1:]]
        chunks = [
            {"meta_info": {"completion_tokens": k, "prompt_token_ids": [1], "output_token_logprobs": held}}
            for k, held in ((1, rows[:1]), (2, again))
        ]
        assert check_equal(sse(*chunks)).startswith("[") == is_equal


def test_a_hole_among_entries_is_an_error_of_its_chunk():
    for held in ([{"token": "x", "logprob": -0.5}], [{"token": "token_id:5", "logprob": -0.5}]):
        hole = chunk({"index": 0, "delta": {"content": "x"}, "logprobs": {"content": held}})
        body = sse(HEAD, *map(partial(said, "content"), IDS[:5]), hole)
        assert "chunk 6: generation_token_ids is missing" in check_equal(body)
    words = [chunk(piece("x", [i], token_ids=None)) for i in IDS[:5]]
    body = sse(HEAD, *words, chunk({"index": 0, "delta": {"content": "x"}}))
    assert "chunk 6: generation_token_ids is missing" in check_equal(body)


def test_what_is_parsed_is_parsed_once():
    calls = []
    found = Served(None, lambda: calls.append(1) or {})
    assert found.payload is found.parsed
    assert calls == [1]
    with_arrays = Served(Spliced({"a": 1}, []), lambda: calls.append(1) or {})
    assert with_arrays.payload == {"a": 1}
    assert calls == [1]
    assert with_arrays.parsed is with_arrays.parsed
    assert calls == [1, 1]


def test_an_array_that_is_lost_on_the_way_is_noticed():
    native = spliced(json.dumps({"token_ids": [1, 2], "logprobs": [{"logprob": -1, "id": 1}]}).encode(), least=1)
    assert native is not None
    ids, entries = native.payload["token_ids"], native.payload["logprobs"]
    kept = native.turned_into({"a": [{"b": ids}], "c": entries, "d": [1, "x"], "e": []})
    assert [[column.tolist() for column in arrays] for arrays in kept.found] == [[[1, 2]], [[-1.0], [1]]]
    for payload in (
        {"a": ids},
        {"a": ids, "b": list(entries)},
        {"a": ids[:1], "b": entries},
        {"a": [1, ids, entries]},
        {"a": ids, "b": entries, "c": [ids]},
    ):
        with pytest.raises(ValueError, match="not all arrays"):
            native.turned_into(payload)


def test_more_lists_than_are_worth_it():
    body = json.dumps([{"token_ids": [1]}] * 3).encode()
    assert spliced(body, least=1, most=2) is None
    assert spliced(body, least=1, most=3) is not None
    assert spliced(body, least=2) is None


def test_columns_are_joined():
    def entries(**columns: Any) -> Entries:
        return Entries({key: np.array(column) for key, column in columns.items()})

    one, two = entries(logprob=[-0.5], id=[4]), entries(logprob=[-1.0, -2.0], id=[5, 6])
    joined = join(Joined([one, [], two]))
    assert {key: column.tolist() for key, column in joined.columns.items()} == {
        "logprob": [-0.5, -1.0, -2.0],
        "id": [4, 5, 6],
    }
    assert list(joined)[1] == {"logprob": -1.0, "id": 5}
    rows = join(Joined([Entries((None, np.array([1]), None)), Entries((None, np.array([2]), None))]))
    assert list(rows) == [[None, 1, None], [None, 2, None]]
    words = join(Joined([IdWords(np.array([1], np.int32)), IdWords(np.array([2], np.int32))]))
    assert words.ids.tolist() == [1, 2]
    for parts in ([one, entries(logprob=[-1.0])], [entries(logprob=[-1.0]), one], [one, Entries((None, *one.columns))]):
        with pytest.raises(ValueError, match="different columns"):
            join(Joined(parts))
    for parts in ([None, np.array([1])], [np.array([1]), words]):
        with pytest.raises(ValueError, match="several kinds"):
            join_columns(parts)


def test_empty_lists_beside_arrays_are_nothing():
    assert join(Joined([[], np.array([1])])).tolist() == [1]
    assert join(Joined([[], []])) == []
    assert join(Joined([np.array([1]), ["x"]])) == [1, "x"]


def test_the_first_chunk_is_glanced_at():
    ids = list(range(100))
    body = sse(chunk(prompt_token_ids=ids), *(said("content", id_) for id_ in IDS))
    assert from_json(json.dumps(served(body).parsed)) == merge_stream(body)
    assert served(body).payload["prompt_token_ids"].tolist() == ids


def test_a_hole_behind_entries_whose_words_are_ids_is_an_error():
    parts = [chunk({**piece("x", [id_]), "token_ids": None}) for id_ in IDS]
    body = sse(chunk(prompt_token_ids=[1]), *parts, chunk(piece("x")))
    assert "choice 0: chunk 41: generation_token_ids is missing" in check_equal(body)
