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


@pytest.mark.parametrize(
    "name",
    [
        *("token_ids", "output_ids", "gen_tokens", "generation_token_ids", "output_token_logprobs"),
        *("generation_log_probs", "generation_loss_mask", "sampling_mask"),
    ],
)
def test_lists_are_joined_wherever_they_stand(name: str) -> None:
    def part(value: Any, k: int) -> dict[str, Any]:
        holders = {"delta": {"content": "x", name: [value]}, "provider_specific_fields": {name: [value]}}
        held = {"index": 0, name: [value], **holders, "finish_reason": None}
        return chunk(held, **{name: [value] if k else None})

    choice = merged_choice(*(part(value, k) for k, value in enumerate((1, 0))))
    swept = choice["provider_specific_fields"]
    assert choice[name] == choice["message"][name] == swept[name] == [1, 0]


@pytest.mark.parametrize("name", ["prompt_token_ids", "routed_experts", "engine_data", "indexer_topk"])
@pytest.mark.parametrize("holder", ["delta", "nvext", "meta_info", "sglext", "sgl_ext", "provider_specific_fields"])
def test_what_is_said_once_is_said_once_in_every_object(holder: str, name: str) -> None:
    def part(value: Any) -> dict[str, Any]:
        return chunk({"index": 0, "delta": {"content": "x"}, holder: {"content": "x", name: value}})

    value = {"a": [1]} if name == "engine_data" else [1]
    found = merged_choice(part(value), part(value))["message" if holder == "delta" else holder]
    assert found[name] == value
    with pytest.raises(ValueError, match=f"chunk 1: a second {name} disagrees with the first"):
        merge_stream([part(value), part([2])])


@pytest.mark.parametrize(
    ("name", "kind"), [("input_ids", "sglext"), ("output_ids", "sgl_ext"), ("input_ids", "sgl_ext")]
)
def test_ids_of_an_extension_are_said_once(name: str, kind: str) -> None:
    parts = [chunk({"index": 0, "delta": {"content": "x"}, kind: {name: ids}}) for ids in ([1], [2])]
    assert merged_choice(parts[0], parts[0])[kind][name] == [1]
    with pytest.raises(ValueError, match=f"chunk 1: a second {name} disagrees with the first"):
        merge_stream(parts)


@pytest.mark.parametrize("name", ["id", "request_id", "object", "created", "model"])
def test_of_a_head_the_first_value_stays(name: str) -> None:
    parts = [chunk(says(content="x"), **{name: value}) for value in (None, "a", "b")]
    parts = [{**part, "object": None} for part in parts] if name == "object" else parts
    found = merge_stream(parts, check_ids=False)
    assert found[name] == ("chat.completion" if name == "object" else "a")


def test_the_first_role_stays() -> None:
    assert (
        merged_choice(chunk(says(role="tool")), chunk(says(role="assistant", content="x")))["message"]["role"] == "tool"
    )


def test_an_object_after_a_null_is_an_object() -> None:
    for name, value in (("nvext", {"a": 1}), ("logprobs", {"content": [1]}), ("sglext", {"a": 1})):
        assert merged_choice(chunk({**says(content="x"), name: None}), chunk({**says(), name: value}))[name] == value


def test_tool_calls_that_are_null_are_none() -> None:
    assert merged_choice(chunk(says(tool_calls=None, content="x")))["message"]["tool_calls"] is None
    found = merged_choice(
        chunk(says(tool_calls=None)), chunk(says(tool_calls=[{"id": "a", "function": {"name": "f"}}]))
    )
    assert found["message"]["tool_calls"] == [{"id": "a", "function": {"name": "f"}}]
