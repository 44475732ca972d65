"""Spaces: whose memory it is (a team, a tenant). The embedded default has one."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING

from memctl.infra.database import Connection, connect, outages, single_row

if TYPE_CHECKING:
    from memctl.infra.settings import Settings


def space_id(connection: Connection, name: str) -> int:
    """Number of the space of that name, which is made where it is new."""
    row = connection.execute("SELECT space_id FROM memctl.spaces WHERE name = %s", [name]).fetchone()
    if row is None:
        connection.execute("INSERT INTO memctl.spaces (name) VALUES (%s) ON CONFLICT (name) DO NOTHING", [name])
        row = single_row(connection, "SELECT space_id FROM memctl.spaces WHERE name = %s", [name])
    return int(row[0])


def space_names(connection: Connection) -> dict[int, str]:
    return {row[0]: row[1] for row in connection.execute("SELECT space_id, name FROM memctl.spaces")}


def database_of(connection: Connection, name: str) -> str:
    """Name of the database that a space lives on; empty for this one, and where the space is new."""
    # As JSON, for a database of before there was a directory has no such field.
    asked = "SELECT to_jsonb(s) ->> 'database' FROM memctl.spaces s WHERE name = %s"
    row = connection.execute(asked, [name]).fetchone()
    return str(row[0] or "") if row is not None else ""


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
    """A connection to where a space lives, which is named there. Raises: NotRunning, UnknownDatabase,
    DatabaseUnavailable."""
    with outages(), connect(settings.require("database_url"), name=name) as connection:
        database = database_of(connection, space)
        if not database:
            yield connection
    if database:
        with outages(), connect(settings.on(database).require("database_url"), name=name) as connection:
            yield connection


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
