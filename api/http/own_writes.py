"""Reading one's own writes: an answer waits until what was written is folded."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Annotated

from fastapi import Query, Request
from fastapi.concurrency import run_in_threadpool

from memctl.api.http.access import caller_of
from memctl.api.http.parameters import IN_DIGITS
from memctl.api.queries import stats
from memctl.api.reading.reader import Reader, Readers
from memctl.domain.support.errors import MemctlError
from memctl.infra.vectors import outbox

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

PATIENCE_S = 5.0
"""How long an answer may wait for the read models to have caught up."""

LOOK_AGAIN_S, LOOK_SELDOM_S = 0.03, 0.5
"""Between looks at how far the read models are: the first, and the longest."""

MOST_WAITING = 32
"""How many requests may wait at the same time. More than that are answered at once that it is not read yet."""


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


def caught_up(readers: Readers) -> Callable[..., Awaitable[None]]:
    """A dependency that lets a request wait until everything up to `min_position` can be read and searched by words.

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
        try:
            while True:
                last, reached, waiting, dense = await run_in_threadpool(readers.read, _reached, caller_of(request))
                if min_position > last:
                    raise NotWritten(last=last, wanted=min_position)
                if reached >= min_position and not waiting:
                    break
                if time.monotonic() > deadline or waiting_now > MOST_WAITING:
                    raise StillBehind(reached=reached, wanted=min_position)
                await asyncio.sleep(pause)
                pause = min(1.5 * pause, LOOK_SELDOM_S)
        finally:
            waiting_now -= 1
        request.state.added_headers = [
            (b"memctl-position", str(reached).encode()),
            (b"memctl-dense-waiting", str(dense).encode()),
        ]

    return wait


def _reached(reader: Reader) -> tuple[int, int, int, int]:
    """The log's last position, the one up to which all is folded, and points that wait for their words and meaning."""
    found = stats.progress(reader)
    lowest = min((shard.position for shard in found.shards), default=0)
    return (found.last_position, lowest, *outbox.backlog(reader.connection, reader.live.stage2))


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
