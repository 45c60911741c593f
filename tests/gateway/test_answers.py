"""The answers of engines that say anything: headers, bodies and connections, from the bytes of a socket."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trustme
from tokenrecords.gateway.answers import Answer, Connection, CutOffError, DroppedError
from tokenrecords.gateway.upstream import DownError, Upstream

OK = b"HTTP/1.1 200 OK\r\n"
LENGTH_2 = OK + b"content-length: 2\r\n\r\n"
OK_BODY = LENGTH_2 + b"ok"
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"


Ask = Callable[..., Awaitable[Answer]]


class Engine:
    """Gives its answers one after the other, whatever it is asked; None in one closes the connection."""

    def __init__(self, *answers: list[bytes | None]) -> None:
        self.answers = list(answers)
        self.heard: list[bytes] = []
        self.connections = 0
        self.open = 0  # connections that did not end yet
        self.left = 0  # parts that it could not say yet
        self.root = ""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self.open += 1
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = int(head.partition(b"content-length: ")[2].partition(b"\r\n")[0] or b"0")
                self.heard.append(head + await reader.readexactly(length))
                parts = self.answers.pop(0)
                self.left = len(parts)
                for part in parts:
                    if part is None:
                        return
                    writer.write(part)
                    await writer.drain()
                    self.left -= 1
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            self.open -= 1
            writer.close()


@asynccontextmanager
async def asking(engine: Engine, **how: float) -> AsyncIterator[Ask]:
    server = await asyncio.start_server(engine.serve, "127.0.0.1", 0)
    engine.root = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/a"
    upstream = Upstream(**how)

    async def ask(method: str = "POST", path: str = "/v1/x?y=%20", body: bytes = b"hi", **headers: str) -> Answer:
        return await upstream.request(method, engine.root, path, headers=headers, body=body)

    try:
        yield ask
    finally:
        upstream.close()
        server.close()
        await asyncio.sleep(0)


def run(said: list[bytes | None], body: Callable[[Engine, Ask], Awaitable[None]], **how: float) -> None:
    """The body, with an engine whose first answer this is; it says OK to what follows."""

    async def whole() -> None:
        engine = Engine(said, *[[OK_BODY]] * 3)
        async with asyncio.timeout(20), asking(engine, **how) as ask:
            await body(engine, ask)

    asyncio.run(whole())


async def read(ask: Ask) -> bytes:
    with await ask() as answer:
        return await answer.read()


def test_a_request_is_as_it_was_said() -> None:
    async def body(engine: Engine, ask: Ask) -> None:
        with await ask(accept="*/*", x="\udcff\u00e9") as answer:
            assert (answer.status, dict(answer.headers), await answer.read()) == (200, {"content-length": "2"}, b"ok")
        host = engine.root.split("/")[2].encode()
        head = b"POST /a/v1/x?y=%20 HTTP/1.1\r\nhost: " + host + b"\r\naccept: */*\r\nx: \xff\xc3\xa9\r\n"
        assert engine.heard == [head + b"content-length: 2\r\n\r\nhi"]

    run([OK_BODY], body)


@pytest.mark.parametrize(("method", "says"), [("GET", False), ("DELETE", False), ("POST", True), ("PUT", True)])
def test_an_empty_body_is_said_where_one_is_expected(method: str, says: bool) -> None:
    async def body(engine: Engine, ask: Ask) -> None:
        with await ask(method, body=b""):
            assert (b"\r\ncontent-length: 0\r\n" in engine.heard[0]) is says

    run([OK_BODY], body)


@pytest.mark.parametrize("value", ["a\nb", "a\rb", "a\r\nb: c"])
def test_a_header_that_breaks_its_line_is_refused(value: str) -> None:
    async def body(engine: Engine, ask: Ask) -> None:
        with pytest.raises(ValueError, match="a header breaks its line"):
            await ask(x=value)
        assert engine.connections == 0

    run([], body)


BODIES = {
    "length": ([LENGTH_2, b"o", b"k"], True),
    "chunked": ([CHUNKED, b"1\r\no\r\n1;x=y\r\nk\r\n0\r\nx-trailer: 1\r\n\r\n"], True),
    "announced": ([b"HTTP/1.1 100 Continue\r\nx: 1\r\n\r\nHTTP/1.1 103 Hints\r\n\r\n", LENGTH_2 + b"ok"], True),
    "until the end": ([OK + b"\r\n", b"ok", None], False),
    "http 1.0": ([b"HTTP/1.0 200 OK\r\ncontent-length: 2\r\n\r\nok"], False),
    "closes": ([OK + b"connection: close\r\ncontent-length: 2\r\n\r\nok"], False),
}


@pytest.mark.parametrize("kind", BODIES)
@pytest.mark.parametrize("flows", [False, True])
def test_a_body_ends_where_it_does(kind: str, flows: bool) -> None:
    said, is_kept = BODIES[kind]

    async def body(engine: Engine, ask: Ask) -> None:
        parts: list[bytes] = []
        with await ask() as answer:
            assert (answer.status, "x" in answer.headers) == (200, False)
            if flows:
                assert await answer.flow(parts.append)
            else:
                parts.append(await answer.read())
            assert answer.is_whole
        assert b"".join(parts) == b"ok"
        assert "x-trailer" not in answer.headers
        assert await read(ask) == b"ok"
        assert engine.connections == (1 if is_kept else 2)

    run(said, body)


@pytest.mark.parametrize("status", [b"204 No Content", b"304 Not Modified"])
def test_answers_without_a_body(status: bytes) -> None:
    async def body(_: Engine, ask: Ask) -> None:
        with await ask("GET", body=b"") as answer:
            assert (answer.status, await answer.read()) == (int(status[:3]), b"")

    run([b"HTTP/1.1 " + status + b"\r\n\r\n"], body)


def test_the_answer_to_head_has_no_body_whatever_it_says() -> None:
    async def body(engine: Engine, ask: Ask) -> None:
        for _ in range(2):
            with await ask("HEAD", body=b"") as answer:
                assert (answer.headers["content-length"], await answer.read()) == ("2", b"")
        assert engine.connections == 2

    run([LENGTH_2], body)


@pytest.mark.parametrize(
    ("said", "problem", "why"),
    [
        ([None], DroppedError, "the connection was closed before an answer came"),
        ([b"HTTP/1.1 200 OK\r\ncont", None], DroppedError, "closed before an answer came"),
        ([b"hello\r\n\r\n"], CutOffError, "the answer is not HTTP"),
        (
            [b"HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n"],
            CutOffError,
            "is not HTTP",
        ),
        ([OK + b"x: " + b"a" * (1 << 18)], CutOffError, "headers of more than 262,144 bytes"),
    ],
)
def test_no_answer(said: list[bytes | None], problem: type[Exception], why: str) -> None:
    async def body(_: Engine, ask: Ask) -> None:
        with pytest.raises(problem, match=why):
            await ask()

    run(said, body)


@pytest.mark.parametrize("flows", [False, True])
@pytest.mark.parametrize(
    ("said", "why"),
    [
        ([LENGTH_2 + b"o", None], "the connection was closed within the answer"),
        ([CHUNKED + b"5\r\no", None], "the connection was closed within the answer"),
        ([CHUNKED + b"x\r\no"], "the answer is not HTTP"),
    ],
)
def test_half_an_answer(said: list[bytes | None], why: str, flows: bool) -> None:
    async def body(engine: Engine, ask: Ask) -> None:
        async def all_of_it() -> None:
            with await ask() as answer:
                await (answer.flow(lambda _: False) if flows else answer.read())

        with pytest.raises(CutOffError, match=why):
            await all_of_it()
        assert await read(ask) == b"ok"
        assert engine.connections == 2

    run(said, body)


def test_nobody_there() -> None:
    async def body() -> None:
        with pytest.raises(DownError, match="no connection could be made"):
            await Upstream().request("GET", "http://127.0.0.1:9", "/", headers={})

    asyncio.run(body())


def test_an_engine_may_be_behind_tls(monkeypatch: pytest.MonkeyPatch) -> None:
    authority = trustme.CA()
    theirs = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("localhost").configure_cert(theirs)
    ours = ssl.create_default_context()

    async def body() -> None:
        engine = Engine([OK_BODY])
        server = await asyncio.start_server(engine.serve, "localhost", 0, ssl=theirs)
        root = f"https://localhost:{server.sockets[0].getsockname()[1]}"
        upstream = Upstream()
        with pytest.raises(DownError) as refused:
            await upstream.request("GET", root, "/", headers={})
        assert "certificate" in str(refused.value.__cause__)
        authority.configure_trust(ours)
        with await upstream.request("GET", root, "/", headers={}) as answer:
            assert await answer.read() == b"ok"
        upstream.close()
        server.close()
        await asyncio.sleep(0)

    monkeypatch.setattr("tokenrecords.gateway.upstream._tls", lambda: ours)
    asyncio.run(body())


@pytest.mark.parametrize("said", [[b""], [LENGTH_2 + b"o"]])
def test_an_answer_has_its_time(said: list[bytes | None]) -> None:
    async def body(_: Engine, ask: Ask) -> None:
        with pytest.raises(TimeoutError, match="no answer in time"):
            await read(ask)

    run(said, body, timeout=0.05)


def test_a_connection_that_was_left_is_not_used_again() -> None:
    async def body(engine: Engine, ask: Ask) -> None:
        with await ask():
            pass
        assert await read(ask) == b"ok"
        assert engine.connections == 2

    run([LENGTH_2 + b"o"], body)


def test_what_is_said_without_a_question_ends_the_connection() -> None:
    async def body(engine: Engine, ask: Ask) -> None:
        assert await read(ask) == b"ok"
        await asyncio.sleep(0.05)
        assert await read(ask) == b"ok"
        assert engine.connections == 2

    run([OK_BODY, LENGTH_2 + b"no"], body)


def test_an_idle_connection_that_is_old_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tokenrecords.gateway.upstream._IDLE", 0)

    async def body(engine: Engine, ask: Ask) -> None:
        assert [await read(ask), await read(ask)] == [b"ok"] * 2
        assert engine.connections == 2
        while engine.open > 1:
            await asyncio.sleep(0.01)

    run([OK_BODY], body)


def test_a_connection_that_is_kept_ends_with_those_that_keep_it() -> None:
    async def body() -> None:
        engine = Engine([OK_BODY])
        server = await asyncio.start_server(engine.serve, "127.0.0.1", 0)
        upstream = Upstream()
        root = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        with await upstream.request("GET", root, "/", headers={}) as answer:
            assert await answer.read() == b"ok"
        assert engine.open == 1
        upstream.close()
        async with asyncio.timeout(20):
            while engine.open:
                await asyncio.sleep(0.01)
        server.close()

    asyncio.run(body())


@pytest.mark.parametrize(("limit", "most"), [(0.05, 60.0), (None, 0.05)])
def test_a_connection_has_its_time_and_no_more_than_the_call(
    monkeypatch: pytest.MonkeyPatch, limit: float | None, most: float
) -> None:
    monkeypatch.setattr("tokenrecords.gateway.upstream._CONNECT", most)

    async def never(*_: Any, **__: Any) -> None:
        await asyncio.sleep(60)

    async def body() -> None:
        monkeypatch.setattr(asyncio.get_running_loop(), "create_connection", never)
        async with asyncio.timeout(20):
            with pytest.raises(DownError):
                await Upstream(limit).request("GET", "http://e", "/", headers={})

    asyncio.run(body())


@pytest.mark.parametrize(
    ("root", "where"),
    [
        ("http://e", ("e", 80, False)),
        ("https://e/v1", ("e", 443, True)),
        ("https://e:80", ("e", 80, True)),
        ("http://[::1]:443", ("::1", 443, False)),
    ],
)
def test_an_engine_without_a_port_has_that_of_its_scheme(
    monkeypatch: pytest.MonkeyPatch, root: str, where: tuple[str, int, bool]
) -> None:
    tried: list[tuple[str, int, bool]] = []

    async def refuses(_: Any, host: str, port: int, *, ssl: Any) -> None:
        tried.append((host, port, ssl is not None))
        raise ConnectionRefusedError

    async def body() -> None:
        monkeypatch.setattr(asyncio.get_running_loop(), "create_connection", refuses)
        with pytest.raises(DownError):
            await Upstream().request("GET", root, "/", headers={})

    asyncio.run(body())
    assert tried == [where]


def test_a_full_sink_makes_the_engine_wait() -> None:
    part = b"x" * (1 << 20)
    parts: list[bytes] = []

    def full(some: bytes) -> bool:
        parts.append(some)
        return True

    async def body(engine: Engine, ask: Ask) -> None:
        with await ask() as answer:
            rounds = 0
            while not await answer.flow(full):
                rounds += 1
                held = sum(map(len, parts))
                await asyncio.sleep(0)
                assert sum(map(len, parts)) == held, "nothing comes while it is full"
                if rounds == 1:
                    await asyncio.sleep(0.05)
                    assert engine.left, "the engine still has something to say"
            assert rounds >= 2

    head = OK + b"content-length: %d\r\n\r\n" % (16 * len(part))
    run([head, *[part] * 16], body)
    assert b"".join(parts) == part * 16


def test_what_nobody_takes_yet_makes_the_engine_wait() -> None:
    part = b"x" * (1 << 20)

    async def body(engine: Engine, ask: Ask) -> None:
        with await ask() as answer:
            await asyncio.sleep(0.1)
            assert engine.left, "the engine still has something to say"
            assert await answer.read() == part * 32

    run([OK + b"content-length: %d\r\n\r\n" % (32 * len(part)), *[part] * 32], body)


def test_what_the_sink_raises_is_raised() -> None:
    def broken(_: bytes) -> bool:
        raise ValueError("no room")

    async def body(_: Engine, ask: Ask) -> None:
        async def all_of_it() -> None:
            with await ask() as answer:
                await answer.flow(broken)

        for _again in range(2):
            with pytest.raises(ValueError, match="no room"):
                await all_of_it()

    run([LENGTH_2, b"ok"], body)


class Transport(asyncio.Transport):
    """Takes what is written, and knows whether it is read from."""

    is_paused = False

    def writelines(self, parts: Any) -> None: ...

    def pause_reading(self) -> None:
        self.is_paused = True

    def resume_reading(self) -> None:
        self.is_paused = False

    def abort(self) -> None: ...


def asked() -> tuple[Connection, Answer, list[Connection]]:
    """A connection on which an answer is waited for, and where it goes when it is free."""
    idle: list[Connection] = []
    connection = Connection(idle)
    connection.connection_made(Transport())
    return connection, connection.send(b"", b"", has_body=True), idle


def test_what_the_sink_raises_of_the_last_part_is_raised_too() -> None:
    async def body() -> None:
        connection, answer, idle = asked()
        connection.data_received(LENGTH_2)
        flowing = asyncio.ensure_future(answer.flow(lambda _: 1 // 0))
        await asyncio.sleep(0)
        connection.data_received(b"ok")
        with pytest.raises(ZeroDivisionError):
            await flowing
        assert idle == [connection], "the engine did nothing wrong"

    asyncio.run(body())


def test_a_connection_that_is_free_again_is_read_from_whoever_is_behind() -> None:
    async def body() -> None:
        connection, answer, idle = asked()
        connection.data_received(LENGTH_2)
        flowing = asyncio.ensure_future(answer.flow(lambda _: True))
        await asyncio.sleep(0)
        connection.data_received(b"o")
        assert not await flowing
        assert connection.transport.is_paused
        flowing = asyncio.ensure_future(answer.flow(lambda _: True))
        await asyncio.sleep(0)
        connection.data_received(b"k")
        assert not await flowing
        assert (idle, connection.transport.is_paused) == ([connection], False)

        connection, answer, idle = asked()
        size = 1 << 19
        connection.data_received(OK + b"content-length: %d\r\n\r\n" % size + b"x" * (size - 1))
        assert connection.transport.is_paused
        flowing = asyncio.ensure_future(answer.read())
        await asyncio.sleep(0)
        assert not connection.transport.is_paused
        connection.data_received(b"x")
        assert (len(await flowing), idle) == (size, [connection])
        connection, answer, idle = asked()
        connection.data_received(OK + b"content-length: %d\r\n\r\n" % size + b"x" * size)
        assert (idle, connection.transport.is_paused) == ([connection], False)
        connection.transport.pause_reading()  # by its next call
        assert len(await answer.read()) == size
        assert connection.transport.is_paused

    asyncio.run(body())


@pytest.mark.parametrize(
    ("header", "kind"),
    [
        (b"Content-Type: Text/Event-Stream ; charset=utf-8\r\n", "text/event-stream"),
        (b"content-type: application/json\r\n", "application/json"),
        (b"", ""),
    ],
)
def test_a_type_has_no_case_and_no_parameters(header: bytes, kind: str) -> None:
    async def body() -> None:
        connection, answer, _ = asked()
        connection.data_received(OK + header + b"content-length: 0\r\n\r\n")
        assert answer.content_type == kind

    asyncio.run(body())


def test_headers_may_be_as_long_as_engines_write_them() -> None:
    """Each answer of a connection has its own measure."""

    async def body() -> None:
        connection, answer, _ = asked()
        for _again in range(2):
            connection.data_received(OK + b"x: " + b"a" * 200_000)
            connection.data_received(b"\r\ncontent-length: 0\r\n\r\n")
            assert await answer.read() == b""
            answer = connection.send(b"", b"", has_body=True)

    asyncio.run(body())


def test_headers_keep_their_bytes() -> None:
    async def body() -> None:
        connection, answer, _ = asked()
        connection.data_received(OK + b"x: \xc3\xa9\xff\r\ncontent-length: 0\r\n\r\n")
        assert answer.headers["x"] == "\u00e9\udcff"

    asyncio.run(body())


def test_what_went_wrong_first_is_said() -> None:
    async def body() -> None:
        connection, answer, _ = asked()
        connection.data_received(b"hello\r\n\r\n")
        connection.connection_lost(None)
        with pytest.raises(CutOffError, match="is not HTTP"):
            await answer.begin(None)

    asyncio.run(body())


def test_a_connection_that_ends_is_free_no_more() -> None:
    async def body() -> None:
        connection, _, idle = asked()
        connection.data_received(OK_BODY)
        assert idle == [connection]
        connection.connection_lost(None)
        assert idle == []

    asyncio.run(body())


def test_a_full_sink_gets_nothing_until_it_is_asked_again() -> None:
    async def body() -> None:
        connection, answer, _ = asked()
        connection.data_received(LENGTH_2)
        parts: list[bytes] = []

        def full(part: bytes) -> bool:
            parts.append(part)
            return True

        flowing = asyncio.ensure_future(answer.flow(full))
        await asyncio.sleep(0)
        connection.data_received(b"o")
        assert not await flowing
        connection.data_received(b"k")  # was on its way
        assert parts == [b"o"]
        assert not await answer.flow(full)
        assert parts == [b"o", b"k"]

    asyncio.run(body())


@pytest.mark.parametrize("problem", [None, ConnectionResetError()])
def test_an_answer_that_its_connection_ends_is_whole_unless_that_breaks(problem: Exception | None) -> None:
    async def body() -> None:
        connection, answer, _ = asked()
        connection.data_received(OK + b"\r\nok")
        connection.connection_lost(problem)
        if problem is None:
            assert await answer.read() == b"ok"
        else:
            with pytest.raises(CutOffError):
                await answer.read()

    asyncio.run(body())
