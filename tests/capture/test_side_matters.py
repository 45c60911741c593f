"""What stands beside the tokens costs none, however a server says it."""

import time
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from support.payloads import vllm_chat
from tokenrecords import entries_from_response


def entry(**body: Any) -> Any:
    [made] = entries_from_response({**vllm_chat(), **body}, rollout_id="r", model_call_id="c")
    return made


@pytest.mark.parametrize(
    ("said", "known"),
    [(5, "5"), ("5", "5"), (True, "True"), ({"a": 1}, "{'a': 1}"), (None, None)],
)
def test_ids_of_responses(said: Any, known: str | None) -> None:
    assert entry(id=said).response_id == known
    assert entry(id=None, request_id=said).response_id == known


def test_the_name_of_a_model():
    assert (entry(model=None).model, entry(model=7).model, entry(model="m").model) == ("", "7", "m")


@pytest.mark.parametrize("said", ["2025-11-13T10:00:00Z", "2025-11-13T10:00:00.000", "2025-11-13T12:00:00+02:00"])
def test_a_date(said: str) -> None:
    at = datetime(2025, 11, 13, 10, tzinfo=UTC).timestamp()
    assert entry(created_at=said).created_at == entry(created=said).created_at == at


@pytest.mark.parametrize("said", [7.5, "7.5"])
def test_a_number_of_seconds(said: Any) -> None:
    assert entry(created_at=said).created_at == 7.5


@pytest.mark.parametrize(
    "said", ["yesterday", "", [1], {"at": 1}, float("nan"), "inf", pytest.param(10**400, id="10**400"), 0, None]
)
def test_what_is_no_time(said: Any) -> None:
    before = datetime.now(UTC) - timedelta(seconds=1)
    assert entry(created_at=said, created=None).created_at > before.timestamp()
    assert entry(created_at=said, created=5).created_at == 5.0


def test_an_engine_that_numbers_its_requests():
    output = SimpleNamespace(index=0, text="ok", token_ids=[41, 2], logprobs=[-0.125, -0.5], finish_reason="stop")
    request = SimpleNamespace(request_id=5, prompt_token_ids=[1, 7], outputs=[output], finished=True)
    for sent in (request, [request]):
        [made] = entries_from_response(sent, rollout_id="r", model_call_id="c")
        assert (made.response_id, made.generation_log_probs) == ("5", [-0.125, -0.5])


def test_a_date_without_a_zone_is_of_utc(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    try:
        made = entry(created_at="2025-11-13T10:00:00").created_at
    finally:
        monkeypatch.undo()
        time.tzset()
    assert made == datetime(2025, 11, 13, 10, tzinfo=UTC).timestamp()
