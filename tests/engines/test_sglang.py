"""SGLang: `meta_info` of generate, and chats."""

import numpy as np
import pytest
from support.payloads import TOKENS, log_prob_entry, numbered, refused, sglang_sample, tokens_of
from tokenrecords import detect_dialect, entries_from_response, read_response


def test_sglang_generate():
    [choice] = read_response(sglang_sample())
    assert (tokens_of(choice), choice.finish_reason) == (TOKENS, "length")
    batch = [sglang_sample(), sglang_sample(id="g2")]
    assert detect_dialect(batch) == "sglang-generate"
    assert [choice.index for choice in read_response(batch)] == [0, 1]
    entries = entries_from_response(batch, rollout_id="r", model_call_id="c")
    assert [(e.model_call_id, e.response_id) for e in entries] == [("c#0", "g1"), ("c#1", "g2")]


@pytest.mark.parametrize(
    ("meta", "message"),
    [
        ({"completion_tokens": 3}, "2 generation_token_ids, but the engine counted 3"),
        (
            {"output_token_logprobs": [[-0.125, 41, None]]},
            "2 generation_token_ids and 1 generation_log_probs",
        ),
        ({"output_token_logprobs": [[-0.1, 41, None], [-0.5, 3, None]]}, "disagree at position 1"),
        ({"output_token_logprobs": [[-0.1, 41, None], [None, 2, None]]}, "generation_log_probs[1] is null"),
        ({"output_token_logprobs": None}, "generation_log_probs is missing"),
        ({"input_token_logprobs": []}, "prompt_token_ids is missing"),
        ({"input_token_logprobs": [[-2.0, 7, None]]}, "prompt_token_ids is missing"),
        ({"prompt_tokens": 1}, "2 prompt_token_ids, but the engine counted 1"),
        ({"prompt_token_ids": [1, 8]}, "disagree at position 1"),
    ],
)
def test_sglang_generate_faults(meta, message):
    refused(sglang_sample(**meta), "sglang-generate choice 0: ", message)


def test_a_tail_of_the_prompt_is_not_the_prompt_even_unchecked():
    refused(
        sglang_sample(input_token_logprobs=[[-2.0, 7, None]]),
        "prompt_token_ids is missing",
        check_counts=False,
    )


def test_sglang_tail_beside_whole_prompt_ids():
    payload = sglang_sample(input_token_logprobs=[[-2.0, 7, None]], prompt_token_ids=[1, 7])
    assert tokens_of(read_response(payload)[0]) == TOKENS


def test_where_an_sglang_chat_says_the_prompt():
    choice = {"index": 0, "message": {"content": "x"}, "logprobs": numbered([9], [-0.5])}
    payload = {"object": "chat.completion", "choices": [choice], "prompt_token_ids": [1, 7]}
    assert detect_dialect(payload) == "sglang-chat"
    assert tokens_of(read_response(payload)[0]) == ([1, 7], [9], [-0.5])
    payload = {**payload, "prompt_token_ids": None}
    refused(payload, "sglang-chat choice 0: prompt_token_ids is missing")
    choice.update(prompt_token_ids=[1], token_ids=[9], logprobs={"content": [log_prob_entry("x", -0.5)]})
    assert detect_dialect(payload) == "sglang-chat"


def test_sglang_routes_of_several_choices_belong_to_none():
    choice = {"message": {"content": "x"}, "prompt_token_ids": [1], "token_ids": [2]}
    choice["logprobs"] = {"content": [log_prob_entry("x", -0.5)]}
    payload = {"object": "chat.completion", "choices": [{**choice, "index": 0}, {**choice, "index": 1}]}
    assert len(read_response(payload)) == 2
    payload["sglext"] = {"routed_experts": "AAAB"}
    refused(payload, "sglang-chat", "sglext does not say which choice")
    del payload["sglext"]
    payload["choices"][1]["sgl_ext"] = {"routed_experts": "AAAB"}
    assert [choice.routed_experts for choice in read_response(payload)] == [None, "AAAB"]


def sglext(output_ids, choices=1, **fields):
    entries = {"content": [log_prob_entry("x", -0.5)]}
    held = [{"index": place, "message": {"content": "x"}, "logprobs": entries} for place in range(choices)]
    return {
        "object": "chat.completion",
        "choices": held,
        "sglext": {"input_ids": [1], "output_ids": output_ids},
        **fields,
    }


@pytest.mark.parametrize("output_ids", [[[41]], [41], np.array([[41]]), np.array([41]), [np.array([41])], ([41],)])
def test_ids_of_the_extension(output_ids):
    assert detect_dialect(sglext(output_ids)) == "sglang-chat"
    assert tokens_of(read_response(sglext(output_ids))[0]) == ([1], [41], [-0.5])


@pytest.mark.parametrize("output_ids", [[[41], [42]], np.array([[41], [42]]), (np.array([41]), [42])])
def test_ids_of_several_choices_in_the_extension(output_ids):
    found = read_response(sglext(output_ids, 2))
    assert [tokens_of(choice) for choice in found] == [([1], [41], [-0.5]), ([1], [42], [-0.5])]


def test_lists_of_the_extension_are_in_the_order_of_the_choices_numbers():
    payload = sglext([[41], [42], [43]], 3)
    payload["choices"] = [payload["choices"][place] for place in (2, 0, 1)]
    assert [choice.generation_token_ids for choice in read_response(payload)] == [[41], [42], [43]]
    for choice in payload["choices"]:
        choice["index"] = None
    assert [choice.generation_token_ids for choice in read_response(payload)] == [[41], [42], [43]]


def test_prompts_and_envelopes_of_the_extension():
    payload = sglext([[41], [42]], 2)
    payload["sglext"]["input_ids"] = [[1], [7]]
    assert [choice.prompt_token_ids for choice in read_response(payload)] == [[1], [7]]
    for choices in (1, 2):
        found = read_response(sglext(["ngtok1:i32:KQAAAA=="] * choices, choices))
        assert [choice.generation_token_ids.tolist() for choice in found] == [[41]] * choices


@pytest.mark.parametrize(
    ("output_ids", "message"),
    [
        ([[41]], "sglang-chat: 1 lists of sglext.output_ids for 2 choices"),
        ([41, 42], "sglang-chat: sglext.output_ids[0] is int: a list for each choice is needed"),
        (np.array([41, 42]), "sglang-chat: None lists of sglext.output_ids for 2 choices"),
        ([[41], None], "sglang-chat choice 1: generation_token_ids is missing"),
        ([[41], [42, 43]], "sglang-chat choice 1: 2 generation_token_ids and 1 generation_log_probs"),
    ],
)
def test_ids_of_the_extension_that_fit_no_choices(output_ids, message):
    refused(sglext(output_ids, 2), message)


def test_a_lost_row_of_the_extension_is_not_an_unread_one():
    with pytest.raises(ValueError, match=r"^sglang-chat choice 1: generation_token_ids is missing$"):
        read_response(sglext([[41], None], 2))


def test_envelopes_in_the_extension():
    envelope = "ngtok1:i32:KQAAAA=="
    found = [*read_response(sglext([envelope])), *read_response(sglext([envelope, [42]], 2))]
    assert [list(choice.generation_token_ids) for choice in found] == [[41], [41], [42]]


def test_the_extension_of_a_choice_and_the_callers_prompt():
    payload = sglext([[41]])
    payload["choices"][0]["sglext"] = payload.pop("sglext")
    assert tokens_of(read_response(payload)[0]) == ([1], [41], [-0.5])
    payload["choices"][0]["sglext"]["input_ids"] = None
    refused(payload, "prompt_token_ids is missing")
    assert tokens_of(read_response(payload, prompt_token_ids=[1])[0]) == ([1], [41], [-0.5])


EXACT = [1, 151_655, 9]


def clipped(*ids, **meta):
    return sglang_sample(input_token_logprobs=[[None, i, None] for i in ids], prompt_tokens=None, **meta)


def test_clipped_placeholders_beside_the_exact_prompt():
    for payload in (clipped(1, 0, 9, prompt_token_ids=EXACT), {**clipped(1, 0, 9), "prompt_token_ids": EXACT}):
        assert read_response(payload)[0].prompt_token_ids is EXACT
    assert read_response(clipped(1, 0, 9), prompt_token_ids=EXACT)[0].prompt_token_ids is EXACT
    assert read_response(clipped(1, 0, 9))[0].prompt_token_ids == [1, 0, 9]
    for ids, position in (((1, 5, 9), 1), ((1, 0), 2), ((1, 0, 9, 9), 3)):
        refused(clipped(*ids, prompt_token_ids=EXACT), f"input_token_logprobs disagree at position {position}")
    both = {**clipped(1, 0, 9, prompt_token_ids=[1, 0, 9]), "prompt_token_ids": EXACT}
    refused(both, "prompt_token_ids and meta_info.prompt_token_ids disagree at position 1")


@pytest.mark.parametrize("kind", ["abort", {"type": "abort", "message": "out of memory"}])
def test_an_aborted_call(kind):
    bare = {"text": "", "output_ids": [], "meta_info": {"id": "g", "finish_reason": kind, "completion_tokens": 0}}
    [choice] = read_response(bare, prompt_token_ids=[1, 7])
    assert (tokens_of(choice), choice.finish_reason) == (([1, 7], [], []), "abort")
    refused(sglang_sample(finish_reason=kind, output_token_logprobs=None), "generation_log_probs is missing")
    counted = {**bare, "meta_info": {**bare["meta_info"], "completion_tokens": 3}}
    refused(counted, "0 generation_token_ids, but the engine counted 3", prompt_token_ids=[1])
    del bare["output_ids"]
    assert tokens_of(read_response(bare, prompt_token_ids=[1, 7])[0]) == ([1, 7], [], [])
    assert read_response(bare) == []
    spoke = {**bare, "text": "so far"}
    assert read_response(spoke, prompt_token_ids=[1, 7]) == []
    refused({**spoke, "prompt_token_ids": [1, 7]}, "generation_token_ids is missing")


@pytest.mark.parametrize(
    ("message", "spoke"),
    [
        ({"content": None}, False),
        ({"content": [{"type": "text", "text": ""}]}, False),
        ({"content": "", "reasoning_content": ""}, False),
        ({"content": "x"}, True),
        ({"content": [{"type": "text", "text": "x"}]}, True),
        ({"content": None, "reasoning": "x"}, True),
        ({"content": None, "reasoning_content": "x"}, True),
        ({"content": None, "refusal": "x"}, True),
        ({"content": None, "tool_calls": [{"id": "a"}]}, True),
        ({"content": None, "tool_calls": []}, False),
        ({"content": None, "function_call": {"name": "f"}}, True),
        ({"content": [{"type": "image_url", "image_url": {}}]}, True),
        ({"content": [{"type": "text", "text": ""}, "x"]}, True),
        ({"content": [{"type": "text", "text": None}]}, True),
    ],
)
def test_what_was_said_before_the_abort_has_tokens(message, spoke):
    payload = {"prompt_token_ids": [1], "choices": [{"index": 0, "finish_reason": "abort", "message": message}]}
    if spoke:
        refused(payload, "generation_token_ids is missing")
    else:
        assert tokens_of(read_response(payload)[0]) == ([1], [], [])


def sglang_chat(**more):
    meta = {"prompt_token_ids": [1, 7], "output_token_logprobs": [[-0.125, 41, None], [-0.5, 2, None]]}
    choice = {"index": 0, "message": {"content": "ok"}, "meta_info": {**meta, **more.pop("meta", {})}, **more}
    return {"object": "chat.completion", "choices": [choice]}


def test_the_meta_info_of_a_chat_says_it_all():
    assert detect_dialect(sglang_chat()) == "sglang-chat"
    assert tokens_of(read_response(sglang_chat())[0]) == TOKENS
    refused(sglang_chat(meta={"completion_tokens": 3}), "sglang-chat choice 0: 2 generation_token_ids", "counted 3")
    refused(sglang_chat(meta={"prompt_tokens": 3}), "sglang-chat choice 0: 2 prompt_token_ids", "counted 3")


@pytest.mark.parametrize("name", ["sglext", "sgl_ext"])
def test_routes_stand_beside_the_choice_or_on_it(name):
    routes = {name: {"routed_experts": "AAAB"}}
    for payload in (sglang_chat(**routes), {**sglang_chat(), **routes}, {**sglang_sample(), **routes}):
        assert read_response(payload)[0].routed_experts == "AAAB"
    two = sglang_chat()
    two["choices"].append({**two["choices"][0], "index": 1})
    refused({**two, **routes}, f"choice 0: routed_experts is missing: {name} does not say which choice")


def test_routes_stand_in_the_meta_info_or_beside_it():
    assert read_response(sglang_chat(meta={"routed_experts": "AAAB"}))[0].routed_experts == "AAAB"
    assert read_response(sglang_sample(routed_experts="AAAB"))[0].routed_experts == "AAAB"
    assert read_response({**sglang_sample(), "routed_experts": "AAAB"})[0].routed_experts == "AAAB"
    refused(
        {**sglang_sample(routed_experts="AAAB"), "routed_experts": "AAAC"}, "routed_experts and meta_info", "disagree"
    )


def test_ids_alone_are_a_sign_of_generate():
    sample = {"output_ids": [41, 2], "prompt_token_ids": [1, 7]}
    assert detect_dialect(sample) == "sglang-generate"
    refused(sample, "sglang-generate choice 0: generation_log_probs is missing")
    assert detect_dialect({**sample, "choices": []}) != "sglang-generate"


@pytest.mark.parametrize("counted", [0, 1, 3])
def test_the_own_counts_of_each_sample(counted):
    refused(
        [sglang_sample(), sglang_sample(completion_tokens=counted)],
        f"choice 1: 2 generation_token_ids, but the engine counted {counted}",
    )


def test_samples_may_be_numbered():
    batch = [{**sglang_sample(id="a"), "index": 1}, {**sglang_sample(id="b"), "index": 0}]
    assert [(choice.index, choice.response_id) for choice in read_response(batch)] == [(0, "b"), (1, "a")]


def test_usage_of_a_generate_is_not_asked():
    assert len(read_response({**sglang_sample(), "usage": {"completion_tokens": 99}})) == 1


@pytest.mark.parametrize("entries", [np.array([[-0.5, 41.0]]), {"0": [-0.5, 41]}, "x", 5])
def test_entries_that_are_no_list_are_named(entries):
    refused(sglang_sample(output_token_logprobs=entries), "generation_token_ids (meta_info.output_token_logprobs) is ")


@pytest.mark.parametrize("name", ["sglext", "sgl_ext"])
@pytest.mark.parametrize("key", ["routed_experts", "sampling_mask", "indexer_topk"])
def test_values_of_one_choice_in_the_extension_of_several(name, key):
    payload = sglext([[41], [42]], 2)
    payload[name] = {**payload.pop("sglext"), key: [1]}
    refused(payload, f"sglang-chat choice 0: {key} is missing: {name} does not say which choice its {key} belongs to")
    payload["choices"] = payload["choices"][:1]
    payload[name]["output_ids"] = [[41]]
    [choice] = read_response(payload)
    assert (choice.extras.get(key), choice.routed_experts).count([1]) == 1


def test_rows_of_several_choices_are_none_of_one():
    rows = np.array([[41], [42]])
    refused(sglext(rows), "generation_token_ids (sglext.output_ids) is an array of shape (2, 1): one dimension")
    refused(sglext(rows.tolist()), "generation_log_probs")


def test_an_extension_under_each_name_is_read():
    payload = sglext([[41]])
    payload["sgl_ext"] = {"output_ids": [42]}
    refused(payload, "sglext.output_ids and sgl_ext.output_ids disagree at position 0")


@pytest.mark.parametrize("sign", ["meta_info", "sglext", "sgl_ext"])
def test_an_empty_sign_is_none(sign):
    choice = {"index": 0, "message": {"content": "x"}}
    for empty in (None, {}, "x"):
        assert detect_dialect({"choices": [{**choice, sign: empty}]}) == "chat"
        assert detect_dialect({"choices": [choice], sign: empty}) == "chat"
    assert detect_dialect({"choices": [{**choice, sign: {"x": 1}}]}) == "sglang-chat"
    assert detect_dialect({"choices": [choice], sign: {"x": 1}}) == "sglang-chat"


def test_an_empty_prompt_on_a_choice_is_a_sign():
    choice = {"index": 0, "message": {"content": "x"}, "prompt_token_ids": []}
    assert detect_dialect({"choices": [choice]}) == "sglang-chat"
    assert detect_dialect({"choices": [choice], "prompt_token_ids": []}) == "vllm-chat"
