"""The projects that memory knows, read from the rows that tell of locations."""

from __future__ import annotations

from psycopg import sql

from memctl.domain.bounded import names
from memctl.domain.projects import Place, Projects, Words
from memctl.infra import readmodels
from memctl.infra.database import Connection
from memctl.infra.generations import Live
from memctl.projections.kernel import projections


def known_projects(connection: Connection, live: Live, space_id: int) -> Projects:
    """Every project of a space, by what the live read models say of locations."""
    return Projects(*known_places(connection, live, space_id))


def known_places(connection: Connection, live: Live, space_id: int) -> tuple[list[Place], list[Words]]:
    """Every location of a space that something happened in, and the words about projects."""
    by_name = {p.name: p for p in projections()}
    rows, words = by_name["locations"], by_name["project_words"]
    tables = [readmodels.table(p.name, live.stage2) for p in (rows, words)]
    there = connection.execute("SELECT to_regclass(%s), to_regclass(%s)", tables).fetchone()
    if there is None or None in there:
        # Rows of a memctl that knew no projects are served until they are rebuilt.
        return [Place(location) for location in _known_locations(connection, live, space_id)], []
    places = [
        Place(
            row.location,
            root=row.roots[0].root if row.roots else "",
            repository=row.roots[0].repository if row.roots else "",
            remotes=names(row.remotes),
            inside=names(row.around),
            last_seen=row.last_seen,
            claims=names(row.claims),
            free=row.free,
        )
        for row in readmodels.rows_of(connection, rows, live.stage2, space_id)
        if row.worked
    ]
    said = readmodels.rows_of(connection, words, live.stage2, space_id)
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
