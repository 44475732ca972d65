"""What the viewer draws: what happened by day, how memory grew and was used, claims by level."""

from datetime import date, timedelta
from typing import Any, LiteralString

from psycopg import sql

from memctl.api.queries.claims import InsightFilter, levels
from memctl.api.queries.endings import MEMORY, endings_by_day
from memctl.api.queries.stats import by_day
from memctl.api.reading import models
from memctl.api.reading.pages import day_of, field_of, select
from memctl.api.reading.places import Places
from memctl.api.reading.reader import Reader
from memctl.projections.kernel import Projection

LEVELS = ("L1 read out of what was said", "L2 passed its checks", "L3 verified", "L4 found by search")

Days = dict[date, tuple[int, ...]]
"""By day of UTC, a value for each series."""

_LAST = (date.max - date(1970, 1, 1)).days


def happened(reader: Reader, places: Places) -> dict[date, dict[str, int]]:
    """What happened (`stats.by_day`), by day, as far as calendars go."""
    days = by_day(reader, places)
    return {date(1970, 1, 1) + timedelta(days=day): row for day, row in days.items() if day <= _LAST}


def by_place(reader: Reader, p: Projection[Any]) -> dict[str, int]:
    """How many rows there are of each location."""
    return dict(select(reader, p, "SELECT {at}, count(*) FROM {rows} GROUP BY 1", at=field_of(p, "location")))


def memories_by_day(reader: Reader, places: Places) -> Days:
    """How many memories there are of each day; what a clock put behind today is of this one."""
    p = models.memories
    day = day_of(p, "occurred_at", sql.SQL("(extract(epoch FROM clock_timestamp()) * 1000000)::bigint"))
    found = select(reader, p, "SELECT {day}, count(*) FROM {rows} GROUP BY 1", places=places, day=day)
    return {day: (count,) for day, count in found}


def recall_by_day(reader: Reader, places: Places) -> Days:
    """Work that ended in a known way: in which memory was recalled, in which it was not, in which it was held back."""
    return {
        day: tuple(row[f"episodes_{memory}"] for memory in MEMORY)
        for day, row in endings_by_day(reader, places).items()
    }


def claims_by_level(reader: Reader) -> list[tuple[str, int]]:
    """What each level of a claim is, and how many of those that are listed have reached it, the first level first."""
    at = levels(reader, Places(None, "everywhere", None), InsightFilter())
    return [(name, sum(at[level] for level in range(first, 5))) for first, name in enumerate(LEVELS, 1)]


def memories_by_kind(reader: Reader) -> list[tuple[str, int]]:
    """Memories by kind, most first."""
    query: LiteralString = "SELECT row->>'kind', count(*) FROM {rows} GROUP BY 1 ORDER BY 2 DESC, 1"
    return [(kind, count) for kind, count in select(reader, models.memories, query)]
