"""When work was done, where, and what it left: what the viewer's timeline shows."""

from collections.abc import Iterator
from datetime import datetime
from heapq import nsmallest
from typing import Annotated

from msgspec import Meta
from psycopg import sql

from memctl.api.queries import bugs
from memctl.api.reading import models
from memctl.api.reading.pages import Condition, Where, field_of, page, select
from memctl.api.reading.places import Places, projects_of
from memctl.api.reading.questions import question
from memctl.api.reading.reader import Reader
from memctl.api.reading.records import Activity, FixedError, LearntClaim, WorkSpan
from memctl.api.reading.views import moment
from memctl.domain.events.event import Micros
from memctl.domain.knowledge.memory import memory_id

DAY_US = 86_400_000_000

PARTS = 60
"""Into which the time that is asked about is cut: days, where nobody says how much. Sessions of one project that began
in one part are one span, so the answer is bounded, however many sessions there were."""

MOST_FIXES, MOST_CLAIMS = 12, 60
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
    limit: Annotated[int, Meta(ge=1, le=200, description="Most projects: those with the most prompts.")] = 60,
) -> Activity:
    """When sessions were at work, by project, with errors that were fixed and claims that were verified meanwhile."""
    newest = _newest(reader, places, now)
    upto = before if before is not None else Micros(newest + 1)
    begin = since if since is not None else Micros(max(upto - MOST_DAYS * DAY_US, 0))
    if begin >= upto:
        return Activity(since=moment(begin), before=moment(upto), spans=[], fixes=[], claims=[], hidden=0)
    spans, hidden = _spans(reader, places, begin, upto, limit)
    return Activity(
        since=moment(begin),
        before=moment(upto),
        spans=spans,
        fixes=list(_fixes(reader, places, begin, upto)),
        claims=list(_claims(reader, places, begin, upto)),
        hidden=hidden,
    )


def reach(reader: Reader, places: Places, now: datetime) -> tuple[int, int]:
    """When the first session began and the newest ended, in microseconds; what a clock put behind tomorrow does not
    count."""
    p, newest = models.sessions, _newest(reader, places, now)
    began = field_of(p, "started_at")
    ((first,),) = select(
        reader, p, "SELECT min({began}) FROM {rows}", places=places, conditions=Where(p).above("started_at", 0),
        began=began,
    )  # fmt: skip
    return min(first or newest, newest), newest


def _newest(reader: Reader, places: Places, now: datetime) -> int:
    """When the newest session ended, in microseconds; what a clock put behind tomorrow does not count."""
    p, tomorrow = models.sessions, int(now.timestamp() * 1_000_000) + DAY_US
    rows, _ = page(reader, p, "last_at", Where(p).within(places).between("last_at", None, tomorrow), limit=1)
    return rows[0].row.last_at if rows else 0


_BUSY = """
SELECT coalesce(row->>'location', ''), coalesce(sum((row->>'prompts')::bigint), 0)::bigint FROM {rows}
GROUP BY 1
"""

_WORK = """
SELECT called.name, count(*), min(started_at), max(last_at), sum(coalesce(prompts, 0))::bigint,
    sum(coalesce(errors, 0))::bigint, sum(coalesce(fixes, 0))::bigint, min(key),
    min(left(coalesce(title, first_prompt, ''), 200))
FROM unnest(%s::text[], %s::text[]) AS called(location, name)
JOIN {rows} ON coalesce(row->>'location', '') = called.location
CROSS JOIN jsonb_to_record(row) AS s(started_at bigint, last_at bigint, prompts bigint, errors bigint, fixes bigint,
    title text, first_prompt text)
GROUP BY 1, width_bucket(started_at, %s, %s, %s) ORDER BY 3
"""
"""A row is taken apart once for all of its fields: one of some length is kept compressed."""


def _spans(reader: Reader, places: Places, begin: Micros, upto: Micros, limit: int) -> tuple[list[WorkSpan], int]:
    """The spans of the projects with the most prompts, and how many projects there are beyond these."""
    p, known = models.sessions, projects_of(reader)
    then = _then(reader, begin, upto)
    busy = select(reader, p, _BUSY, places=places, conditions=then)
    names = [known.name_of(location) for location, _ in busy]
    prompts: dict[str, int] = {}
    for name, (_, count) in zip(names, busy, strict=True):
        prompts[name] = prompts.get(name, 0) + count
    most = set(nsmallest(limit, prompts, key=lambda name: (-prompts[name], name)))
    named = [(location, name) for name, (location, _) in zip(names, busy, strict=True) if name in most]
    before = [location for location, _ in named], [name for _, name in named]
    found = select(reader, p, _WORK, begin, upto, PARTS, places=places, conditions=then, before=before)
    spans = [
        WorkSpan(
            project=name,
            started_at=moment(started),
            last_at=moment(last),
            sessions=sessions,
            prompts=asked_for,
            errors=errors,
            fixes=fixes,
            session=stream if sessions == 1 else "",
            title=title if sessions == 1 else "",
        )
        for name, sessions, started, last, asked_for, errors, fixes, stream, title in found
    ]
    return spans, len(prompts) - len(most)


def _then(reader: Reader, begin: Micros, upto: Micros) -> list[Condition]:
    """Sessions that were at work at some time from `begin` on and before `upto`. What leaves none out is not asked for:
    it would be looked up in each row."""
    p = models.sessions
    ended, began = field_of(p, "last_at"), field_of(p, "started_at")
    ((first, last),) = select(reader, p, "SELECT min({ended}), max({began}) FROM {rows}", ended=ended, began=began)
    found = []
    if first is not None and first < begin:
        found.append(Condition(sql.SQL("{} >= %s").format(ended), (begin,)))
    if last is not None and last >= upto:
        found.append(Condition(sql.SQL("{} < %s").format(began), (upto,)))
    return found


def _fixes(reader: Reader, places: Places, begin: Micros, upto: Micros) -> Iterator[FixedError]:
    for pattern in bugs.known_patterns(reader, places, limit=MOST_FIXES):
        way = next(iter(pattern.solutions), None)
        if way is None or not way.last_used or pattern.first_seen >= upto or way.last_used < begin:
            continue
        projects = bugs.projects_with(reader, pattern)
        yield FixedError(
            id=memory_id("bug_pattern", pattern.signature),
            project=projects[0] if projects else "",
            first_seen=moment(pattern.first_seen),
            fixed_at=moment(way.last_used),
            message=(pattern.message or pattern.template)[:200],
            fix=way.approach[:200],
        )


def _claims(reader: Reader, places: Places, begin: Micros, upto: Micros) -> Iterator[LearntClaim]:
    p, known = models.verified_knowledge, projects_of(reader)
    rows, _ = page(reader, p, "last_seen", Where(p).within(places, or_everywhere=True), limit=MOST_CLAIMS)
    for keyed in rows:
        row = keyed.row
        if begin <= row.first_seen < upto:
            yield LearntClaim(
                id=row.claims[0].id, project="" if row.everywhere else known.name_of(row.location),
                at=moment(row.first_seen), text=row.text[:200], origin=reader.whose(row),
            )  # fmt: skip
