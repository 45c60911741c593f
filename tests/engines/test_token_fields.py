"""The functions over served responses: what carries the tokens, the items, and the items without tokens."""

import copy
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.factories import IDS
from tokenrecords import TOKEN_FIELDS, extract_token_fields, response_to_output_items, strip_token_fields

FOUR = {**IDS, "routed_experts": None}
FUNCTIONS = [extract_token_fields, response_to_output_items]


def chat(*messages):
    return {"choices": [{"index": place, "message": message} for place, message in enumerate(messages)]}


def body(*blocks, **fields):
    return {"type": "message", "role": "assistant", "content": list(blocks), **fields}


def text(value):
    return {"type": "text", "text": value}


SHAPES = {
    "output": lambda carrier: {"output": [carrier]},
    "output among others": lambda carrier: {"output": [{"type": "reasoning"}, None, carrier, {"type": "message"}]},
    "output as a tuple": lambda carrier: {"output": (carrier,)},
    "choices": chat,
    "a later choice": lambda carrier: chat({"content": "a"}, carrier),
    "a body": lambda carrier: body(text("hi"), **carrier),
    "an empty body": lambda carrier: body(**carrier),
    "choices beside an output without tokens": lambda carrier: {"output": [{"type": "message"}], **chat(carrier)},
    "choices beside a body without tokens": lambda carrier: {**body(text("hi")), **chat(carrier)},
    "a body beside an output without tokens": lambda carrier: {"output": [{"a": 1}], **body(text("hi"), **carrier)},
    "output beside choices without tokens": lambda carrier: {"output": [carrier], **chat({"content": "a"})},
    "output beside a body without tokens": lambda carrier: {"output": [carrier], **body(text("a"))},
    "beside an output of no items": lambda carrier: {"output": [None], **chat(carrier)},
}


@pytest.mark.parametrize("shape", SHAPES)
def test_the_four_fields_are_the_same_objects(shape):
    for routes in ({}, {"routed_experts": None}, {"routed_experts": [[[1]]]}):
        carrier = {**IDS, **routes, "type": "message", "role": "assistant"}
        payload = SHAPES[shape](carrier)
        before = copy.deepcopy(payload)
        found = extract_token_fields(payload)
        assert list(found) == list(TOKEN_FIELDS)
        for name in TOKEN_FIELDS:
            assert found[name] is carrier.get(name)
        assert payload == before


@pytest.mark.parametrize("value", [[], (), 0, "", False, np.array([]), np.array([1, 2]), {}])
def test_what_is_not_none_is_there(value):
    carrier = dict.fromkeys(IDS, value)
    for shape in SHAPES.values():
        found = extract_token_fields(shape({**carrier, "type": "message", "role": "assistant"}))
        assert all(found[name] is value for name in IDS)


NOTHING = [
    {},
    {"output": None, "choices": None},
    {"output": [], "choices": []},
    {"output": [{"type": "message"}, None, 1, "x", [IDS]]},
    {"output": [{"routed_experts": [1]}]},
    {"output": [dict.fromkeys(IDS)]},
    {"output": IDS},
    {"output": "text"},
    {"choices": [None, {}, {"message": None}, {"message": "x"}, {"message": [IDS]}, "x", 5, []]},
    {"choices": [{"message": {"routed_experts": "x"}}]},
    {"choices": [{"delta": IDS}]},
    {"choices": [IDS]},
    {"message": IDS},
    IDS,
    {"type": "message", "role": "user", "content": [], **IDS},
    {"type": "other", "role": "assistant", "content": [], **IDS},
    {"output": [{"content": [IDS]}]},
]


@pytest.mark.parametrize("payload", NOTHING)
def test_no_carrier(payload):
    assert extract_token_fields(payload) is None


PARTS = [(a,) for a in IDS] + [(a, b) for a in IDS for b in IDS if a < b]


@pytest.mark.parametrize("present", PARTS)
@pytest.mark.parametrize("absent", [{}, None])
def test_a_part_of_the_fields(present, absent):
    missing = [name for name in IDS if name not in present]
    carrier = {name: IDS[name] for name in present} | ({} if absent == {} else dict.fromkeys(missing))
    for shape in (*SHAPES.values(), lambda c: {"output": [{**c, "routed_experts": 1}]}):
        with pytest.raises(ValueError, match=f"^partial token metadata is missing: {', '.join(missing)}$"):
            extract_token_fields(shape({**carrier, "type": "message", "role": "assistant"}))
    empty = {name: [] for name in present}
    with pytest.raises(ValueError, match=f"^partial token metadata is missing: {', '.join(missing)}$"):
        extract_token_fields(chat(empty))


@pytest.mark.parametrize(
    "payload",
    [
        {"output": [IDS, IDS]},
        {"output": [IDS, {"type": "x"}, {"prompt_token_ids": [1]}]},
        {"output": [IDS, {"generation_token_ids": []}]},
        chat(IDS, IDS),
        chat(IDS, IDS, IDS),
        {"output": [IDS], **chat(IDS)},
        body(text("a"), **IDS, output=[IDS]),
        body(text("a"), **IDS, **chat(IDS)),
    ],
)
def test_several_carriers(payload):
    with pytest.raises(ValueError, match="multiple response items"):
        extract_token_fields(payload)


def test_the_fields_that_several_carry_are_named():
    message = "multiple response items carry token fields: {} have {}"
    for payload, count, names in (
        (chat(IDS, IDS), 2, "prompt_token_ids, generation_token_ids, generation_log_probs"),
        (chat(IDS, {"prompt_token_ids": [1]}), 2, "prompt_token_ids"),
        (
            chat(IDS, IDS, {"generation_log_probs": []}),
            3,
            "prompt_token_ids, generation_token_ids, generation_log_probs",
        ),
    ):
        with pytest.raises(ValueError, match=f"^{message.format(count, names)}$"):
            extract_token_fields(payload)


@pytest.mark.parametrize("first", PARTS)
def test_fields_that_are_split(first):
    a = {name: IDS[name] for name in first}
    b = {name: IDS[name] for name in IDS if name not in first}
    for payload in ({"output": [a, b]}, chat(a, b), {"output": [a], **chat(b)}):
        with pytest.raises(ValueError, match="split over multiple response items") as caught:
            extract_token_fields(payload)
        assert "2" in str(caught.value)


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("payload", [None, 5, "x", [], [IDS]])
def test_only_dicts(function, payload):
    with pytest.raises((AttributeError, TypeError)):
        function(payload)


@pytest.mark.parametrize("payload", [{"output": 5}, {"output": True}, {"choices": 5}])
def test_sources_that_are_no_lists(payload):
    with pytest.raises(TypeError):
        extract_token_fields(payload)


def test_output_gives_its_dicts():
    items = [{"type": "reasoning"}, {"a": 1}, {}]
    found = response_to_output_items({"output": [items[0], None, 1, "x", [1], *items[1:]]})
    assert len(found) == 3
    assert all(mine is theirs for mine, theirs in zip(found, items, strict=True))
    assert response_to_output_items({"output": tuple(items)}) == items
    assert response_to_output_items({"output": [None]}) == []


def test_output_comes_first():
    output = {"output": [{"type": "message"}]}
    assert response_to_output_items({**output, **chat({"content": "a"})}) == [{"type": "message"}]
    assert response_to_output_items({**output, **body(text("a"))}) == [{"type": "message"}]
    assert response_to_output_items({"output": [None], **chat({"content": "a"})}) == []


@pytest.mark.parametrize("output", [[], (), None, "", "text", {}, {"a": 1}, 5, True])
def test_what_is_no_list_of_items_is_passed_over(output):
    message = {"type": "message", "role": "assistant", "content": "a"}
    assert response_to_output_items({"output": output, **chat({"content": "a"})}) == [message]
    assert response_to_output_items({"output": output, **body(text("a"))}) == [body(text("a"))]
    assert response_to_output_items({"output": output}) == []


def test_choices_give_copies_of_their_messages():
    first, second = {"content": ["a"], "x": 1}, {"role": "tool", "type": "other", "content": None}
    found = response_to_output_items(chat(first, second))
    assert found == [
        {"content": ["a"], "x": 1, "type": "message", "role": "assistant"},
        {"role": "tool", "type": "other", "content": None},
    ]
    assert list(found[0]) == ["content", "x", "type", "role"]
    assert found[0]["content"] is first["content"]
    assert found[1] is not second
    assert first == {"content": ["a"], "x": 1}


def test_what_is_absent_is_added_and_nothing_else():
    assert response_to_output_items(chat({"type": None, "role": None})) == [{"type": None, "role": None}]
    assert response_to_output_items(chat({"role": "user"})) == [{"role": "user", "type": "message"}]
    assert response_to_output_items(chat({"type": "x"})) == [{"type": "x", "role": "assistant"}]


def test_every_choice_counts():
    messages = [{"content": str(place)} for place in range(5)]
    payload = {"choices": [{"index": 9 - place, "message": message} for place, message in enumerate(messages)]}
    assert [item["content"] for item in response_to_output_items(payload)] == ["0", "1", "2", "3", "4"]
    assert response_to_output_items({"choices": tuple(payload["choices"])}) == response_to_output_items(payload)


@pytest.mark.parametrize("choice", [None, {}, {"message": None}, {"message": {}}, 0, {"message": []}])
def test_an_empty_choice_is_an_empty_message(choice):
    assert response_to_output_items({"choices": [choice]}) == [{"type": "message", "role": "assistant"}]


@pytest.mark.parametrize("choice", ["x", 5, [1], {"message": "x"}, {"message": 5}, {"message": [1]}])
def test_what_is_no_choice_is_passed_over(choice):
    found = response_to_output_items({"choices": [choice, {"message": {"content": "a"}}]})
    assert found == [{"content": "a", "type": "message", "role": "assistant"}]


@pytest.mark.parametrize("choice", [{"delta": {"content": "x"}}, {"delta": {}}, {"message": None, "delta": {"a": 1}}])
def test_a_chunk_of_a_stream(choice):
    for place in (0, 1):
        choices = [{"message": {"content": "a"}}] * place + [choice]
        with pytest.raises(ValueError, match=rf"choices\[{place}\]\.delta .*merge_stream"):
            response_to_output_items({"choices": choices})


def test_a_message_beside_an_empty_delta():
    assert response_to_output_items({"choices": [{"message": {"a": 1}, "delta": {"b": 1}}]})[0]["a"] == 1
    assert response_to_output_items({"choices": [{"message": {"a": 1}, "delta": None}]})[0]["a"] == 1


@pytest.mark.parametrize("payload", [{}, {"choices": None}, {"choices": []}, {"output": None}, {"id": "x"}])
def test_nothing_there(payload):
    assert response_to_output_items(payload) == []


def test_choices_that_are_no_list():
    with pytest.raises(TypeError):
        response_to_output_items({"choices": 5})


# Anthropic Messages


def reasoning(value):
    return {"type": "reasoning", "summary": [{"type": "summary_text", "text": value}]}


BODIES = [
    ([], []),
    ([text("hi")], [body(text("hi"))]),
    ([text("a"), text("b")], [body(text("a"), text("b"))]),
    ([{"type": "thinking", "thinking": "t", "signature": "s"}], [reasoning("t")]),
    ([{"type": "thinking", "thinking": ""}], [reasoning("")]),
    ([{"type": "thinking"}], [{"type": "reasoning", "summary": []}]),
    ([{"type": "thinking", "thinking": None}], [{"type": "reasoning", "summary": []}]),
    (
        [{"type": "redacted_thinking", "data": "d", "x": 1}],
        [{"type": "reasoning", "summary": [], "encrypted_content": "d"}],
    ),
    ([{"type": "redacted_thinking", "data": ""}], [{"type": "reasoning", "summary": [], "encrypted_content": ""}]),
    ([{"type": "redacted_thinking"}], [{"type": "reasoning", "summary": []}]),
    ([{"type": "redacted_thinking", "data": None}], [{"type": "reasoning", "summary": []}]),
    (
        [text("a"), {"type": "thinking", "thinking": "t"}, text("b")],
        [reasoning("t"), body(text("a"), text("b"))],
    ),
    (
        [
            {"type": "thinking", "thinking": "1"}, {"type": "redacted_thinking", "data": "2"},
            {"type": "thinking", "thinking": "3"}, {"type": "tool_use", "id": "x"}, text("a"),
        ],
        [
            reasoning("1"), {"type": "reasoning", "summary": [], "encrypted_content": "2"}, reasoning("3"),
            body({"type": "tool_use", "id": "x"}, text("a")),
        ],
    ),
    ([{"no": "type"}, {"type": ["x"]}, {"type": {}}], [body({"no": "type"}, {"type": ["x"]}, {"type": {}})]),
    (["text", None, 5], [body("text", None, 5)]),
]  # fmt: skip


@pytest.mark.parametrize(("blocks", "items"), BODIES)
def test_a_messages_body(blocks, items):
    for payload in (body(*blocks, id="i", model="m"), {**body(), "content": tuple(blocks)}):
        before = copy.deepcopy(payload)
        assert response_to_output_items(payload) == items
        assert payload == before
    assert response_to_output_items({**body(*blocks), "output": [], "choices": [{"message": {"a": 1}}]}) == items


def test_the_blocks_are_the_same_objects():
    block = text("a")
    assert response_to_output_items(body(block))[0]["content"][0] is block


@pytest.mark.parametrize("content", [None, "", [], (), {}])
def test_a_body_without_content(content):
    assert response_to_output_items({**body(), "content": content}) == []
    assert response_to_output_items({"type": "message", "role": "assistant"}) == []


def test_content_that_is_no_list():
    assert response_to_output_items({**body(), "content": "plain"}) == [body(text("plain"))]
    assert response_to_output_items({**body(), "content": text("a")}) == [body(text("a"))]
    with pytest.raises(TypeError):
        response_to_output_items({**body(), "content": 5})


@pytest.mark.parametrize("other", [{"role": "user"}, {"type": "completion"}, {"role": None}, {"type": None}])
def test_what_is_no_body(other):
    assert response_to_output_items({**body(text("hi")), **other}) == []
    assert response_to_output_items({**body(text("hi")), **other, **chat({"a": 1})})[0]["a"] == 1


@pytest.mark.parametrize("blocks", [[], [text("hi")], [{"type": "thinking", "thinking": "t"}]])
def test_a_body_with_tokens_on_top(blocks):
    payload = body(*blocks, **IDS, id="i")
    before = copy.deepcopy(payload)
    *first, message = response_to_output_items(payload)
    assert first == ([reasoning("t")] if blocks and blocks[0]["type"] == "thinking" else [])
    assert message == {**body(*(block for block in blocks if block["type"] == "text")), **FOUR}
    assert all(message[name] is payload[name] for name in IDS)
    assert payload == before


def test_routes_alone_carry_nothing():
    assert response_to_output_items(body(text("hi"), routed_experts="x")) == [body(text("hi"))]


def test_nothing_to_strip():
    assert strip_token_fields([]) == ([], None)
    assert strip_token_fields(()) == ([], None)
    assert strip_token_fields([{}, {"a": 1}]) == ([{}, {"a": 1}], None)


@pytest.mark.parametrize("place", range(4))
@pytest.mark.parametrize("value", [[3], [], (), 0, "", np.array([]), np.array([1, 2]), False])
def test_the_index_is_the_carriers(place, value):
    items = [{"type": str(n), "prompt_token_ids": [1], "routed_experts": "x"} for n in range(4)]
    items[place]["generation_token_ids"] = value
    stripped, index = strip_token_fields(items)
    assert index == place
    assert type(index) is int
    assert stripped == [{"type": str(n)} for n in range(4)]


def test_every_token_field_is_stripped_and_nothing_else():
    item = {"a": 1, **FOUR, "token_ids": [1], "logprobs": {}, "b": 2}
    assert strip_token_fields([item]) == ([{"a": 1, "token_ids": [1], "logprobs": {}, "b": 2}], 0)
    assert list(strip_token_fields([item])[0][0]) == ["a", "token_ids", "logprobs", "b"]
    for name in TOKEN_FIELDS:
        for value in ([1], None):
            assert strip_token_fields([{name: value, "x": 1}])[0] == [{"x": 1}]


def test_only_generated_ids_make_a_carrier():
    items = [{"prompt_token_ids": [1]}, {"generation_log_probs": [1]}, {"generation_token_ids": None}, {**FOUR}]
    assert strip_token_fields(items)[1] == 3
    assert strip_token_fields(items[:3]) == ([{}, {}, {}], None)


@pytest.mark.parametrize(("first", "second"), [([3], [3]), ([], []), ([3], []), ([], [3])])
def test_two_carriers(first, second):
    items = [{}, {"generation_token_ids": first}, {}, {"generation_token_ids": second}]
    with pytest.raises(ValueError, match=r"multiple output items.*1 and 3"):
        strip_token_fields(items)


def test_the_items_stay_and_their_content_is_shared():
    item = {"content": [1], "nested": {"generation_token_ids": [1]}, **IDS}
    items, before = [item], copy.deepcopy(item)
    (stripped,), _ = strip_token_fields(items)
    assert item == before
    assert items[0] is item
    assert stripped is not item
    assert stripped["content"] is item["content"]
    assert stripped["nested"] == {"generation_token_ids": [1]}
    plain = {"a": 1}
    assert strip_token_fields([plain])[0][0] is not plain


@pytest.mark.parametrize("items", [None, 5, [1], [None], ["x"]])
def test_only_lists_of_dicts(items):
    with pytest.raises((AttributeError, TypeError)):
        strip_token_fields(items)


@pytest.mark.parametrize("shape", SHAPES)
def test_the_three_agree(shape):
    carrier = {**IDS, "type": "message", "role": "assistant", "mark": 1}
    agree(SHAPES[shape](carrier))


def agree(payload):
    fields = extract_token_fields(payload)
    items = response_to_output_items(payload)
    stripped, index = strip_token_fields(items)
    assert len(stripped) == len(items)
    assert not any(name in item for item in stripped for name in TOKEN_FIELDS)
    if fields is not None:
        for name in TOKEN_FIELDS:
            assert items[index].get(name) is fields[name]
    return fields, items, index


carried = st.fixed_dictionaries(
    {}, optional={name: st.sampled_from([None, [], [1], (1, 2)]) for name in TOKEN_FIELDS}
) | st.just(IDS)
item = st.builds(
    lambda tokens, rest: {**rest, **tokens}, carried | st.just({}), st.dictionaries(st.just("x"), st.integers())
)
outputs = st.none() | st.lists(item | st.none() | st.just("x"), max_size=3) | st.lists(item, max_size=2).map(tuple)
messages = st.none() | item | st.just("x")
choices = st.none() | st.lists(st.none() | st.just("x") | st.fixed_dictionaries({"message": messages}), max_size=3)
blocks = st.sampled_from(
    [text("a"), {"type": "thinking", "thinking": "t"}, {"type": "redacted_thinking", "data": "d"}, "x"]
)
bodies = st.just({}) | st.builds(
    lambda content, tokens: body(*content, **tokens), st.lists(blocks, max_size=3), carried
)
payloads = st.builds(
    lambda top, output, choices_: {**top, "output": output, "choices": choices_}, bodies, outputs, choices
)


@given(payloads)
def test_the_three_agree_on_any_payload(payload):
    before = copy.deepcopy(payload)
    try:
        fields, items, _ = agree(payload)
    except ValueError:
        with pytest.raises(ValueError, match=r"multiple|partial"):
            extract_token_fields(payload)
    else:
        if fields is None:
            assert items == by_precedence(payload)
    assert payload == before


def by_precedence(payload):
    """The items of a payload without tokens."""
    if payload.get("output"):
        return [entry for entry in payload["output"] if isinstance(entry, dict)]
    if payload.get("type") == "message":
        return response_to_output_items(body(*payload["content"]))
    entries = [(choice or {}) for choice in payload["choices"] or [] if isinstance(choice or {}, dict)]
    found = [entry.get("message") or {} for entry in entries]
    return [{"type": "message", "role": "assistant", **message} for message in found if isinstance(message, dict)]


@pytest.mark.parametrize("payload", [{"output": [{"x": 1}], "choices": 5}, {**body(), "content": "x", "choices": 5}])
def test_what_is_not_looked_at_does_not_matter(payload: Any) -> None:
    plain = {name: value for name, value in payload.items() if name not in IDS}
    assert len(response_to_output_items(plain)) == 1
