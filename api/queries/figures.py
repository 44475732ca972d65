"""What the viewer draws: what happened by day and week, how memory grew and was used, claims by level."""

from collections import Counter
from datetime import date, timedelta
from typing import Any

from psycopg import sql

from memctl.api.queries.claims import InsightFilter, levels
from memctl.api.queries.endings import MEMORY, endings_by_week
from memctl.api.queries.stats import SUMMED, counted_once, sums
from memctl.api.reading import models
from memctl.api.reading.pages import Condition, all_of, field_of, table_of, within
from memctl.api.reading.places import Places
from memctl.api.reading.reader import Reader
from memctl.projections.kernel import Projection

LEVELS = ("L1 read out of what was said", "L2 passed its checks", "L3 verified", "L4 found by search")


Days = dict[date, dict[str, int]]
Weeks = dict[date, tuple[int, ...]]

_LAST = (date.max - date(1970, 1, 1)).days


def by_day(reader: Reader, places: Places) -> Days:
    """What happened (`projections.stats.DayStats`), by day of UTC."""
    where, values = all_of([Condition(sql.SQL("space_id = %s"), (reader.space_id,)), *within(models.stats, places)])
    found = reader.connection.execute(
        sql.SQL("SELECT day, {} FROM ({}) AS counted GROUP BY 1").format(sums(), counted_once(reader, where)),
        values,
    ).fetchall()
    return {
        date(1970, 1, 1) + timedelta(days=day): dict(zip(SUMMED, row, strict=True))
        for day, *row in found
        if day <= _LAST
    }


def in_weeks(days: Days, *names: str) -> Weeks:
    """The sums of these figures by week, each under its Monday."""
    weeks: dict[date, list[int]] = {}
    for day, counts in days.items():
        week = weeks.setdefault(day - timedelta(days=min(day.weekday(), day.toordinal() - 1)), [0] * len(names))
        for n, name in enumerate(names):
            week[n] += counts[name]
    return {week: tuple(row) for week, row in weeks.items() if any(row)}


def by_place(reader: Reader, p: Projection[Any]) -> dict[str, int]:
    """How many rows there are of each location. Nothing for a limited caller, who may see fewer."""
    if reader.limited_to is not None:
        return {}
    found = reader.connection.execute(
        sql.SQL("SELECT {}, count(*) FROM {} WHERE space_id = %s GROUP BY 1").format(
            field_of(p, "location"), table_of(reader, p)
        ),
        [reader.space_id],
    )
    return dict(found.fetchall())


def memories_by_week(reader: Reader, places: Places) -> Weeks:
    """How many memories there are of each week; what a clock put behind today is of this one. Nothing for a
    limited caller, who may see fewer."""
    if reader.limited_to is not None:
        return {}
    p = models.memories
    conditions = [Condition(sql.SQL("space_id = %s"), (reader.space_id,)), *within(p, places)]
    where, values = all_of(conditions)
    found = reader.connection.execute(
        sql.SQL(
            "SELECT date_trunc('week', to_timestamp(least({at}, {now}) / 1000000) AT TIME ZONE 'UTC')::date,"
            " count(*) FROM {table} WHERE {where} GROUP BY 1"
        ).format(
            at=field_of(p, "occurred_at"), table=table_of(reader, p), where=where,
            now=sql.SQL("(extract(epoch FROM clock_timestamp()) * 1000000)::bigint"),
        ),
        values,
    )  # fmt: skip
    return {week: (count,) for week, count in found.fetchall()}


def recall_by_week(reader: Reader, places: Places) -> Weeks:
    """Work that ended in a known way: in which memory was recalled, in which it was not, in which it was held back, and
    how much of the three went well."""
    weeks: dict[date, list[int]] = {}
    for week, row in endings_by_week(reader, places).items():
        if row["episodes_with_memory"] + row["episodes_without_memory"] + row["episodes_memory_withheld"]:
            weeks[week] = [row[f"episodes_{memory}{how}"] for how in ("", "_succeeded") for memory in MEMORY]
    return {week: tuple(row) for week, row in weeks.items()}


def claims_by_level(reader: Reader) -> list[tuple[str, int]]:
    """What each level of a claim is, and how many of those that are listed have reached it, the first level first."""
    at = levels(reader, Places(None, "everywhere", None), InsightFilter()) or Counter()
    return [(name, sum(at[level] for level in range(first, 5))) for first, name in enumerate(LEVELS, 1)]


def memories_by_kind(reader: Reader) -> list[tuple[str, int]]:
    """Memories by kind, most first."""
    memories = table_of(reader, models.memories)
    return reader.connection.execute(
        sql.SQL("SELECT row->>'kind', count(*) FROM {} WHERE space_id = %s GROUP BY 1 ORDER BY 2 DESC, 1").format(
            memories
        ),
        [reader.space_id],
    ).fetchall()
