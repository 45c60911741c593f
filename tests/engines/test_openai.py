"""OpenAI log-probs: an entry a token, ids in words."""

import pytest
from support.payloads import TOKENS, log_prob_entry, native_chat, refused, tokens_of, vllm_chat, vllm_choice
from tokenrecords import detect_dialect, entries_from_response, read_response


def test_ids_as_words():
    payload = native_chat(generation_token_ids=["token_id:41", "token_id:2"])
    assert tokens_of(read_response(payload)[0]) == TOKENS


@pytest.mark.parametrize("words", [["41", "2"], ["token_id:41", "w"], ["token_id:x", "token_id:2"], ["token_id:", "2"]])
def test_words_that_are_no_ids(words):
    for name in ("prompt_token_ids", "generation_token_ids"):
        payload = native_chat(**{name: words})
        refused(payload, f"chat choice 0: {name}[")
        with pytest.raises(ValueError, match="chat choice 0"):
            entries_from_response(payload, rollout_id="r", model_call_id="c")


@pytest.mark.parametrize("logprobs", [{"content": None}, None])
def test_log_probs_that_were_not_sent(logprobs):
    refused(vllm_chat(vllm_choice(0, logprobs=logprobs)), "vllm-chat choice 0: generation_log_probs is missing")


def test_no_log_probs_are_needed_where_nothing_was_generated():
    payload = vllm_chat(vllm_choice(0, [], [], logprobs={"content": None}))
    assert tokens_of(read_response(payload)[0]) == ([1, 7], [], [])


@pytest.mark.parametrize("entry", [None, {"token": "token_id:2"}, "x", 5, {"token": "token_id:2", "logprob": None}])
def test_log_prob_entry_that_holds_none(entry):
    payload = vllm_chat()
    payload["choices"][0]["logprobs"]["content"][1] = entry
    refused(payload, "vllm-chat choice 0: generation_log_probs[1] is null")


def test_words_and_token_ids_that_mix():
    payload = vllm_chat()
    payload["choices"][0]["logprobs"]["content"][1]["token"] = "w"
    refused(payload, "token_ids and logprobs.content[].token disagree at position 1")
    del payload["choices"][0]["token_ids"]
    refused(payload, "generation_token_ids[1] is null")


def words_of(*tokens):
    entries = [log_prob_entry(token, -0.5) for token in tokens]
    return vllm_chat(vllm_choice(token_ids=None, logprobs={"content": entries}))


def test_a_list_of_entries_without_content():
    payload = vllm_chat()
    payload["choices"][0]["logprobs"] = payload["choices"][0]["logprobs"]["content"]
    assert tokens_of(read_response(payload)[0]) == TOKENS


def test_one_word_that_is_an_id_asks_for_all():
    refused(words_of("w", "token_id:2"), "generation_token_ids[0] is null")
    refused(words_of("token_id:2", "w"), "generation_token_ids[1] is null")
    refused(words_of(None, "token_id:2"), "generation_token_ids[0] is null")
    assert read_response(words_of("token_id:41", "token_id:2"))[0].generation_token_ids == [41, 2]


def test_ids_beside_the_words_are_asked_of_all_too():
    for entries in ([{}, {"token_id": 2}], [{"token_id": 41}, {}]):
        logprobs = {"content": [log_prob_entry("x", -0.5, **entry) for entry in entries]}
        refused(vllm_chat(vllm_choice(token_ids=None, logprobs=logprobs)), "generation_token_ids[", "] is null")


@pytest.mark.parametrize("word", ["token_id:\u0661", "token_id:-1", "token_id:1.0", "token_id: 1", "TOKEN_ID:1", "1"])
def test_words_that_only_look_like_ids(word):
    refused(native_chat(generation_token_ids=[word, "token_id:2"]), "generation_token_ids[0] is null")


def test_ids_in_parallel_lists():
    logprobs = {"tokens": ["token_id:41", "token_id:2"], "token_logprobs": [-0.125, -0.5]}
    choice = {"index": 0, "text": "ok", "prompt_token_ids": [1, 7], "logprobs": logprobs}
    payload = {"object": "text_completion", "choices": [choice]}
    assert tokens_of(read_response(payload)[0]) == TOKENS


def test_log_probs_that_were_not_asked_for_speak_of_nothing():
    payload = native_chat()
    payload["choices"][0]["logprobs"] = {"content": None}
    assert tokens_of(read_response(payload)[0]) == TOKENS


def test_log_probs_without_a_generated_id_are_too_many():
    logprobs = {"tokens": ["x"], "token_logprobs": [-0.5]}
    choice = {"index": 0, "text": "x", "token_ids": [], "prompt_token_ids": [1], "logprobs": logprobs}
    refused({"object": "text_completion", "choices": [choice]}, "0 generation_token_ids and 1 generation_log_probs")


@pytest.mark.parametrize(
    ("payload", "dialect"),
    [
        ({"object": "chat.completion", "choices": []}, "chat"),
        ({"choices": [{"message": {}}]}, "chat"),
        ({"object": "text_completion", "choices": []}, "vllm-completions"),
        ({"choices": [{"text": "x"}]}, "vllm-completions"),
    ],
)
def test_the_shape_is_known_by_the_object_or_a_choice(payload, dialect):
    assert detect_dialect(payload) == dialect


def test_two_names_of_the_reasoning_are_one_part():
    thought, said = [{"token": "token_id:41", "logprob": -0.125}], [{"token": "token_id:2", "logprob": -0.5}]
    for other in (thought, [], None):
        for name in ("reasoning", "reasoning_content"):
            both = {"reasoning": thought, "reasoning_content": thought, "content": said, name: other}
            assert tokens_of(read_response(vllm_chat(vllm_choice(token_ids=None, logprobs=both)))[0]) == TOKENS
    both = {"reasoning": thought, "reasoning_content": said, "content": said}
    refused(vllm_chat(vllm_choice(token_ids=None, logprobs=both)), "generation_token_ids is missing")


def test_prompts_of_several_choices():
    def choice(index):
        return {"index": index, "text": "x", "token_ids": [40 + index], "logprobs": {"token_logprobs": [-0.5]}}

    payload = {"object": "text_completion", "prompt_token_ids": [[1], [2, 3]], "choices": [*map(choice, (3, 0, 1, 2))]}
    assert [(*c.prompt_token_ids, *c.generation_token_ids) for c in read_response(payload)] == [
        *((1, 40), (1, 41), (2, 3, 42), (2, 3, 43))
    ]
    refused({**payload, "choices": payload["choices"][1:]}, "3 choices for 2 prompt_token_ids")
    refused({**payload, "choices": []}, "0 choices for 2 prompt_token_ids")
    [one, two] = read_response({**payload, "prompt_token_ids": [[1, 7]], "choices": [choice(0), choice(1)]})
    assert (one.prompt_token_ids, two.prompt_token_ids) == ([1, 7], [1, 7])


def test_ids_beside_entries():
    payload = vllm_chat(vllm_choice(token_ids=None))
    entries = [log_prob_entry("x", -0.125), log_prob_entry("y", -0.5)]
    payload["choices"][0]["logprobs"] = {"content": entries, "token_ids": [41, 2]}
    assert tokens_of(read_response(payload)[0]) == TOKENS
    payload["choices"][0]["logprobs"] = {"content": entries, "tokens": ["token_id:41", "token_id:2"]}
    assert tokens_of(read_response(payload)[0]) == TOKENS


def test_a_word_of_as_many_digits_as_python_takes_is_a_number():
    refused(words_of("token_id:" + "1" * 4300, "token_id:2"), "generation_token_ids[0] is 111", "below 2**64")
    refused(words_of("token_id:" + "1" * 4301, "token_id:2"), "generation_token_ids[0] is null")


def test_parts_stand_in_the_order_in_which_they_are_generated():
    parts = {"refusal": [4], "content": [3], "reasoning": [2]}
    logprobs = {name: [log_prob_entry("x", -0.5, token_id=id_) for id_ in ids] for name, ids in parts.items()}
    [choice] = read_response(vllm_chat(vllm_choice(token_ids=None, logprobs=logprobs)))
    assert choice.generation_token_ids == [2, 3, 4]


def test_a_prompt_that_is_null_among_others():
    choices = [vllm_choice(index, prompt_token_ids=[1]) for index in (0, 1)]
    refused(vllm_chat(*choices, prompt_token_ids=[[1], None]), "vllm-chat choice 0: prompt_token_ids")
