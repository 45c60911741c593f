"""What a request says as null: for vLLM a null `top_logprobs` means no log-probs at all."""

import json
from typing import Any

import pytest
from support.gateways import ASK, chat
from tokenrecords.gateway.requests import Request, read_request


def asked(body: dict[str, Any], engine: str = "vllm") -> Request:
    return read_request(json.dumps(body).encode(), "chat", "/v1/x", engine=engine, enforced={})


@pytest.mark.parametrize("said", [{}, {"logprobs": True}, {"logprobs": True, "return_token_ids": True}])
def test_a_null_is_no_way_to_have_no_log_probs(said: dict[str, Any]) -> None:
    sent = json.loads(asked({**ASK, **said, "top_logprobs": None}).body)
    assert (sent["logprobs"], sent["top_logprobs"]) == (True, 0)


@pytest.mark.parametrize("said", [{}, {"top_logprobs": 0}, {"top_logprobs": 5}])
def test_what_is_not_null_stays(said: dict[str, Any]) -> None:
    sent = json.loads(asked({**ASK, **said}).body)
    assert {name: sent[name] for name in sent if name == "top_logprobs"} == said


def test_who_asked_for_log_probs_sees_them() -> None:
    request = asked({**ASK, "logprobs": True, "return_token_ids": True, "top_logprobs": None})
    answer = json.dumps(chat([1], [2])).encode()
    assert json.loads(answer if request.hidden is None else request.hidden.cut(answer)) == chat([1], [2])


def test_other_engines_get_what_was_said() -> None:
    assert json.loads(asked({**ASK, "top_logprobs": None}, "sglang").body)["top_logprobs"] is None
