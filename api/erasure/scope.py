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
from memctl.domain.projects.identity import UnknownProject
from memctl.domain.support.location import is_absolute, normalise
from memctl.domain.support.written_forms import WrittenForms
from memctl.infra.database import Connection
from memctl.infra.log import erase
from memctl.infra.log.mark import mark
from memctl.infra.settings import Settings
from memctl.workers.erasure import on_disk
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
    with_what_is_on_disk,
)
from memctl.workers.erasure.look import Look

__all__ = ["Forgotten", "Plan", "Preview", "forget", "forget_once", "look_of", "plan", "preview", "reopen", "resume"]


def look_of(settings: Settings, reader: Reader) -> Look:
    """What who asks may find out. `settings` are those of this machine: their space is its door's."""
    return Look(
        space_id=reader.space_id, space=reader.space, owner=reader.here, data_dir=settings.data_dir, home=settings.space
    )


def plan(
    settings: Settings,
    reader: Reader,
    *,
    id: str = "",
    session: str = "",
    project: str = "",
    before: datetime | None = None,
    match: str = "",
) -> Plan:
    """What one of these means, in memory and on this disk. Raises: NothingToForget, TooShort, NotFound, Ambiguous,
    UnknownProject, SeveralProjects."""
    now, look = Micros(time.time_ns() // 1000), look_of(settings, reader)
    if "\0" in id + session + project + match:
        raise NothingToForget(what="what holds NUL", hint="no text in memory does")
    if session:
        streams = _streams(reader, session, look)
        planned = Plan(look=look, scope=Scope(kind="session", streams=streams, until=now), what=f"session {streams[0]}")
    elif project:
        planned = _of_project(reader, project, now, look)
    elif before is not None:
        moment = before if before.tzinfo else before.replace(tzinfo=UTC)
        until = Micros(min(now, (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)))
        scope = Scope(kind="before", until=until)
        planned = Plan(look=look, scope=scope, what=f"everything before {moment.isoformat()}")
    elif match:
        planned = _of_text(reader, match, look)
    else:
        return _of_id(settings, reader, id.strip(), look)
    return with_what_is_on_disk(planned)


def _of_project(reader: Reader, project: str, now: Micros, look: Look) -> Plan:
    """A project's places; one that memory does not know may be the path of what waits on disk."""
    try:
        places = places_of(reader, project)
    except UnknownProject:
        scope = Scope(kind="project", locations=(normalise(project),), until=now)
        if not is_absolute(project) or not next(on_disk.meant(look, scope, ""), None):
            raise
        return Plan(look=look, scope=scope, what=f"project {project}")
    if not places.locations:
        raise NothingToForget(what=f"project {project}", hint="`memctl forget --before` forgets by time")
    scope = Scope(kind="project", locations=places.locations, until=now)
    return Plan(look=look, scope=scope, what=f"project {places.project}")


def _of_text(reader: Reader, text: str, look: Look) -> Plan:
    if len("".join(text.split())) < SHORTEST_MATCH:
        raise TooShort
    read_upto = mark(reader.connection, reader.space_id)
    found = holding(reader.connection, reader.space_id, WrittenForms([text]))
    what, scope = "what holds that text", Scope(kind="match")
    if not found and not next(on_disk.meant(look, scope, text), None):
        raise NothingToForget(what=what)
    planned = _of_ids(reader, found, scope, what, look)
    return msgspec.structs.replace(planned, text=text, read_upto=read_upto)


def _of_ids(reader: Reader, ids: set[UUID], scope: Scope, what: str, look: Look) -> Plan:
    whole, tombstones = with_counterparts(reader.connection, reader.space_id, ids)
    return Plan(look=look, scope=scope, what=what, ids=frozenset(whole), tombstones=tuple(tombstones))


def _streams(reader: Reader, wanted: str, look: Look) -> tuple[str, ...]:
    """A session's stream, and those of its subagents; one that memory does not know may wait on disk."""
    rows = reader.connection.execute(
        "SELECT DISTINCT stream FROM memctl.events WHERE space_id = %s AND stream LIKE 'session/%%/%%'"
        " AND (stream = %s OR session_id = %s)",
        [reader.space_id, wanted, wanted],
    ).fetchall()
    found = [row[0] for row in rows] or on_disk.sessions_called(look, wanted) or [queries.session(reader, wanted).id]
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


def _of_id(settings: Settings, reader: Reader, wanted: str, look: Look) -> Plan:
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
        return plan(settings, reader, session=id)
    what = f"{kind} {id}"
    ids_found = (
        {_delivery(reader.connection, reader.space_id, UUID(id))}
        if kind == "event"
        else of_thing(reader.connection, reader.space_id, id, kind)
    )
    if not ids_found:
        raise NothingToForget(what=what)
    return _of_ids(reader, ids_found, Scope(kind="id", id=id), what, look)


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
