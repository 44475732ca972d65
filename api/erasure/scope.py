"""What is to be forgotten: what an id, a session, a project, a time or a text means, before anything goes.

Showing what would follow, and doing it, are `memctl.workers.erasure.forgetting`'s.
"""

import time
from datetime import UTC, datetime, timedelta
from uuid import UUID

import msgspec

from memctl.api.queries import memories as queries
from memctl.api.reading.places import places_of
from memctl.api.reading.reader import Reader
from memctl.domain.events.erasure import SHORTEST_MATCH, NothingToForget, Scope, TooShort
from memctl.domain.events.event import Micros
from memctl.domain.support.written_forms import WrittenForms
from memctl.infra.database import Connection
from memctl.infra.log import erase
from memctl.infra.log.mark import mark
from memctl.workers.erasure.erase import with_counterparts
from memctl.workers.erasure.forgetting import (
    Forgotten,
    Plan,
    Preview,
    forget,
    forget_once,
    holding,
    of_thing,
    preview,
    reopen,
    resume,
)

__all__ = ["Forgotten", "Plan", "Preview", "forget", "forget_once", "plan", "preview", "reopen", "resume"]


def plan(
    reader: Reader,
    *,
    id: str = "",
    session: str = "",
    project: str = "",
    before: datetime | None = None,
    match: str = "",
) -> Plan:
    """What one of these means. Raises: NothingToForget, TooShort, NotFound, Ambiguous, UnknownProject,
    SeveralProjects."""
    now = Micros(time.time_ns() // 1000)
    connection, space_id = reader.connection, reader.space_id
    if "\0" in id + session + project + match:
        raise NothingToForget(what="what holds NUL", hint="no text in memory does")
    if session:
        streams = _streams(reader, session)
        return Plan(scope=Scope(kind="session", streams=streams, until=now), what=f"session {streams[0]}")
    if project:
        places = places_of(reader, project)
        if not places.locations:
            raise NothingToForget(what=f"project {project}", hint="`memctl forget --before` forgets by time")
        return Plan(
            scope=Scope(kind="project", locations=places.locations, until=now), what=f"project {places.project}"
        )
    if before is not None:
        moment = before if before.tzinfo else before.replace(tzinfo=UTC)
        until = Micros(min(now, (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)))
        return Plan(scope=Scope(kind="before", until=until), what=f"everything before {moment.isoformat()}")
    if match:
        if len("".join(match.split())) < SHORTEST_MATCH:
            raise TooShort
        read_upto = mark(connection, space_id)
        found = holding(connection, space_id, WrittenForms([match]))
        planned = _of_ids(connection, space_id, found, Scope(kind="match"), "what holds that text")
        return msgspec.structs.replace(planned, text=match, read_upto=read_upto)
    return _of_id(reader, id.strip())


def _of_ids(connection: Connection, space_id: int, ids: set[UUID], scope: Scope, what: str) -> Plan:
    if not ids:
        raise NothingToForget(what=what)
    whole, tombstones = with_counterparts(connection, space_id, ids)
    return Plan(scope=scope, what=what, ids=frozenset(whole), tombstones=tuple(tombstones))


def _streams(reader: Reader, wanted: str) -> tuple[str, ...]:
    """A session's stream, and those of its subagents."""
    rows = reader.connection.execute(
        "SELECT DISTINCT stream FROM memctl.events WHERE space_id = %s AND stream LIKE 'session/%%/%%'"
        " AND (stream = %s OR session_id = %s)",
        [reader.space_id, wanted, wanted],
    ).fetchall()
    found = [row[0] for row in rows] or [queries.session(reader, wanted).id]
    waiting = list(found)
    while waiting:
        # Whoever has a key may begin a session of another client's that is called like somebody's.
        agents, ids = zip(*(stream.split("/", 2)[1:] for stream in waiting), strict=True)
        rows = reader.connection.execute(
            "SELECT DISTINCT stream FROM memctl.events JOIN unnest(%s::text[], %s::text[]) AS of(agent, id)"
            " ON split_part(stream, '/', 2) = agent AND payload->>'parent_session' = id"
            " WHERE space_id = %s AND type = 'session.started'",
            [list(agents), list(ids), reader.space_id],
        ).fetchall()
        waiting = [row[0] for row in rows if row[0] not in found]
        found += waiting
    return tuple(found)


def _of_id(reader: Reader, wanted: str) -> Plan:
    try:
        found = queries.thing(reader, wanted)
        kind, id = found.kind, str(found.item["id"])
    except queries.NotFound:
        # What no read model shows may be an event all the same, one that cannot be read.
        ids = [UUID(id) for id in queries.event_ids(reader, wanted, 2)]
        if len(ids) != 1:
            raise
        kind, id = "event", str(ids[0])
    if kind == "session":
        return plan(reader, session=id)
    what = f"{kind} {id}"
    ids_found = (
        {_delivery(reader.connection, reader.space_id, UUID(id))}
        if kind == "event"
        else of_thing(reader.connection, reader.space_id, id, kind)
    )
    return _of_ids(reader.connection, reader.space_id, ids_found, Scope(kind="id", id=id), what)


def _delivery(connection: Connection, space_id: int, id: UUID) -> UUID:
    delivery, kind = connection.execute(
        "SELECT coalesce(variant_of, event_id), type FROM memctl.events"
        " WHERE position = ANY(ARRAY(SELECT * FROM memctl.positions_of(%s, %s)))",
        [space_id, [id]],
    ).fetchone() or (id, "")
    if kind in erase.RECORDS:
        raise NothingToForget(what=f"event {id}", hint=f"what `{kind}` records holds ids alone, and is never forgotten")
    found: UUID = delivery
    return found
