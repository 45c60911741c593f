"""Streams of chat and text completions: what is joined, what is refused, and the twin without streaming."""

import copy
import json
import re
import time
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.payloads import TOKENS, Model, chunk, piece, tokens_of
from tokenrecords import detect_dialect, extract_token_fields, merge_stream, read_response

FIRST = chunk({**piece(), "delta": {"role": "assistant", "content": ""}}, prompt_token_ids=[1, 7])
STREAM = [
    FIRST,
    chunk(piece("o", [41])),
    chunk({**piece("k", [2]), "finish_reason": "stop"}),
    chunk(usage={"prompt_tokens": 2, "completion_tokens": 2}),
]


def lines(chunks: list[dict[str, Any]]) -> list[str]:
    held = [line for part in chunks for line in (f"data: {json.dumps(part)}", "")]
    return [": ping", "event: message", "retry: 5", *held, "data: [DONE]", ""]


def refused(chunks: Any, *words: str) -> None:
    with pytest.raises(ValueError, match=r".") as caught:
        merge_stream(chunks)
    for word in words:
        assert word in str(caught.value)


@pytest.mark.parametrize(
    "chunks",
    [
        STREAM,
        iter(STREAM),
        [Model(**part) for part in STREAM],
        lines(STREAM),
        [line.encode() for line in lines(STREAM)],
        "\n".join(lines(STREAM)),
        "\r\n".join(lines(STREAM)).encode(),
        [json.dumps(part) for part in STREAM],
        [f"data:{json.dumps(part)}\n\n" for part in STREAM],
    ],
    ids=["dicts", "iterator", "models", "lines", "bytes", "text", "crlf", "jsonl", "events"],
)
def test_every_form_of_a_stream(chunks):
    merged = merge_stream(chunks)
    assert (merged["object"], merged["id"], merged["model"], merged["created"]) == (
        "chat.completion",
        "c1",
        "m",
        1,
    )
    assert merged["choices"][0]["message"] == {"role": "assistant", "content": "ok"}
    assert merged["usage"]["completion_tokens"] == 2
    [choice] = read_response(merged)
    assert (choice.prompt_token_ids, choice.generation_token_ids) == ([1, 7], [41, 2])
    assert (choice.generation_log_probs, choice.finish_reason) == ([-5.125, -0.25], "stop")


def test_chunks_are_not_changed():
    before = copy.deepcopy(STREAM)
    merge_stream(STREAM)
    assert before == STREAM


def test_lines_after_done_and_unescaped_separators():
    held = [f"data: {json.dumps(part, ensure_ascii=False)}" for part in [FIRST, chunk(piece("a\u2028b\x85", [41]))]]
    merged = merge_stream([*held, "data: [DONE]", "data: nonsense"])
    assert merged["choices"][0]["message"]["content"] == "a\u2028b\x85"


def test_two_choices_that_interleave():
    merged = merge_stream(
        [FIRST, chunk(piece("b", [9], index=1)), chunk(piece("a", [41])), chunk(piece("c", [8], index=1))]
    )
    found = [(c.index, c.generation_token_ids, c.output_items[0]["content"]) for c in read_response(merged)]
    assert found == [(0, [41], "a"), (1, [9, 8], "bc")]


def test_text_completion():
    def text(words: str, ids: list[int], **more: Any) -> dict[str, Any]:
        logprobs = {
            "tokens": [f"token_id:{i}" for i in ids],
            "token_logprobs": [-0.5] * len(ids),
            "top_logprobs": [None] * len(ids),
            "text_offset": [0] * len(ids),
        }
        choice = {
            "index": 0,
            "text": words,
            "token_ids": ids,
            "logprobs": logprobs,
            "finish_reason": None,
            **more,
        }
        return {"id": "x", "object": "text_completion", "choices": [choice]}

    merged = merge_stream([text("o", [41], prompt_token_ids=[1, 7]), text("k", [2, 3], finish_reason="length")])
    assert merged["object"] == "text_completion"
    assert merged["choices"][0]["text"] == "ok"
    assert "message" not in merged["choices"][0]
    [choice] = read_response(merged, dialect="vllm-completions")
    assert (choice.prompt_token_ids, choice.generation_token_ids) == ([1, 7], [41, 2, 3])
    assert (choice.generation_log_probs, choice.finish_reason) == ([-0.5] * 3, "length")


def test_reasoning_and_tool_calls():
    def says(ids: list[int], **delta: Any) -> dict[str, Any]:
        return chunk({**piece(None, ids), "delta": delta})

    def call(index: int, arguments: str, **more: Any) -> dict[str, Any]:
        return {"index": index, "function": {"arguments": arguments, **more.pop("function", {})}, **more}

    merged = merge_stream(
        [
            FIRST,
            says([1], reasoning="h", reasoning_content="h"),
            says([2], reasoning="m", reasoning_content="m"),
            says([3], tool_calls=[call(1, "", id="t1", type="function", function={"name": "g"})]),
            says([4], tool_calls=[call(0, "{", id="t0", type="function", function={"name": "f"})]),
            says([5], tool_calls=[call(0, "}", function={"name": "f"}), call(1, "[]", function={"name": None})]),
        ]
    )
    assert merged["choices"][0]["message"] == {
        "role": "assistant",
        "content": "",
        "reasoning": "hm",
        "reasoning_content": "hm",
        "tool_calls": [
            {"id": "t0", "type": "function", "function": {"arguments": "{}", "name": "f"}},
            {"id": "t1", "type": "function", "function": {"arguments": "[]", "name": "g"}},
        ],
    }
    assert read_response(merged)[0].generation_token_ids == [1, 2, 3, 4, 5]


def test_content_that_never_came_is_null():
    merged = merge_stream([chunk({"index": 0, "delta": {"role": "assistant"}})])
    assert merged["choices"][0]["message"] == {"role": "assistant", "content": None}


def test_a_stream_without_any_ids_is_joined():
    merged = merge_stream([chunk({"index": 0, "delta": {"content": word}}) for word in "ok"])
    assert merged["choices"][0]["message"]["content"] == "ok"
    assert read_response(merged) == []


def test_ids_in_words_alone():
    parts = [chunk({k: v for k, v in piece("a", [i]).items() if k != "token_ids"}) for i in (41, 2)]
    assert read_response(merge_stream([FIRST, *parts]))[0].generation_token_ids == [41, 2]
    parts[0]["choices"][0]["logprobs"]["content"][0]["token"] = "a"
    refused([FIRST, *parts], "vllm-chat choice 0: chunk 1: generation_token_ids is missing")


@pytest.mark.parametrize(
    "delta",
    [{"content": "x"}, {"reasoning": "x"}, {"reasoning_content": "x"}, {"tool_calls": [{"index": 0}]}],
)
def test_a_hole(delta):
    lost = chunk({"index": 0, "delta": delta, "token_ids": None})
    refused([*STREAM, lost], "vllm-chat choice 0: chunk 4: generation_token_ids is missing")


def test_a_hole_names_the_dialect_that_is_given():
    with pytest.raises(ValueError, match="litellm choice 0: chunk 4: generation_token_ids is missing"):
        merge_stream([*STREAM, chunk(piece("x"))], dialect="litellm")


def test_log_probs_without_ids_are_a_hole_too():
    lost = chunk({**piece("", [41]), "token_ids": None})
    refused([*STREAM, lost], "chunk 4: generation_token_ids is missing")


def test_unequal_numbers_in_one_chunk():
    refused(
        [*STREAM, chunk({**piece("x", [41]), "token_ids": []})],
        "vllm-chat choice 0: chunk 4: 0 generation_token_ids and 1 generation_log_probs",
    )


def test_log_probs_missing_in_one_chunk():
    merged = merge_stream([*STREAM[:2], chunk({**piece("k", [2]), "logprobs": None})])
    with pytest.raises(ValueError, match="2 generation_token_ids and 1 generation_log_probs"):
        read_response(merged)


@pytest.mark.parametrize(
    ("chunks", "words"),
    [
        ([], ["no chunks"]),
        (["data: [DONE]"], ["no chunks"]),
        ([FIRST, chunk(piece("x", [1]), prompt_token_ids=[1, 8])], ["chunk 1", "prompt_token_ids disagrees"]),
        ([FIRST, chunk(piece("x", [1]), id="c2")], ["chunk 1", "'c2'", "'c1'"]),
        ([FIRST, {"error": {"message": "overloaded"}}], ["chunk 1", "overloaded"]),
        ([FIRST, {"text": "o", "meta_info": {}}], ["chunk 1", "no choices"]),
        ([{"detail": "Not Found"}], ["chunk 0", "Not Found"]),
        ([FIRST, chunk({"index": 0, "message": {"content": "x"}})], ["chunk 1", "full response"]),
        ([FIRST, chunk(piece("x", [1], index=None))], ["choice index is missing"]),
        ([FIRST, chunk(piece("x", [1], index="0"))], ["chunk 1", "choice index must be an integer"]),
        ([FIRST, chunk(piece(5, [1]))], ["chunk 1", "content is neither text nor a list"]),
        ([FIRST, chunk({**piece("x"), "token_ids": 5})], ["chunk 1", "token_ids is neither"]),
        ([chunk(piece("x")), chunk(piece(["x"]))], ["as text in some chunks and as a list in others"]),
        (
            [chunk({"index": 0, "delta": {"tool_calls": [{"index": "0"}]}})],
            ["chunk 0", "index of a tool call"],
        ),
        ([chunk({"index": 0, "delta": {"function_call": {"arguments": {}}}})], ["chunk 0", "must be text"]),
        (["data: {torn"], ["not JSON", "{torn"]),
        (["data: 5"], ["no chunk"]),
        (["<html>"], ["not a line of an SSE stream"]),
    ],
)
def test_streams_that_are_refused(chunks, words):
    refused(chunks, *words)


def test_wrong_types():
    with pytest.raises(TypeError, match="chunk must be"):
        merge_stream([5])


def test_values_said_once_may_be_repeated():
    merged = merge_stream([FIRST, chunk(piece("x", [1], routed_experts="AA"), prompt_token_ids=[1, 7])])
    assert merged["choices"][0]["routed_experts"] == "AA"
    parts = [chunk(piece("x", [1], routed_experts=routes)) for routes in ("AA", "BB")]
    refused([FIRST, *parts], "chunk 2", "routed_experts disagrees")


def test_arrays_stay_arrays():
    parts = [chunk({**piece("x", [i]), "token_ids": np.array([i])}) for i in (41, 2)]
    merged = merge_stream([{**FIRST, "prompt_token_ids": np.array([1, 7])}, *parts])
    assert isinstance(merged["choices"][0]["token_ids"], np.ndarray)
    assert isinstance(merged["prompt_token_ids"], np.ndarray)
    assert read_response(merged)[0].generation_token_ids.tolist() == [41, 2]


def test_litellm_and_dynamo_streams():
    swept = [
        chunk({"index": 0, "delta": {"content": "x"}, "provider_specific_fields": {"token_ids": [i]}}) for i in (4, 5)
    ]
    merged = merge_stream([FIRST, *swept])
    assert merged["choices"][0]["provider_specific_fields"] == {"token_ids": [4, 5]}
    engine = {"prompt_token_ids": [1], "completion_token_ids": [4], "completion_logprobs": [-0.5]}
    parts = [{"id": "d", "choices": [{"index": 0, "delta": {"content": word}}]} for word in "ok"]
    parts[1]["nvext"] = {"engine_data": engine, "timing": {}}
    assert read_response(merge_stream(parts))[0].generation_token_ids == [4]
    parts.append({"id": "d", "choices": [], "nvext": {"engine_data": {**engine, "completion_token_ids": [5]}}})
    refused(parts, "chunk 2: a second engine_data disagrees")


@given(
    st.lists(
        st.tuples(st.integers(0, 2), st.lists(st.integers(0, 99), min_size=1, max_size=3), st.text(max_size=3)),
        min_size=1,
        max_size=12,
    ),
    st.data(),
)
def test_a_stream_gives_what_the_plain_response_gives_and_no_hole_passes(parts, data):
    chunks = [chunk(piece(text, ids, index=index)) for index, ids, text in parts]
    chunks[0]["prompt_token_ids"] = [1, 7]
    expected = {
        index: (
            [i for n, ids, _ in parts if n == index for i in ids],
            "".join(t for n, _, t in parts if n == index),
        )
        for index, _, _ in parts
    }
    total = {"completion_tokens": sum(len(ids) for ids, _ in expected.values())}
    whole = merge_stream([*chunks, chunk(usage=total)])
    assert {c.index: c.generation_token_ids for c in read_response(whole)} == {
        n: ids for n, (ids, _) in expected.items()
    }
    assert {c["index"]: c["message"]["content"] for c in whole["choices"]} == {n: t for n, (_, t) in expected.items()}
    place = data.draw(st.integers(0, len(chunks) - 1))
    mutation = data.draw(st.sampled_from(["ids", "log-probs", "both", "chunk", "twice"]))
    broken = copy.deepcopy(chunks)
    if mutation in ("ids", "both"):
        broken[place]["choices"][0]["token_ids"] = None
    if mutation in ("log-probs", "both"):
        broken[place]["choices"][0]["logprobs"] = None
    if mutation == "chunk":
        del broken[place]["choices"][0]
    if mutation == "twice":
        broken.insert(place, copy.deepcopy(broken[place]))
    try:
        found = read_response(merge_stream([*broken, chunk(usage=total)]))
    except ValueError:
        return
    assert {c.index: c.generation_token_ids for c in found} == {n: ids for n, (ids, _) in expected.items()}


def test_meta_info_grows_or_is_refused() -> None:
    def meta(*ids: int) -> dict[str, Any]:
        return {"meta_info": {"output_token_logprobs": [[-0.5, id_, None] for id_ in ids]}}

    grown = merge_stream([{**chunk(piece("a", **meta(4))), "prompt_token_ids": [1]}, chunk(piece("b", **meta(4, 5)))])
    assert read_response(grown)[0].generation_token_ids == [4, 5]
    with pytest.raises(ValueError, match="chunk 1: output_token_logprobs does not go on"):
        merge_stream([chunk(piece("a", **meta(4))), chunk(piece("b", **meta(5)))])


def test_a_hole_in_token_fields_of_a_delta_is_seen() -> None:
    def delta(content: str, ids: list[int] | None) -> dict[str, Any]:
        made = chunk(piece(content))
        if ids is not None:
            log_probs = [-0.5] * len(ids)
            made["choices"][0]["delta"].update(
                prompt_token_ids=[1], generation_token_ids=ids, generation_log_probs=log_probs
            )
        return made

    whole = merge_stream([delta("a", [4]), delta("b", [5])])
    assert extract_token_fields(whole)["generation_token_ids"] == [4, 5]
    with pytest.raises(ValueError, match="chunk 1: generation_token_ids is missing"):
        merge_stream([delta("a", [4]), delta("z", None), delta("b", [5])])


def test_ids_of_chunks_stay_integers() -> None:
    parts = [np.array([4], np.int32), np.array([], float), np.array([5], np.uint64)]
    merged = merge_stream([chunk({**piece("a"), "token_ids": part}) for part in parts])
    assert merged["choices"][0]["token_ids"].dtype == np.int32
    assert merged["choices"][0]["token_ids"].tolist() == [4, 5]


@pytest.mark.parametrize(
    ("error", "said"),
    [
        ({"error": {"message": "engine dead", "code": 500}}, "engine dead"),
        ({"error": "engine dead"}, "engine dead"),
        ({"object": "error", "message": "engine dead", "code": 500}, "engine dead"),
        ({"type": "error", "error": {"type": "x", "message": "engine dead"}}, "engine dead"),
        ({"error": {"code": 500}}, "{'code': 500}"),
    ],
)
def test_an_error_has_the_words_of_the_server(error, said):
    for chunks in ([error], [json.dumps(error)], [FIRST, f"data: {json.dumps(error)}"]):
        with pytest.raises(ValueError, match=f"^chunk [01]: the server sent an error: {re.escape(said)}$"):
            merge_stream(chunks)


def test_chunks_with_an_id_each():
    parts = [chunk(piece("o", [41]), id="a", prompt_token_ids=[1, 7]), chunk(piece("k", [2]), id="b")]
    refused(parts, "chunk 1", "'b'", "'a'")
    merged = merge_stream(parts, check_ids=False)
    assert (merged["id"], merged["choices"][0]["message"]["content"]) == ("a", "ok")
    assert read_response(merged)[0].generation_token_ids == [41, 2]


def generated(request_id: Any, *ids: int) -> dict[str, Any]:
    """A chunk of vLLM's generate."""
    entries = [{"token": f"token_id:{i}", "logprob": -0.5} for i in ids]
    return {
        "request_id": request_id,
        "choices": [{"index": 0, "token_ids": list(ids), "logprobs": {"content": entries}}],
    }


def test_vllm_generate():
    merged = merge_stream(
        [generated("g", 41), generated("g", 2), {**generated("g"), "usage": {"completion_tokens": 2}}]
    )
    assert detect_dialect(merged) == "vllm-generate"
    assert set(merged) == {"request_id", "choices", "usage"}
    [choice] = read_response(merged, prompt_token_ids=[1])
    assert (choice.generation_token_ids, choice.output_items) == ([41, 2], [])
    refused([generated("g", 41), generated("h", 2)], "chunk 1", "'h'", "'g'")
    refused(
        [generated("g", 41), {"request_id": "g", "choices": [{"index": 0, "logprobs": {"content": [{}]}}]}], "missing"
    )


def test_ids_that_come_once_in_an_extension():
    ids = chunk(sglext={"input_ids": [1, 7], "output_ids": [[41, 2]]})
    bare = [
        {**part, "choices": [{k: v for k, v in part["choices"][0].items() if k != "token_ids"}]} for part in STREAM[1:3]
    ]
    for part in bare:
        part["choices"][0]["logprobs"]["content"] = [{"token": "x", "logprob": -0.5}]
    merged = merge_stream([*bare, ids, ids, chunk(sglext={"cached": 1})])
    assert detect_dialect(merged) == "sglang-chat"
    assert read_response(merged)[0].generation_token_ids == [41, 2]
    refused([*bare, ids, chunk(sglext={"output_ids": [[41]]})], "chunk 3: a second output_ids disagrees")
    with pytest.raises(ValueError, match="2 generation_token_ids and 1 generation_log_probs"):
        read_response(merge_stream([bare[0], ids]))


def test_reasoning_and_content_take_turns():
    def scored(part: str, id_: int) -> dict[str, Any]:
        return chunk(
            {"index": 0, "delta": {part: "x"}, "logprobs": {part: [{"token": "x", "token_id": id_, "logprob": -id_}]}}
        )

    parts = [scored("reasoning_content", 1), scored("content", 2), scored("reasoning_content", 3)]
    [choice] = read_response(merge_stream(parts), prompt_token_ids=[7])
    assert (choice.generation_token_ids, choice.generation_log_probs) == ([1, 2, 3], [-1, -2, -3])


def test_lmdeploy_chats_come_in_pieces():
    def part(*ids: int) -> dict[str, Any]:
        return chunk(
            {
                "index": 0,
                "delta": {"content": "x"},
                "output_ids": list(ids),
                "output_token_logprobs": [[-0.5, i] for i in ids],
            }
        )

    [choice] = read_response(merge_stream([part(4), part(4, 5)]), prompt_token_ids=[1])
    assert choice.generation_token_ids == [4, 4, 5]
    lost = chunk({"index": 0, "delta": {"content": "x"}})
    refused([part(4), lost], "lmdeploy-chat choice 0: chunk 1: generation_token_ids is missing")


def test_meta_info_in_pieces():
    def meta(counted: int, *ids: int) -> dict[str, Any]:
        return chunk(
            piece(
                "x", meta_info={"completion_tokens": counted, "output_token_logprobs": [[-0.5, i, None] for i in ids]}
            )
        )

    [choice] = read_response(merge_stream([meta(1, 4), meta(2, 5), meta(3, 4, 5, 5)]), prompt_token_ids=[1])
    assert choice.generation_token_ids == [4, 5, 5]
    refused([meta(1, 4), meta(3, 5)], "chunk 1: output_token_logprobs does not go on")


def test_one_id_and_one_log_prob_a_chunk():  # Together
    def part(id_: int, **fields: Any) -> dict[str, Any]:
        return chunk({"index": 0, "text": "x", "delta": {"content": "x", "token_id": id_}, **fields})

    merged = merge_stream([part(41, logprobs=-0.125), part(2, logprobs=-0.5)])
    [choice] = read_response(merged, prompt_token_ids=[1, 7])
    assert (detect_dialect(merged), tokens_of(choice)) == ("together-chat", TOKENS)
    assert choice.output_items == [{"type": "message", "role": "assistant", "content": "xx"}]
    with pytest.raises(ValueError, match="2 generation_token_ids and 1 generation_log_probs"):
        read_response(merge_stream([part(41, logprobs=-0.125), part(2)]), prompt_token_ids=[1, 7])
    with pytest.raises(ValueError, match="generation_log_probs is missing"):
        read_response(merge_stream([part(41), part(2)]), prompt_token_ids=[1, 7])


def test_envelopes_of_a_stream():
    def part(text: str) -> dict[str, Any]:
        fields = {"generation_token_ids": "ngtok1:i32:KQAAAA==", "generation_log_probs": "ngtok1:f64:AAAAAAAA4L8="}
        return chunk({"index": 0, "delta": {"content": text, "prompt_token_ids": [1], **fields}})

    [choice] = read_response(merge_stream([part("ngtok1:"), part("x")]))
    assert choice.generation_token_ids.tolist() == [41, 41]
    assert choice.generation_log_probs.tolist() == [-0.5, -0.5]
    assert choice.output_items[0]["content"] == "ngtok1:x"
    one = {"index": 0, "delta": {"content": "x"}, "logprobs": {"content": [{"token": "x", "logprob": -0.5}]}}
    parts = [chunk({**one, "token_ids": "ngtok1:i32:KQAAAA=="}, prompt_token_ids=[1]) for _ in range(2)]
    assert read_response(merge_stream(parts))[0].generation_token_ids.tolist() == [41, 41]
    with pytest.raises(ValueError, match="chunk 0: 2 generation_token_ids and 1 generation_log_probs"):
        merge_stream([chunk({**one, "token_ids": "ngtok1:i32:KQAAAAIAAAA="})])
    meta = {"meta_info": {"completion_tokens": 1}, "output_ids": "ngtok1:i32:KQAAAA=="}
    second = {**meta, "meta_info": {"completion_tokens": 2}}
    assert merge_stream([meta, second])["output_ids"].tolist() == [41, 41]
    broken = part("x")
    broken["choices"][0]["delta"]["generation_token_ids"] = "ngtok1:i32:K"
    refused([part("x"), broken], "chunk 1: generation_token_ids is 'ngtok1:i32:K'")


def test_masks_and_masks_of_candidates_come_in_pieces():
    parts = [chunk(piece("x", [i], generation_loss_mask=[i % 2], sampling_mask=[[i]])) for i in (41, 2)]
    [choice] = read_response(merge_stream([FIRST, *parts]))
    assert (choice.generation_loss_mask, choice.extras) == ([1, 0], {"sampling_mask": [[41], [2]]})


def test_nesting_beyond_all_bounds():
    refused("data: " + "[" * 100_000, "not JSON")


def test_many_pieces_take_linear_time():
    def seconds(number: int) -> float:
        arguments = [
            {"index": 0, "id": "a" if k == 0 else None, "function": {"arguments": "x" * 20}} for k in range(number)
        ]
        parts = [chunk({"index": 0, "delta": {"tool_calls": [call]}}) for call in arguments]
        started = time.process_time()
        merge_stream(parts)
        return time.process_time() - started

    seconds(1000)
    assert seconds(40_000) < 12 * seconds(5_000) + 0.3


def test_choices_that_are_not_a_list():
    with pytest.raises(TypeError, match="choices is dict: a list is needed"):
        merge_stream([{"object": "chat.completion.chunk", "choices": {"index": 0, "delta": {"content": "x"}}}])


@pytest.mark.parametrize("kind", ["ping", "keepalive"])
def test_signs_of_life_are_no_chunks(kind):
    for stream in ([{"type": kind}, *STREAM], [*STREAM, {"type": kind}]):
        assert tokens_of(read_response(merge_stream(stream))[0])[1] == [41, 2]
    refused([{"type": kind}], "the stream has no chunks")


@pytest.mark.parametrize(
    "error",
    [
        {"detail": "engine dead"},
        {"message": "engine dead", "type": "Internal", "code": 500},
        {"errors": "engine dead"},
        chunk({"index": 0, "delta": {}, "finish_reason": "error", "error": {"message": "engine dead"}}),
        'event: error\ndata: {"message": "engine dead"}\n\n',
        'event: error\ndata: {"error": {"message": "engine dead"}}\n\n',
        "event: error\ndata: engine dead\n\n",
        "event: error\n: engine dead\n\n",
        'error: {"message": "engine dead"}\n\n',
    ],
)
def test_errors_that_do_not_call_themselves_so(error):
    refused([error], "chunk 0: the server sent an error: engine dead")
    refused([*STREAM[:2], error], "chunk 2: the server sent an error: engine dead")


def test_words_beside_a_response_are_no_error():
    merged = merge_stream([{**part, "message": "all is well"} for part in STREAM])
    assert tokens_of(read_response(merged)[0])[1] == [41, 2]


def test_a_byte_order_mark():
    text = "\ufeff" + "".join(f"data: {json.dumps(part)}\n\n" for part in STREAM)
    for form in (text, text.encode()):
        assert tokens_of(read_response(merge_stream(form))[0])[1] == [41, 2]


def test_the_kind_of_a_stream_that_names_none():
    parts = [{"choices": [{"index": 0, "text": "x", "delta": {"content": "x"}}]}]
    assert merge_stream(parts)["choices"][0]["message"]["content"] == "x"
