"""What a session is at: the working memory of one session, and which session is meant where none is named."""

import time
from typing import Annotated

from msgspec import Meta
from psycopg import sql

from memctl.api.queries import memories as queries
from memctl.api.reading import models
from memctl.api.reading.briefs import summaries
from memctl.api.reading.pages import Condition, Where, field_of, one, page, rows_of
from memctl.api.reading.places import Places, kept_at, places_of
from memctl.api.reading.questions import question
from memctl.api.reading.reader import Reader
from memctl.api.reading.records import Context
from memctl.api.reading.views import shown_as
from memctl.domain.events.observations import session_stream
from memctl.domain.support.location import project_name
from memctl.domain.support.text import digest_of
from memctl.projections.working_memory import WorkingMemory

LATELY_US = 12 * 3_600_000_000
"""A session that was heard of within so many microseconds may be the one that a command at its place is about."""

BY_HAND = "memctl"
"""The agent in the name of the stream of what is stated of a place where no session is."""


OfSession = Annotated[
    str | None, Meta(max_length=512, description="A session's id, or that of a task or episode in it.")
]


class NoSession(queries.NotFound):
    """No session is known {where}."""

    hint = "`memctl context SESSION` shows any; --project '*' takes the latest of all projects."
    where: str


@question("/context", "work")
def context(reader: Reader, places: Places, session: OfSession = None) -> Context:
    """The working memory of one session: the one named (by its id, or that of a task or episode in it), or the latest.

    Raises: NotFound, NoSession, Ambiguous.
    """
    p = models.working_memory
    if session:
        stream = session_of(reader, session)
        row = one(reader, p, stream)
    else:
        rows, _ = page(reader, p, "updated_at", Where(p).within(places), limit=1)
        row = rows[0].row if rows else None
    if row is None:
        where = session or (f"in project {places.scope.project}" if places.scope.project else "yet")
        raise NoSession(id=session or "", where=where)
    return _context(reader, row)


def _context(reader: Reader, row: WorkingMemory) -> Context:
    session = one(reader, models.sessions, row.stream)
    agent, session_id = row.stream.split("/", 2)[1:]
    return shown_as(
        row,
        Context,
        id=row.stream,
        project=project_name(row.location) if row.location else "",
        agent=agent,
        session_id=session_id,
        title=session.title if session is not None else "",
        summary=summaries(reader, [session])[row.stream] if session is not None else "",
    )


def session_of(reader: Reader, wanted: str) -> str:
    """The stream of the session that this id is of, or that the task or episode of this id was worked on in last.

    Raises: NotFound, Ambiguous.
    """
    found = queries.thing(reader, wanted)
    kind, key = found.kind, str(found.item["id"])
    if kind == "session":
        return key
    episode = one(reader, models.episodes, key) if kind == "episode" else None
    if episode is not None:
        return episode.stream
    task = one(reader, models.tasks, key) if kind == "task" else None
    if task is not None and task.latest is not None:
        return task.latest.stream
    raise queries.NotFound(f"{wanted!r} is a {kind}, and no session", id=wanted)


def session_here(reader: Reader, location: str) -> str:
    """The stream that a statement made at a place is about: of the latest session there that nobody else began, if it
    was heard of lately, else of what is kept of the place by hand."""
    p = models.working_memory
    since = time.time_ns() // 1000 - LATELY_US
    here = places_of(reader, None, location)
    if here.locations is not None:
        lately = Where(p).within(here).between("updated_at", since, None)
        own = Condition(sql.SQL("coalesce({}, '') = %s").format(field_of(models.sessions, "through")), (reader.member,))
        sessions, values = rows_of(reader, models.sessions, conditions=[own])
        among = Condition(sql.SQL("key IN (SELECT key FROM {})").format(sessions), values)
        rows, _ = page(reader, p, "updated_at", lately.also(among), limit=1)
        if rows:
            return rows[0].key
    return session_stream(BY_HAND, digest_of(kept_at(reader, location)))
