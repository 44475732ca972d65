"""Memory as it was, over HTTP: any read with `?as_of=` is answered once that is built, and until then with the job."""

import functools
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Annotated

import msgspec
import orjson
from fastapi import APIRouter, Path, Query, Request, Response
from pydantic import PlainValidator, WithJsonSchema
from starlette.types import ASGIApp, Receive, Scope, Send

from memctl.api.http.access import caller_of
from memctl.api.http.parameters import IN_DIGITS
from memctl.api.reading.caller import Caller, Forbidden
from memctl.api.reading.reader import AS_OF, Then
from memctl.domain.events.event import Position
from memctl.domain.support.errors import MemctlError
from memctl.infra.log.mark import mark, position_at
from memctl.infra.log.spaces import connected
from memctl.infra.readmodels import as_of_snapshots, generations
from memctl.infra.readmodels.as_of_snapshots import AsOfSnapshot
from memctl.infra.settings import Settings

_LATEST = 2**63 - 1


class PositionNotReached(MemctlError):
    """The log has not reached position {position} yet: it stands at {mark}."""

    exit_code = 2
    position: int
    mark: int


class NoJob(MemctlError):
    """There is no job {id}."""

    exit_code = 3
    id: int


class StillBuilding(MemctlError):
    """Memory as of position {position} is being built."""

    position: int

    def __init__(self, snapshot: AsOfSnapshot) -> None:
        super().__init__(position=snapshot.position)
        self.snapshot = snapshot


def _read_moment(given: str) -> Position | datetime:
    """A position of the log, or a time."""
    if given.isascii() and given.isdigit():
        return Position(min(int(given[:20]), _LATEST))
    try:
        at = datetime.fromisoformat(given)
    except ValueError:
        raise ValueError("neither a position of the log nor a time such as 2026-03-01T14:30+01:00") from None
    return at if at.tzinfo else at.replace(tzinfo=UTC)


_AsOf = Annotated[
    Position | datetime | None,
    PlainValidator(_read_moment),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "integer", "minimum": 0},
                {"type": "string", "format": "date-time"},
                {"type": "string", "format": "date"},
            ]
        }
    ),
    Query(
        description="As memory was at a position or a time (ISO 8601; UTC where no zone is given): 202 with the job's"
        " address first, then the answer, for as long as it is looked at. Searched by words alone."
        " Not for keys that are limited to projects (403).",
        examples=["2026-03-01"],
    ),
]


def as_of(settings: Settings) -> Callable[..., Awaitable[None]]:
    """A dependency by which a request reads memory as it was, where it asks for that. Raises: StillBuilding, …"""

    # On the event loop: what a thread sets of its context, the route would not see.
    async def look(request: Request, as_of: _AsOf = None) -> None:
        if as_of is not None:
            caller = caller_of(request)
            if caller.projects is not None:
                # What a place belonged to then is not what the key was given: it may have been split off since.
                raise Forbidden(why="a key that is limited to projects reads memory as it is now, without as_of")
            AS_OF.set(functools.cache(lambda: _then(settings, as_of, caller)))

    return look


class Now:
    """Each request reads memory as it is, until it asks otherwise. A server hands on its context from request to
    request: without this the next one on a connection would read what the one before asked for."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        AS_OF.set(None)
        await self._app(scope, receive, send)


def jobs(settings: Settings) -> APIRouter:
    """How far a job is."""
    router = APIRouter(tags=["log"])

    @router.get("/jobs/{id}")
    def job(request: Request, id: Annotated[int, Path(ge=1, le=_LATEST), IN_DIGITS]) -> Response:
        """A job that a read with `as_of` was answered with: asked, building, ready (ask again now), failed, dropped."""
        with connected(settings, caller_of(request).space or settings.space, "memctl as of") as connection:
            found = as_of_snapshots.read(connection, id)
        if found is None:
            raise NoJob(id=id)
        if caller_of(request).apart:  # why it failed may name what another space holds
            found = msgspec.structs.replace(found, message="")
        return Response(_body_of(found), media_type="application/json")

    return router


async def not_built(_: Request, why: Exception) -> Response:
    """The answer while it is being built."""
    assert isinstance(why, StillBuilding)
    headers = {"Location": f"/v1/jobs/{why.snapshot.id}", "Retry-After": "1"}
    return Response(_body_of(why.snapshot), 202, headers, media_type="application/json")


def _body_of(snapshot: AsOfSnapshot) -> bytes:
    return orjson.dumps(
        {"id": snapshot.id, "status": snapshot.status, "position": snapshot.position, "message": snapshot.message}
    )


def _then(settings: Settings, moment: Position | datetime, caller: Caller) -> Then:
    with connected(settings, caller.space or settings.space, "memctl as of") as connection:
        position = position_at(connection, moment) if isinstance(moment, datetime) else moment
        reached = mark(connection)
        if position > reached:
            raise PositionNotReached(position=position, mark=reached)
        snapshot = as_of_snapshots.ask(connection, position, generations.live(connection), caller.name)
        if snapshot.then is None:
            raise StillBuilding(snapshot)
        row = connection.execute(
            "SELECT recorded_at FROM memctl.events WHERE position <= %s ORDER BY position DESC LIMIT 1", [position]
        ).fetchone()
    return Then(snapshot.then, row[0] if row is not None else datetime(1970, 1, 1, tzinfo=UTC))
