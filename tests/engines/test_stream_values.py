"""The values of a merged stream: which are joined, which stay, and which may not differ."""

from __future__ import annotations

from typing import Any

import pytest
from support.payloads import chunk, numbered, piece
from tokenrecords import merge_stream


def merged_choice(*chunks: dict[str, Any]) -> dict[str, Any]:
    [choice] = merge_stream(list(chunks))["choices"]
    return choice


def says(**delta: Any) -> dict[str, Any]:
    """A choice of a chunk that says this, and carries no ids."""
    return {"index": 0, "delta": delta}


@pytest.mark.parametrize("name", ["content", "reasoning", "reasoning_content", "refusal"])
def test_texts_are_joined(name: str) -> None:
    choice = merged_choice(chunk(says(**{name: "o"})), chunk(says(**{name: None})), chunk(says(**{name: "k"})))
    assert choice["message"][name] == "ok"


def test_the_first_head_stays() -> None:
    later = {"model": "other", "created": 2, "object": "chat.completion"}
    merged = merge_stream([chunk(piece("o")), chunk(piece("k"), **later)])
    assert (merged["id"], merged["model"], merged["created"]) == ("c1", "m", 1)


def test_of_other_values_the_last_stays() -> None:
    merged = merge_stream([chunk(piece("o"), service_tier="a"), chunk(piece("k"), service_tier="b")])
    assert merged["service_tier"] == "b"


@pytest.mark.parametrize(
    ("holder", "name"),
    [
        ("meta_info", "output_token_logprobs"),
        ("meta_info", "input_token_logprobs"),
    ],
)
def test_what_each_chunk_repeats_goes_on(holder: str, name: str) -> None:
    def part(*values: Any) -> dict[str, Any]:
        return chunk({**says(content="x"), holder: {name: list(values)}})

    assert merged_choice(part(1), part(1, 2))[holder][name] == [1, 2]
    for wrong in (part(2, 2), part()):
        with pytest.raises(ValueError, match=f"chunk 1: {name} does not go on"):
            merge_stream([part(1), wrong])


@pytest.mark.parametrize("name", ["prompt_token_ids", "routed_experts", "engine_data"])
def test_what_is_said_once_is_the_same_when_it_is_said_again(name: str) -> None:
    value = {"a": 1} if name == "engine_data" else [1, 2]
    assert merge_stream([chunk(piece("o"), **{name: value}), chunk(piece("k"), **{name: value})])[name] == value
    with pytest.raises(ValueError, match=f"chunk 1: a second {name} disagrees"):
        merge_stream([chunk(piece("o"), **{name: value}), chunk(piece("k"), **{name: [1, 3]})])


def test_lines_of_an_event_that_are_no_data_are_passed_over() -> None:
    stream = 'id: 7\nretry: 5\nevent: message\n: ping\ndata: {"choices": [{"index": 0, "delta": {"content": "x"}}]}\n'
    assert merge_stream(stream)["choices"][0]["message"]["content"] == "x"


def test_a_chunk_of_usage_alone() -> None:
    merged = merge_stream([chunk(piece("o")), {"usage": {"prompt_tokens": 1}}])
    assert merged["usage"] == {"prompt_tokens": 1}
    with pytest.raises(ValueError, match=r"chunk 1: .*choices"):
        merge_stream([chunk(piece("o")), {"object": "other"}])


@pytest.mark.parametrize("index", [True, "0", 0.0])
def test_an_index_of_the_wrong_type(index: Any) -> None:
    with pytest.raises(ValueError, match=f"chunk 0: choice index must be an integer, got {index!r}"):
        merge_stream([chunk(piece("o", index=index))])


def test_choices_are_sorted_by_index() -> None:
    merged = merge_stream([chunk(piece("b", index=1)), chunk(piece("a", index=0)), chunk(piece("b", index=1))])
    assert [(choice["index"], choice["message"]["content"]) for choice in merged["choices"]] == [(0, "a"), (1, "bb")]


def test_text_completions() -> None:
    def part(**choice: Any) -> dict[str, Any]:
        return {"object": "text_completion", "choices": [{"index": 0, **choice}]}

    assert merge_stream([part(text="o"), part(text="k")])["choices"][0]["text"] == "ok"
    merged = merge_stream([part(text=None, finish_reason="stop")])
    assert (merged["object"], merged["choices"][0]["text"]) == ("text_completion", "")
    assert merge_stream([part(finish_reason="stop")])["object"] == "text_completion"


def test_tool_calls_of_one_chunk_without_an_index_are_told_apart_by_place() -> None:
    def tool(name: str) -> dict[str, Any]:
        return {"id": name, "type": "function", "function": {"name": name, "arguments": "{}"}}

    choice = merged_choice(chunk(says(tool_calls=[tool("a"), tool("b")])))
    assert choice["message"]["tool_calls"] == [tool("a"), tool("b")]


def test_tool_calls_are_sorted_by_index_and_their_names_are_said_once() -> None:
    def part(index: int, name: str | None, arguments: str) -> dict[str, Any]:
        return chunk(says(tool_calls=[{"index": index, "function": {"name": name, "arguments": arguments}}]))

    choice = merged_choice(part(1, "g", "["), part(0, "f", "{"), part(1, "g", "]"), part(0, None, "}"))
    assert choice["message"]["tool_calls"] == [
        {"function": {"name": "f", "arguments": "{}"}},
        {"function": {"name": "g", "arguments": "[]"}},
    ]


@pytest.mark.parametrize(
    "carrier",
    [
        {"token_ids": [4]},
        {"provider_specific_fields": {"token_ids": [4]}},
        {"generation_token_ids": [4]},
        {"logprobs": {"content": [{"token": "token_id:4", "logprob": -0.5}]}},
        {"logprobs": numbered([4], [-0.5])},
        {"logprobs": {"tokens": ["token_id:4"], "token_logprobs": [-0.5]}},
    ],
    ids=["token_ids", "swept", "native", "words", "numbered", "lists"],
)
@pytest.mark.parametrize(
    "hole",
    [
        {"content": "x"},
        {"reasoning": "x"},
        {"refusal": "x"},
        {"function_call": {"name": "f", "arguments": ""}},
        {"tool_calls": [{"index": 0, "id": "a"}]},
    ],
    ids=lambda hole: next(iter(hole)),
)
def test_a_chunk_that_says_something_without_ids_is_a_hole(carrier: dict[str, Any], hole: dict[str, Any]) -> None:
    whole = chunk({**says(content="o"), **carrier})
    merge_stream([whole, chunk(says(content=None)), whole])
    with pytest.raises(ValueError, match="choice 0: chunk 1: generation_token_ids is missing"):
        merge_stream([whole, chunk(says(**hole)), whole])


def test_a_chunk_of_log_probs_without_ids_is_a_hole() -> None:
    whole = chunk({**says(content="o"), "token_ids": [4]})
    scored = chunk({**says(), "logprobs": {"content": [{"token": "x", "logprob": -0.5}]}})
    with pytest.raises(ValueError, match="mine choice 0: chunk 1: generation_token_ids is missing"):
        merge_stream([whole, scored], dialect="mine")
