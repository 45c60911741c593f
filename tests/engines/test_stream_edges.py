"""Edges of streams: what is null, empty or said again, and which lists are streams."""

import json
from typing import Any

import numpy as np
import pytest
from support.payloads import chunk, piece, tokens_of
from tokenrecords import merge_stream, read_response
from tokenrecords.engines.stream import is_stream

FIRST = chunk({**piece(), "delta": {"role": "assistant", "content": ""}}, prompt_token_ids=[1, 7])


def refused(chunks: Any, *words: str) -> None:
    with pytest.raises(ValueError, match=r".") as caught:
        merge_stream(chunks)
    for word in words:
        assert word in str(caught.value)


@pytest.mark.parametrize("kind", ["ping", "keepalive"])
def test_a_chunk_with_choices_is_no_sign_of_life(kind):
    merged = merge_stream([FIRST, chunk(piece("o", [41]), type=kind)])
    assert merged["choices"][0]["token_ids"] == [41]


def test_lists_that_are_all_empty_are_joined_to_an_empty_one():
    merged = merge_stream([FIRST, chunk(piece("", [])), chunk(piece("", []))])
    assert (merged["choices"][0]["token_ids"], merged["choices"][0]["logprobs"]) == ([], {"content": []})
    assert tokens_of(read_response(merged)[0]) == ([1, 7], [], [])


def test_log_probs_that_are_null_stay_null():
    part = chunk({**piece("", []), "logprobs": {"content": None}})
    merged = merge_stream([FIRST, part])
    assert merged["choices"][0]["logprobs"] == {"content": None}
    assert tokens_of(read_response(merged)[0]) == ([1, 7], [], [])


def test_an_id_that_sorts_before_or_behind_is_another():
    for one, two in (("a", "b"), ("b", "a")):
        refused([{**FIRST, "id": one}, chunk(piece("o", [41]), id=two)], f"chunk 1: id '{two}' of another response")
        heads = [{"choices": [], "request_id": one}, {"choices": [], "request_id": two}]
        refused(heads, f"chunk 1: request_id '{two}' of another response")


@pytest.mark.parametrize("error", ["", {}, False, 0])
def test_an_error_that_says_nothing_is_one(error):
    refused([FIRST, {"error": error}], f"chunk 1: the server sent an error: {{'error': {error!r}}}")
    refused([FIRST, chunk({**piece("o", [41]), "error": error})], "chunk 1: the server sent an error: ")


def test_a_list_is_a_stream_where_one_of_it_is_a_chunk():
    def sample(id_: str, **meta: Any) -> dict[str, Any]:
        return {"text": "x", "output_ids": [41], "meta_info": {"id": id_, **meta}}

    unfinished, finished = {"finish_reason": None}, {"finish_reason": {"type": "stop"}}
    for payloads in (
        [sample("a", **unfinished), sample("a", **finished)],
        [sample("a"), sample("a")],
        (sample("a", **finished), sample("b", **unfinished)),
        [{"type": "ping"}, {"type": "message"}],
        [{"choices": [{"delta": {}}]}],
        [{"choices": []}],
        ["data: {}"],
        [b"data: {}"],
        [{"token": {"id": 1}}],
        [{"content": "x", "stop": False}],
    ):
        assert is_stream(payloads), payloads
    for payloads in (
        [sample("a"), sample("b")],
        [sample("a", **finished), sample("a", **finished)],
        [{"choices": [{"message": {}}]}],
        [{"choices": [{"message": {}}, {}]}],
        [{"content": "x", "stop": True}, {"content": "x", "stop": None}],
        [5, None, [41]],
        [],
        {"choices": [{"delta": {}}]},
        "data: {}",
    ):
        assert not is_stream(payloads), payloads


def test_the_prompt_of_a_chats_meta_info_is_not_counted_with_what_is_generated():
    def part(text: str, id_: int, counted: int) -> dict[str, Any]:
        meta = {"completion_tokens": counted, "input_token_logprobs": [[None, 1, None], [-2.0, 7, None]]}
        return chunk({**piece(text, [id_]), "meta_info": meta})

    merged = merge_stream([part("o", 41, 1), part("k", 2, 2), part("!", 9, 3)])
    assert [entry[1] for entry in merged["choices"][0]["meta_info"]["input_token_logprobs"]] == [1, 7]
    assert merged["choices"][0]["meta_info"]["completion_tokens"] == 3


def test_a_prompt_that_is_null_at_first():
    parts = [chunk(piece("o", [41]), prompt_token_ids=None), chunk(piece("k", [2]))]
    assert merge_stream([*parts, chunk(prompt_token_ids=[1, 7])])["prompt_token_ids"] == [1, 7]
    assert merge_stream([FIRST, chunk(prompt_token_ids=None)])["prompt_token_ids"] == [1, 7]


@pytest.mark.parametrize("name", ["prompt_token_ids", "routed_experts"])
def test_an_empty_value_that_is_said_once_is_one(name):
    for values in (([], [1]), ([1], [])):
        parts = [chunk(piece("x", [41]), **{name: value}) for value in values]
        refused(parts, f"chunk 1: a second {name} disagrees with the first")


def test_words_do_not_stand_in_for_ids_that_others_have():
    bare = {**piece("k", [2]), "token_ids": None}
    refused([FIRST, chunk(piece("o", [41])), chunk(bare)], "chunk 2: generation_token_ids is missing")


def test_ids_of_a_message_in_an_envelope_are_joined():
    one = {"index": 0, "delta": {"content": "x", "gen_tokens": "ngtok1:i32:KQAAAA=="}}
    merged = merge_stream([chunk(one), chunk(one)])
    assert merged["choices"][0]["message"]["gen_tokens"].tolist() == [41, 41]


@pytest.mark.parametrize(("ids", "log_probs"), [([41], [-0.5, -1.0]), ([41, 2], [-0.5]), ([], [-0.5]), ([41], [])])
def test_unequal_numbers_in_either_direction(ids, log_probs):
    part = {**piece("o", ids), "logprobs": {"content": [{"token": "x", "logprob": value} for value in log_probs]}}
    words = f"chunk 1: {len(ids)} generation_token_ids and {len(log_probs)} generation_log_probs"
    refused([FIRST, chunk(part)], words)


@pytest.mark.parametrize("name", ["sglext", "sgl_ext"])
def test_ids_of_an_extension_may_be_said_again(name):
    extension = chunk({"index": 0, "delta": {}, name: {"output_ids": [41], "routed_experts": "AA"}})
    merged = merge_stream([extension, extension])
    assert merged["choices"][0][name] == {"output_ids": [41], "routed_experts": "AA"}


def test_an_error_by_its_type_or_object():
    for error in ({"type": "error", "choices": []}, {"object": "error", "choices": []}):
        refused([FIRST, error], f"chunk 1: the server sent an error: {error}")


@pytest.mark.parametrize("dtypes", [("i8", "f8"), ("f8", "i8"), ("f4", "f8"), ("f8", "f4"), ("f2", "f4"), ("i4", "f4")])
def test_log_probs_in_arrays_of_several_kinds_keep_their_values(dtypes):
    values = [-3, -0.5] if dtypes[0][0] == "i" else [-0.5, -3]
    held = [np.array([value], dtype) for value, dtype in zip(values, dtypes, strict=True)]
    parts = [chunk({**piece("x", [41]), "logprobs": None, "generation_log_probs": part}) for part in held]
    assert list(merge_stream([FIRST, *parts])["choices"][0]["generation_log_probs"]) == values


def event(**fields: Any) -> dict[str, Any]:
    return {"type": "response.output_text.delta", "output_index": 0, "content_index": 0, "delta": "x", **fields}


NUMBERED = {
    "choice index": lambda wrong: chunk(piece("x", index=wrong)),
    "the index of a tool call": lambda wrong: chunk({"index": 0, "delta": {"tool_calls": [{"index": wrong}]}}),
    "output_index": lambda wrong: event(output_index=wrong),
    "content_index": lambda wrong: event(content_index=wrong),
    "summary_index": lambda wrong: event(type="response.reasoning_summary_text.delta", summary_index=wrong),
    "index of a sample": lambda wrong: {"index": wrong, "output_ids": [41], "meta_info": {}},
    "index of an answer": lambda wrong: {"index": wrong, "content": "x", "stop": False},
    "index of a block": lambda wrong: {"type": "content_block_start", "index": wrong, "content_block": {}},
    "index of a piece": lambda wrong: {"type": "content_block_delta", "index": wrong, "delta": {"text": "x"}},
}


@pytest.mark.parametrize("wrong", [True, "0", 0.5, [], [0], {}], ids=repr)
@pytest.mark.parametrize("name", NUMBERED)
def test_a_number_that_is_no_integer(name, wrong):
    parts = [NUMBERED[name](0), NUMBERED[name](wrong)]
    refused(
        parts, f"chunk 1: {name.partition(' of a ')[0].partition(' of an ')[0]} ", f"must be an integer, got {wrong!r}"
    )
    body = "".join(f"data: {json.dumps(part)}\n\n" for part in parts)
    refused(
        body, f"chunk 1: {name.partition(' of a ')[0].partition(' of an ')[0]} ", f"must be an integer, got {wrong!r}"
    )


def test_one_id_among_the_entries_of_a_chunk_asks_for_those_of_others():
    entries = [{"token": "x", "logprob": -0.5, **more} for more in ({}, {"token_id": 4}, {})]
    parts = [chunk({**piece("xyz"), "logprobs": {"content": entries}}), chunk(piece("x"))]
    refused(parts, "choice 0: chunk 1: generation_token_ids is missing")
