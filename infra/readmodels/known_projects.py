"""The projects that memory knows, read from the rows that hold locations."""

import threading
from collections import Counter, OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple
from uuid import UUID

import msgspec
from psycopg import sql

from memctl.domain.projects.identity import Named, Place, Projects, Words
from memctl.domain.projects.occupants import Occupant, occupants_of
from memctl.domain.support.bounded import names
from memctl.domain.support.location import around
from memctl.infra.database import Connection
from memctl.infra.readmodels import generations
from memctl.infra.readmodels import rows as readmodels
from memctl.infra.readmodels.generations import Live
from memctl.projections.kernel import projections
from memctl.projections.locations import Location, Root

KEPT = 32
"""Spaces and generations whose projects a process keeps worked out."""


PLACES = 10_000
"""Places of a space that make projects: of these they are worked out in half a second, within which a hook answers.
What lies at another is of no project but the one around it."""

PLACES_OF_ONE = 2_000
"""Of these, places of one remote or repository at which git's files were not looked at here: a key or a file may name
any number of them."""


class Known(NamedTuple):
    """The locations of a space that something happened in, the words about projects, and the projects they make."""

    places: tuple[Place, ...]
    words: tuple[Words, ...]
    projects: Projects


_kept: OrderedDict[tuple[object, ...], tuple[object, Known]] = OrderedDict()
_lock = threading.Lock()


def known_projects(connection: Connection, live: Live, space_id: int) -> Projects:
    """Every project of a space, by what the live read models say of locations."""
    return known_places(connection, live, space_id).projects


def known_places(connection: Connection, live: Live, space_id: int) -> Known:
    """What the live read models say of locations. They are read again only where a row was written, and worked out
    again where that decides something: with thousands of locations that takes half a second, and sessions ask for it.
    """
    which = (connection.info.host, connection.info.port, connection.info.dbname, live.stage2, space_id)
    with _lock:
        former = _kept.get(which)
    state = _state(connection, live, space_id)
    if former is not None and former[0] == state:
        with _lock:
            if which in _kept:
                _kept.move_to_end(which)
        return former[1]
    known = _known(*_read(connection, live, space_id), former[1] if former is not None else None)
    with _lock:
        _kept[which] = (state, known)
        _kept.move_to_end(which)
        while len(_kept) > KEPT:
            _kept.popitem(last=False)
    return known


def _known(places: list[Place], words: list[Words], former: Known | None = None) -> Known:
    if former is not None and (_deciding(places), tuple(words)) == (_deciding(former.places), former.words):
        return Known(tuple(places), tuple(words), former.projects.seen_again(places))
    return Known(tuple(places), tuple(words), Projects(places, words))


def _deciding(places: Iterable[Place]) -> list[Place]:
    """What of places decides which project they are of."""
    return [msgspec.structs.replace(place, last_seen=0, looked_at=0) for place in places]


def _state(connection: Connection, live: Live, space_id: int) -> list[tuple[object, ...]]:
    """Another one once a row was written or deleted: which transaction wrote each. The newest of those alone would not
    do, for an older one may commit after it."""
    each = "SELECT {}, count(*), sum(hashtextextended(key, xmin::text::bigint)) FROM {} WHERE space_id = %s"
    tables = [readmodels.table(name, live.stage2) for name in ("locations", "project_words")]
    both = sql.SQL(" UNION ALL ").join(sql.SQL(each).format(table, sql.SQL(table)) for table in tables)
    return sorted(connection.execute(both, [space_id, space_id]).fetchall())


def _read(connection: Connection, live: Live, space_id: int) -> tuple[list[Place], list[Words]]:
    by_name = {p.name: p for p in projections()}
    rows = readmodels.rows_of(connection, by_name["locations"], live.stage2, space_id)
    worked = _counted([row for row in rows if row.worked])
    positions = _brought_at(connection, space_id, worked)
    places = [place_of(row, positions) for row in worked]
    said = readmodels.rows_of(connection, by_name["project_words"], live.stage2, space_id)
    return places, [Words(row.anchor, row.into, row.split_at) for row in said]


def occupants_at(connection: Connection, space_id: int, paths: Sequence[str]) -> dict[str, list[Occupant]]:
    """The checkouts that lay at some paths of this machine, by what the live read models say of locations there (below
    a path, too, where it is the only one), and by what was forgotten of checkouts that lay where others did."""
    live = generations.live(connection)
    model = next(p for p in projections() if p.name == "locations")
    given = {"space": space_id, "paths": list(paths), "root": paths[0] if len(paths) == 1 else ""}
    found = connection.execute(_PLACES.format(sql.SQL(readmodels.table(model.name, live.stage2))), given, binary=True)
    rows = [readmodels.decode_row(model, row) for (row,) in found]
    forgotten = connection.execute(_FORGOTTEN, given)
    return occupants_of([*(place_of(row, {}) for row in rows), *(Place(at, root=at) for (at,) in forgotten)])


_PLACES = sql.SQL(
    "SELECT row FROM {} WHERE space_id = %(space)s AND (key >= 'since:' AND key < 'since;' OR key = ANY(%(paths)s)"
    " OR %(root)s <> '' AND key > %(root)s || '/' AND key < %(root)s || '0' AND row->'root'->>'root' = %(root)s)"
)
_FORGOTTEN = (
    "SELECT value FROM memctl.tombstones WHERE space_id = %(space)s AND kind = 'location'"
    " AND value >= 'since:' AND value < 'since;'"
)


def _counted(rows: list[Location]) -> list[Location]:
    """The rows of places that make projects, of too many: first where git's files were looked at on this machine, then
    what it saw, each newest first."""
    if len(rows) <= PLACES_OF_ONE:
        return rows
    roots = {row.root.root or row.location for row in rows if row.root is not None}
    kept: list[Location] = []
    of_one: Counter[str] = Counter()
    for row in sorted(rows, key=lambda row: (not _looked_at(row), bool(row.by_key or not row.free), -row.last_seen)):
        if not _looked_at(row):
            named = names(row.claims) or names(row.remotes)
            one = named[0] if named else next((at for at in around(row.location) if at in roots), "")
            of_one[one] += bool(one)
            if of_one[one] > PLACES_OF_ONE:
                continue
        kept.append(row)
    return sorted(kept[:PLACES], key=lambda row: row.location)


def _looked_at(row: Location) -> bool:
    return row.root is not None and row.root.checked and not row.by_key


def _brought_at(connection: Connection, space_id: int, rows: Sequence[Location]) -> dict[str, int]:
    """By delivery, the position at which the log has what files brought, of those that name what others name, too."""
    named = Counter(remote for row in rows for remote in names(row.remotes))
    ids = [UUID(each.delivery) for row in rows for each in row.brought if named[each.remote] > 1]
    found = connection.execute(
        "SELECT event_id::text, position FROM memctl.deliveries WHERE space_id = %s AND event_id = ANY(%s)",
        [space_id, ids],
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
        looked_at=max(of_git.at, of_git.there_since, *(each.at for each in row.remotes)),
    )
