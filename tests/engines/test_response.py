"""Choices of any engine: their indexes, the engine's own counts, and what is refused whole."""

import json

import numpy as np
import pytest
from pydantic import BaseModel, ConfigDict, Field
from support.holders import Array
from support.payloads import (
    TOKENS,
    Model,
    native,
    native_item,
    refused,
    sglang_sample,
    tgi,
    tokens_of,
    vllm_chat,
    vllm_choice,
)
from tokenrecords import (
    detect_dialect,
    entries_from_response,
    extract_token_fields,
    read_response,
    response_to_output_items,
)


def test_choices_come_in_order_of_index():
    payload = vllm_chat(vllm_choice(1, [9], [-1.0]), vllm_choice(0))
    assert [choice.index for choice in read_response(payload)] == [0, 1]
    assert [choice.generation_token_ids for choice in read_response(payload)] == [[41, 2], [9]]


def test_duplicate_index():
    refused(vllm_chat(vllm_choice(1), vllm_choice(1)), "vllm-chat choice 1: duplicate choice index 1")


def test_choices_without_any_index_are_numbered():
    payload = vllm_chat(vllm_choice(None), vllm_choice(None, [9], [-1.0]))
    assert [choice.index for choice in read_response(payload)] == [0, 1]


def test_one_index_missing():
    refused(vllm_chat(vllm_choice(0), vllm_choice(None)), "vllm-chat choice 1: index is missing")


@pytest.mark.parametrize("index", ["0", True, -1, 0.0])
def test_index_of_the_wrong_type(index):
    refused(vllm_chat(vllm_choice(index)), f"vllm-chat choice 0: index is {index!r}: it must be a non-negative integer")


def test_one_choice_of_two_lost_its_ids():
    payload = vllm_chat(vllm_choice(0), vllm_choice(1))
    payload["choices"][1].update(token_ids=None, logprobs=None)
    refused(payload, "vllm-chat choice 1: generation_token_ids is missing")


@pytest.mark.parametrize("lost", [None, "x", 5])
def test_a_choice_that_is_none(lost):
    refused(vllm_chat(lost), "generation_token_ids is missing")


def test_prompt_ids_without_a_choice():
    refused({**vllm_chat(), "choices": []}, "vllm-chat choice 0: generation_token_ids is missing")


def test_a_chunk_of_a_stream():
    refused(
        {"choices": [{"index": 0, "delta": {"content": "o"}, "token_ids": [41]}]},
        "choices[0].delta",
        "merge_stream",
    )


def test_chunks_are_named() -> None:
    chunks = [{"object": "chat.completion.chunk", "choices": [{"index": 0, "delta": {"content": "x"}}]}] * 2
    with pytest.raises(ValueError, match="merge_stream joins the chunks"):
        read_response(chunks)


def test_a_list_is_read_where_an_engine_sends_lists():
    refused([vllm_chat()], "unknown: a list of 1 payloads")
    refused([vllm_chat()], "vllm-chat: a list of 1 payloads", dialect="vllm-chat")
    assert read_response([], dialect="vllm-chat") == []
    with pytest.raises(TypeError, match="mapping"):
        read_response([[vllm_chat()]])


def test_unknown_dialects():
    assert detect_dialect({"error": "overloaded"}) == "unknown"
    assert read_response({"error": "overloaded"}) == []
    assert read_response({}) == []
    assert read_response([]) == []
    refused(vllm_chat(), "dialect is 'vllm': one of", dialect="vllm")
    for wrong in (None, "text", 5):
        with pytest.raises(TypeError, match="mapping"):
            read_response(wrong)


def test_pydantic_models():
    ids = np.array([1, 7])
    choice = Model(**vllm_choice())
    for payload in (
        Model(**vllm_chat(), x=1),
        vllm_chat(choice),
        Model(choices=[choice], prompt_token_ids=ids),
    ):
        assert tokens_of(read_response(payload)[0]) == TOKENS
    assert read_response(Model(choices=[choice], prompt_token_ids=ids))[0].prompt_token_ids is ids
    item = Model(type="message", **native())
    assert tokens_of(read_response({"object": "response", "output": [item]})[0]) == TOKENS


@pytest.mark.parametrize("counted", ["3", {}, [], 2.5])
@pytest.mark.parametrize("name", ["prompt_tokens", "completion_tokens"])
def test_counts_that_are_no_numbers(name, counted):
    refused(vllm_chat(usage={name: counted}), "but the engine counted")


@pytest.mark.parametrize(
    ("counts", "message"),
    [
        ({"completion_tokens": 3}, "vllm-chat choice 0: 2 generation_token_ids, but the engine counted 3"),
        ({"completion_tokens": 0}, "vllm-chat choice 0: 2 generation_token_ids, but the engine counted 0"),
        ({"prompt_tokens": 3}, "vllm-chat choice 0: 2 prompt_token_ids, but the engine counted 3"),
    ],
)
def test_usage(counts, message):
    refused(vllm_chat(usage=counts), message)
    assert len(read_response(vllm_chat(usage=counts), check_counts=False)) == 1
    assert (
        len(entries_from_response(vllm_chat(usage=counts), rollout_id="r", model_call_id="c", check_counts=False)) == 1
    )


def test_usage_of_several_choices():
    choices = (vllm_choice(0), vllm_choice(1, [9], [-1.0]))
    assert len(read_response(vllm_chat(*choices, usage={"prompt_tokens": 2, "completion_tokens": 3}))) == 2
    refused(
        vllm_chat(*choices, usage={"completion_tokens": 4}),
        "vllm-chat choices 0 to 1: 3 generation_token_ids",
    )
    refused(vllm_chat(*choices, usage={"prompt_tokens": 3}), "4 prompt_token_ids, but the engine counted 3")


def test_usage_of_several_prompts():
    logprobs = {"tokens": ["a"], "token_logprobs": [-0.5]}
    choices = [
        {"index": i, "text": "a", "token_ids": [9], "prompt_token_ids": prompt, "logprobs": logprobs}
        for i, prompt in enumerate([[1, 7], [1, 7], [8], [8]])
    ]
    payload = {
        "object": "text_completion",
        "choices": choices,
        "usage": {"prompt_tokens": 3, "completion_tokens": 4},
    }
    assert [choice.prompt_token_ids for choice in read_response(payload)] == [[1, 7], [1, 7], [8], [8]]
    payload["usage"]["prompt_tokens"] = 4
    refused(payload, "vllm-completions choices 0 to 3: 6 prompt_token_ids, but the engine counted 4")


WITHOUT_PROMPT = {**vllm_chat(vllm_choice(0), vllm_choice(1, [9], [-1.0])), "prompt_token_ids": None}


@pytest.mark.parametrize("convert", [list, tuple, np.array, Array])
def test_the_prompt_of_the_caller(convert):
    ids = convert(np.array([1, 7]) if convert is Array else [1, 7])
    assert [tokens_of(choice)[0] for choice in read_response(WITHOUT_PROMPT, prompt_token_ids=ids)] == [[1, 7]] * 2
    assert len(read_response(vllm_chat(), prompt_token_ids=ids)) == 1
    refused(
        vllm_chat(prompt_token_ids=[1, 8]),
        "vllm-chat choice 0: prompt_token_ids and the caller's prompt_token_ids disagree at position 1",
        prompt_token_ids=ids,
    )


@pytest.mark.parametrize("rows", [[[1, 7], [8]], (np.array([1, 7]), [8])])
def test_prompts_of_the_caller(rows):
    found = read_response(WITHOUT_PROMPT, prompt_token_ids=rows)
    assert [tokens_of(choice)[0] for choice in found] == [[1, 7], [8]]
    assert [tokens_of(c)[0] for c in read_response(WITHOUT_PROMPT, prompt_token_ids=rows[:1])] == [[1, 7]] * 2
    refused(WITHOUT_PROMPT, "2 choices for 3 prompt_token_ids of the caller", prompt_token_ids=[*rows, [1]])
    third = vllm_chat(vllm_choice(0), vllm_choice(1), vllm_choice(2), prompt_token_ids=None)
    refused(third, "3 choices for 2 prompt_token_ids of the caller", prompt_token_ids=rows)
    envelopes = ["ngtok1:i32:BwAAAA==", [8]]
    found = read_response(WITHOUT_PROMPT, prompt_token_ids=envelopes)
    assert [list(tokens_of(choice)[0]) for choice in found] == [[7], [8]]
    plane = np.array([[1, 7], [8, 9]])
    assert [tokens_of(c)[0] for c in read_response(WITHOUT_PROMPT, prompt_token_ids=plane)] == [[1, 7], [8, 9]]


@pytest.mark.parametrize("wrong", ["17", {"a": 1}, [1, None], [1.0], [[1], 7], 5, np.zeros((1, 1, 1), int)])
def test_what_is_no_prompt(wrong):
    refused(WITHOUT_PROMPT, "prompt_token_ids", prompt_token_ids=wrong)


def test_a_prompt_alone_makes_no_tokens():
    assert read_response({"choices": [{"message": {"content": "x"}}]}, prompt_token_ids=[1]) == []


@pytest.mark.parametrize("choices", [{"message": native()}, "x", 5, {}])
def test_choices_that_are_no_list(choices):
    for read in (read_response, detect_dialect, extract_token_fields, response_to_output_items):
        with pytest.raises(TypeError, match=rf"^choices is {type(choices).__name__}: a list is needed$"):
            read({"choices": choices})
    with pytest.raises(TypeError, match="choices is"):
        read_response([{"choices": choices}], dialect="responses")


def test_a_body_whose_content_is_no_list():
    with pytest.raises(TypeError, match=r"^content is int: a list of blocks is needed$"):
        read_response({"type": "message", "role": "assistant", "content": 7, **native()})
    with pytest.raises(TypeError, match=r"^response_json is NoneType: a mapping is needed$"):
        extract_token_fields(None)


def test_numbers_of_more_digits_than_any_id():
    refused(vllm_chat(prompt_token_ids=[10**5000]), "vllm-chat choice 0: prompt_token_ids[0] is an int of")
    entry = {"token": "token_id:" + "1" * 5000, "logprob": -0.5}
    refused(vllm_chat(vllm_choice(token_ids=None, logprobs={"content": [entry]})), "choice 0: generation_token_ids")


@pytest.mark.parametrize("mask", [[1, 0], np.array([True, False])])
def test_masks_on_a_choice_and_its_message(mask):
    message = {"content": "x", **native(generation_loss_mask=mask)}
    [choice] = read_response(vllm_chat(vllm_choice(message=message, generation_loss_mask=[True, False])))
    assert choice.generation_loss_mask is mask
    assert "generation_loss_mask" not in choice.output_items[0]
    wrong = vllm_chat(vllm_choice(message=message, generation_loss_mask=[1, 1]))
    refused(wrong, "message.generation_loss_mask and generation_loss_mask disagree at position 1")
    refused(vllm_chat(vllm_choice(generation_loss_mask=[1])), "2 generation_token_ids and 1 generation_loss_mask")


def test_rows():
    rows = [native(text="ok"), native(generation_token_ids=[9], generation_log_probs=[-1.0], finish_reason="length")]
    assert detect_dialect(rows) == "flat"
    found = read_response(rows)
    assert [(choice.index, choice.finish_reason, tokens_of(choice)[1]) for choice in found] == [
        (0, None, [41, 2]),
        (1, "length", [9]),
    ]
    assert found[0].output_items == [{"type": "message", "role": "assistant", "content": "ok"}]
    refused(native(prompt_is_delta=True), "flat choice 0: prompt_is_delta is true")
    refused(native(prompt_token_ids=None), "flat choice 0: prompt_token_ids is missing")


@pytest.mark.parametrize(("counted", "sound"), [(4, True), (2, False), (1, False), (3, False)])
def test_a_count_of_prompts_of_several_lengths(counted, sound):
    logprobs = {"tokens": ["a"], "token_logprobs": [-0.5]}
    choices = [
        {"index": i, "text": "a", "token_ids": [9], "prompt_token_ids": prompt, "logprobs": logprobs}
        for i, prompt in enumerate([[1], [1], [1, 7]])
    ]
    payload = {"object": "text_completion", "choices": choices, "usage": {"prompt_tokens": counted}}
    if sound:
        assert len(read_response(payload)) == 3
    else:
        refused(payload, f"vllm-completions choices 0 to 2: 4 prompt_token_ids, but the engine counted {counted}")


def test_choices_are_named_by_their_indexes():
    payload = vllm_chat(vllm_choice(2), vllm_choice(7), usage={"completion_tokens": 3})
    refused(payload, "vllm-chat choices 2 to 7: 4 generation_token_ids, but the engine counted 3")


def test_lists_of_two_kinds_are_unknown():
    assert detect_dialect([sglang_sample(), tgi()]) == "unknown"
    assert detect_dialect([]) == "unknown"
    assert [detect_dialect([part]) for part in (sglang_sample(), tgi())] == ["sglang-generate", "tgi"]


def test_tuples_are_lists():
    payload = {**vllm_chat(), "choices": tuple(vllm_chat()["choices"])}
    assert tokens_of(read_response(payload)[0]) == TOKENS
    assert tokens_of(read_response({"object": "response", "output": (native_item(),)})[0]) == TOKENS


class Client(BaseModel):
    """A client's model: names of its own, and built without validation."""

    model_config = ConfigDict(extra="allow", populate_by_name=True)

    prompt: list[int] = Field(alias="prompt_token_ids")
    created: int = 0


def test_a_model_has_the_names_of_the_wire():
    assert tokens_of(read_response(Client.model_validate(vllm_chat()))[0]) == TOKENS


def test_a_model_that_was_built_without_validation():
    payload = Client.model_construct(**{**vllm_chat(), "created": "noon"})
    assert tokens_of(read_response(payload)[0]) == TOKENS


def test_a_count_of_0_is_compared():
    for name, counted in (("generation_token_ids", "completion_tokens"), ("prompt_token_ids", "prompt_tokens")):
        refused(vllm_chat(usage={counted: 0}), f"vllm-chat choice 0: 2 {name}, but the engine counted 0")
    refused(sglang_sample(completion_tokens=0), "2 generation_token_ids, but the engine counted 0")
    refused(sglang_sample(prompt_tokens=0), "2 prompt_token_ids, but the engine counted 0")


def test_what_is_asked_holds_for_bytes_too():
    ids = list(range(20))
    choice = vllm_choice(ids=ids, log_probs=[-0.5] * 20)
    payload = vllm_chat(choice, prompt_token_ids=ids, usage={"completion_tokens": 21})
    body = json.dumps(payload).encode()
    for form in (payload, body):
        refused(form, "vllm-chat choice 0: 20 generation_token_ids, but the engine counted 21")
        assert len(read_response(form, check_counts=False)) == 1
        options = {"check_counts": False, "prompt_token_ids": [*ids[:-1], 7]}
        refused(form, "prompt_token_ids and the caller's prompt_token_ids disagree at position 19", **options)
        refused(form, "dialect is 'x': one of ", dialect="x")
        refused(form, "chat choice 0: 20 generation_token_ids", dialect="chat")
    assert isinstance(read_response(body, check_counts=False)[0].generation_token_ids, np.ndarray)
    for form in (vllm_chat(choice), json.dumps(vllm_chat(choice)).encode()):
        assert len(read_response(form)) == 1
        refused(form, "dialect is 'x': one of ", dialect="x")
        refused(form, "tinker: no token ids were found, and prompt_token_ids is not read", dialect="tinker")


def test_the_index_that_is_said_twice_is_named():
    refused(vllm_chat(*map(vllm_choice, (0, 2, 1, 2))), "vllm-chat choice 2: duplicate choice index 2")


def test_a_mask_in_a_second_place_is_judged_too():
    message = {"content": "x", **native(generation_loss_mask=[1, 0])}
    for wrong, why in (([1, 2], "generation_loss_mask[1] is 2"), ([1], "2 generation_token_ids and 1 generation_loss")):
        refused(vllm_chat(vllm_choice(message=message, generation_loss_mask=wrong)), f"chat choice 0: {why}")


def test_a_row_says_its_id():
    assert [choice.response_id for choice in read_response([native(response_id="r"), native()])] == ["r", None]
