"""Glances: memory as it was at a position, asked for by whoever answers, built by a worker, kept while it is looked at.

A worker holds a lock while it builds and keeps one, so that those of a worker that was killed are known to be gone.
Each costs a build of all read models: few may wait for one, and only while somebody looks whether it is there.
"""

from typing import Literal

import msgspec

from memctl.domain.events.event import Position
from memctl.domain.support.errors import MemctlError
from memctl.infra.database import Connection, single_row
from memctl.infra.readmodels.generations import Live

LOCK = 0x676C616E
"""First half of the advisory locks of snapshots ("glan"); the second is the snapshot."""

KEPT_S = 300.0
"""A snapshot that nobody looked at for so long is dropped, built or not."""

ENDED_S = 3600.0
"""How long it is still reported how one ended."""

MOST_WAITING, MOST_OF_ONE = 12, 3
"""Glances that wait to be built, or are being built: of all who ask, and of one."""

Status = Literal["asked", "building", "ready", "failed", "dropped"]


class TooManySnapshots(MemctlError):
    """{waiting} snapshots of past memory are already waiting; no more can be queued."""

    hint = "ask again once one of them was looked at; those that nobody asks after are dropped in five minutes"
    waiting: int


class AsOfSnapshot(msgspec.Struct, frozen=True):
    """One snapshot; `then` are the generations to be read, once it is ready."""

    id: int
    position: Position
    status: Status
    then: Live | None = None
    message: str = ""


def ask(connection: Connection, position: Position, live: Live, asked_by: str = "owner") -> AsOfSnapshot:
    """The snapshot at a position under the rules of the live generations; one that has to be built where there is none.

    Says that it is being looked at. Raises: TooManyGlances where one more would have to be built.
    """
    with connection.transaction():
        # Two that ask at once get one.
        connection.execute("SELECT pg_advisory_xact_lock(%s, 0)", [LOCK])
        _tidy(connection, live)
        row = connection.execute(
            "UPDATE memctl.glances SET used_at = clock_timestamp() WHERE position = %s AND stage1 = %s AND stage2 = %s"
            " AND status IN ('asked', 'building', 'ready')"
            " RETURNING glance, position, status, scratch1, scratch2, message",
            [position, live.stage1, live.stage2],
        ).fetchone()
        if row is None:
            _refuse_more(connection, asked_by)
            row = connection.execute(
                "INSERT INTO memctl.glances (position, stage1, stage2, asked_by) VALUES (%s, %s, %s, %s)"
                " RETURNING glance, position, status, scratch1, scratch2, message",
                [position, live.stage1, live.stage2, asked_by],
            ).fetchone()
        assert row is not None
        return _snapshot(row)


def _tidy(connection: Connection, live: Live) -> None:
    """Drop what nobody asks after, or nobody keeps any more, and forget what ended long ago."""
    connection.execute(
        "UPDATE memctl.glances g SET status = 'dropped' WHERE status IN ('building', 'ready')"
        " AND NOT EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 2 AND classid = %s"
        " AND objid = g.glance::oid AND database ="
        " (SELECT oid FROM pg_database WHERE datname = current_database()))"
        " OR status = 'asked' AND (used_at < clock_timestamp() - make_interval(secs => %s)"
        " OR (stage1, stage2) <> (%s, %s))",
        [LOCK, KEPT_S, live.stage1, live.stage2],
    )
    connection.execute(
        "DELETE FROM memctl.glances WHERE status IN ('failed', 'dropped')"
        " AND used_at < clock_timestamp() - make_interval(secs => %s)",
        [ENDED_S],
    )


def _refuse_more(connection: Connection, asked_by: str) -> None:
    row = single_row(
        connection,
        "SELECT count(*), count(*) FILTER (WHERE asked_by = %s) FROM memctl.glances"
        " WHERE status IN ('asked', 'building')",
        [asked_by],
    )
    for waiting, most in zip(row, (MOST_WAITING, MOST_OF_ONE), strict=True):
        if waiting >= most:
            raise TooManySnapshots(waiting=waiting)


def read(connection: Connection, id: int) -> AsOfSnapshot | None:
    """A snapshot by its number. Says that somebody asks after it."""
    connection.execute(
        "UPDATE memctl.glances SET used_at = clock_timestamp() WHERE glance = %s"
        " AND status IN ('asked', 'building', 'ready')",
        [id],
    )
    row = connection.execute(
        "SELECT glance, position, status, scratch1, scratch2, message FROM memctl.glances WHERE glance = %s", [id]
    ).fetchone()
    return None if row is None else _snapshot(row)


def wanted(connection: Connection) -> int | None:
    """The number of the snapshot that waits longest and is still asked after; locked where this is in a transaction."""
    row = connection.execute(
        "SELECT glance FROM memctl.glances WHERE status = 'asked'"
        " AND used_at >= clock_timestamp() - make_interval(secs => %s)"
        " AND (stage1, stage2) = (SELECT stage1, stage2 FROM memctl.projection_state)"
        " ORDER BY glance FOR UPDATE SKIP LOCKED LIMIT 1",
        [KEPT_S],
    ).fetchone()
    return None if row is None else int(row[0])


def claim(connection: Connection) -> AsOfSnapshot | None:
    """The snapshot that is wanted, to be built by whoever holds this connection."""
    with connection.transaction():
        id = wanted(connection)
        if id is None:
            return None
        row = single_row(
            connection,
            "UPDATE memctl.glances SET status = 'building' WHERE glance = %s"
            " RETURNING glance, position, status, scratch1, scratch2, message",
            [id],
        )
        connection.execute("SELECT pg_advisory_lock(%s, %s)", [LOCK, id])
        return _snapshot(row)


def built(connection: Connection, id: int, then: Live) -> bool:
    """It can be looked at; False where it was dropped meanwhile."""
    moved = connection.execute(
        "UPDATE memctl.glances SET status = 'ready', scratch1 = %s, scratch2 = %s, used_at = clock_timestamp()"
        " WHERE glance = %s AND status = 'building'",
        [then.stage1, then.stage2, id],
    )
    return moved.rowcount == 1


def drop_all(connection: Connection) -> None:
    """None that is built, or being built, may be looked at any more: what it was built from is gone."""
    connection.execute("UPDATE memctl.glances SET status = 'dropped' WHERE status IN ('building', 'ready')")


def expired(connection: Connection, id: int, kept_s: float = KEPT_S) -> bool:
    """Whether it was dropped, nobody looked at it for a while, or the rows of today were rebuilt since."""
    row = connection.execute(
        "SELECT status <> 'ready' OR used_at < clock_timestamp() - make_interval(secs => %s)"
        " OR (g.stage1, g.stage2) <> (p.stage1, p.stage2)"
        " FROM memctl.glances g, memctl.projection_state p WHERE glance = %s",
        [kept_s, id],
    ).fetchone()
    return row is None or bool(row[0])


def end(connection: Connection, id: int, status: Literal["failed", "dropped"], message: str = "") -> None:
    """It is gone. Whoever asks again gets another."""
    connection.execute("UPDATE memctl.glances SET status = %s, message = %s WHERE glance = %s", [status, message, id])
    connection.execute("SELECT pg_advisory_unlock(%s, %s)", [LOCK, id])


def _snapshot(row: tuple[int, int, Status, int | None, int | None, str]) -> AsOfSnapshot:
    id, position, status, one, two, message = row
    then = Live(one, two) if status == "ready" and one is not None and two is not None else None
    return AsOfSnapshot(id, Position(position), status, then, message)
