"""A key may ask so much at once, others beside it as before; what it asked for is logged without a word of it."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
from collections import Counter
from typing import Any

import pytest
from starlette.types import Message, Receive, Scope, Send

from memctl.api.http import turns
from memctl.api.reading import deadline
from memctl.api.reading.caller import Caller
from memctl.api.server import key_use
from memctl.api.server.auth import Guard, names_of
from memctl.api.server.deadlines import Deadline
from memctl.api.server.key_use import A_SECOND, AT_ONCE, MOST_KEYS, REPEATED_S, Audit, Rates


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_key_waits_once_it_has_asked_too_much_and_no_other_key_does() -> None:
    clock = Clock()
    rates = Rates(clock)
    assert [rates.wait("a") for _ in range(int(AT_ONCE))] == [0.0] * int(AT_ONCE)
    assert rates.wait("a") == pytest.approx(1 / A_SECOND)
    assert rates.wait("b") == 0.0
    clock.now += 1.0
    assert sum(rates.wait("a") == 0.0 for _ in range(200)) == A_SECOND


def test_the_keys_of_one_space_take_no_more_than_their_space_has_and_nothing_of_anothers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(key_use, "SPACE_AT_ONCE", 5.0)
    monkeypatch.setattr(key_use, "SPACE_A_SECOND", 0.001)

    def whose(token: str) -> Caller:
        return Caller(token, frozenset({"read"}), None, key=token, space=token[0], apart=token[0] != "c")

    guard = Guard(_answers, "owners", frozenset({"localhost"}), caller=whose)
    assert [asked(guard, f"a{number}") for number in range(7)] == [200] * 5 + [429] * 2
    assert asked(guard, "b1") == 200
    assert [asked(guard, f"c{number}") for number in range(7)] == [200] * 7


def test_no_space_keeps_all_turns_from_another() -> None:
    async def asked() -> None:
        taken = turns.Turns()
        async with contextlib.AsyncExitStack() as held:
            for number in range(turns.OF_SPACE):
                assert await held.enter_async_context(taken.of(f"key {number}", "a")) is not None
            more = asyncio.create_task(held.enter_async_context(taken.of("key of a", "a")))
            await asyncio.sleep(0)
            async with taken.of("key of b", "b") as turn:
                assert turn is not None
            more.cancel()
            await asyncio.gather(more, return_exceptions=True)
        assert taken._each == {}

    asyncio.run(asyncio.wait_for(asked(), turns.PATIENCE_S / 2))


def test_keys_without_end_take_no_more_room() -> None:
    rates = Rates(Clock())
    for number in range(3 * MOST_KEYS):
        rates.wait(str(number))
    assert len(rates._left) <= MOST_KEYS


def test_a_route_is_logged_and_nothing_that_was_asked(caplog: pytest.LogCaptureFixture) -> None:
    class Route:
        path = "/v1/things/{id:path}"

    clock = Clock()
    audit = Audit(clock)
    with caplog.at_level(logging.INFO, logger=key_use.log.name):
        for _ in range(3):
            audit.note("laptop", "GET", {"path": "/v1/things/quartz", "route": Route()}, 200)
        audit.note("laptop", "GET", {"path": "/v1/things/quartz/more", "query_string": b"q=quartz"}, 403)
        for number in range(100):
            audit.note("laptop", f"X{number}", {"path": f"/v1/quartz{number}"}, 403)
        clock.now += REPEATED_S
        audit.note("laptop", "GET", {"path": "/v1/things/quartz", "route": Route()}, 200)
    assert caplog.messages == [
        "key laptop: GET /v1/things/{id:path} 200",
        "key laptop: GET /v1/things 403",
        "key laptop: another method no route of a key's 403",
        "key laptop: GET /v1/things/{id:path} 200, and 2 times since the last such line",
    ]


async def _answers(scope: Any, receive: Any, send: Any) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b""})


def asked(guard: Guard, token: str, host: str = "localhost", origin: str = "") -> int:
    """The status of one request with a token, from a page of that origin where one is given."""
    seen: list[Any] = []

    async def receive() -> Any:
        return {"type": "http.request", "body": b""}

    async def send(message: Any) -> None:
        seen.append(message)

    headers = [(b"host", host.encode()), (b"authorization", f"Bearer {token}".encode())]
    headers += [(b"origin", origin.encode())] if origin else []
    scope = {"type": "http", "method": "GET", "path": "/v1/memories", "query_string": b"q=quartz", "headers": headers}
    asyncio.run(guard(scope, receive, send))
    return int(seen[0]["status"])


def test_the_guard_logs_each_request_of_a_key_and_slows_it_down_and_not_the_owner(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(key_use, "AT_ONCE", 3.0)
    monkeypatch.setattr(key_use, "A_SECOND", 0.001)
    guard = Guard(
        _answers, "owners", frozenset({"localhost"}), caller=lambda token: Caller(token, frozenset({"read"}), None)
    )
    with caplog.at_level(logging.INFO, logger=key_use.log.name):
        assert [asked(guard, "laptop") for _ in range(5)] == [200, 200, 200, 429, 429]
        assert [asked(guard, "owners") for _ in range(5)] == [200] * 5
    assert caplog.messages == ["key laptop: GET /v1/memories 200", "key laptop: GET /v1/memories 429"]


def test_questions_of_keys_wait_for_their_turn_and_the_owners_do_not() -> None:
    at_work: Counter[str] = Counter()
    most: Counter[str] = Counter()
    statuses: dict[str, list[int]] = {"ann": [], "bob": [], "owners": []}

    async def question(scope: Scope, receive: Receive, send: Send) -> None:
        who = scope["state"]["caller"].name
        if who != "owner":
            at_work[who] += 1
            most[who] = max(most[who], at_work[who])
            most["keys"] = max(most["keys"], at_work.total())
            await go_on.wait()
            at_work[who] -= 1
        await _answers(scope, receive, send)

    guard = Guard(
        question, "owners", frozenset({"localhost"}), caller=lambda token: Caller(token, frozenset({"read"}), None)
    )

    async def ask(token: str) -> None:
        async def send(message: Message) -> None:
            if message["type"] == "http.response.start":
                statuses[token].append(message["status"])

        headers = [(b"host", b"localhost"), (b"authorization", f"Bearer {token}".encode())]
        scope = {"type": "http", "method": "GET", "path": "/v1/memories", "query_string": b"", "headers": headers}
        await guard(scope, lambda: asyncio.sleep(0, {"type": "http.request", "body": b""}), send)

    async def asked() -> None:
        asking = [asyncio.create_task(ask(who)) for who in ["ann"] * 20 + ["bob"] * 20]
        while at_work.total() < turns.OF_ALL:
            await asyncio.sleep(0)
        await ask("owners")
        assert statuses == {"ann": [], "bob": [], "owners": [200]}
        go_on.set()
        await asyncio.gather(*asking)

    go_on = asyncio.Event()
    asyncio.run(asked())
    assert statuses == {"ann": [200] * 20, "bob": [200] * 20, "owners": [200]}
    assert most == {"ann": turns.OF_ONE, "bob": turns.OF_ALL - turns.OF_ONE, "keys": turns.OF_ALL}


def test_a_question_without_a_turn_in_time_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "PATIENCE_S", 0.01)

    async def asked() -> None:
        taken = turns.Turns()
        async with contextlib.AsyncExitStack() as asked:
            held = [await asked.enter_async_context(taken.of("ann")) for _ in range(turns.OF_ONE)]
            async with taken.of("ann") as none:
                assert none is None
            assert held[0] is not None
            held[0].give_back()
            held[0].give_back()  # an answer that begins and ends
            assert await asked.enter_async_context(taken.of("ann")) is not None
            assert await asked.enter_async_context(taken.of("ann")) is None
        async with taken.of("ann") as again:
            assert again is not None

    asyncio.run(asked())


@pytest.mark.parametrize("seed", range(20))
def test_whatever_tasks_of_questions_do_and_however_they_end_all_turns_come_back(seed: int) -> None:
    """A streamed answer looks for the end of its connection in a task of its own; a client may leave at any time."""
    rng = random.Random(seed)

    async def some_of(turn: turns.Turn) -> None:
        for _ in range(6):
            match rng.randrange(4):
                case 0:
                    await turn.take()
                case 1:
                    turn.give_back()
                case 2 if rng.random() < 0.2:
                    turn.end()
                case _:
                    await asyncio.sleep(0)

    async def question(taken: turns.Turns, key: str) -> None:
        async with taken.of(key) as turn, asyncio.TaskGroup() as tasks:
            assert turn is not None
            for _ in range(3):
                task = tasks.create_task(some_of(turn))
                if rng.random() < 0.3:
                    task.get_loop().call_later(rng.random() / 100, task.cancel)

    async def asked() -> None:
        taken = turns.Turns()
        asking = [asyncio.create_task(question(taken, rng.choice(["ann", "bob", "eve"]))) for _ in range(40)]
        for task in rng.sample(asking, 15):
            task.get_loop().call_later(rng.random() / 100, task.cancel)
        await asyncio.gather(*asking, return_exceptions=True)
        async with contextlib.AsyncExitStack() as held:
            for number in range(turns.OF_ALL):  # as many as there are
                assert await held.enter_async_context(taken.of(f"key {number}")) is not None

    asyncio.run(asyncio.wait_for(asked(), 10 * turns.PATIENCE_S))


def test_a_body_that_comes_slowly_and_an_answer_that_is_read_slowly_take_no_turn() -> None:
    reached: Counter[str] = Counter()
    statuses: list[int] = []

    async def question(scope: Scope, receive: Receive, send: Send) -> None:
        await receive()
        await _answers(scope, receive, send)

    guard = Guard(
        question, "owners", frozenset({"localhost"}), caller=lambda token: Caller(token, frozenset({"read"}), None)
    )

    async def asked() -> None:
        go_on = asyncio.Event()

        async def ask(slow: str) -> None:
            async def receive() -> Message:
                await waits("body")
                return {"type": "http.request", "body": b""}

            async def send(message: Message) -> None:
                if message["type"] == "http.response.start":
                    statuses.append(message["status"])
                    await waits("answer")

            async def waits(where: str) -> None:
                if where == slow:
                    reached[slow] += 1
                    await go_on.wait()

            headers = [(b"host", b"localhost"), (b"authorization", b"Bearer ann")]
            scope = {"type": "http", "method": "GET", "path": "/v1/memories", "query_string": b"", "headers": headers}
            await guard(scope, receive, send)

        slow = ["body", "answer"] * turns.OF_ALL
        asking = [asyncio.create_task(ask(each)) for each in slow]
        while reached.total() < len(slow):
            await asyncio.sleep(0)
        await ask("nothing")
        assert statuses == [200] * (turns.OF_ALL + 1)
        go_on.set()
        await asyncio.gather(*asking)
        assert statuses == [200] * (len(slow) + 1)

    asyncio.run(asyncio.wait_for(asked(), turns.PATIENCE_S))


def test_what_a_key_may_not_ask_counts_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(key_use, "AT_ONCE", 3.0)
    monkeypatch.setattr(key_use, "A_SECOND", 0.001)
    guard = Guard(_answers, "owners", frozenset({"localhost"}), caller=lambda token: Caller(token, frozenset(), None))
    assert [asked(guard, "laptop") for _ in range(5)] == [403, 403, 403, 429, 429]


def test_behind_a_proxy_that_ends_tls_people_ask_by_its_address_and_pages_of_others_do_not() -> None:
    guard = Guard(_answers, "owners", names_of("https://memory.example"))
    assert asked(guard, "owners", "memory.example", "https://memory.example") == 200
    assert asked(guard, "owners", "memory.example", "https://evil.example") == 403
    assert asked(guard, "owners", "evil.example", "https://evil.example") == 403


def test_what_had_no_answer_is_logged_by_its_route(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(deadline, "QUESTION_S", 0.01)
    sent: list[Message] = []

    async def never(scope: Scope, receive: Receive, send: Send) -> None:
        await asyncio.Event().wait()

    async def send(message: Message) -> None:
        sent.append(message)

    async def asked() -> None:
        scope = {"type": "http", "method": "GET", "path": "/v1/things/quartz", "headers": []}
        await Deadline(never)(scope, lambda: asyncio.sleep(0, {}), send)

    asyncio.run(asked())
    assert sent[0]["status"] == 503
    assert caplog.messages == ["GET /v1/things had no answer after 0 s; it is ended"]
