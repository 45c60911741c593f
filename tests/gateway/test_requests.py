"""What goes to the engine in place of what the agent said, and what is hidden of the answer."""

import json
from typing import Any

import pytest
from support.gateways import ASK, chat, chunks, sse
from tokenrecords._core import MemberCutter
from tokenrecords.engines.event_stream import EventStream
from tokenrecords.gateway.requests import Request, read_request

FORMS = [{}, {"end": b"\r\n\r\n"}, {"data": b"data:"}]


def asked(body: Any, endpoint: str = "chat", engine: str = "vllm", **enforced: Any) -> Request:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    return read_request(raw, endpoint, "/v1/x", engine=engine, enforced=enforced)


def shown(request: Request, answer: dict[str, Any]) -> dict[str, Any]:
    raw = json.dumps(answer).encode()
    parsed: dict[str, Any] = json.loads(raw if request.hidden is None else request.hidden.cut(raw))
    return parsed


@pytest.mark.parametrize("value", [True, 1, 1.0, "true", "True", "1", "yes", "on"])
def test_who_asks_in_another_way_has_asked(value: Any) -> None:
    """Engines read their requests with pydantic, which takes all of these for True."""
    request = asked({**ASK, "logprobs": value, "return_token_ids": value})
    assert request.hidden is None
    assert json.loads(request.body) == {**ASK, "logprobs": value, "return_token_ids": value}
    assert asked({**ASK, "stream": value}).streamed


@pytest.mark.parametrize("value", [False, 0, None, "false", "off", 2, [], {}])
def test_who_does_not_ask_is_not_shown(value: Any) -> None:
    request = asked({**ASK, "logprobs": value, "return_token_ids": value, "stream": value})
    assert json.loads(request.body) == {**ASK, "stream": value, "logprobs": True, "return_token_ids": True}
    answer = shown(request, chat([1], [2]))
    assert "logprobs" not in answer["choices"][0]
    assert "token_ids" not in answer["choices"][0]
    assert "prompt_token_ids" not in answer
    assert not request.streamed


@pytest.mark.parametrize(("value", "is_met"), [(0, True), (5, True), (True, True), (False, False), (None, False)])
def test_log_probs_of_a_text_completion_are_a_number(value: Any, is_met: bool) -> None:
    request = asked({"prompt": "a", "logprobs": value}, "completions")
    assert json.loads(request.body)["logprobs"] == (value if is_met else 0)
    assert ("logprobs" in shown(request, chat([1], [2]))["choices"][0]) == is_met


def test_enforced_values_decide_what_is_asked() -> None:
    request = asked({**ASK, "stream": False}, "chat", "sglang", stream=True)
    assert request.streamed
    assert "return_input_ids" in json.loads(request.body)
    assert "return_token_ids" not in json.loads(request.body)


def test_the_last_of_several_members_of_a_name_counts() -> None:
    body = b'{"logprobs": true, "logprobs": false, "return_token_ids": false, "return_token_ids": true, "a": 1}'
    request = asked(body)
    assert request.body == b'{"return_token_ids": false, "return_token_ids": true, "a": 1,"logprobs":true}'
    answer = shown(request, chat([1], [2]))
    assert "token_ids" in answer["choices"][0]
    assert "logprobs" not in answer["choices"][0]


@pytest.mark.parametrize("member", [b'"a": "\\ud83d"', b'"a": NaN', b'"\\ud83d": 1', b'"log\\u0070robs": false'])
def test_what_engines_take_is_sent(member: bytes) -> None:
    sent = asked(b"{" + member + b"}").body
    assert json.loads(sent).keys() == json.loads(b"{" + member + b"}").keys() | {"return_token_ids", "logprobs"}
    assert json.loads(sent)["logprobs"] is True
    if b"log" not in member:
        assert member in sent


@pytest.mark.parametrize(
    "body", [b"", b"[" * 100_000, b'{"a": 1}x', b'{"a": "\xff"}', b"{" + b'"a":' + b"9" * 5000 + b"}"]
)
def test_what_is_no_json_is_refused(body: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        asked(body)


def test_an_object_without_members_gets_those_that_are_needed() -> None:
    assert json.loads(asked(b" { } ").body) == {"logprobs": True, "return_token_ids": True}


def passed(events: bytes, hidden: MemberCutter) -> bytes:
    stream = EventStream()
    stream.feed(events)
    return stream.rest(hidden)


@pytest.mark.parametrize("form", FORMS)
def test_names_in_escapes_are_hidden_too(form: dict[str, bytes]) -> None:
    hidden = asked(ASK).hidden
    assert hidden is not None
    plain = sse(chunks([1], [2, 3], "a\u2028"), **form)
    odd = plain.replace(b'"token_ids"', b'"token\\u005fids"').replace(b'"finish', b'"x": "\\ud83d", "finish')
    bare = [
        {
            **{name: value for name, value in chunk.items() if name != "prompt_token_ids"},
            "choices": [
                {"index": 0, "delta": choice["delta"], "x": "\ud83d", "finish_reason": choice["finish_reason"]}
                for choice in chunk["choices"]
            ],
        }
        for chunk in chunks([1], [2, 3], "a\u2028")
    ]
    cut = passed(odd, hidden)
    end = form.get("end", b"\n\n")
    events = cut.decode().encode().split(end)  # it is UTF-8
    assert events[-2:] == [form.get("data", b"data: ") + b"[DONE]", b""]
    assert [json.loads(event.removeprefix(b"data:")) for event in events[:-2]] == bare


def test_an_event_of_many_lines_keeps_its_others() -> None:
    hidden = asked(ASK).hidden
    assert hidden is not None
    event = b'event: x\r\nid: 1\r\ndata: {"prompt\\u005ftoken_ids": [1],\r\ndata: "a": 1}\r\n\r\n: note\r\n\r\n'
    assert passed(event, hidden) == b'event: x\r\nid: 1\r\ndata: {"a": 1}\r\ndata: \r\n\r\n: note\r\n\r\n'


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("data", ["data: ", "data:", " data:  ", "\ufeffdata: ", ""])
def test_ids_are_hidden_however_an_event_is_written(end: str, data: str) -> None:
    hidden = asked(ASK).hidden
    assert hidden is not None
    event = f'{data}{{"prompt_token_ids":[1,2],"choices":[{{"token_ids":[3],"index":0}}]}}{end}{end}'
    assert passed(event.encode(), hidden).decode() == f'{data}{{"choices":[{{"index":0}}]}}{end}{end}'
