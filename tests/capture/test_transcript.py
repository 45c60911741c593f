"""Transcripts of several calls as linked records."""

from typing import Any

import numpy as np
import pytest
from support.payloads import Model, native_item, token_fields
from tokenrecords import build_chains, entries_from_transcript


def said(prompt: Any, ids: Any, **fields: Any) -> dict[str, Any]:
    """An item of the model that carries a call's tokens."""
    return native_item(**token_fields(prompt, ids), **fields)


ANSWER = {"type": "function_call_output", "call_id": "c", "output": "42"}
USER = {"type": "message", "role": "user", "content": "go on"}
REASONING = {"type": "reasoning", "summary": []}
CALL = {"type": "function_call", "name": "f", "arguments": "{}"}


def calls(items: Any, **options: Any) -> list[Any]:
    entries = entries_from_transcript(items, rollout_id="r", **options)
    return [
        (e.model_call_id, e.parent_call_id, str(e.parent_resolution), list(e.generation_token_ids)) for e in entries
    ]


LINKED = [("call-0", None, "root", [3]), ("call-1", "call-0", "resolved", [5])]


@pytest.mark.parametrize("name", ["output", "messages", "list", "model"])
def test_each_carrier_is_a_call(name):
    items = [said([1, 2], [3]), ANSWER, said([1, 2, 3, 4], [5])]
    shapes = {"list": items, "model": Model(object="response", output=items)}
    assert calls(shapes.get(name) or {name: items}) == LINKED


def test_items_belong_to_their_call():
    items = [
        USER,
        REASONING,
        said([1, 2], [3]),
        CALL,
        ANSWER,
        REASONING,
        said([1, 2, 3, 4], [5]),
        said([1, 2, 3, 4, 5], [6]),
    ]
    entries = entries_from_transcript({"output": items}, rollout_id="r")
    assert [[item["type"] for item in entry.output_items] for entry in entries] == [
        ["reasoning", "message", "function_call"],
        ["reasoning", "message"],
        ["message"],
    ]
    assert [entry.token_item_index for entry in entries] == [1, 1, 0]
    assert [entry.parent_call_id for entry in entries] == [None, "call-0", "call-1"]
    assert build_chains(entries).main.call_ids == ["call-0", "call-1", "call-2"]


def test_a_context_that_was_cut_is_no_child():
    assert calls([said([1, 2], [3]), ANSWER, said([9], [5])])[1] == ("call-1", None, "unresolved", [5])


def test_what_is_said_of_the_calls():
    items = [said([1, 2], [3], weight_version="5"), ANSWER, said(np.array([1, 2, 3, 4]), [5])]
    payload = {"id": "resp", "model": "m", "created_at": 7.0, "weight_version": "6", "output": items}
    first, second = entries_from_transcript(payload, rollout_id="r", model_call_id="turn", reward=1.0)
    assert [entry.model_call_id for entry in (first, second)] == ["turn-0", "turn-1"]
    assert [entry.weight_version for entry in (first, second)] == ["5", "6"]
    assert {(entry.model, entry.created_at, entry.reward, entry.response_id) for entry in (first, second)} == {
        ("m", 7.0, 1.0, None)
    }
    assert isinstance(second.prompt_token_ids, np.ndarray)


def test_nothing_to_read():
    assert calls({"output": [USER, ANSWER]}) == []
    assert calls([]) == []


def test_faults():
    items = [said([1, 2], [3]), ANSWER, {**said([1, 2, 3, 4], [5]), "generation_log_probs": None}]
    with pytest.raises(ValueError, match=r"^call-1: responses choice 0: generation_log_probs is missing$"):
        calls({"output": items})
    for wrong in ({}, {"output": 5}, "x", 5):
        with pytest.raises(TypeError, match="a mapping with a list of items, or the list, is needed"):
            calls(wrong)
    with pytest.raises(TypeError, match="parent can't be given: the transcript says it"):
        calls([], parent=None)
    with pytest.raises(ValueError, match="dialect is 'x': one of"):
        calls(items[:1], dialect="x")


def test_ids_that_nobody_reads():
    unread = {"type": "message", "role": "assistant", "content": [], "sampled_ids": [4]}
    for items in ([unread], [said([1, 2], [3]), ANSWER, unread]):
        with pytest.raises(ValueError, match=r"^call-\d: .* output\[0\]\.sampled_ids is not read"):
            calls(items)
    assert calls([{**unread, "sampled_ids": None}, USER, said([1, 2], [3])]) == [("call-0", None, "root", [3])]


@pytest.mark.parametrize("name", ["parent", "delta", "choices", "prompt_token_ids"])
def test_what_a_transcript_says_itself(name):
    with pytest.raises(TypeError, match=f"^{name} can't be given: the transcript says it$"):
        calls([], **{name: None})


def test_which_list_holds_the_items():
    first, second = [said([1], [3])], [said([1], [4])]
    root = "call-0", None, "root"
    assert calls({"output": first, "messages": second, "items": second}) == [(*root, [3])]
    assert calls({"output": None, "messages": first, "items": second}) == [(*root, [3])]
    assert calls({"items": tuple(first)}) == calls(tuple(first)) == [(*root, [3])]
    assert calls({"output": [], "messages": first}) == []


@pytest.mark.parametrize(
    "between",
    [
        *({"role": role, "content": "x"} for role in ("user", "system", "developer", "tool", "environment")),
        *({"type": kind} for kind in ("function_call_output", "computer_call_output", "x_output")),
        *(None, "x", 5),
    ],
)
def test_what_comes_between_two_calls(between):
    items = [said([1], [2]), CALL, between, REASONING, said([1, 2, 3], [4])]
    entries = entries_from_transcript(items, rollout_id="r")
    assert [len(entry.output_items) for entry in entries] == [2, 2]
    entries = entries_from_transcript([*items[:2], *items[3:]], rollout_id="r")
    assert [len(entry.output_items) for entry in entries] == [1, 3]


def test_items_of_a_client_are_read():
    assert calls([Model(**said([1, 2], [3])), Model(**ANSWER), Model(**said([1, 2, 3, 4], [5]))]) == LINKED


def test_what_is_said_of_each_token_belongs_to_one_call():
    whole = {"indexer_topk": "AA", "created": 7, "ng_x": 1, "output": [said([1, 2], [3])]}
    [entry] = entries_from_transcript(whole, rollout_id="r")
    assert (entry.created_at, entry.ng_x) == (7.0, 1)
    assert "indexer_topk" not in entry.model_extra
    [entry] = entries_from_transcript({**whole, "output": [said([1, 2], [3], indexer_topk="AB")]}, rollout_id="r")
    assert entry.indexer_topk == "AB"


def test_another_dialect_may_be_named():
    with pytest.raises(ValueError, match=r"^call-0: "):
        calls([said([1], [2])], dialect="tgi")
