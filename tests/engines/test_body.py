"""Bodies as bytes: what is read of them is what the parsed payload gives, in values and in errors."""

from __future__ import annotations

import dataclasses
import json
import random
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic_core import from_json
from support.bodies import damaged, large_payload, spelled, with_fault
from support.payloads import log_prob_entry, refused, sglang_sample, vllm_chat, vllm_choice
from support.places import DATA
from support.sound_payloads import sound_payloads
from tokenrecords import detect_dialect, entries_from_response, read_response
from tokenrecords.engines import response
from tokenrecords.engines.body import Entries, Served, Spliced, natively, parsed, spliced
from tokenrecords.tokens.names import ARRAY_FIELDS

if TYPE_CHECKING:
    from collections.abc import Callable

CASES = [json.loads(line) for line in (DATA / "dialects.jsonl").read_text(encoding="utf-8").splitlines()]
DIALECTS = sorted(sound_payloads([1], [([2], [-1.0])]))


def outcome(read: Callable[[], Any]) -> Any:
    """What a call gives, or how it fails."""
    try:
        return read()
    except Exception as error:  # noqa: BLE001 - equal, whatever it is
        return type(error), str(error)


def served(payload: Any, **options: Any) -> Any:
    """The choices as dicts: ids and log-probs as lists, all else as it is held, with its types."""
    found = [dataclasses.asdict(choice) for choice in read_response(payload, **options)]
    return [
        {
            **{name: repr(list(map(float, choice.pop(name)))) for name in ARRAY_FIELDS},
            "others": repr(choice),
        }
        for choice in found
    ]


def recorded(payload: Any) -> Any:
    entries = entries_from_response(payload, rollout_id="r", model_call_id="c", created_at=1.0)
    return [repr(entry.as_lists().model_dump()) for entry in entries]


def check_equal(body: bytes, **options: Any) -> Any:
    """Read the body both ways; gives what both say."""
    want = outcome(lambda: served(parsed(body), **options))
    assert outcome(lambda: served(body, **options)) == want, body
    return want


def is_read_natively(body: bytes) -> bool:
    native = spliced(body)
    assert native is not None
    response.read_payload(native, dialect=None, check=True, prompts=None)
    return True


@pytest.mark.parametrize("case", [case for case in CASES if "payload" in case], ids=lambda case: case["name"])
def test_given_case(case):
    body = json.dumps(case["payload"]).encode()
    found = check_equal(body)
    assert isinstance(found, tuple) == ("error" in case)
    assert detect_dialect(body) == case["dialect"]


# The log-probs stand in objects of candidates.
PARSED = ("vllm-engine",)


def is_of_a_token(value: Any) -> bool:
    if isinstance(value, list):
        return len(value) in (2, 3) and isinstance(value[0], float | None) and isinstance(value[1], int)
    return "logprob" in value if isinstance(value, dict) else not isinstance(value, bool)


def enlarged(value: Any, times: int) -> Any:
    """A payload of that many times the tokens."""
    if isinstance(value, dict):
        counts = ("completion_tokens", "prompt_tokens", "generated_tokens", "output_tokens")
        return {
            key: held * times if key in counts and isinstance(held, int) else enlarged(held, times)
            for key, held in value.items()
        }
    if isinstance(value, list):
        large = [enlarged(held, times) for held in value]
        return large * times if all(map(is_of_a_token, value)) else large
    return value


@pytest.mark.parametrize("case", [case for case in CASES if "payload" in case], ids=lambda case: case["name"])
def test_given_case_of_many_tokens(case):
    found = check_equal(json.dumps(enlarged(case["payload"], 20)).encode())
    assert isinstance(found, tuple) == ("error" in case or case["dialect"] in PARSED)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_every_dialect_is_read_natively(dialect):
    chance = random.Random(1)
    payload = large_payload(dialect, chance)
    body = json.dumps(payload).encode()
    assert detect_dialect(body) == dialect
    assert not isinstance(check_equal(body), tuple)
    assert recorded(body) == recorded(payload)
    if dialect in PARSED:
        return
    assert is_read_natively(body)
    for choice in read_response(body):
        for name in ARRAY_FIELDS:
            held = getattr(choice, name)
            assert isinstance(held, np.ndarray)
            assert held.dtype == (np.float64 if name == "generation_log_probs" else np.int32)


@pytest.mark.parametrize("dialect", DIALECTS)
@settings(max_examples=60, deadline=None)
@given(chance=st.randoms(use_true_random=True))
def test_bodies_with_faults_give_equal_results_or_equal_errors(dialect, chance):
    payload = large_payload(dialect, chance)
    for _ in range(chance.randint(0, 2)):
        payload = with_fault(payload, chance)
    body = spelled(payload, chance)
    if chance.random() < 0.2:
        body = damaged(body, chance)
    check_equal(body)
    check_equal(body, dialect=dialect)
    assert outcome(lambda: detect_dialect(body)) == outcome(lambda: detect_dialect(parsed(body)))
    assert outcome(lambda: recorded(body)) == outcome(lambda: recorded(parsed(body)))


IDS = list(range(100, 120))
LOG_PROBS = [-i / 8 for i in range(20)]
CHOICE = vllm_choice(ids=IDS, log_probs=LOG_PROBS)
CHAT = vllm_chat(CHOICE, prompt_token_ids=list(range(20)))
BODY = json.dumps(CHAT).encode()


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_bytes_of_any_kind(kind):
    [choice] = read_response(kind(BODY))
    assert choice.generation_token_ids.tolist() == IDS
    assert choice.generation_log_probs.tolist() == LOG_PROBS
    assert choice.prompt_token_ids.tolist() == list(range(20))
    assert detect_dialect(kind(BODY)) == "vllm-chat"


def test_text_is_no_payload():
    with pytest.raises(TypeError, match=r"^payload is str: a mapping or a pydantic model is needed$"):
        read_response(BODY.decode())


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"", "the body is not JSON: EOF while parsing a value at line 1 column 0"),
        (BODY[:-1], f"the body is not JSON: EOF while parsing an object at line 1 column {len(BODY) - 1}"),
        (b"\xef\xbb\xbf" + BODY, "the body is not JSON: expected value at line 1 column 1"),
        (BODY.replace(b'"ok"', b'"\xff"', 1), None),
    ],
)
def test_what_is_not_json_is_an_error(body, message):
    with pytest.raises(ValueError, match=r"^the body is not JSON: ") as caught:
        read_response(body)
    assert message is None or str(caught.value) == message


def test_what_the_model_said_stays_as_it_was():
    said = {"token_ids": [7] * 20, "logprobs": [{"logprob": -0.5}] * 20}
    message = {"role": "assistant", "content": [{"type": "x", "more": said}]}
    payload = vllm_chat(vllm_choice(ids=IDS, log_probs=LOG_PROBS, message=message))
    body = json.dumps(payload).encode()
    found = spliced(body).payload["choices"][0]["message"]["content"][0]["more"]
    assert [type(held) for held in found.values()] == [np.ndarray, Entries]
    [choice] = read_response(body)
    assert choice.output_items[0]["content"] == message["content"]
    assert choice.generation_token_ids == IDS


def test_extra_fields_stay_as_they_were():
    payload = vllm_chat(vllm_choice(ids=IDS, log_probs=LOG_PROBS, ng_token_ids=[7] * 20))
    [choice] = read_response(json.dumps(payload).encode())
    assert choice.extras == {"ng_token_ids": [7] * 20}


def test_of_two_equal_keys_the_last_one_counts():
    odd = b'{"token_ids":[' + b",".join([b"1"] * 20) + b"],"
    for key in (b'"choices": ', b'"token_ids": '):
        body = BODY.replace(key, key + b"0, " + key, 1)
        assert check_equal(body) == check_equal(BODY)
    body = BODY.replace(b'{"index"', odd + b'"index"', 1)
    assert spliced(body) is None
    assert check_equal(body) == check_equal(BODY)


def test_a_number_that_looks_like_a_mark_is_a_number():
    payload = {**CHAT, "created": 4611686018400000000}
    assert spliced(json.dumps(payload).encode()) is None
    assert check_equal(json.dumps(payload).encode()) == check_equal(BODY)


def test_a_chat_without_ids_carries_none():
    entries = [log_prob_entry("x", -0.5) for _ in range(20)]
    payload = {
        "object": "chat.completion",
        "choices": [{"message": {"content": "x"}, "logprobs": {"content": entries}}],
    }
    assert read_response(json.dumps(payload).encode()) == []


def test_ids_that_nobody_reads_are_an_error():
    choice = {"index": 0, "message": {"content": "x"}, "newext": {"sampled_ids": IDS}}
    body = json.dumps({"object": "chat.completion", "choices": [choice]}).encode()
    message = (
        r"^chat: no token ids were found, and choices\[0\]\.newext\.sampled_ids is not read: "
        r"its integers may be token ids$"
    )
    with pytest.raises(ValueError, match=message):
        read_response(body)


@pytest.mark.parametrize("place", [0, 1, 16, 19])
def test_arrays_that_disagree_are_an_error(place):
    other = [*IDS[:place], 7, *IDS[place + 1 :]]
    message = rf"^vllm-chat choice 0: token_ids and logprobs\.content\[\]\.token disagree at position {place}$"
    for payload in (
        json.dumps(vllm_chat({**CHOICE, "token_ids": other}, prompt_token_ids=IDS)).encode(),
        vllm_chat({**CHOICE, "token_ids": np.array(other)}, prompt_token_ids=np.array(IDS)),
    ):
        with pytest.raises(ValueError, match=message):
            read_response(payload)


@pytest.mark.parametrize("convert", [list, np.array])
@pytest.mark.parametrize("ids", [IDS, None])
def test_numbers_in_place_of_entries_are_neither_ids_nor_log_probs(ids, convert):
    counts = {"prompt_tokens": 20, "completion_tokens": 20}
    payload = sglang_sample(output_token_logprobs=IDS, input_token_logprobs=None, prompt_token_ids=IDS, **counts)
    payload["output_ids"] = ids
    refused(json.dumps(payload).encode(), "sglang-generate choice 0: generation_", "[0] is null: ")
    payload["meta_info"]["output_token_logprobs"] = convert(IDS)
    refused(payload, "sglang-generate choice 0: generation_", "[0] is null: ")


def test_the_prompt_of_the_caller():
    payload = {name: value for name, value in CHAT.items() if name != "prompt_token_ids"}
    body = json.dumps(payload).encode()
    prompt = np.arange(20, dtype=np.int32)
    [choice] = read_response(body, prompt_token_ids=prompt)
    assert choice.prompt_token_ids is prompt
    assert isinstance(choice.generation_token_ids, np.ndarray)


def test_the_parsed_payload_is_read_where_arrays_are_left():
    native = spliced(json.dumps({**CHAT, "stop_token_ids": [7] * 20}).encode())
    with pytest.raises(ValueError, match=r"^not all arrays of the payload were read$"):
        response.read_payload(native, dialect=None, check=True, prompts=None)
    [choice] = read_response(json.dumps({**CHAT, "stop_token_ids": [7] * 20}).encode())
    assert choice.generation_token_ids == IDS


def test_entries_are_columns():
    numbered = Entries({"logprob": np.array([-0.5, -1.0]), "id": np.array([7, 8], np.int32)})
    assert len(numbered) == 2
    assert numbered[0] == {"logprob": -0.5, "id": 7}
    assert numbered[-1] == {"logprob": -1.0, "id": 8}
    assert numbered.column("id").tolist() == [7, 8]
    assert (numbered.holds("id"), numbered.holds("token")) == (True, False)
    with pytest.raises(LookupError):
        numbered.column("token_id")
    rows = Entries((None, np.array([7, 8], np.int32), None))
    assert len(rows) == 2
    assert rows[1] == [None, 8, None]
    assert not rows.holds("id")
    with pytest.raises(LookupError, match=r"^'the column 0 is not held'$|^the column 0 is not held$"):
        rows.column(0)


def test_entries_whose_words_are_ids():
    native = spliced(BODY)
    assert isinstance(native, Spliced)
    entries = native.payload["choices"][0]["logprobs"]["content"]
    assert entries[-1] == {"logprob": LOG_PROBS[-1], "token": "token_id:119"}
    assert entries.column("token").ids.tolist() == IDS
    assert len(entries.column("token")) == 20


def test_a_payload_without_anything_large_is_parsed():
    assert spliced(b'{"token_ids":[1,7]}') is None
    assert spliced(b"[") is None
    assert parsed(b'{"token_ids":[1,7]}') == from_json(b'{"token_ids":[1,7]}')


def test_where_memory_is_short_nothing_is_read_again():
    def read(_: Spliced) -> None:
        raise MemoryError

    with pytest.raises(MemoryError):
        natively(spliced(BODY), read)


# The float is the number that stands for the first array.
@pytest.mark.parametrize("value", [b"4.6116860184e18", b"true", b"[0]", b"7", b"5000000000000000000"])
def test_of_two_equal_keys_the_last_one_counts_whatever_it_holds(value):
    for name, following in ((b"prompt_token_ids", b', "choices"'), (b"token_ids", b', "message"')):
        body = BODY.replace(following, b', "' + name + b'": ' + value + following, 1)
        assert body != BODY
        assert spliced(body) is None
        check_equal(body)


def test_a_body_with_arrays_is_parsed_only_where_it_is_asked():
    asked = []
    body = Served(spliced(BODY), lambda: asked.append(1) or CHAT)
    assert isinstance(body.payload["choices"][0]["token_ids"], np.ndarray)
    assert not asked
    assert body.parsed is body.parsed is CHAT
    assert asked == [1]
    assert Served(None, lambda: CHAT).payload is CHAT


@pytest.mark.parametrize("half", [rb"\ud83d", rb"\uD83D", rb"\uDe00"])
def test_half_a_character_is_no_fault(half):
    body = BODY.replace(b'"ok"', b'"' + half + b'"', 1)
    [choice] = read_response(body)
    assert choice.output_items[0]["content"] == json.loads(b'"' + half + b'"')
    assert list(choice.generation_token_ids) == IDS
