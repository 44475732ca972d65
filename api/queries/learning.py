"""What learning comes to, over all projects: what was learnt, how agents used what was recalled, and how that ended."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
from psycopg import sql

from memctl.api.reading import models
from memctl.api.reading.counts import Changes, Learnt, Recalled, Use
from memctl.api.reading.pages import built, projection_named, table_of
from memctl.api.reading.reader import Reader

GUIDING = frozenset(("episode", "bug_pattern", "strategy"))
"""Kinds of memories that guidance is made of."""

MOST_RECALLED = 10
"""How many of the memories that were recalled most often are listed."""

_AGAIN = "(row->>'occurrences')::bigint > 1"
_ENOUGH = "(row->'enough')::boolean"
_STATES: dict[str, dict[str, str]] = {
    "strategies": {"told": _ENOUGH, "waiting": f"NOT {_ENOUGH}"},
    "bug_patterns": {"met again": _AGAIN, "met once": f"NOT {_AGAIN}"},
    "verified_knowledge": {"held": "true"},
    "reflections": {"held": "true"},
}
"""By read model, what its rows may be, as conditions on them: each row is one of those."""


def uses(reader: Reader) -> list[Use]:
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


def learnt(reader: Reader) -> list[Learnt]:
    """What was learnt, by read model and state; what is not built yet is left out."""
    found = []
    for name, states in _STATES.items():
        if not built(reader, projection_named(name)):
            continue
        counts = sql.SQL(", ").join(sql.SQL(f"count(*) FILTER (WHERE {held})") for held in states.values())
        row = reader.connection.execute(
            sql.SQL("SELECT {} FROM {} WHERE space_id = %s").format(counts, table_of(reader, projection_named(name))),
            [reader.space_id],
        ).fetchone()
        assert row is not None
        found += [Learnt(name, state, count) for state, count in zip(states, row, strict=True)]
    return found


def changes(reader: Reader) -> list[Changes]:
    """What consolidation has recorded, by kind of change."""
    rows = reader.connection.execute(
        sql.SQL(
            "SELECT row->'change'->>2, count(*), count(*) FILTER (WHERE jsonb_typeof(row->'undone_at') = 'number')"
            " FROM {} WHERE space_id = %s AND jsonb_typeof(row->'change') = 'array' GROUP BY 1 ORDER BY 1"
        ).format(table_of(reader, models.consolidation_log)),
        [reader.space_id],
    ).fetchall()
    return [Changes(*row) for row in rows]


def most_recalled(reader: Reader) -> list[Recalled]:
    """The memories that were recalled in most pieces of work, without their text, so operators may ask for them too."""
    rows = reader.connection.execute(
        sql.SQL(
            "SELECT r.key, m.row->>'kind', (r.row->>'recalls')::bigint FROM {} AS r JOIN {} AS m"
            " ON m.space_id = r.space_id AND m.key = r.key"
            " WHERE r.space_id = %s AND (r.row->>'recalls')::bigint > 0 ORDER BY 3 DESC, 1 LIMIT %s"
        ).format(table_of(reader, models.memory_feedback), table_of(reader, models.memories)),
        [reader.space_id, MOST_RECALLED],
    ).fetchall()
    return [Recalled(*row) for row in rows]
