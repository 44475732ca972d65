"""The projects that memory knows, read from the rows that hold locations."""

import threading
from collections import Counter, OrderedDict
from collections.abc import Mapping, Sequence
from typing import NamedTuple
from uuid import UUID

from psycopg import sql

from memctl.domain.projects.identity import Named, Place, Projects, Words
from memctl.domain.support.bounded import names
from memctl.infra.database import Connection
from memctl.infra.readmodels import rows as readmodels
from memctl.infra.readmodels.generations import Live
from memctl.projections.kernel import projections
from memctl.projections.locations import Location, Root

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
    """What the live read models say of locations. It is worked out again only where they say something else than
    before: with thousands of locations that takes half a second, and whatever names a project asks for it."""
    which = (connection.info.host, connection.info.port, connection.info.dbname, live.stage2, space_id)
    with _lock:
        former = _kept.get(which)
    if former is None and not _are_there(connection, live):
        return _known([Place(location) for location in _known_locations(connection, live, space_id)], [])
    state = _state(connection, live, space_id)
    if former is not None and former[0] == state:
        with _lock:
            if which in _kept:
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


def _tables(live: Live) -> list[str]:
    """Where locations and words stand."""
    return [readmodels.table(name, live.stage2) for name in ("locations", "project_words")]


def _are_there(connection: Connection, live: Live) -> bool:
    """Whether those tables are: rows of a memctl that knew no projects have none, until they are rebuilt."""
    there = connection.execute("SELECT to_regclass(%s), to_regclass(%s)", _tables(live)).fetchone()
    return there is not None and None not in there


def _state(connection: Connection, live: Live, space_id: int) -> list[tuple[object, ...]]:
    """Another one once a row was written or deleted: which transaction wrote each. The newest of those alone would not
    do, for an older one may commit after it."""
    each = "SELECT {}, count(*), sum(hashtextextended(key, xmin::text::bigint)) FROM {} WHERE space_id = %s"
    both = sql.SQL(" UNION ALL ").join(sql.SQL(each).format(table, sql.SQL(table)) for table in _tables(live))
    return sorted(connection.execute(both, [space_id, space_id]).fetchall())


def _read(connection: Connection, live: Live, space_id: int) -> tuple[list[Place], list[Words]]:
    by_name = {p.name: p for p in projections()}
    rows = readmodels.rows_of(connection, by_name["locations"], live.stage2, space_id)
    worked = [row for row in rows if row.worked]
    positions = _brought_at(connection, space_id, worked)
    places = [place_of(row, positions) for row in worked]
    said = readmodels.rows_of(connection, by_name["project_words"], live.stage2, space_id)
    return places, [Words(row.anchor, row.into, row.split_at) for row in said]


def _brought_at(connection: Connection, space_id: int, rows: Sequence[Location]) -> dict[str, int]:
    """By delivery, the position at which the log has what files brought, of those that name what others name, too."""
    named = Counter(remote for row in rows for remote in names(row.remotes))
    ids = [UUID(each.delivery) for row in rows for each in row.brought if named[each.remote] > 1]
    found = connection.execute(
        "SELECT event_id::text, position FROM memctl.events WHERE space_id = %s AND event_id = ANY(%s)", [space_id, ids]
    )
    return dict(found.fetchall()) if ids else {}


def place_of(row: Location, positions: Mapping[str, int]) -> Place:
    """What a row says of a location; what files brought, the log has at these positions."""
    named = {each.name: Named(False, each.at) for each in row.first}
    for remote in {each.remote for each in row.brought}.difference(named):
        at = (positions.get(each.delivery) for each in row.brought if each.remote == remote)
        named[remote] = Named(True, min((each for each in at if each is not None), default=0))
    of_git = row.root or Root(0, "", "")
    return Place(
        row.location,
        root=of_git.root,
        repository=of_git.repository,
        borrows=of_git.borrows,
        checked=of_git.checked,
        remotes=names(row.remotes),
        named=named,
        by_key=bool(row.by_key),
        inside=names(row.around),
        last_seen=row.last_seen,
        claims=names(row.claims),
        free=row.free,
    )


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
