"""All dialects: the given cases, and mutated twins."""

import copy
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.payloads import refused, tokens_of
from support.places import DATA, DOCS
from support.sound_payloads import SAMPLES, sound_payloads
from tokenrecords import ServedChoice, detect_dialect, merge_stream, read_response
from tokenrecords.engines.dialects import DIALECTS

CASES = [json.loads(line) for line in (DATA / "dialects.jsonl").read_text(encoding="utf-8").splitlines()]
FIELDS = ("index", "prompt_token_ids", "generation_token_ids", "generation_log_probs", "routed_experts")


def tokens(choices: list[ServedChoice]) -> list[dict[str, Any]]:
    return [{name: getattr(choice, name) for name in FIELDS} for choice in choices]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_given_case(case):
    if "error" in case:
        with pytest.raises(ValueError, match=r".") as caught:
            read_response(merge_stream(case["chunks"]) if "chunks" in case else case["payload"])
        assert case["error"] in str(caught.value)
        assert case["dialect"] in str(caught.value)
        return
    payload = merge_stream(case["chunks"]) if "chunks" in case else case["payload"]
    before = copy.deepcopy(payload)
    if "content" in case:
        assert [choice["message"]["content"] for choice in payload["choices"]] == case["content"]
    assert detect_dialect(payload) == case["dialect"]
    assert tokens(read_response(payload)) == case["choices"]
    assert tokens(read_response(payload, dialect=case["dialect"])) == case["choices"]
    assert payload == before


TWINS: dict[str, list[tuple[tuple[Any, ...], bool]]] = {
    "vllm-chat": [(("choices", 0, "token_ids"), True), (("choices", 0, "logprobs", "content"), False)],
    "vllm-completions": [
        (("choices", 0, "token_ids"), True),
        (("choices", 0, "logprobs", "tokens"), True),
        (("choices", 0, "logprobs", "token_logprobs"), False),
    ],
    "vllm-generate": [(("choices", 0, "token_ids"), True), (("choices", 0, "logprobs", "content"), False)],
    "sglang-generate": [
        ((0, "output_ids"), True),
        ((0, "meta_info", "output_token_logprobs"), False),
        ((0, "meta_info", "input_token_logprobs"), False),
    ],
    "sglang-chat": [
        (("choices", 0, "token_ids"), True),
        (("choices", 0, "meta_info", "output_token_logprobs"), False),
        (("choices", 0, "logprobs", "content"), False),
    ],
    "dynamo": [
        (("nvext", "engine_data", "completion_token_ids"), True),
        (("nvext", "engine_data", "completion_logprobs"), True),
        (("nvext", "engine_data", "prompt_token_ids"), False),
    ],
    "fireworks": [
        (("choices", 0, "raw_output", "completion_token_ids"), True),
        (("choices", 0, "raw_output", "completion_logprobs", "content"), False),
    ],
    "tgi": [(("details", "tokens"), False)],
    "litellm": [
        (("choices", 0, "provider_specific_fields", "token_ids"), True),
        (("choices", 0, "logprobs", "content"), False),
    ],
    "trl": [(("completion_ids", 0), False), (("logprobs", 0), False)],
    "chat": [
        (("choices", 0, "message", "prompt_token_ids"), True),
        (("choices", 0, "message", "generation_token_ids"), True),
        (("choices", 0, "message", "generation_log_probs"), True),
        (("choices", 0, "token_ids"), True),
        (("choices", 0, "logprobs", "content"), False),
        (("prompt_token_ids",), True),
    ],
    "responses": [
        (("output", 0, "generation_token_ids"), False),
        (("output", 0, "generation_log_probs"), False),
    ],
    "messages": [(("generation_token_ids",), False), (("generation_log_probs",), False)],
    "lmdeploy-chat": [(("choices", 0, "output_ids"), True), (("choices", 0, "output_token_logprobs"), False)],
    "lmdeploy-messages": [(("output_ids",), True), (("output_token_logprobs",), False)],
    "lmdeploy-generate": [((0, "output_ids"), True), ((0, "meta_info", "output_token_logprobs"), False)],
    "llama-cpp": [((0, "tokens"), True), ((0, "completion_probabilities"), False)],
    "llama-cpp-chat": [(("choices", 0, "logprobs", "content"), False)],
    "together-chat": [
        (("choices", 0, "logprobs", "token_ids"), False),
        (("choices", 0, "logprobs", "token_logprobs"), False),
    ],
    "tinker": [(("sequences", 0, "tokens"), False), (("sequences", 0, "logprobs"), False)],
    "vllm-engine": [(("outputs", 0, "token_ids"), True), (("outputs", 0, "logprobs"), False)],
    "flat": [(("generation_token_ids",), False), (("generation_log_probs",), False)],
}
ONE_CHOICE = ("dynamo", "tgi", "responses", "messages", "lmdeploy-messages", "flat")


COUNTS: dict[str, list[tuple[Any, ...]]] = {
    **{
        name: [("usage", "completion_tokens"), ("usage", "prompt_tokens")]
        for name in (
            *("vllm-chat", "vllm-completions", "sglang-chat", "dynamo", "litellm", "chat"),
            *("lmdeploy-chat", "llama-cpp-chat", "together-chat", "fireworks"),
        )
    },
    "lmdeploy-messages": [("usage", "output_tokens")],
    "lmdeploy-generate": [(0, "meta_info", "completion_tokens")],
    "llama-cpp": [(0, "tokens_predicted")],
    "sglang-generate": [(0, "meta_info", "completion_tokens"), (0, "meta_info", "prompt_tokens")],
    "tgi": [("details", "generated_tokens")],
}


def unshared(payload: Any) -> Any:
    """A copy in which no two places share a list, as deepcopy would keep it."""
    return json.loads(json.dumps(payload))


def at(payload: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        payload = payload[key]
    return payload


def check_mutated(payload: Any, expected: list[Any]) -> None:
    try:
        found = read_response(payload)
    except ValueError:
        return
    assert [tokens_of(choice) for choice in found] == expected


@pytest.mark.parametrize("dialect", sorted(TWINS))
@settings(max_examples=150, deadline=None)
@given(sample=SAMPLES, data=st.data())
def test_a_mutated_source_gives_equal_tokens_or_an_error(dialect, sample, data):
    payload = unshared(sound_payloads(*sample)[dialect])
    assert detect_dialect(payload) == dialect
    expected = [tokens_of(choice) for choice in read_response(payload)]
    several = dialect not in ONE_CHOICE
    assert expected == [(sample[0], *choice) for choice in (sample[1] if several else sample[1][:1])]
    path, twin = data.draw(st.sampled_from(TWINS[dialect]))
    values, holder = at(payload, path), at(payload, path[:-1])
    place = data.draw(st.integers(0, len(values) - 1))
    mutation = data.draw(st.sampled_from(["drop", "null", "hole", "shorten", "repeat", *(["change"] if twin else [])]))
    if mutation == "drop" and isinstance(holder, dict):
        del holder[path[-1]]
    elif mutation in ("drop", "null"):
        holder[path[-1]] = None
    elif mutation == "hole":
        values[place] = None
    elif mutation == "shorten":
        del values[place]
    elif mutation == "repeat":
        values.insert(place, values[place])
    elif isinstance(values[place], str):
        values[place] = "token_id:200001"
    else:
        values[place] = values[place] + 1
    check_mutated(payload, expected)


def right_counts(path: tuple[Any, ...], prompt: list[int], samples: list[Any]) -> list[int]:
    """What the count at this path may be: the choices of a payload may be those of several prompts."""
    if path == ("usage", "prompt_tokens"):
        return [len(prompt) * prompts for prompts in range(1, len(samples) + 1) if len(samples) % prompts == 0]
    if path[-1] == "prompt_tokens":
        return [len(prompt)]
    return [sum(len(ids) for ids, _ in (samples if path[0] == "usage" else samples[:1]))]


@pytest.mark.parametrize("dialect", sorted(COUNTS))
@given(sample=SAMPLES, data=st.data())
def test_a_wrong_count_is_an_error(dialect, sample, data):
    prompt, samples = sample
    samples = samples[:1] if dialect in ONE_CHOICE else samples
    payload = unshared(sound_payloads(prompt, samples)[dialect])
    expected = [tokens_of(choice) for choice in read_response(payload)]
    path = data.draw(st.sampled_from(COUNTS[dialect]))
    counted = data.draw(st.none() | st.integers(0, 20))
    at(payload, path[:-1])[path[-1]] = counted
    if counted is None or counted in right_counts(path, prompt, samples):
        assert [tokens_of(choice) for choice in read_response(payload)] == expected
    else:
        refused(payload, dialect)


@pytest.mark.parametrize("dialect", ["vllm-chat", "vllm-completions", "sglang-chat", "litellm", "chat"])
@given(sample=SAMPLES, data=st.data())
def test_a_choice_dropped_or_doubled(dialect, sample, data):
    payload = unshared(sound_payloads(*sample)[dialect])
    choices = payload["choices"]
    place = data.draw(st.integers(0, len(choices) - 1))
    if data.draw(st.booleans()):
        choices.insert(place, copy.deepcopy(choices[place]))
        refused(payload, f"{dialect} choice {place}: duplicate choice index {place}")
    else:
        del choices[place]
        # A payload that carries its ids on its choices alone carries none without them.
        if choices or dialect in ("vllm-chat", "chat"):
            refused(payload, dialect)


@pytest.mark.parametrize("dialect", sorted(TWINS))
@given(sample=SAMPLES)
def test_nothing_without_token_fields(dialect, sample):
    gone = {
        *(
            "prompt_token_ids",
            "generation_token_ids",
            "generation_log_probs",
            "routed_experts",
            "token_ids",
            "logprobs",
        ),
        *("output_ids", "output_token_logprobs", "input_token_logprobs", "engine_data", "prefill", "tokens"),
        *("prompt_ids", "completion_ids", "completion_probabilities", "raw_output"),
    }

    def without(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: without(held) for key, held in value.items() if key not in gone}
        return [without(held) for held in value] if isinstance(value, list) else value

    payload = without(sound_payloads(*sample)[dialect])
    assert read_response(payload) == []
    assert read_response(payload, dialect=dialect) == []


def test_every_dialect_has_a_property():
    with pytest.raises(ValueError, match=r"^dialect is 'none': one of .* is needed$") as caught:
        read_response({}, dialect="none")
    names = str(caught.value).removeprefix("dialect is 'none': one of ").removesuffix(" is needed")
    assert sorted(names.split(", ")) == sorted([*TWINS, "unknown"])


def test_every_dialect_has_its_heading_in_the_docs():
    text = (DOCS / "dialects.md").read_text(encoding="utf-8")
    headings = [name.strip() for line in text.splitlines() if line.startswith("## ") for name in line[3:].split(",")]
    names = {dialect.name for dialect in DIALECTS} - {"unknown"}
    assert sorted(set(headings) & names) == sorted(names)
    assert all(headings.count(name) == 1 for name in names)


@pytest.mark.parametrize("dialect", [dialect.name for dialect in DIALECTS if dialect.name != "unknown"])
def test_usage_is_compared_where_it_counts_one_call_alone(dialect):
    payload = sound_payloads([1, 7], [([41, 2], [-0.125, -0.5])])[dialect]
    usage = {"usage": {"completion_tokens": 99, "prompt_tokens": 2}}
    payload = [{**part, **usage} for part in payload] if isinstance(payload, list) else {**payload, **usage}
    compared = {name for name, paths in COUNTS.items() if ("usage", "completion_tokens") in paths} | {"vllm-generate"}
    if dialect in compared:
        refused(
            payload, f"{dialect} choice 0: 2 generation_token_ids, but the engine counted 99", prompt_token_ids=[1, 7]
        )
    else:
        assert len(read_response(payload, prompt_token_ids=[1, 7])) == 1
