"""Spaces: whose memory it is (a team, a tenant). The embedded default has one."""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple
from uuid import UUID

from memctl.infra.database import Connection, DatabaseUnavailable, connect, outages, single_row

if TYPE_CHECKING:
    from memctl.infra.settings import Settings

HERE = "here"
"""Name of the database that the settings name, and where the directory is: so it is called from others."""

MOST_HOPS = 8
"""Databases that are asked one after the other where a space lives, as it moves."""


class SpaceMoving(DatabaseUnavailable):
    """The space {space} is on its way to another database."""

    hint = "run this again"
    space: str


def space_id(connection: Connection, name: str, number: int | None = None) -> int:
    """Number of the space of that name, which is made where it is new: under `number`, else one that hardly any other
    database has, for ids are made of it and it moves with the space."""
    asked = "SELECT space_id FROM memctl.spaces WHERE name = %s"
    for given in (number, None):
        if (row := connection.execute(asked, [name]).fetchone()) is not None:
            return int(row[0])
        connection.execute(
            "INSERT INTO memctl.spaces (space_id, name) OVERRIDING SYSTEM VALUE VALUES (%s, %s) ON CONFLICT DO NOTHING",
            [given or 1000 + secrets.randbelow(1 << 30), name],
        )
    return int(single_row(connection, asked, [name])[0])


def space_names(connection: Connection) -> dict[int, str]:
    return {row[0]: row[1] for row in connection.execute("SELECT space_id, name FROM memctl.spaces")}


class Residence(NamedTuple):
    """Where a space lives, as a database knows it: there (""), or on another, by name. What `arriving` names is where
    it comes from: it is there already if that database says so of the same move."""

    database: str = ""
    arriving: bool = False
    move: UUID | None = None

    def leads_to(self, came_by: UUID | None) -> str:
        """The database to ask next; "" where it lives on this one. `came_by`: the last move that the one asked before
        knows of."""
        return "" if self.arriving and came_by == self.move else self.database


LIVES_HERE = Residence()


def residence(connection: Connection, name: str) -> Residence:
    """Where the space of that name lives; on this database, where it is new."""
    asked = "SELECT database, arriving, move FROM memctl.spaces WHERE name = %s"
    row = connection.execute(asked, [name]).fetchone()
    return Residence(*row) if row is not None else LIVES_HERE


def arrive(connection: Connection, name: str, move: UUID | None) -> None:
    """From now on the space lives here: the database that it left says so."""
    connection.execute(
        "UPDATE memctl.spaces SET database = '', arriving = false WHERE name = %s AND move = %s AND arriving",
        [name, move],
    )


def held(connection: Connection) -> set[str]:
    """Names of the spaces that hold something, or live elsewhere."""
    return {
        row[0]
        for row in connection.execute(
            "SELECT name FROM memctl.spaces s"
            " WHERE database <> '' OR EXISTS (SELECT FROM memctl.events e WHERE e.space_id = s.space_id)"
        )
    }


@contextlib.contextmanager
def connected(settings: Settings, space: str, name: str) -> Iterator[Connection]:
    """A connection to where a space lives. Raises: NotRunning, UnknownDatabase, DatabaseUnavailable."""
    with outages(), connect_to(settings, space, name)[0] as connection:
        yield connection


@contextlib.contextmanager
def at_home(settings: Settings, name: str) -> Iterator[tuple[Connection, Settings]]:
    """A connection to where the settings' space lives, and the settings for that database. Whatever reads or writes
    one space by itself opens it so. Raises: NotRunning, UnknownDatabase, DatabaseUnavailable."""
    with outages():
        connection, database = connect_to(settings, settings.space, name)
        with connection:
            yield connection, settings.on(database)


def elsewhere(connection: Connection) -> dict[str, str]:
    """The spaces that the directory knows and that live on another database, each with its name."""
    rows = connection.execute("SELECT name, database FROM memctl.spaces WHERE database <> '' ORDER BY name")
    return dict(rows.fetchall())


def connect_to(settings: Settings, space: str, name: str) -> tuple[Connection, str]:
    """A connection to where a space lives, and that database's name. Raises: NotRunning, UnknownDatabase,
    DatabaseUnavailable."""
    database, came_by = HERE, None
    for _ in range(MOST_HOPS):
        connection = connect(settings.on(database).require("database_url"), name=name)
        try:
            at = residence(connection, space)
            if not (further := at.leads_to(came_by)):
                if at.arriving:
                    arrive(connection, space, came_by)
                return connection, database
        except BaseException:
            connection.close()
            raise
        connection.close()
        database, came_by = further, at.move
    raise SpaceMoving(space=space)


def of_every_space(connection: Connection, settings: Settings) -> list[Settings]:
    """The settings for each space that lives on the database, their own first: who works for all works for one after
    the other."""
    here = {name for name, database in connection.execute("SELECT name, database FROM memctl.spaces") if not database}
    return [settings, *(settings.of_space(name) for name in sorted(here - {settings.space}))]


def installation(connection: Connection) -> str:
    """Eight hex digits that set this database's memctl apart from others on the same Redis or Qdrant."""
    row = single_row(connection, "SELECT id FROM memctl.installation")
    return str(row[0]).replace("-", "")[:8]


def log_id(connection: Connection) -> str:
    """Sets this log apart for who keeps how far it was sent: another where it was restored elsewhere, and where
    Postgres began another timeline, because it was set back in time or a standby took over."""
    (timeline,) = single_row(
        connection, "SELECT CASE WHEN NOT pg_is_in_recovery() THEN pg_walfile_name(pg_current_wal_lsn()) END"
    )
    later = timeline is not None and not timeline.startswith("00000001")
    return installation(connection) + (f"-{timeline[:8]}" if later else "")
