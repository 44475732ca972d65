"""How pieces of work end, with memory and without, and how agents use what is recalled: what figures of success are
made of."""

from collections.abc import Iterable
from datetime import date

import msgspec
from psycopg import sql

from memctl.api.reading import models
from memctl.api.reading.counts import Use
from memctl.api.reading.pages import Where, day_of, select, table_of
from memctl.api.reading.places import Places
from memctl.api.reading.reader import AS_OF, Reader
from memctl.domain.events.event import YEAR_9999
from memctl.projections.stats import DAY

GUIDING = frozenset(("episode", "bug_pattern", "strategy"))
"""Kinds of memories that guidance is made of."""

_MEMORY = {"told": "with_memory", "none": "without_memory", "withheld": "memory_withheld"}
MEMORY = tuple(_MEMORY.values())
_OUTCOMES = {"success": "succeeded", "failure": "failed", "partial": "partial", "unknown": "unknown"}

ENDINGS = (
    *(f"episodes_{name}" for name in _OUTCOMES.values()),
    *(f"episodes_{memory}{how}" for memory in _MEMORY.values() for how in ("", "_succeeded")),
)
"""Names of the totals: work that ended, by outcome; and of work whose outcome is known that in which memory was
recalled for the agent, was not, or was held back to compare, and how much of it succeeded."""


def endings(reader: Reader, places: Places, since: int | None = None, before: int | None = None) -> dict[str, int]:
    """Pieces of work of a session that ended: by what came next, a statement, a commit, the user's word, the session's
    end, or because nothing was heard of them for a day."""
    totals = dict.fromkeys(ENDINGS, 0)
    for _, memory, outcome, count in _counts(reader, places, since, before):
        _add(totals, memory, outcome, count)
    return totals


def endings_by_day(reader: Reader, places: Places) -> dict[date, dict[str, int]]:
    """The same by day of UTC."""
    days: dict[date, dict[str, int]] = {}
    for day, memory, outcome, count in _counts(reader, places, None, None):
        _add(days.setdefault(day, dict.fromkeys(ENDINGS, 0)), memory, outcome, count)
    return days


def _add(totals: dict[str, int], memory: str, outcome: str, count: int) -> None:
    totals[f"episodes_{_OUTCOMES.get(outcome, 'unknown')}"] += count
    if outcome in _OUTCOMES and outcome != "unknown":
        kind = _MEMORY.get(memory, _MEMORY["none"])
        totals[f"episodes_{kind}"] += count
        totals[f"episodes_{kind}_succeeded"] += count * (outcome == "success")


def _counts(reader: Reader, places: Places, since: int | None, before: int | None) -> list[tuple[date, str, str, int]]:
    """By day of the end, what became of memory there, and outcome. A clock may put an end behind all calendars."""
    p = models.episodes
    conditions = Where(p).between("ended_at", since, before).fullest(reader, places, "ended_at")
    then = AS_OF.get()
    now = sql.SQL("clock_timestamp()") if then is None else sql.Literal(then().at)
    return select(
        reader, p,
        "SELECT {day}, coalesce(row->>'recalled', 'none'), row->>'outcome', count(*) FROM {rows}"
        " WHERE row->>'ended_by' <> ''"
        " OR (row->>'ended_at')::bigint < extract(epoch FROM {now}::timestamptz) * 1000000 - {a_day}"
        " GROUP BY 1, 2, 3",
        places=places, conditions=conditions, day=day_of(p, "ended_at", sql.Literal(YEAR_9999)), now=now,
        a_day=sql.Literal(DAY),
    )  # fmt: skip


def uses_of(reader: Reader) -> list[Use]:
    """Every kind of memory that was recalled or rated."""
    rows = reader.connection.execute(
        sql.SQL(
            "SELECT coalesce(m.row->>'kind', '') AS kind, sum((r.row->>'recalls')::bigint)::bigint,"
            " sum(jsonb_array_length(r.row->'followed'))::bigint,"
            " sum((SELECT coalesce(sum((f->>2)::float8), 0) FROM jsonb_array_elements(r.row->'followed') AS f)),"
            " sum(jsonb_array_length(r.row->'ratings'))::bigint,"
            " sum((SELECT count(*) FROM jsonb_array_elements(r.row->'ratings') AS f WHERE (f->>2)::float8 >= 0.5))"
            "::bigint FROM {} AS r LEFT JOIN {} AS m ON m.space_id = r.space_id AND m.key = r.key"
            " WHERE r.space_id = %s GROUP BY 1 ORDER BY 1"
        ).format(table_of(reader, models.memory_feedback), table_of(reader, models.memories)),
        [reader.space_id],
    ).fetchall()
    found = (Use(**dict(zip(Use.__struct_fields__, row, strict=True))) for row in rows)
    return [use for use in found if use.recalls or use.ratings]


def together(found: Iterable[Use]) -> Use:
    """The sum of several kinds."""
    sums = [sum(each) for each in zip((0,) * 5, *(msgspec.structs.astuple(use)[1:] for use in found), strict=True)]
    return Use(kind="", **dict(zip(Use.__struct_fields__[1:], sums, strict=True)))
