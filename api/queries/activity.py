"""When work was done, where, and what it left: what the viewer's timeline shows."""

from collections.abc import Iterator
from datetime import datetime
from typing import Annotated

from msgspec import Meta
from psycopg import sql

from memctl.api.queries import bugs
from memctl.api.reading import models
from memctl.api.reading.pages import (
    Condition,
    all_of,
    between,
    field_of,
    page,
    table_of,
    visible_to_caller,
    within,
)
from memctl.api.reading.places import Places, projects_of
from memctl.api.reading.questions import question
from memctl.api.reading.reader import Reader
from memctl.api.reading.records import Activity, FixedError, LearntClaim, WorkSpan
from memctl.api.reading.views import moment
from memctl.domain.events.event import Micros
from memctl.infra.database import single_row

DAY_US = 86_400_000_000

PARTS = 240
"""Into which the time that is asked about is cut. Sessions of one place that began in one part are one span, so the
answer is bounded, however many sessions there were."""

MOST_FIXES, MOST_CLAIMS = 40, 60
"""Of the errors seen most often, and of the claims heard of last: more would hide one another."""

MOST_DAYS = 60
"""Before the newest session, where no beginning is asked for."""


@question("/activity", "work")
def activity(
    reader: Reader,
    places: Places,
    now: datetime,
    *,
    since: Annotated[Micros | None, Meta(description="Without it, 60 days before the newest session.")] = None,
    before: Annotated[Micros | None, Meta(description="Without it, the end of the newest session.")] = None,
) -> Activity:
    """When sessions were at work, by project, with errors that were fixed and claims that were verified meanwhile."""
    newest = _newest(reader, places, now)
    upto = before if before is not None else Micros(newest + 1)
    begin = since if since is not None else Micros(max(upto - MOST_DAYS * DAY_US, 0))
    if begin >= upto:
        return Activity(since=moment(begin), before=moment(upto), spans=[], fixes=[], claims=[])
    return Activity(
        since=moment(begin),
        before=moment(upto),
        spans=list(_spans(reader, places, begin, upto)),
        fixes=list(_fixes(reader, places, begin, upto)),
        claims=list(_claims(reader, places, begin, upto)),
    )


def reach(reader: Reader, places: Places, now: datetime) -> tuple[int, int]:
    """When the first session began and the newest ended, in microseconds; what a clock put behind tomorrow does not
    count."""
    p, newest = models.sessions, _newest(reader, places, now)
    began = field_of(p, "started_at")
    conditions = [*within(p, places), Condition(sql.SQL("{} > 0").format(began)), *visible_to_caller(reader, p)]
    where, values = all_of([Condition(sql.SQL("space_id = %s"), (reader.space_id,)), *conditions])
    found = single_row(
        reader.connection,
        sql.SQL("SELECT min({}) FROM {} WHERE {}").format(began, table_of(reader, p), where),
        values,
    )
    return min(found[0] or newest, newest), newest


def _newest(reader: Reader, places: Places, now: datetime) -> int:
    """When the newest session ended, in microseconds; what a clock put behind tomorrow does not count."""
    p, tomorrow = models.sessions, int(now.timestamp() * 1_000_000) + DAY_US
    rows, _ = page(reader, p, "last_at", [*within(p, places), *between(p, "last_at", None, tomorrow)], limit=1)
    return rows[0].row.last_at if rows else 0


def _spans(reader: Reader, places: Places, begin: Micros, upto: Micros) -> Iterator[WorkSpan]:
    p, known = models.sessions, projects_of(reader)
    conditions = [*within(p, places), *visible_to_caller(reader, p)]
    found = reader.connection.execute(
        sql.SQL(
            "SELECT row->>'location', count(*), min((row->>'started_at')::bigint), max((row->>'last_at')::bigint),"
            " sum(coalesce((row->>'prompts')::bigint, 0))::bigint, sum(coalesce((row->>'errors')::bigint, 0))::bigint,"
            " sum(coalesce((row->>'fixes')::bigint, 0))::bigint, min(key),"
            " min(coalesce(nullif(row->>'title', ''), row->>'first_prompt', ''))"
            " FROM {} WHERE space_id = %s AND (row->>'started_at')::bigint < %s AND (row->>'last_at')::bigint >= %s"
            " AND {} GROUP BY 1, width_bucket((row->>'started_at')::bigint, %s, %s, %s) ORDER BY 3"
        ).format(table_of(reader, p), sql.SQL(" AND ").join([sql.SQL("true"), *(c.clause for c in conditions)])),
        [reader.space_id, upto, begin, *(value for c in conditions for value in c.values), begin, upto, PARTS],
    )
    for location, sessions, started, last, prompts, errors, fixes, stream, title in found:
        yield WorkSpan(
            project=known.name_of(location) if location else "",
            started_at=moment(started),
            last_at=moment(last),
            sessions=sessions,
            prompts=prompts,
            errors=errors,
            fixes=fixes,
            session=stream if sessions == 1 else "",
            title=title[:200] if sessions == 1 else "",
        )


def _fixes(reader: Reader, places: Places, begin: Micros, upto: Micros) -> Iterator[FixedError]:
    for hit in bugs.known(reader, places, limit=MOST_FIXES).hits:
        way = hit.solution
        used = datetime.fromisoformat(way.last_used) if way is not None and way.last_used else None
        if way is None or used is None or hit.first_seen >= moment(upto) or used < moment(begin):
            continue
        yield FixedError(
            id=hit.id,
            project=hit.projects[0] if hit.projects else "",
            first_seen=hit.first_seen,
            fixed_at=used,
            message=hit.message[:200],
            fix=way.approach[:200],
        )


def _claims(reader: Reader, places: Places, begin: Micros, upto: Micros) -> Iterator[LearntClaim]:
    p, known = models.verified_knowledge, projects_of(reader)
    rows, _ = page(reader, p, "last_seen", within(p, places, or_everywhere=True), limit=MOST_CLAIMS)
    for keyed in rows:
        row = keyed.row
        if begin <= row.first_seen < upto:
            yield LearntClaim(
                id=row.claims[0].id, project="" if row.everywhere else known.name_of(row.location),
                at=moment(row.first_seen), text=row.text[:200], origin=reader.whose(row),
            )  # fmt: skip
