"""Envelopes of token fields: what they hold, and what is broken."""

import base64

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.payloads import native, native_chat, refused
from tokenrecords import extract_token_fields, read_response


def packed(values, kind):
    dtype = {"i32": "<i4", "f64": "<f8"}[kind]
    return f"ngtok1:{kind}:{base64.b64encode(np.array(values, dtype).tobytes()).decode()}"


@given(st.lists(st.integers(0, 2**31 - 1)), st.data())
def test_there_and_back(ids, data):
    log_probs = data.draw(st.lists(st.floats(-9, 0), min_size=len(ids), max_size=len(ids)))
    fields = native(generation_token_ids=packed(ids, "i32"), generation_log_probs=packed(log_probs, "f64"))
    for found in (extract_token_fields({"output": [fields]}), vars_of(read_response({"output": [fields]}))):
        assert found["generation_token_ids"].tolist() == ids
        assert found["generation_token_ids"].dtype == np.int32
        assert found["generation_log_probs"].tolist() == log_probs
        assert found["prompt_token_ids"] is fields["prompt_token_ids"]


def vars_of(choices):
    [choice] = choices
    return {
        name: getattr(choice, name) for name in ("prompt_token_ids", "generation_token_ids", "generation_log_probs")
    }


BROKEN = {
    "padding": "ngtok1:i32:AAA",
    "alphabet": "ngtok1:i32:é===",
    "whole but for a foreign letter": "ngtok1:i32:AQAA!AAcAAAA=",
    "half a number": "ngtok1:i32:AAAA",
    "log-probs": packed([1.0], "f64"),
    "another kind": "ngtok1:i64:AAAAAAAAAAA=",
    "no kind": "ngtok1:",
}


@pytest.mark.parametrize("name", BROKEN)
def test_broken_ones(name):
    payload = native_chat(prompt_token_ids=BROKEN[name])
    with pytest.raises(ValueError, match=r"^prompt_token_ids is 'ngtok1:.*ngtok1:i32:<base64> of whole"):
        extract_token_fields(payload)
    refused(payload, "chat choice 0: prompt_token_ids (message.prompt_token_ids) is 'ngtok1:")


def test_ids_as_log_probs_and_negative_ids():
    refused(native_chat(generation_log_probs=packed([1, 2], "i32")), "ngtok1:f64:<base64> of whole")
    refused(native_chat(prompt_token_ids=packed([1, -2], "i32")), "prompt_token_ids[1] is -2")


def test_another_text_is_none():
    refused(native_chat(prompt_token_ids="x:i32:AAAA"), "is str: a list or a one-dimensional array is needed")
    assert extract_token_fields(native_chat(routed_experts="ngtok1:x"))["routed_experts"] == "ngtok1:x"


def test_one_of_another_version_is_broken():
    payload = native_chat(prompt_token_ids="ngtok2:i32:AAAA")
    with pytest.raises(ValueError, match=r"^prompt_token_ids is 'ngtok2:.*ngtok1:i32:<base64> of whole"):
        extract_token_fields(payload)
    refused(payload, "prompt_token_ids (message.prompt_token_ids) is 'ngtok2:")


def test_one_prompt_in_a_list():
    [choice] = read_response(native_chat(prompt_token_ids=[packed([1, 7], "i32")]))
    assert choice.prompt_token_ids.tolist() == [1, 7]
    bare = {"completion_ids": [[2], [3]], "logprobs": [[-0.5]] * 2}
    found = read_response(bare, prompt_token_ids=[packed([1], "i32"), packed([7], "i32")])
    assert [choice.prompt_token_ids.tolist() for choice in found] == [[1], [7]]


def test_what_an_envelope_holds_is_not_writable():
    found = extract_token_fields({"output": [native(prompt_token_ids=packed([1, 7], "i32"))]})
    assert not found["prompt_token_ids"].flags.writeable


@pytest.mark.parametrize("name", ["prompt_token_ids", "generation_token_ids", "generation_log_probs"])
def test_a_broken_one_is_an_error_where_fields_are_extracted(name):
    kind = "f64" if name == "generation_log_probs" else "i32"
    fields = native(**{name: f"ngtok1:{kind}:A"})
    with pytest.raises(
        ValueError, match=rf"^{name} is 'ngtok1:{kind}:A': ngtok1:{kind}:<base64> of whole little-endian"
    ):
        extract_token_fields({"output": [fields]})
