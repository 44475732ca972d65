"""The mark: up to it every position is settled, so a reader that stays at or below it never skips an event.

Sequence order is not commit order. Appenders hold a shared advisory lock from before their first `nextval` until
their transaction ends; the mark moves to the last position handed out once those who held the lock then are gone
(*wait for lockers*). Writers never wait, and transactions of other databases do not matter.
"""

from __future__ import annotations

import time
from datetime import datetime

from memctl.domain.event import Position
from memctl.infra.database import Connection

PATIENCE_S = 0.25
"""How long a move waits for appenders that are still writing, before it leaves the mark where it is."""


def mark(connection: Connection) -> Position:
    """Where the mark stands, without moving it."""
    row = connection.execute("SELECT position FROM memctl.mark").fetchone()
    assert row is not None
    return Position(row[0])


def move_mark(connection: Connection, *, patience_s: float = PATIENCE_S) -> Position:
    """Move the mark as far as it may go, and return where it stands. `connection` is in autocommit mode.

    Waits for the appenders of that moment, at most `patience_s` seconds; later ones are never waited for.
    """
    row = connection.execute("SELECT reached, target, holders FROM memctl.frontier()").fetchone()
    assert row is not None
    reached, target, holders = row
    if not holders:
        return Position(reached)
    waiting = set(holders)
    deadline = time.monotonic() + patience_s
    pause = 0.0005
    while waiting:
        if time.monotonic() > deadline:
            return Position(reached)
        time.sleep(pause)
        pause = min(pause * 2, 0.02)
        row = connection.execute("SELECT memctl.position_holders()").fetchone()
        assert row is not None
        waiting.intersection_update(row[0])
    row = connection.execute("SELECT memctl.set_mark(%s)", [target]).fetchone()
    assert row is not None
    return Position(row[0])


def position_at(connection: Connection, moment: datetime) -> Position:
    """Where the mark stood at a moment (0 before the log began), to about a second."""
    row = connection.execute(
        "SELECT position FROM memctl.mark_history WHERE reached_at <= %s ORDER BY reached_at DESC LIMIT 1", [moment]
    ).fetchone()
    return Position(row[0] if row is not None else 0)


def last_position(connection: Connection) -> Position:
    """The last position handed out so far, committed or not; 0 on an empty log."""
    row = connection.execute("SELECT target FROM memctl.frontier()").fetchone()
    assert row is not None
    return Position(row[0])
