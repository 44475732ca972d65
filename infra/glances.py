"""Glances: memory as it was at a position, asked for by whoever answers, built by a worker, kept while it is looked at.

A worker holds a lock while it builds and keeps one, so that those of a worker that was killed are known to be gone.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from memctl.domain.event import Position
from memctl.infra.database import Connection
from memctl.infra.generations import Live

LOCK = 0x676C616E
"""First half of the advisory locks of glances ("glan"); the second is the glance."""

KEPT_S = 300.0
"""A glance that nobody looked at for so long is dropped."""

Status = Literal["asked", "building", "ready", "failed", "dropped"]


class Glance(msgspec.Struct, frozen=True):
    """One glance; `then` are the generations to be read, once it is ready."""

    id: int
    position: Position
    status: Status
    then: Live | None = None
    message: str = ""


def ask(connection: Connection, position: Position, live: Live) -> Glance:
    """The glance at a position under the rules of the live generations; one that has to be built where there is none.

    Says that it is being looked at.
    """
    with connection.transaction():
        # Two that ask at once get one.
        connection.execute("SELECT pg_advisory_xact_lock(%s, 0)", [LOCK])
        connection.execute(
            "UPDATE memctl.glances g SET status = 'dropped' WHERE status IN ('building', 'ready')"
            " AND NOT EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 2 AND classid = %s"
            " AND objid = g.glance::oid AND database ="
            " (SELECT oid FROM pg_database WHERE datname = current_database()))",
            [LOCK],
        )
        row = connection.execute(
            "UPDATE memctl.glances SET used_at = clock_timestamp() WHERE position = %s AND stage1 = %s AND stage2 = %s"
            " AND status IN ('asked', 'building', 'ready')"
            " RETURNING glance, position, status, scratch1, scratch2, message",
            [position, live.stage1, live.stage2],
        ).fetchone()
        if row is None:
            row = connection.execute(
                "INSERT INTO memctl.glances (position, stage1, stage2) VALUES (%s, %s, %s)"
                " RETURNING glance, position, status, scratch1, scratch2, message",
                [position, live.stage1, live.stage2],
            ).fetchone()
        assert row is not None
        return _glance(row)


def read(connection: Connection, id: int) -> Glance | None:
    """A glance by its number."""
    row = connection.execute(
        "SELECT glance, position, status, scratch1, scratch2, message FROM memctl.glances WHERE glance = %s", [id]
    ).fetchone()
    return None if row is None else _glance(row)


def claim(connection: Connection) -> Glance | None:
    """The glance that waits longest, to be built by whoever holds this connection."""
    with connection.transaction():
        row = connection.execute(
            "UPDATE memctl.glances SET status = 'building' WHERE glance = (SELECT glance FROM memctl.glances"
            " WHERE status = 'asked' ORDER BY glance FOR UPDATE SKIP LOCKED LIMIT 1)"
            " RETURNING glance, position, status, scratch1, scratch2, message"
        ).fetchone()
        if row is None:
            return None
        connection.execute("SELECT pg_advisory_lock(%s, %s)", [LOCK, row[0]])
        return _glance(row)


def built(connection: Connection, id: int, then: Live) -> None:
    """It can be looked at."""
    connection.execute(
        "UPDATE memctl.glances SET status = 'ready', scratch1 = %s, scratch2 = %s, used_at = clock_timestamp()"
        " WHERE glance = %s",
        [then.stage1, then.stage2, id],
    )


def expired(connection: Connection, id: int, kept_s: float = KEPT_S) -> bool:
    """Whether nobody looked at it for a while, or the rows of today were made anew since."""
    row = connection.execute(
        "SELECT used_at < clock_timestamp() - make_interval(secs => %s) OR (g.stage1, g.stage2) <> (p.stage1, p.stage2)"
        " FROM memctl.glances g, memctl.projection_state p WHERE glance = %s",
        [kept_s, id],
    ).fetchone()
    return row is None or bool(row[0])


def end(connection: Connection, id: int, status: Literal["failed", "dropped"], message: str = "") -> None:
    """It is gone. Whoever asks again gets another."""
    connection.execute("UPDATE memctl.glances SET status = %s, message = %s WHERE glance = %s", [status, message, id])
    connection.execute("SELECT pg_advisory_unlock(%s, %s)", [LOCK, id])


def _glance(row: tuple[int, int, Status, int | None, int | None, str]) -> Glance:
    id, position, status, one, two, message = row
    then = Live(one, two) if status == "ready" and one is not None and two is not None else None
    return Glance(id, Position(position), status, then, message)
