"""The projects that memory knows, read from the rows that tell of locations."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import NamedTuple

from psycopg import sql

from memctl.domain.bounded import names
from memctl.domain.projects import Place, Projects, Words
from memctl.infra import readmodels
from memctl.infra.database import Connection
from memctl.infra.generations import Live
from memctl.projections.kernel import projections

KEPT = 4
"""Spaces and generations whose projects a process keeps worked out."""


class Known(NamedTuple):
    """Every location of a space that something happened in, the words about projects, and the projects they make."""

    places: tuple[Place, ...]
    words: tuple[Words, ...]
    projects: Projects


_kept: OrderedDict[tuple[object, ...], tuple[object, Known]] = OrderedDict()
_lock = threading.Lock()


def known_projects(connection: Connection, live: Live, space_id: int) -> Projects:
    """Every project of a space, by what the live read models say of locations."""
    return known_places(connection, live, space_id).projects


def known_places(connection: Connection, live: Live, space_id: int) -> Known:
    """What the live read models say of locations. Worked out anew only where they say something else than before: with
    thousands of locations it takes half a second, and whatever names a project asks for it."""
    tables = _tables(connection, live)
    if tables is None:
        return _known([Place(location) for location in _known_locations(connection, live, space_id)], [])
    which = (connection.info.host, connection.info.port, connection.info.dbname, live.stage2, space_id)
    state = [_state(connection, table, space_id) for table in tables]
    with _lock:
        former = _kept.get(which)
        if former is not None and former[0] == state:
            _kept.move_to_end(which)
            return former[1]
    known = _known(*_read(connection, live, space_id))
    with _lock:
        _kept[which] = (state, known)
        _kept.move_to_end(which)
        while len(_kept) > KEPT:
            _kept.popitem(last=False)
    return known


def _known(places: list[Place], words: list[Words]) -> Known:
    return Known(tuple(places), tuple(words), Projects(places, words))


def _tables(connection: Connection, live: Live) -> list[str] | None:
    """Where locations and words stand; None for rows of a memctl that knew no projects, until they are rebuilt."""
    tables = [readmodels.table(name, live.stage2) for name in ("locations", "project_words")]
    there = connection.execute("SELECT to_regclass(%s), to_regclass(%s)", tables).fetchone()
    return None if there is None or None in there else tables


def _state(connection: Connection, table: str, space_id: int) -> tuple[object, ...] | None:
    """Another one once a row was written or deleted: which transaction wrote each. The newest of those alone would not
    do, for an older one may commit after it."""
    return connection.execute(
        sql.SQL("SELECT count(*), sum(hashtextextended(key, xmin::text::bigint)) FROM {} WHERE space_id = %s").format(
            sql.SQL(table)
        ),
        [space_id],
    ).fetchone()


def _read(connection: Connection, live: Live, space_id: int) -> tuple[list[Place], list[Words]]:
    by_name = {p.name: p for p in projections()}
    places = [
        Place(
            row.location,
            root=row.roots[0].root if row.roots else "",
            repository=row.roots[0].repository if row.roots else "",
            remotes=names(row.remotes),
            inside=names(row.around),
            modules=names(row.modules),
            last_seen=row.last_seen,
            claims=names(row.claims),
            free=row.free,
        )
        for row in readmodels.rows_of(connection, by_name["locations"], live.stage2, space_id)
        if row.worked
    ]
    said = readmodels.rows_of(connection, by_name["project_words"], live.stage2, space_id)
    return places, [Words(row.anchor, row.into, row.split_at) for row in said]


def _known_locations(connection: Connection, live: Live, space_id: int) -> list[str]:
    """Every working directory that something happened in, sorted."""
    stats = next(p for p in projections(1) if p.name == "stats")
    location = readmodels.expression(stats, "location")
    # One look at the index a location: a plain DISTINCT would read a row for every location and day.
    found = connection.execute(
        sql.SQL(
            "WITH RECURSIVE known(place) AS ("
            " (SELECT min({location}) FROM {table} WHERE space_id = %(space)s)"
            " UNION ALL SELECT (SELECT min({location}) FROM {table} WHERE space_id = %(space)s AND {location} > place)"
            " FROM known WHERE place IS NOT NULL)"
            " SELECT place FROM known WHERE place <> '' ORDER BY 1"
        ).format(location=sql.SQL(location), table=sql.SQL(readmodels.table("stats", live.stage1))),
        {"space": space_id},
    )
    return [row[0] for row in found]
