"""Streams of SGLang's and LMDeploy's `/generate`: from the start each time, or in pieces."""

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.payloads import duos, pairs, tokens_of
from tokenrecords import detect_dialect, merge_stream, read_response

LOG_PROBS = {41: -0.125, 2: -0.5, 9: -1.0}


def sent(ids: list[int], text: str, counted: int | None, **fields: Any) -> dict[str, Any]:
    entries = pairs(ids, [LOG_PROBS[i] for i in ids])
    meta = {
        "id": "g",
        "finish_reason": None,
        "output_token_logprobs": entries,
        "input_token_logprobs": pairs([1], [None]),
    }
    return {
        "text": text,
        "output_ids": ids,
        "meta_info": {**meta, "completion_tokens": counted, **fields.pop("meta", {})},
        **fields,
    }


def lmdeploy(ids: list[int], text: str) -> dict[str, Any]:
    meta = {"finish_reason": None, "output_token_logprobs": duos(ids, [LOG_PROBS[i] for i in ids])}
    return {"text": text, "output_ids": ids, "meta_info": meta}


def merged(*chunks: Any) -> Any:
    found = merge_stream(chunks)
    [choice] = read_response(found, prompt_token_ids=[1])
    return found["text"], tokens_of(choice)


def refused(*chunks: Any, message: str, **options: Any) -> None:
    with pytest.raises(ValueError, match=message):
        merge_stream(chunks, **options)


IDS = st.lists(st.lists(st.sampled_from([41, 2, 9]), max_size=3), min_size=1, max_size=6)


@given(IDS, st.sampled_from(["whole", "pieces", "lmdeploy"]), st.booleans())
def test_any_cut(cuts, mode, as_arrays):
    ids = [id_ for cut in cuts for id_ in cut]
    chunks, seen = [], 0
    for cut in cuts:
        seen += len(cut)
        part = ids[:seen] if mode == "whole" else cut
        chunk = lmdeploy(cut, "x" * len(cut)) if mode == "lmdeploy" else sent(part, "x" * len(part), seen)
        if as_arrays:
            chunk["output_ids"] = np.array(chunk["output_ids"], np.int32)
        chunks.append(chunk)
    text, tokens = merged(*chunks)
    assert tokens == ([1], ids, [LOG_PROBS[id_] for id_ in ids])
    assert text == "x" * len(ids)


@given(IDS, st.booleans(), st.data())
def test_a_lost_or_doubled_chunk_is_no_shorter_answer(cuts, whole, data):
    ids = [id_ for cut in cuts for id_ in cut]
    chunks, seen = [], 0
    for cut in cuts:
        seen += len(cut)
        chunks.append(sent(ids[:seen] if whole else cut, "", seen))
    place = data.draw(st.integers(0, len(chunks) - 2)) if len(chunks) > 1 else 0
    broken = [*chunks[:place], *([chunks[place]] * 2 if data.draw(st.booleans()) else []), *chunks[place + 1 :]]
    try:
        _, tokens = merged(*broken)
    except ValueError:
        return
    assert tokens[1] == ids or not broken or broken[-1] is not chunks[-1]


def test_the_end_says_why():
    last = sent([41, 2], "ok", 2, meta={"finish_reason": {"type": "stop"}, "weight_version": "5"})
    [choice] = read_response(merge_stream([sent([41], "o", 1), last]))
    assert (choice.finish_reason, choice.response_id, choice.extras) == ("stop", "g", {"weight_version": "5"})


def test_several_samples():
    found = merge_stream([sent([41], "a", 1, index=1), sent([9], "b", 1, index=0), sent([41, 2], "ac", 2, index=1)])
    assert [(part["index"], part["text"]) for part in found] == [(0, "b"), (1, "ac")]
    assert [choice.generation_token_ids for choice in read_response(found)] == [[9], [41, 2]]


def test_what_does_not_go_on():
    refused(sent([41], "a", 1), sent([2, 9], "ab", 2), message="chunk 1: output_ids does not go on")
    refused(sent([41], "a", 1), sent([9], "c", 3), message="chunk 1: output_ids does not go on")
    other = sent([41, 2], "ab", 2, meta={"id": "h"})
    refused(sent([41], "a", 1), other, message="chunk 1: id 'h' of another response than 'g'")
    assert merge_stream([sent([41], "a", 1), other], check_ids=False)["output_ids"] == [41, 2]
    prompt = sent([41, 2], "ab", 2, meta={"input_token_logprobs": pairs([7], [None])})
    refused(sent([41], "a", 1), prompt, message="chunk 1: a second input_token_logprobs disagrees")
    refused(sent([41], "a", 1), {"choices": []}, message="chunk 1: no chunk of an answer of /generate")
    refused(sent([41], "a", 1, index="0"), message="chunk 0: index must be an integer")
    refused(sent([41], "a", 1) | {"output_ids": 5}, message="chunk 0: output_ids is not a list")
    refused(
        sent([41], "a", 1, prompt_token_ids=[1]), sent([41], "a", 1, prompt_token_ids=[2]), message="a second prompt"
    )


def test_a_later_chunk_without_the_prompt():
    found = merge_stream([sent([41], "a", 1), sent([2], "b", 2, meta={"input_token_logprobs": []})])
    assert tokens_of(read_response(found)[0])[0] == [1]


def test_lmdeploy_is_told_apart():
    assert detect_dialect(merge_stream([lmdeploy([41], "a"), lmdeploy([41, 2], "ab")])) == "lmdeploy-generate"


def test_texts_that_nothing_counts():
    def merged(*texts: str) -> str:
        return merge_stream([{"text": text, "meta_info": {}} for text in texts])["text"]

    assert (merged("o", "k"), merged("o", "ok"), merged("o", "ok", "o")) == ("ok", "ok", "o")
    assert (merged("", "o", "k", "ok"), merged("o", "o", "k")) == ("okok", "ok")


def test_a_chunk_of_no_ids_where_nothing_tells():
    chunks = [{"text": "", "output_ids": ids, "meta_info": {}} for ids in ([41], [], [])]
    assert merge_stream(chunks)["output_ids"] == [41]


@pytest.mark.parametrize("index", [False, True, "0", 0.5])
def test_an_index_that_is_no_integer(index):
    refused(sent([41], "a", 1, index=index), message=f"chunk 0: index must be an integer, got {index!r}")


def test_a_null_leaves_what_was_said():
    first = sent([41], "a", 1, weight_version="5", index=0, prompt_token_ids=[1], meta={"e2e": 1, "x": None})
    nulls = {"weight_version": None, "index": None, "prompt_token_ids": None}
    last = sent([41, 2], "ab", 2, **nulls, meta={"e2e": None, "id": None, "input_token_logprobs": None})
    last["text"] = None
    found = merge_stream([first, last])
    assert (found["weight_version"], found["index"], found["prompt_token_ids"], found["text"]) == ("5", 0, [1], "a")
    meta = found["meta_info"]
    assert (meta["e2e"], meta["id"], meta["x"], len(meta["input_token_logprobs"])) == (1, "g", None, 1)


@pytest.mark.parametrize(
    ("counted", "place"),
    [
        ([([41], 1), ([2, 9], 2), ([41, 9, 9], 3), ([41, 9, 9, 2], 4)], 1),
        ([([41], 1), ([41], 2), ([41], 1), ([41, 41], 2), ([41, 41, 9], 3)], 2),
        ([([41], 1), ([41, 2, 9], 2), ([41, 2, 9], 3)], 1),
        ([([41], 1), ([2], 3), ([9], 4)], 1),
    ],
)
def test_a_wrong_chunk_before_sound_ones_is_an_error(counted, place):
    chunks = [sent(ids, "", count) for ids, count in counted]
    for name in ("output_ids", "output_token_logprobs"):
        held = [{**part, "output_ids": part["output_ids"] if name == "output_ids" else None} for part in chunks]
        refused(*held, message=f"chunk {place}: {name} does not go on from")
        body = "".join(f"data: {json.dumps(part)}\n\n" for part in held)
        with pytest.raises(ValueError, match=f"chunk {place}: {name} does not go on from"):
            merge_stream(body)
