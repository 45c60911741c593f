"""Several engines: who gets which session, and what happens when one fails."""

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from aiohttp import web
from support.gateways import Rig, chat, engine, rig, says
from tokenrecords.gateway.answers import CutOffError, DroppedError
from tokenrecords.gateway.engines import Pool
from tokenrecords.gateway.routes import route_of
from tokenrecords.gateway.sending import send
from tokenrecords.gateway.upstream import DownError, Upstream

OK = says(chat([1], [2]))


def run(out: Path, test: Any, engines: int = 2, **settings: Any) -> None:
    async def body() -> None:
        async with AsyncExitStack() as stack:
            made = [await stack.enter_async_context(engine(OK)) for _ in range(engines)]
            urls = tuple(url for url, _ in made)
            each = await stack.enter_async_context(rig(OK, out, engines=urls, **settings))
            await test(each, [seen for _, seen in made])

    asyncio.run(body())


def test_a_session_stays_with_its_engine() -> None:
    pool = Pool(["a", "b"])
    first = pool.choose("s")
    first.open += 5
    assert pool.choose("s") is first
    assert pool.choose("t") is not first
    assert pool.choose(None) is not first


def test_an_engine_that_is_down_is_left_and_others_are_taken() -> None:
    pool = Pool(["a", "b"])
    first = pool.choose("s")
    first.is_up = False
    second = pool.choose("s")
    assert second is not first
    first.is_up = True
    assert pool.choose("s") is second
    for each in pool.engines:
        each.is_up = False
    assert pool.choose("s") in pool.engines  # one that may be back, rather than none


def test_sessions_are_spread_and_sticky(tmp_path: Path) -> None:
    async def test(rig: Rig, seen: list[Any]) -> None:
        for _ in range(3):
            assert (await rig.post())[0] == 200
        assert sorted(map(len, seen)) == [0, 3]

    run(tmp_path, test)


def test_an_engine_that_is_down_is_left_though_it_has_nothing_to_do() -> None:
    pool = Pool(["a", "b"])
    pool.engines[0].is_up = False
    pool.engines[1].open = 5
    assert [pool.choose(f"s{k}").root for k in range(3)] == ["b", "b", "b"]


def test_sessions_that_begin_one_by_one_are_spread() -> None:
    pool = Pool(["a", "b", "c"])
    assert [pool.choose(f"s{k}").root for k in range(6)] == ["a", "b", "c", "a", "b", "c"]


@pytest.mark.parametrize("path", ["/sessions/{}/v1/chat/completions", "/v1/embeddings?{}"])
def test_an_engine_is_busy_while_it_generates(tmp_path: Path, path: str) -> None:
    """Also before it has answered anything."""
    may_end = asyncio.Event()

    async def slow(_: web.Request, __: Any) -> web.Response:
        await may_end.wait()
        return web.json_response(chat([1], [2]))

    async def body() -> None:
        async with (
            engine(slow) as (one, first),
            engine(slow) as (two, second),
            rig(OK, tmp_path, engines=(one, two)) as made,
        ):
            calls = []
            for k in range(4):
                calls.append(asyncio.ensure_future(made.post(path.format(k))))
                while len(first) + len(second) <= k:
                    await asyncio.sleep(0.01)
            assert (len(first), len(second)) == (2, 2)
            may_end.set()
            assert [status for status, _, _ in await asyncio.gather(*calls)] == [200] * 4

    asyncio.run(body())


def test_an_engine_is_busy_no_more_when_its_calls_have_ended(tmp_path: Path) -> None:
    may_end = asyncio.Event()

    async def slow(_: web.Request, __: Any) -> web.Response:
        await may_end.wait()
        return web.json_response(chat([1], [2]))

    async def body() -> None:
        async with (
            engine(slow) as (one, first),
            engine(OK) as (two, second),
            rig(OK, tmp_path, engines=(one, two)) as made,
        ):
            held = asyncio.ensure_future(made.post("/sessions/held/v1/chat/completions"))
            while not first:
                await asyncio.sleep(0.01)
            for k in range(3):  # the other one is free each time
                assert (await made.post(f"/sessions/{k}/v1/chat/completions"))[0] == 200
                assert (await made.post("/v1/embeddings"))[0] == 200
            assert (len(first), len(second)) == (1, 6)
            may_end.set()
            assert (await held)[0] == 200

    asyncio.run(body())


def test_a_call_goes_to_another_engine_where_its_own_cannot_be_reached(tmp_path: Path) -> None:
    async def body() -> None:
        async with engine(OK) as (url, seen):
            dead = "http://127.0.0.1:9"
            async with rig(OK, tmp_path, engines=(dead, url), health_interval=3600) as made:
                for _ in range(2):
                    assert (await made.post())[0] == 200
                assert len(seen) == 2
                assert made.records()[0].engine == url
                assert (await made.get("/health"))[1] == {"ok": True, "engines": {dead: False, url: True}}

    asyncio.run(body())


def test_an_engine_that_answers_again_is_taken_again(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def body() -> None:
        async with rig(OK, tmp_path, engines=("http://127.0.0.1:9",), retries=0, health_interval=0.01) as made:
            status, _, answer = await made.post()
            assert (status, b"no engine answered" in answer) == (502, True)
            [[call], [again, why]] = made.lines(".intents")
            assert (call, why) == (again, "no engine answered: no connection could be made")
            await made.post()
            assert [record.getMessage().partition(" [")[0] for record in caplog.records] == [
                "engine http://127.0.0.1:9 can't be reached:"
            ]
        async with engine(OK) as (url, _), rig(OK, tmp_path, engines=(url,), health_interval=0.01) as made:
            assert (await made.post())[0] == 200

    asyncio.run(body())


def test_a_connection_that_ends_before_an_answer_is_tried_again(tmp_path: Path) -> None:
    tries: list[int] = []

    async def drops_once(request: web.Request, _: Any) -> web.Response:
        tries.append(len(tries))
        if len(tries) == 1:
            assert request.transport is not None
            request.transport.abort()
        return web.json_response(chat([1], [2]))

    async def body() -> None:
        async with rig(drops_once, tmp_path) as made:
            assert (await made.post())[0] == 200
            assert len(tries) == 2
            assert len(made.records()) == 1
        async with rig(drops_once, tmp_path, retries=0) as made:
            tries.clear()
            assert (await made.post())[0] == 502
            assert len(tries) == 1

    asyncio.run(body())


def test_a_time_for_a_whole_call(tmp_path: Path) -> None:
    async def slow(_: web.Request, __: Any) -> web.Response:
        await asyncio.sleep(60)
        raise AssertionError

    async def body() -> None:
        async with rig(slow, tmp_path, timeout=0.05) as made:
            assert (await made.post())[0] == 504
            assert made.lines(".intents")[1][1] == "no engine answered: no answer in time"

    asyncio.run(body())


def test_the_engine_of_the_session_that_came_first_is_forgotten_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tokenrecords.gateway.engines._STICKY", 2)
    pool = Pool(["a", "b"])
    held = [pool.choose(session) for session in ("s", "t", "u")]
    for each in held:
        each.open += 1
    held[0].open += 5
    assert pool.choose("u") is held[2]
    assert pool.choose("t") is held[1]
    assert pool.choose("s") is not held[0]


def test_an_engine_that_drops_a_connection_is_up_and_has_no_call_more() -> None:
    """It was reached, so another call may go there."""
    pool = Pool(["http://e"])

    class Dropping:
        async def request(self, *_: Any, **__: Any) -> Any:
            raise DroppedError("the connection was closed")

    with pytest.raises(DroppedError):
        sent(pool, Dropping(), retries=1)
    assert (pool.engines[0].is_up, pool.engines[0].open) == (True, 0)


def sent(pool: Pool, upstream: Any, *, retries: int) -> Any:
    """The answer to a call, and the engine that gave it."""
    settings = SimpleNamespace(key=None, engine_key=None, retries=retries)
    state: Any = SimpleNamespace(settings=settings, pool=pool, upstream=upstream)
    request: Any = SimpleNamespace(headers={}, method="POST")
    return asyncio.run(send(state, request, route_of("/sessions/s/v1/completions", {}), b"", is_read=True))


class Says:
    """Engines that end so, one call after the other."""

    def __init__(self, *ends: Any) -> None:
        self.ends = list(ends)

    async def request(self, *_: Any, **__: Any) -> Any:
        end = self.ends.pop(0)
        if isinstance(end, Exception):
            raise end
        return end


@pytest.mark.parametrize("problem", [CutOffError("not HTTP"), TimeoutError("no answer in time")])
def test_a_call_that_an_engine_may_have_begun_is_not_sent_again(problem: Exception) -> None:
    pool, upstream = Pool(["a", "b"]), Says(problem, "an answer")
    with pytest.raises(type(problem)):
        sent(pool, upstream, retries=2)
    assert upstream.ends == ["an answer"]
    assert [(each.is_up, each.open) for each in pool.engines] == [(True, 0)] * 2


def test_an_engine_that_was_down_is_up_when_it_answers_a_call() -> None:
    pool = Pool(["a"])
    pool.engines[0].is_up = False
    assert sent(pool, Says("an answer"), retries=0) == ("an answer", pool.engines[0])
    assert (pool.engines[0].is_up, pool.engines[0].open) == (True, 1)


def test_each_wait_before_a_call_is_sent_again_is_twice_as_long(monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []

    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    monkeypatch.setattr("tokenrecords.gateway.sending.asyncio", SimpleNamespace(sleep=sleep))
    assert sent(Pool(["a"]), Says(*[DownError()] * 3, "an answer"), retries=3)[0] == "an answer"
    assert waits == [0.05, 0.1, 0.2]


def test_an_engine_that_does_not_say_that_it_is_there_is_looked_at_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """And one that is up is not looked at."""
    monkeypatch.setattr("tokenrecords.gateway.engines._LOOK", 0.02)
    tried: list[str] = []

    class Slow:
        async def request(self, _: str, root: str, *__: Any, **___: Any) -> Any:
            tried.append(root)
            await asyncio.sleep(60)

    async def body() -> None:
        pool, slow = Pool(["a", "b"]), Slow()
        pool.engines[1].is_up = False
        watch = asyncio.ensure_future(pool.watch(slow, 0.01))  # type: ignore[arg-type]
        async with asyncio.timeout(20):
            while len(tried) < 3:
                await asyncio.sleep(0.01)
        watch.cancel()
        assert set(tried) == {"b"}
        assert [each.is_up for each in pool.engines] == [True, False]

    asyncio.run(body())


@pytest.mark.parametrize(("status", "is_up"), [(200, True), (404, True), (499, True), (500, False), (503, False)])
def test_an_engine_that_knows_no_health_is_there_all_the_same(status: int, is_up: bool) -> None:
    async def body() -> None:
        async with engine(says({}, status)) as (url, seen):
            pool = Pool([url])
            pool.engines[0].is_up = False
            upstream = Upstream()
            watch = asyncio.ensure_future(pool.watch(upstream, 0.01))
            while len(seen) < 2 and not pool.engines[0].is_up:
                await asyncio.sleep(0.01)
            watch.cancel()
            upstream.close()
            assert pool.engines[0].is_up is is_up

    asyncio.run(body())
