"""Spaces: whose memory it is (a team, a tenant). The embedded default has one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from memctl.infra.database import Connection, single_row

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


def of_every_space(connection: Connection, settings: Settings) -> list[Settings]:
    """The settings for each space of the database, their own first: who works for all works for one after the other."""
    others = sorted(set(space_names(connection).values()) - {settings.space})
    return [settings, *(settings.of_space(name) for name in others)]


def installation(connection: Connection) -> str:
    """Eight hex digits that set this database's memctl apart from others on the same Redis or Qdrant."""
    row = single_row(connection, "SELECT id FROM memctl.installation")
    return str(row[0]).replace("-", "")[:8]
