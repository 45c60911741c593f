"""Responses whose prompt and generation come as raw messages."""

import pytest
from support.payloads import TOKENS, native_item, refused, tokens_of, words
from tokenrecords import detect_dialect, read_response

ENTRIES = words([41, 2], [-0.125, -0.5])["content"]


def raw(*tokens):
    return [{"type": "raw_message_tokens", "message": "m", "tokens": ids} for ids in tokens]


def payload(*parts, **fields):
    blocks = [{"type": "output_text", "text": "x", "logprobs": part} for part in parts]
    item = {"type": "message", "role": "assistant", "content": blocks}
    return {
        "object": "response",
        "output": [item],
        "input_messages": raw([1, 7]),
        "output_messages": raw([41, 2]),
    } | fields


def test_texts_have_the_log_probs():
    for parts in ([ENTRIES], [ENTRIES[:1], ENTRIES[1:]], [[], ENTRIES]):
        assert detect_dialect(payload(*parts)) == "responses"
        [choice] = read_response(payload(*parts))
        assert (tokens_of(choice), choice.token_item_index) == (TOKENS, 0)
        assert "logprobs" not in choice.output_items[0]["content"][0]


def test_a_part_is_not_the_whole():
    refused(payload(ENTRIES[1:]), "responses choice 0: 2 generation_token_ids and 1 generation_log_probs")
    refused(payload(), "generation_log_probs is missing")
    refused(payload(ENTRIES, output_messages=raw([41, 3])), "disagree at position 1")
    refused(payload(ENTRIES, output_messages=raw([41], [2])), "output_messages holds 2 messages")
    refused(payload(ENTRIES, input_messages=raw([1], [7])), "input_messages holds 2 messages")
    refused(payload(ENTRIES, input_messages=None), "prompt_token_ids is missing")
    refused(payload(ENTRIES, input_messages=None, output_messages=None), "prompt_token_ids is missing")


def test_nothing_was_generated():
    assert tokens_of(read_response(payload(output_messages=raw([])))[0]) == ([1, 7], [], [])


def test_beside_token_fields():
    item = native_item(content=[{"type": "output_text", "text": "k", "logprobs": ENTRIES[1:]}])
    assert tokens_of(read_response(payload(output=[item]))[0]) == TOKENS
    refused(payload(output=[item], output_messages=raw([41, 3])), "disagree at position 1")


def test_messages_without_tokens_count_too():
    bare = {"type": "message", "content": "x"}
    refused(
        payload(ENTRIES, output_messages=[bare, *raw([41, 2])]), "output_messages holds 2 messages: the tokens of one"
    )
    refused(payload(ENTRIES, input_messages=[*raw([1, 7]), bare]), "input_messages holds 2 messages: the tokens of one")


def test_log_probs_of_nothing_are_not_missing_only_where_nothing_was_generated():
    refused(payload(input_messages=raw([]), output_messages=raw([41, 2])), "generation_log_probs is missing")
    assert read_response(payload(input_messages=[{"content": "x"}], output_messages=[{"content": "y"}])) == []


@pytest.mark.parametrize("side", ["input_messages", "output_messages"])
@pytest.mark.parametrize("ids", [[41], []])
def test_one_side_is_a_sign(side, ids):
    said = {"choices": [{"message": {}}], side: raw(ids)}
    assert detect_dialect(said) == "responses"
    assert detect_dialect({**said, side: raw(None)}) == "chat"


def test_the_places_are_named():
    why = "generation_token_ids and output_messages[0].tokens disagree at position 1"
    refused(payload(output=[native_item()], output_messages=raw([41, 3])), f"responses choice 0: {why}")
    refused(payload(ENTRIES, input_messages=raw([1], [7])), "responses choice 0: input_messages holds 2 messages")


def test_a_side_without_tokens_may_have_any_number_of_messages():
    bare = {"type": "message", "content": "x"}
    said = payload(ENTRIES, input_messages=[bare, bare])
    assert tokens_of(read_response(said, prompt_token_ids=[1, 7])[0]) == TOKENS
