"""Together: `token_ids` among the parallel lists of a chat's log-probs."""

from support.payloads import TOKENS, refused, tokens_of
from tokenrecords import detect_dialect, read_response

ECHO = [{"text": "p", "logprobs": {"token_ids": [1, 7], "tokens": ["a", "b"], "token_logprobs": [None, -1.0]}}]


def chat(**fields):
    logprobs = {"token_ids": [41, 2], "tokens": ["o", "k"], "token_logprobs": [-0.125, -0.5]}
    choice = {"index": 0, "message": {"content": "ok"}, "logprobs": {**logprobs, **fields.pop("logprobs", {})}}
    return {"object": "chat.completion", "choices": [choice], **fields}


def test_the_prompt_is_echoed_or_the_callers():
    assert detect_dialect(chat()) == "together-chat"
    assert tokens_of(read_response(chat(prompt=ECHO))[0]) == TOKENS
    assert tokens_of(read_response(chat(prompt=[]), prompt_token_ids=[1, 7])[0]) == TOKENS
    refused(chat(prompt=ECHO), "the caller's prompt_token_ids disagree at position 1", prompt_token_ids=[1, 8])
    refused(chat(prompt=ECHO, usage={"prompt_tokens": 3}), "2 prompt_token_ids, but the engine counted 3")
    # Of two prompts nothing says which a choice belongs to.
    refused(chat(prompt=ECHO * 2), "prompt_token_ids is missing, and prompt[0].logprobs.token_ids is not read")


def test_faults():
    def bad(message, **logprobs):
        refused(chat(prompt=ECHO, logprobs=logprobs), "together-chat choice 0: ", message)

    bad("2 generation_token_ids and 1 generation_log_probs", token_logprobs=[-0.125])
    bad("generation_log_probs is missing", token_logprobs=None)
    bad("generation_log_probs[0] is null", token_logprobs=[None, -0.5])
    bad("generation_token_ids[1] is null", token_ids=[41, None])


def test_one_id_on_a_message_is_no_list():
    payload = chat(prompt=ECHO)
    payload["choices"][0]["message"]["token_id"] = 9
    assert tokens_of(read_response(payload)[0]) == TOKENS


def test_any_choice_is_a_sign():
    for last in ({"logprobs": {"token_ids": []}, "message": {}}, {"message": {"token_id": [1]}}):
        assert detect_dialect({"choices": [{"message": {}}, last]}) == "together-chat"
    assert detect_dialect({"choices": [{"text": "x", "logprobs": {"token_ids": [1]}}]}) == "vllm-completions"
