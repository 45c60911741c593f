"""HTTP as it may be: what a relay must neither add, nor take away, nor fail at."""

import asyncio
import gzip
import json
import zlib
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from aiohttp import web
from support.gateways import ASK, CHAT, GENERATION, PROMPT, Answer, Rig, chat, chunks, run, says, sse, streams
from tokenrecords.gateway.headers import end_to_end, to_engine
from tokenrecords.gateway.sending import Outlet
from yarl import URL

BODY = json.dumps(ASK).encode()


async def exchange(rig: Rig, *lines: bytes, body: bytes = b"") -> bytes:
    """What comes back for a request of these lines, until the gateway ends the connection."""
    url = URL(rig.url)
    reader, writer = await asyncio.open_connection(url.host, url.port)
    more = (b"Host: x", b"Connection: close", b"Content-Length: %d" % len(body))
    writer.write(b"\r\n".join([*lines, *more, b"", body]))
    await writer.drain()
    answer = await reader.read()
    writer.close()
    return answer


def post(path: str = CHAT) -> bytes:
    return f"POST {path} HTTP/1.1".encode()


def test_nothing_is_said_to_the_engine_that_the_agent_did_not_say(tmp_path: Path) -> None:
    async def test(rig: Rig) -> None:
        await exchange(rig, b"GET /v1/models HTTP/1.1")
        await exchange(rig, post("/v1/embeddings"), body=b"{}")
        await exchange(rig, post(), body=BODY)
        assert [seen.headers.keys() - {"host", "content-length"} for seen in rig.seen] == [
            set(),
            set(),
            {"accept-encoding"},
        ]
        assert rig.seen[2].headers["accept-encoding"] == "identity"

    run(tmp_path, says(chat(PROMPT, GENERATION)), test)


@pytest.mark.parametrize("status", [204, 302, 304, 307, 308])
def test_an_answer_that_generates_nothing_passes_and_is_no_call(tmp_path: Path, status: int) -> None:
    async def answer(_: web.Request, __: Any) -> web.Response:
        return web.Response(status=status, headers={"location": "http://elsewhere/v1"})

    async def test(rig: Rig) -> None:
        async with rig.client.post(rig.url + CHAT, data=BODY, allow_redirects=False) as got:
            assert (got.status, got.headers["location"], await got.read()) == (status, "http://elsewhere/v1", b"")
        assert rig.lines(".intents")[1][1] == f"the engine answered {status}"
        assert rig.lines(".lost") == []

    run(tmp_path, answer, test)


def test_an_error_whose_body_is_cut_off(tmp_path: Path) -> None:
    async def answer(request: web.Request, _: Any) -> web.StreamResponse:
        response = web.StreamResponse(status=500, headers={"content-length": "100"})
        await response.prepare(request)
        await response.write(b"{")
        assert request.transport is not None
        request.transport.abort()
        return response

    async def test(rig: Rig) -> None:
        status, _, body = await rig.post()
        assert (status, b"cut off" in body) == (502, True)
        assert rig.lines(".intents")[1][1] == "the engine answered 500"
        assert rig.lines(".lost") == []

    run(tmp_path, answer, test)


@pytest.mark.parametrize("path", [CHAT, "/v1/embeddings"])
def test_a_request_that_is_compressed(tmp_path: Path, path: str) -> None:
    async def test(rig: Rig) -> None:
        answer = await exchange(rig, post(path), b"Content-Encoding: gzip", body=gzip.compress(BODY))
        assert answer.startswith(b"HTTP/1.1 200")
        assert rig.seen[0].body["messages"] == ASK["messages"]
        assert "content-encoding" not in rig.seen[0].headers
        assert int(rig.seen[0].headers["content-length"]) == len(rig.seen[0].raw)

    run(tmp_path, says(chat(PROMPT, GENERATION)), test)


def packed(data: bytes, encoding: str) -> Answer:
    """An engine that streams these bytes as compressed so, in parts."""

    async def answer(request: web.Request, _: Any) -> web.StreamResponse:
        headers = {"content-type": "text/event-stream", "content-encoding": encoding}
        response = web.StreamResponse(headers=headers)
        await response.prepare(request)
        for start in range(0, len(data), 50):
            await response.write(data[start : start + 50])
        return response

    return answer


@pytest.mark.parametrize(("encoding", "pack"), [("gzip", gzip.compress), ("deflate", zlib.compress)])
def test_a_stream_that_is_compressed_all_the_same(tmp_path: Path, encoding: str, pack: Any) -> None:
    async def test(rig: Rig) -> None:
        asked = {**ASK, "stream": True, "logprobs": True, "return_token_ids": True}
        status, headers, body = await rig.post(body=asked)
        assert (status, body) == (200, sse(chunks(PROMPT, GENERATION)))
        assert "content-encoding" not in headers
        [entry] = rig.records()
        assert (entry.prompt_token_ids.tolist(), entry.generation_token_ids.tolist()) == (PROMPT, GENERATION)

    run(tmp_path, packed(pack(sse(chunks(PROMPT, GENERATION))), encoding), test)


@pytest.mark.parametrize(
    ("data", "encoding", "why"),
    [
        (b"data: 1\n\n", "br", "the answer is compressed by br, which was not asked for"),
        (b"data: 1\n\n", "gzip", "the answer is not gzip: Error -3"),
        (gzip.compress(sse(chunks(PROMPT, GENERATION)))[:-4], "gzip", "the answer is not gzip: it breaks off"),
    ],
)
def test_a_stream_that_cannot_be_decompressed_is_lost(tmp_path: Path, data: bytes, encoding: str, why: str) -> None:
    async def test(rig: Rig) -> None:
        answer = await exchange(rig, post(), body=BODY)
        assert b"[DONE]" not in answer
        assert not answer.endswith(b"0\r\n\r\n")
        assert rig.lines(".lost")[0][1].startswith(why)
        assert rig.records() == []

    run(tmp_path, packed(data, encoding), test)


def test_keys_that_are_not_utf8_are_wrong_ones(tmp_path: Path) -> None:
    async def test(rig: Rig) -> None:
        key = b"Authorization: Bearer \xff"
        assert (await exchange(rig, post(), key, body=BODY)).startswith(b"HTTP/1.1 401")
        assert (await exchange(rig, b"GET /sessions HTTP/1.1", key)).startswith(b"HTTP/1.1 401")

    run(tmp_path, says(chat(PROMPT, GENERATION)), test, key="k\u00e9", admin_key="a")


def test_an_agent_id_that_is_not_utf8_is_no_reason_to_fail(tmp_path: Path) -> None:
    async def test(rig: Rig) -> None:
        with pytest.warns(UserWarning, match="lone surrogates in agent"):
            answer = await exchange(rig, post(), b"x-agent-id: a\xff", body=BODY)
        assert answer.startswith(b"HTTP/1.1 200")
        assert rig.records()[0].agent == "a\ufffd"

    run(tmp_path, says(chat(PROMPT, GENERATION)), test)


@pytest.mark.parametrize(
    ("target", "path"),
    [
        ("http://elsewhere:1/sessions/s/v1/models", "/v1/models"),
        ("/sessions/s/v1/../../health", "/v1/../../health"),
        ("/sessions/s/v1/models?a=%0d%0aX:1", "/v1/models?a=%0d%0aX:1"),
        ("/v1/files/a%0Ab", "/v1/files/a%0Ab"),
    ],
)
def test_targets_are_those_of_the_engine_as_they_were_written(tmp_path: Path, target: str, path: str) -> None:
    async def answer(request: web.Request, _: Any) -> web.Response:
        return web.Response(text=request.raw_path)

    async def test(rig: Rig) -> None:
        answered = await exchange(rig, f"GET {target} HTTP/1.1".encode())
        assert answered.startswith(b"HTTP/1.1 200"), answered
        assert answered.endswith(b"\r\n\r\n" + path.encode())

    run(tmp_path, answer, test)


def test_a_session_with_a_line_break_is_refused(tmp_path: Path) -> None:
    async def test(rig: Rig) -> None:
        answer = await exchange(rig, post("/sessions/s%0d%0aX:1/v1/chat/completions"), body=BODY)
        assert answer.startswith(b"HTTP/1.1 400")
        assert b"\r\nX:1" not in answer
        assert rig.seen == []

    run(tmp_path, says(chat(PROMPT, GENERATION)), test)


def test_a_passed_answer_that_is_cut_off_never_looks_whole(tmp_path: Path) -> None:
    async def test(rig: Rig) -> None:
        answer = await exchange(rig, b"GET /v1/files/x HTTP/1.1")
        assert b"abc" in answer
        assert not answer.endswith(b"0\r\n\r\n")

    run(tmp_path, streams(b"abc", ends=False), test)


def test_a_body_in_chunks_that_waits_to_be_asked_for(tmp_path: Path) -> None:
    async def test(rig: Rig) -> None:
        url = URL(rig.url)
        reader, writer = await asyncio.open_connection(url.host, url.port)
        writer.write(post() + b"\r\nHost: x\r\nTransfer-Encoding: chunked\r\nExpect: 100-continue\r\n\r\n")
        await writer.drain()
        assert await reader.readline() == b"HTTP/1.1 100 Continue\r\n"
        writer.write(b"5\r\n%s\r\n%x\r\n%s\r\n0\r\n\r\n" % (BODY[:5], len(BODY) - 5, BODY[5:]))
        await writer.drain()
        await reader.readline()
        assert await reader.readline() == b"HTTP/1.1 200 OK\r\n"
        writer.close()
        assert "expect" not in rig.seen[0].headers
        assert rig.seen[0].body["messages"] == ASK["messages"]

    run(tmp_path, says(chat(PROMPT, GENERATION)), test)


def test_requests_that_follow_each_other_without_a_wait(tmp_path: Path) -> None:
    async def test(rig: Rig) -> None:
        url = URL(rig.url)
        reader, writer = await asyncio.open_connection(url.host, url.port)
        one = post() + b"\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(BODY) + BODY
        writer.write(one * 2 + one.replace(b"Host", b"Connection: close\r\nHost"))
        await writer.drain()
        assert (await reader.read()).count(b"HTTP/1.1 200 OK") == 3
        writer.close()
        assert len(rig.records()) == 3

    run(tmp_path, says(chat(PROMPT, GENERATION)), test)


def test_a_websocket_is_not_one_here(tmp_path: Path) -> None:
    async def test(rig: Rig) -> None:
        upgrade = (b"Connection: Upgrade", b"Upgrade: websocket", b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==")
        answer = await exchange(rig, b"GET /sessions/s/v1/realtime HTTP/1.1", *upgrade)
        assert answer.startswith(b"HTTP/1.1 426")
        assert "upgrade" not in rig.seen[0].headers

    run(tmp_path, says({}, 426), test)


@pytest.mark.parametrize("path", [CHAT, "/v1/embeddings"])
def test_headers_of_one_connection_go_no_further(tmp_path: Path, path: str) -> None:
    async def answer(_: web.Request, __: Any) -> web.Response:
        headers = {"connection": "x-hop", "x-hop": "1", "keep-alive": "timeout=5", "x-end": "2"}
        return web.json_response(chat(PROMPT, GENERATION), headers=headers)

    async def test(rig: Rig) -> None:
        hops = (
            b"Connection: te",
            b"Connection: X-Hop",
            b"x-hop: 1",
            b"TE: trailers",
            b"Proxy-Authorization: Basic a",
            b"x-end: 2",
        )
        said = (await exchange(rig, post(path), *hops, body=BODY)).lower()
        assert rig.seen[0].headers.keys() & {"x-hop", "te", "proxy-authorization", "connection"} == set()
        assert rig.seen[0].headers["x-end"] == "2"
        assert (b"x-hop" in said, b"keep-alive" in said, b"x-end: 2" in said) == (False, False, True)

    run(tmp_path, answer, test)


def test_each_header_that_the_connection_names_goes_no_further() -> None:
    headers = {"Connection": "X-One, x-two", "x-one": "1", "x-two": "2", "x-three": "3"}
    assert dict(end_to_end(headers)) == {"x-three": "3"}


def test_the_name_of_a_compression_has_no_case() -> None:
    """The body was unpacked when it was read, so the header must go."""
    sent = to_engine({"content-encoding": "GZip"}, engine_key=None, keep_key=True, is_read=False)
    assert "content-encoding" not in sent


@pytest.mark.parametrize(
    "name",
    [
        *("connection", "content-length", "expect", "host", "keep-alive", "proxy-authenticate", "proxy-authorization"),
        *("proxy-connection", "te", "trailer", "transfer-encoding", "upgrade"),
    ],
)
def test_a_header_of_one_connection_needs_no_naming(name: str) -> None:
    assert list(end_to_end({name.title(): "1", "x-end": "2"})) == ["x-end"]


@pytest.mark.parametrize("encoding", ["gzip", "deflate", "br", "zstd", "compress"])
def test_what_was_unpacked_is_not_said_to_be_packed(encoding: str) -> None:
    sent = to_engine({"content-encoding": encoding}, engine_key=None, keep_key=True, is_read=False)
    assert ("content-encoding" in sent) == (encoding == "compress")


def test_an_empty_key_of_the_engine_is_not_the_agents() -> None:
    said = {"authorization": "Bearer own", "x-api-key": "own"}
    assert dict(to_engine(said, engine_key="", keep_key=True, is_read=False)) == {"authorization": "Bearer "}


class Socket:
    """Where an agent reads: what was written to it, and how much of that it has not taken."""

    def __init__(self, held: int = 0, *, is_closing: bool = False) -> None:
        self.written: list[bytes] = []
        self.get_write_buffer_size = lambda: held
        self.is_closing = lambda: is_closing
        self.write = self.written.append


def outlet(socket: Socket | None, *, is_chunked: bool = False) -> Outlet:
    request: Any = SimpleNamespace(transport=socket)
    return Outlet(request, is_chunked=is_chunked)


@pytest.mark.parametrize(("held", "is_behind"), [(0, False), (1 << 16, False), ((1 << 16) + 1, True)])
def test_an_agent_that_has_not_taken_much_is_behind(held: int, is_behind: bool) -> None:
    assert outlet(Socket(held)).write(b"x") is is_behind


@pytest.mark.parametrize(("is_chunked", "written"), [(False, [b"x" * 20]), (True, [b"14\r\n" + b"x" * 20 + b"\r\n"])])
def test_an_empty_part_is_not_written(is_chunked: bool, written: list[bytes]) -> None:
    """An empty chunk would be the last one."""
    socket = Socket()
    to_agent = outlet(socket, is_chunked=is_chunked)
    for part in (b"", b"x" * 20, b""):
        to_agent.write(part)
    assert socket.written == written


@pytest.mark.parametrize("socket", [None, Socket(is_closing=True)])
def test_nothing_is_written_to_an_agent_that_has_left(socket: Socket | None) -> None:
    with pytest.raises(ConnectionResetError, match="the agent has left"):
        outlet(socket).write(b"x")
    assert socket is None or socket.written == []
