"""Where a request goes, by its path and headers."""

import pytest
from tokenrecords.gateway.routes import Route, file_name, route_of


@pytest.mark.parametrize(
    ("path", "session", "rest", "endpoint"),
    [
        ("/sessions/math-7/v1/chat/completions", "math-7", "/v1/chat/completions", "chat"),
        ("/sessions/a%2Fb/v1/completions?x=%20", "a/b", "/v1/completions?x=%20", "completions"),
        ("/sessions/a/v1/responses", "a", "/v1/responses", "responses"),
        ("/sessions/a/v1/responses/r1", "a", "/v1/responses/r1", None),
        ("/sessions/a/v1/messages", "a", "/v1/messages", "messages"),
        ("/sessions/a/v1/messages/count_tokens", "a", "/v1/messages/count_tokens", None),
        ("/sessions/a/v1/models", "a", "/v1/models", None),
        ("/sessions/a/generate", "a", "/generate", "generate"),
        ("/sessions/a/generate_stream", "a", "/generate_stream", "generate"),
        ("/sessions/a/inference/v1/generate", "a", "/inference/v1/generate", "vllm-generate"),
        ("/sessions/a/completion", "a", "/completion", "completion"),
        ("/rollout/r/attempt/2/v1/chat/completions", "r.attempt-2", "/v1/chat/completions", "chat"),
        ("/ng-rollout/r/v1/chat/completions", "r", "/v1/chat/completions", "chat"),
        ("/ng-rollout/r/training-token-capture/v1/responses", "r", "/v1/responses", "responses"),
        ("/v1/chat/completions", None, "/v1/chat/completions", "chat"),
        ("/sessions/a", None, "/sessions/a", None),
        ("/sessions//v1/chat/completions", None, "/sessions//v1/chat/completions", None),
        ("/sessions/a/v1/chat/completions/", "a", "/v1/chat/completions/", "chat"),
        ("/sessions/a//v1//chat/completions?x", "a", "//v1//chat/completions?x", "chat"),
        ("/sessions/a/v1/ch%61t%2Fcompletions", "a", "/v1/ch%61t%2Fcompletions", "chat"),
        ("/sessions/a/v1%2Fcompletions", "a", "/v1%2Fcompletions", "completions"),
        ("/sessions/a/v1/v1/completions", "a", "/v1/v1/completions", None),
        ("http://b:1/sessions/a/v1/messages", "a", "/v1/messages", "messages"),
        ("http://b", None, "/", None),
    ],
)
def test_the_path_says_session_and_endpoint(path: str, session: str | None, rest: str, endpoint: str | None) -> None:
    assert route_of(path, {}) == Route(session, rest, endpoint, None)


@pytest.mark.parametrize(
    "header",
    ["x-tokenrecords-session", "x-session-id", "x-claude-code-session-id", "x-dynamo-session-id", "proxy_x_session_id"],
)
def test_a_header_says_the_session_where_the_path_does_not(header: str) -> None:
    assert route_of("/v1/completions", {header: "h"}).session == "h"
    assert route_of("/sessions/p/v1/completions", {header: "h"}).session == "p"


def test_the_first_header_wins_and_the_key_is_the_last_resort() -> None:
    headers = {"x-session-id": "second", "x-tokenrecords-session": "first", "authorization": "Bearer session:key"}
    assert route_of("/v1/completions", headers).session == "first"
    assert route_of("/v1/completions", {"x-api-key": "session:key"}).session == "key"


@pytest.mark.parametrize(
    ("headers", "session", "key", "named"),
    [
        ({"authorization": "Bearer k"}, None, "k", False),
        ({"authorization": "bearer  k "}, None, "k", False),
        ({"authorization": "Basic k"}, None, None, False),
        ({"x-api-key": "k"}, None, "k", False),
        ({"authorization": "Bearer session:a:b"}, "a:b", None, True),
        ({"authorization": "Bearer k:session:a"}, "a", "k", True),
        ({"authorization": "Bearer session:"}, None, "session:", False),
    ],
)
def test_an_api_key_may_name_a_session(
    headers: dict[str, str], session: str | None, key: str | None, named: bool
) -> None:
    route = route_of("/v1/completions", headers)
    assert (route.session, route.key, route.names_session) == (session, key, named)


def test_parents_and_agents_become_fields() -> None:
    headers = {"x-parent-session-id": "p", "x-agent-id": "a" * 2000, "x-dynamo-parent-session-id": "not this"}
    assert route_of("/v1/completions", headers).kept == {"parent_session": "p", "agent": "a" * 1024}


def test_a_path_that_is_not_utf8_is_refused() -> None:
    with pytest.raises(ValueError, match="utf-8"):
        route_of("/sessions/%ff/v1/completions", {})


def test_a_session_names_its_files() -> None:
    assert file_name("math-7", hashed=False) == "math-7"
    for bad in ("a/b", "..", "", "é"):
        with pytest.raises(ValueError, match="rollout_id"):
            file_name(bad, hashed=False)
    assert file_name("a" * 200, hashed=False) == "a" * 200
    with pytest.raises(ValueError, match="a session id has 201 characters: 200 at most are needed"):
        file_name("a" * 201, hashed=False)
    with pytest.raises(ValueError, match=r"session id 'a\.tokens' ends with \.tokens"):
        file_name("a.tokens", hashed=False)
    assert file_name("a.tokens", hashed=True)
    assert file_name("a/b", hashed=True) == "c14cddc033f64b9dea80ea675cf280a0"
    for bad in ("", "a" * 1025):
        with pytest.raises(ValueError, match="characters: 1 to 1,024 are needed"):
            file_name(bad, hashed=True)


def test_sessions_of_halves_of_characters_have_files_of_their_own() -> None:
    assert len({file_name(each, hashed=True) for each in ("\ud800", "\ud801", "?")}) == 3
