"""What SGLang says of each token's sampling: the weights' versions, the tokens that were left, their log-probs."""

from typing import Any

import pytest
from support.payloads import chunk, pairs, piece, refused, sglang_sample, tokens_of, vllm_chat, vllm_choice
from tokenrecords import entries_from_response, merge_stream, read_response

SPANS = [{"version": "6", "start": 0, "end": 1}, {"version": "7", "start": 1, "end": 2}]
MASK, SCORES = [[41, 9], [2]], [-0.25, 0.0]


def part(ids: list[int], counted: int, **meta: Any) -> dict[str, Any]:
    """A chunk of `/generate`."""
    own = {"id": "g", "prompt_token_ids": [1], "completion_tokens": counted, "finish_reason": None}
    return {"output_ids": ids, "meta_info": {**own, "output_token_logprobs": pairs(ids, [-0.5] * len(ids)), **meta}}


def sampling(mask: list[Any], scores: list[Any]) -> dict[str, Any]:
    return {"output_token_sampling_mask": mask, "output_token_sampling_logprobs": scores}


def test_versions_of_the_weights_by_token():
    [choice] = read_response(sglang_sample(weight_version="7", weight_versions=SPANS))
    assert choice.extras == {"weight_version": "7", "weight_versions": SPANS}
    chat = vllm_chat(metadata={"weight_version": "7", "weight_versions": SPANS})
    assert read_response(chat)[0].extras == {"weight_version": "7", "weight_versions": SPANS}
    chat["choices"][0]["meta_info"] = {"weight_versions": SPANS[:1]}
    refused(chat, "meta_info.weight_versions and metadata.weight_versions disagree")


def test_versions_by_token_belong_to_one_choice():
    chat = vllm_chat(vllm_choice(0), vllm_choice(1), metadata={"weight_version": "7", "weight_versions": SPANS})
    assert [choice.extras for choice in read_response(chat)] == [{"weight_version": "7"}] * 2


def test_support_of_the_sampling():
    [choice] = read_response(sglang_sample(**sampling(MASK, SCORES)))
    assert choice.extras == {"sampling_mask": MASK, "sampling_log_probs": SCORES}
    assert tokens_of(choice) == ([1, 7], [41, 2], [-0.125, -0.5])
    [entry] = entries_from_response(sglang_sample(**sampling(MASK, SCORES)), rollout_id="r", model_call_id="c")
    assert (entry.sampling_mask, entry.sampling_log_probs) == (MASK, SCORES)
    named = sglang_sample(sampling_mask=MASK, sampling_log_probs=SCORES)
    assert read_response(named)[0].extras == choice.extras
    refused(
        sglang_sample(**sampling(MASK, SCORES), sampling_mask=[[41], [2]]),
        "meta_info.output_token_sampling_mask and meta_info.sampling_mask disagree",
    )


def test_log_probs_of_a_chat_stand_on_the_choice():
    chat = vllm_chat(vllm_choice(meta_info=sampling(MASK, SCORES)))
    assert read_response(chat)[0].extras == {"sampling_mask": MASK, "sampling_log_probs": SCORES}


@pytest.mark.parametrize("whole", [True, False])
def test_a_stream_brings_it_from_the_start_or_in_pieces(whole: bool) -> None:
    ids, mask, scores = [41, 2, 9, 9, 5, 3], [[k, 7] for k in range(6)], [-float(k) for k in range(6)]
    sent = []
    for k in range(6):
        cut = slice(0 if whole else k, k + 1)
        sent.append(part(ids[cut], k + 1, **sampling(mask[cut], scores[cut]), weight_versions=SPANS[: k // 3 + 1]))
    [choice] = read_response(merge_stream(sent))
    assert choice.generation_token_ids == ids
    assert choice.extras == {"weight_versions": SPANS, "sampling_mask": mask, "sampling_log_probs": scores}


def test_a_stream_that_lost_some():
    sent = [part([41], 1, **sampling(MASK[:1], SCORES[:1])), part([2], 2, **sampling([[9]] * 3, SCORES[1:]))]
    with pytest.raises(ValueError, match="chunk 1: output_token_sampling_mask does not go on"):
        merge_stream(sent)


def test_spans_of_a_chat_stream_are_those_of_the_last_chunk():
    sent = [chunk(piece("o", [41]), metadata={"weight_versions": SPANS[: k + 1]}) for k in range(2)]
    assert merge_stream(sent)["metadata"] == {"weight_versions": SPANS}


def test_pieces_that_nobody_counts():
    sent = [
        {**part([k], k, **sampling([[k, 7]], [-float(k)]), completion_tokens=None), "text": word}
        for k, word in enumerate("abcdef")
    ]
    [choice] = read_response(merge_stream(sent))
    assert list(choice.generation_token_ids) == list(range(6))
    assert choice.extras["sampling_mask"] == [[k, 7] for k in range(6)]
