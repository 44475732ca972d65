"""What keeps words that are forgotten from coming back by a team's files, which hold them under other keys.

A file was written from a row. So the rows that an erasure touches are looked at before and after it: what no row says
any more gets the tombstone of the event that a file with these words would come in as.
"""

from collections.abc import Iterator

from psycopg import sql

from memctl.domain.events.erasure import Tombstone
from memctl.domain.events.observations import event_id_of
from memctl.domain.knowledge.team_entries import claim_entry, decision_entry, key_of, lesson_entry, lesson_text
from memctl.infra.database import Connection
from memctl.infra.readmodels import rows as readmodels
from memctl.infra.readmodels.generations import Live

_CLAIMS = """SELECT row->>'kind', row->>'polarity', row->>'canonical', s->>'text' FROM {table},
    jsonb_array_elements(jsonb_build_array(row) || (row->'evidence')) s"""
_DECISIONS = "SELECT d->>'text' FROM {table}, jsonb_array_elements(row->'decisions') d"
_LESSONS = """SELECT coalesce(l->>'title', ''), coalesce(l->>'description', ''), coalesce(l->>'content', '')
    FROM {table},
    jsonb_array_elements(jsonb_build_array(row) || jsonb_path_query_array(row, '$.tellings[*].lesson')) l"""


def entries(connection: Connection, space_id: int, live: Live, affected: str) -> set[Tombstone]:
    """The tombstones of what a team's files may say of the rows that a temporary table names (`name`, `key`)."""
    keys = _keys(connection, space_id, live, affected)
    return {Tombstone(kind="event", value=str(event_id_of(space_id, key))) for key in keys}


def _keys(connection: Connection, space_id: int, live: Live, affected: str) -> Iterator[str]:
    def of(name: str, stage: int, query: str) -> Iterator[tuple[str, ...]]:
        wanted = sql.SQL("(SELECT t.row FROM {} t JOIN {} a ON a.name = {} AND a.key = t.key WHERE t.space_id = {}) r")
        table = sql.SQL(readmodels.table(name, live.of(stage)))
        rows = wanted.format(table, sql.Identifier(affected), sql.Literal(name), sql.Literal(space_id))
        yield from connection.execute(sql.SQL(query).format(table=rows), binary=True)

    for kind, polarity, canonical, text in of("candidates", 2, _CLAIMS):
        yield key_of(claim_entry(kind, int(polarity), canonical), text)
    for (text,) in of("episodes", 1, _DECISIONS):
        yield key_of(decision_entry(text), text)
    for lesson in of("strategies", 2, _LESSONS):
        text = lesson_text(*lesson)
        yield key_of(lesson_entry(text), text)
