"""What changes while one looks: one's own writes, events and progress as they come."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Annotated, Any

import msgspec
import orjson
from fastapi import APIRouter, Header, Query, Request, Response
from fastapi.concurrency import run_in_threadpool
from starlette.responses import StreamingResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from memctl.api.http.access import caller_of
from memctl.api.http.openapi import Responses
from memctl.api.http.parameters import IN_DIGITS
from memctl.api.http.turns import Turn
from memctl.api.queries import stats
from memctl.api.reading.caller import Caller
from memctl.api.reading.counts import LogProgress
from memctl.api.reading.reader import Reader, Readers, TooBusy
from memctl.domain.support.errors import MemctlError
from memctl.infra.log.mark import mark
from memctl.infra.readmodels import rebuilds
from memctl.infra.vectors import outbox

PATIENCE_S = 5.0
"""How long an answer may wait for the read models to have caught up."""

LOOK_AGAIN_S, LOOK_SELDOM_S = 0.03, 0.5
"""Between looks at how far the read models are: the first, and the longest."""

MOST_WAITING = 32
"""How many requests may wait at the same time. More than that are answered at once that it is not read yet."""

TAIL_EVERY_S = 0.5
BEAT_S = 15.0
"""A tail that has nothing to say says so this often, so that dead connections are found."""

MOST_TAILS, OF_KEYS, OF_A_SPACE, OF_A_KEY = 16, 12, 8, 4
"""Tails at once, each a connection: of all, of all keys, of one space where there are several, of one key."""
MOST_AT_ONCE = 500
"""Events that a tail reads at once, and holds in memory."""


class NotWritten(MemctlError):
    """The log ends at position {last}: nothing was written at {wanted}."""

    exit_code = 2
    last: int
    wanted: int


class StillBehind(MemctlError):
    """What is read from has come to position {reached}, not yet to {wanted}."""

    hint = "Ask again in a moment; `memctl status` says whether the worker runs."
    reached: int
    wanted: int


def caught_up(readers: Readers, *, standby: bool = False) -> Callable[..., Awaitable[None]]:
    """A dependency that lets a request wait until everything up to `min_position` can be read and searched by words.
    `standby`: what is read from may not have received the log's end yet.

    It holds no thread while it waits: all that is asked of the API shares those.
    """
    waiting_now = 0

    async def wait(
        request: Request,
        min_position: Annotated[
            int | None,
            Query(ge=0, le=2**63 - 1, description="Wait until everything up to this position of the log can be read."),
            IN_DIGITS,
        ] = None,
    ) -> None:
        if min_position is None:
            return
        nonlocal waiting_now
        deadline, pause = time.monotonic() + PATIENCE_S, LOOK_AGAIN_S
        waiting_now += 1
        turn: Turn | None = getattr(request.state, "turn", None)
        try:
            while True:
                last, reached, waiting, dense = await run_in_threadpool(readers.read, how_far, caller_of(request))
                if min_position > last and not standby:
                    raise NotWritten(last=last, wanted=min_position)
                if reached >= min_position and not waiting:
                    break
                if time.monotonic() > deadline or waiting_now > MOST_WAITING:
                    raise StillBehind(reached=reached, wanted=min_position)
                if turn is not None:
                    turn.give_back()
                await asyncio.sleep(pause)
                pause = min(1.5 * pause, LOOK_SELDOM_S)
            if turn is not None:
                await turn.take()
        finally:
            waiting_now -= 1
        request.state.added_headers = [
            (b"memctl-position", str(reached).encode()),
            (b"memctl-dense-waiting", str(dense).encode()),
        ]

    return wait


def how_far(reader: Reader) -> tuple[int, int, int, int]:
    """The log's last position, the one up to which all is folded, and points that wait for their words and meaning."""
    found = stats.progress(reader)
    lowest = min((shard.position for shard in found.shards), default=0)
    return (found.last_position, lowest, *outbox.backlog(reader.connection, reader.live.stage2, reader.space_id))


class AddedHeaders:
    """Adds to an answer the headers that its dependencies set."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", ()), *scope.get("state", {}).get("added_headers", ())]
            await send(message)

        await self._app(scope, receive, sending if scope["type"] == "http" else send)


def tails(readers: Readers) -> APIRouter:
    """Server-sent events: the log as it grows, and how far everything is."""
    router = APIRouter(tags=["live"])
    open_tails: set[_Tail] = set()

    described: Responses = {
        200: {"description": "Server-sent events.", "content": {"text/event-stream": {"schema": {"type": "string"}}}}
    }

    @router.get("/tail/events", responses=described, response_class=StreamingResponse)
    async def events(
        request: Request,
        after: Annotated[
            int | None,
            Query(ge=0, le=2**63 - 1, description="A position; by default the log's end."),
            IN_DIGITS,
        ] = None,
        last: Annotated[str, Header(alias="Last-Event-ID", max_length=20)] = "",
    ) -> Response:
        """Every event from a position on, once it can be read. Its id is its position, its data says what it is."""
        start = int(last) if last.isascii() and last.isdecimal() and int(last) < 2**63 else after
        if start is None:
            start = await run_in_threadpool(
                readers.read, lambda reader: int(mark(reader.connection, reader.space_id)), caller_of(request)
            )
        return _Tail(_events(readers, request, start), caller_of(request), open_tails)

    @router.get("/tail/progress", responses=described, response_class=StreamingResponse)
    async def progress(request: Request) -> Response:
        """How far the read models are behind the log, and how far rebuilds are, whenever that changes."""
        return _Tail(_progress(readers, request), caller_of(request), open_tails)

    return router


class _Tail(StreamingResponse):
    """An answer that goes on. Counted from where it is sure to be taken back."""

    def __init__(self, source: AsyncIterator[bytes], caller: Caller, open_tails: set[_Tail]) -> None:
        super().__init__(source, media_type="text/event-stream", headers={"Cache-Control": "no-store"})
        self._caller = caller
        self._open = open_tails

    def _has_room(self) -> bool:
        mine, others = self._caller, [each._caller for each in self._open]
        if not mine.key:
            return len(others) < MOST_TAILS
        keys = [each for each in others if each.key]
        of_space = [each for each in keys if each.space == mine.space]
        of_key = [each for each in of_space if each.key == mine.key]
        room = len(keys) < OF_KEYS and len(of_key) < OF_A_KEY
        return room and not (mine.apart and len(of_space) >= OF_A_SPACE)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if not self._has_room():
            raise TooBusy
        self._open.add(self)
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._open.discard(self)


async def _events(readers: Readers, request: Request, after: int) -> AsyncIterator[bytes]:
    reached = [after]
    async for found in _seen(readers, request, lambda reader: _since(reader, reached[0])):
        for row in found:
            reached[0] = row.position
            data = orjson.dumps(row, default=msgspec.to_builtins)
            yield b"id: %d\nevent: %s\ndata: %s\n\n" % (reached[0], row.type.encode(), data)
        if found is _BEAT:
            yield b": still here\n\n"


async def _progress(readers: Readers, request: Request) -> AsyncIterator[bytes]:
    before = b""
    async for found in _seen(readers, request, _standing):
        data = before if found is _BEAT else orjson.dumps(found, default=msgspec.to_builtins)
        if data != before:
            before = data
            yield b"event: progress\ndata: %s\n\n" % data
        elif found is _BEAT:
            yield b": still here\n\n"


class Arrived(msgspec.Struct, frozen=True):
    """An event that can be read now; `occurred_at` in microseconds."""

    position: int
    id: str
    type: str
    stream: str
    occurred_at: int


class EngineProgress(LogProgress, frozen=True, kw_only=True):
    """How far the read models are behind the log, and the rebuilds that run."""

    replays: list[rebuilds.RebuildProgress]


_BEAT: tuple[Any, ...] = ()


async def _seen(readers: Readers, request: Request, look: Callable[[Reader], Any]) -> AsyncIterator[Any]:
    """What `look` sees, again and again, and a beat now and then, as long as whoever asks may look (see
    `memctl.api.server.auth.Guard`)."""
    last_beat = time.monotonic()
    while await request.state.still_admitted():
        yield await run_in_threadpool(readers.read, look, caller_of(request))
        if time.monotonic() - last_beat > BEAT_S:
            last_beat = time.monotonic()
            yield _BEAT
        await asyncio.sleep(TAIL_EVERY_S)


def _since(reader: Reader, after: int) -> list[Arrived]:
    rows = reader.connection.execute(
        "SELECT position, event_id, type, stream, occurred_at FROM memctl.events"
        " WHERE space_id = %s AND position > %s AND position <= %s ORDER BY position LIMIT %s",
        [reader.space_id, after, mark(reader.connection, reader.space_id), MOST_AT_ONCE],
    )
    return [Arrived(row[0], str(row[1]), row[2], row[3], row[4]) for row in rows]


def _standing(reader: Reader) -> EngineProgress:
    running = [each for each in rebuilds.progress(reader.connection, 5) if each.ended_at is None]
    return EngineProgress(**msgspec.structs.asdict(stats.progress(reader)), replays=running)
