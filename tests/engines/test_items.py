"""Output items of served choices."""

from support.payloads import log_prob_entry, native, sglang_sample
from tokenrecords import read_response


def test_output_items_hold_no_token_arrays():
    block = {"type": "output_text", "text": "ok", "logprobs": [log_prob_entry("ok", -0.5)]}
    item = {"type": "message", "content": [block], "token_ids": [41], "meta_info": {"x": 1}, **native()}
    [choice] = read_response({"object": "response", "output": [item]})
    assert choice.output_items == [{"type": "message", "content": [{"type": "output_text", "text": "ok"}]}]
    assert "logprobs" in block
    call = {"type": "tool_use", "input": {"token_ids": [1], "logprobs": True}}
    body = {"type": "message", "role": "assistant", "content": [call], **native()}
    assert read_response(body)[0].output_items[0]["content"] == [call]


def test_no_item_where_there_is_no_content():
    for text in ({}, {"text": None}, {"text": ""}):
        payload = {**sglang_sample(), **text}
        payload = payload if text else {k: v for k, v in payload.items() if k != "text"}
        [choice] = read_response(payload)
        assert (choice.output_items, choice.token_item_index) == ([], None)
