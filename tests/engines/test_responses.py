"""Responses: the one call of a body, wherever its tokens stand."""

import pytest
from support.payloads import TOKENS, native_item, refused, tokens_of, words
from tokenrecords import read_response

ENTRIES = words([41, 2], [-0.125, -0.5])["content"]


def message(*parts, **fields):
    blocks = [{"type": "output_text", "text": "x", "logprobs": part} for part in parts]
    return {"type": "message", "role": "assistant", "content": blocks, **fields}


def body(*items, **fields):
    return {"object": "response", "output": list(items), **fields}


@pytest.mark.parametrize(
    "items",
    [
        [message(ENTRIES)],
        [message(ENTRIES[:1], ENTRIES[1:])],
        [{"type": "reasoning", "content": message(ENTRIES[:1])["content"]}, message(ENTRIES[1:])],
    ],
)
def test_words_of_the_texts_are_the_ids(items):
    assert tokens_of(read_response(body(*items), prompt_token_ids=[1, 7])[0]) == TOKENS
    refused(body(*items), "responses choice 0: prompt_token_ids is missing")


@pytest.mark.parametrize(
    "item",
    [
        {"type": "reasoning", "summary": []},
        {"type": "function_call", "name": "f", "arguments": "{}"},
        message([]),
        message(ENTRIES, None),
    ],
)
def test_words_of_some_items_are_not_the_whole(item):
    refused(body(message(ENTRIES), item), "output[1] has no log-probs", prompt_token_ids=[1, 7])


def test_texts_without_ids_are_no_tokens():
    plain = [{**entry, "token": "x"} for entry in ENTRIES]
    assert read_response(body(message(plain), {"type": "reasoning", "summary": []})) == []


@pytest.mark.parametrize("name", ["token_ids", "output_ids"])
def test_ids_beside_an_item(name):
    scored = message(ENTRIES, **{name: [41, 2]})
    assert tokens_of(read_response(body({"type": "reasoning"}, scored), prompt_token_ids=[1, 7])[0]) == TOKENS
    refused(body(message(ENTRIES, **{name: [41, 3]})), "disagree at position 1", prompt_token_ids=[1, 7])
    refused(body(message(ENTRIES[:1], **{name: [41, 2]})), "2 generation_token_ids and 1", prompt_token_ids=[1, 7])
    refused(body(scored, scored), "output[1] has ids as an earlier item has", prompt_token_ids=[1, 7])
    [choice] = read_response(body(native_item(**{name: [9]})))  # the fields of a record say it all
    assert choice.generation_token_ids == [41, 2]


def test_the_tokens_of_raw_messages_belong_to_the_last_item():
    reasoning = {"type": "reasoning", "summary": []}
    for items, place in (([reasoning, message(ENTRIES)], 1), ([message(ENTRIES), reasoning, reasoning], 2)):
        payload = body(*items, input_messages=[{"tokens": [1, 7]}], output_messages=[{"tokens": [41, 2]}])
        assert read_response(payload)[0].token_item_index == place


def test_log_probs_of_an_item_are_not_taken_again_from_its_texts():
    held = native_item(content=message(ENTRIES[:1])["content"])
    assert tokens_of(read_response(body(held))[0]) == TOKENS
