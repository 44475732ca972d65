"""What the viewer draws of memory as a whole: work by day, claims by level, memories by kind."""

from datetime import date, timedelta

from psycopg import sql

from memctl.api.reading import models
from memctl.api.reading.pages import Condition, all_of, table_of, within
from memctl.api.reading.places import Places
from memctl.api.reading.reader import Reader
from memctl.infra.database import single_row

LEVELS = ("L1 read out of what was said", "L2 passed its checks", "L3 verified", "L4 found by search")


def work_by_day(reader: Reader, places: Places) -> dict[date, int]:
    """Prompts and uses of tools by day."""
    p = models.stats
    where, values = all_of([Condition(sql.SQL("space_id = %s"), (reader.space_id,)), *within(p, places)])
    found = reader.connection.execute(
        sql.SQL(
            "SELECT (row->>'day')::int, sum((row->>'prompts')::bigint + (row->>'tool_uses')::bigint)::bigint"
            " FROM {} WHERE {} GROUP BY 1"
        ).format(table_of(reader, p), where),
        values,
    ).fetchall()
    began = date(1970, 1, 1)
    last = (date.max - began).days
    return {began + timedelta(days=day): count for day, count in found if day <= last}


def claims_by_level(reader: Reader) -> list[tuple[str, int]]:
    """What each level of a claim is, and how many claims have reached it, the first one first; of the last one, the
    memories that they became: claims of one subject are one."""
    row = single_row(
        reader.connection,
        sql.SQL(
            "SELECT count(*),"
            " count(*) FILTER (WHERE NOT jsonb_path_exists(row->'checks', '$[*] ? (@.passed == false)')),"
            " count(*) FILTER (WHERE (row->>'ready')::boolean),"
            " (SELECT count(*) FROM {} WHERE space_id = %(space)s AND row->>'kind' = 'knowledge')"
            " FROM {} WHERE space_id = %(space)s AND (row->>'sessions')::bigint > 0"
        ).format(table_of(reader, models.memories), table_of(reader, models.candidates)),
        {"space": reader.space_id},
    )
    return list(zip(LEVELS, row, strict=True))


def memories_by_kind(reader: Reader) -> list[tuple[str, int]]:
    """Memories by kind, most first."""
    memories = table_of(reader, models.memories)
    return reader.connection.execute(
        sql.SQL("SELECT row->>'kind', count(*) FROM {} WHERE space_id = %s GROUP BY 1 ORDER BY 2 DESC, 1").format(
            memories
        ),
        [reader.space_id],
    ).fetchall()
