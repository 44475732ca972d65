"""Questions about work: tasks across sessions, and episodes, one task's work in one session."""

from collections.abc import Sequence
from typing import Literal

import msgspec
from psycopg import sql

from memctl.api.reading import models
from memctl.api.reading.evidence import with_evidence
from memctl.api.reading.feedback import standing
from memctl.api.reading.pages import Condition, Keyed, Where, field_of, page, rows_of, several
from memctl.api.reading.places import Places
from memctl.api.reading.questions import Cursor, Limit, question
from memctl.api.reading.reader import Reader
from memctl.api.reading.records import EpisodeItem, TaskItem
from memctl.api.reading.views import Page, shown_as
from memctl.domain.events.event import Micros
from memctl.domain.events.facts import TaskType
from memctl.domain.failures.signatures import errors_in
from memctl.domain.support.location import project_name
from memctl.projections.episodes import EpisodeRow

_HOLDS = "EXISTS (SELECT FROM jsonb_array_elements_text(row->{field}) AS f WHERE strpos(lower(f), lower(%s)) > 0)"


class EpisodeFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Which episodes are asked for; None asks for nothing. Times in microseconds.

    `status` is that of the whole piece of work, which may go on in other sessions. `file`, `symbol`: a part of a path
    or name, in any case. `error`: a part of an error's type, or an error's text as it was printed; then those that
    ended well come first.
    """

    task_type: str | None = None
    outcome: str | None = None
    status: str | None = None
    file: str | None = None
    symbol: str | None = None
    error: str | None = None
    since: int | None = None
    before: int | None = None

    @property
    def signatures(self) -> tuple[str, ...]:
        """Of the errors that the text of `error` holds."""
        return tuple(seen.signature for seen in errors_in(self.error, "", failed=True)) if self.error else ()

    def conditions(self, reader: Reader) -> Where:
        p = models.episodes
        found = Where(p).equal("task_type", self.task_type).equal("outcome", self.outcome)
        found = found.between("started_at", self.since, self.before)
        if self.status:
            found = found.also(_of_tasks(reader, self.status))
        for field, value in (("files", self.file), ("symbols", self.symbol)):
            if value:
                found = found.also(Condition(sql.SQL(_HOLDS).format(field=sql.Literal(field)), (value,)))
        if self.error:
            clause = f"({_HOLDS} OR row->'signatures' ?| %s::text[])"
            condition = Condition(
                sql.SQL(clause).format(field=sql.Literal("error_types")), (self.error, [*self.signatures])
            )
            found = found.also(condition)
        return found

    def takes(self, row: EpisodeRow) -> bool:
        """The same of a row that is at hand."""
        return (
            (self.task_type is None or row.task_type == self.task_type)
            and (self.outcome is None or row.outcome == self.outcome)
            and (not self.file or _holds(row.files, self.file))
            and (not self.symbol or _holds(row.symbols, self.symbol))
            and (
                not self.error
                or _holds(row.error_types, self.error)
                or not set(self.signatures).isdisjoint(row.signatures)
            )
            and (self.since is None or row.started_at >= self.since)
            and (self.before is None or row.started_at < self.before)
        )


def _of_tasks(reader: Reader, status: str) -> Condition:
    """The episode is of a piece of work that stands so."""
    p = models.tasks
    rows, values = rows_of(reader, p, conditions=Where(p).equal("status", status))
    named = [
        sql.SQL(", ").join(field_of(each, name) for name in ("location", "canonical")) for each in (models.episodes, p)
    ]
    return Condition(sql.SQL("({}) IN (SELECT {} FROM {})").format(*named, rows), values)


def _holds(names: Sequence[str], part: str) -> bool:
    return any(part.lower() in name.lower() for name in names)


ANY = EpisodeFilter()


def episodes(
    reader: Reader, places: Places, wanted: EpisodeFilter = ANY, *, order: str = "started_at", limit: int = 50,
    cursor: str | None = None,
) -> Page[EpisodeItem]:  # fmt: skip
    """Episodes by their beginning, or another field of their rows that is a whole number, highest first; of those with
    an error, a page's successes first."""
    conditions = among_episodes(reader, places, wanted)
    rows, after = page(reader, models.episodes, order, conditions, limit=limit, cursor=cursor)
    rows = standing(reader, "episode", rows)
    if wanted.error:
        rows.sort(key=lambda keyed: keyed.row.outcome != "success")
    return Page(with_evidence(reader, rows, EpisodeItem), after, places.scope)


def among_episodes(reader: Reader, places: Places, wanted: EpisodeFilter = ANY) -> Where:
    """Under which conditions an episode is listed: one that several sessions hold is listed once."""
    return wanted.conditions(reader).within(places).fullest(reader, places, "ended_at")


def episodes_among(
    reader: Reader, places: Places, ids: Sequence[str], wanted: EpisodeFilter = ANY, *, limit: int = 50
) -> Page[EpisodeItem]:
    """Those of the episodes of these ids that are wanted, in the order of the ids."""
    rows = several(reader, models.episodes, ids)
    kept = standing(reader, "episode", [Keyed(id, rows[id]) for id in ids if id in rows and wanted.takes(rows[id])])
    return Page(with_evidence(reader, kept[:limit], EpisodeItem), None, places.scope)


@question("/tasks", "work")
def tasks(
    reader: Reader,
    places: Places,
    *,
    status: Literal["open", "done"] | None = None,
    type: TaskType | None = None,
    since: Micros | None = None,
    before: Micros | None = None,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> Page[TaskItem]:
    """Pieces of work across sessions, by their last sign of life, newest first; the open ones are loose threads."""
    p = models.tasks
    conditions = Where(p).within(places).equal("status", status).equal("task_type", type)
    conditions = conditions.between("last_at", since, before)
    rows, after = page(reader, p, "last_at", conditions, limit=limit, cursor=cursor)
    found = [
        shown_as(keyed.row, TaskItem, project=project_name(keyed.row.location) if keyed.row.location else "")
        for keyed in rows
    ]
    return Page(found, after, places.scope)
