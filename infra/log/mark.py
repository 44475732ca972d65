"""The mark: up to it every position is settled, so a reader that stays at or below it never skips an event.

Sequence order is not commit order. Appenders hold a shared advisory lock from before their first `nextval` until
their transaction ends; the mark moves to the last position handed out once those who held the lock then are gone
(*wait for lockers*). Writers never wait, and transactions of other databases do not matter.
"""

import logging
import time
from datetime import datetime

import msgspec

from memctl.domain.events.event import Position
from memctl.infra.database import Connection, single_row

log = logging.getLogger("memctl.mark")

PATIENCE_S = 0.25
"""How long a move waits for appenders that are still writing, before it leaves the mark where it is."""


SLOW_WRITER_S = 10.0
"""An append takes milliseconds. A transaction that has appended and is still open after this time is logged."""


_APPENDERS = 0x6D656D63746C
"""The advisory lock that whoever appends shares, as the schema has it."""


class SlowWriter(msgspec.Struct, frozen=True):
    """A client of Postgres that does not let go: of positions, so that nobody reads what was appended after its
    transaction began, or of a lock that memctl waits for.

    `state` is pg_stat_activity's; one that is `idle in transaction` is ended by its session's
    `idle_in_transaction_session_timeout`, which every connection of memctl's sets to a minute.
    """

    pid: int
    application: str
    state: str
    seconds: float


def mark(connection: Connection) -> Position:
    """Where the mark stands, without moving it."""
    row = single_row(connection, "SELECT position FROM memctl.mark")
    return Position(row[0])


def mark_age(connection: Connection) -> float:
    """Seconds since the oldest event above the mark was recorded; 0 where all may be read."""
    row = single_row(
        connection,
        "SELECT coalesce(extract(epoch FROM clock_timestamp() - (SELECT recorded_at FROM memctl.events"
        " WHERE position > (SELECT position FROM memctl.mark) ORDER BY position LIMIT 1)), 0)::float8",
    )
    return max(float(row[0]), 0.0)


def move_mark(connection: Connection, *, patience_s: float = PATIENCE_S) -> Position:
    """Move the mark as far as it may go, and return where it stands. `connection` is in autocommit mode.

    Waits for the appenders of that moment, at most `patience_s` seconds; later ones are never waited for.
    """
    row = single_row(connection, "SELECT reached, target, holders FROM memctl.frontier()")
    reached, target, holders = row
    if not holders:
        return Position(reached)
    waiting = set(holders)
    deadline = time.monotonic() + patience_s
    pause = 0.0005
    while waiting:
        if time.monotonic() > deadline:
            _log_slow_writers(slow_writers(connection))
            return Position(reached)
        time.sleep(pause)
        pause = min(pause * 2, 0.02)
        row = single_row(connection, "SELECT memctl.position_holders()")
        waiting.intersection_update(row[0])
    row = single_row(connection, "SELECT memctl.set_mark(%s)", [target])
    return Position(row[0])


def hold_off_appends(connection: Connection) -> None:
    """No append is under way, and none begins, until the caller's transaction ends. Whoever appends waits, or is
    asked to try again. Whoever holds a position already is waited for."""
    connection.execute("SELECT pg_advisory_xact_lock(%s)", [_APPENDERS])


def position_at(connection: Connection, moment: datetime) -> Position:
    """Where the mark stood at a moment (0 before the log began), to about a second."""
    row = connection.execute(
        "SELECT position FROM memctl.mark_history WHERE reached_at <= %s ORDER BY reached_at DESC LIMIT 1", [moment]
    ).fetchone()
    return Position(row[0] if row is not None else 0)


_SLOW_WRITERS = """
SELECT pid, application, state, max(seconds) FROM (
    SELECT a.pid, a.application_name AS application, a.state,
        extract(epoch FROM clock_timestamp() - a.xact_start)::float8 AS seconds
    FROM pg_stat_activity a
    WHERE a.wait_event_type IS DISTINCT FROM 'Lock' AND a.pid IN (
        SELECT pid FROM pg_locks
        WHERE locktype = 'advisory' AND granted AND virtualtransaction = ANY(memctl.position_holders()))
    UNION ALL
    SELECT a.pid, a.application_name, a.state, extract(epoch FROM clock_timestamp() - waiting.query_start)::float8
    FROM pg_stat_activity waiting, unnest(pg_blocking_pids(waiting.pid)) AS blocker
    JOIN pg_stat_activity a ON a.pid = blocker
    WHERE waiting.datname = current_database() AND waiting.wait_event_type = 'Lock'
        AND waiting.application_name LIKE 'memctl%%' AND a.wait_event_type IS DISTINCT FROM 'Lock'
) AS found GROUP BY pid, application, state HAVING max(seconds) > %s ORDER BY max(seconds) DESC
"""
"""Who itself waits for a lock is not at fault: the one at the end of the queue is."""


def slow_writers(connection: Connection, *, longer_than_s: float | None = None) -> list[SlowWriter]:
    """Who holds up for longer than `SLOW_WRITER_S` seconds the mark, or a connection of memctl's that waits for a lock;
    the longest first."""
    found = connection.execute(_SLOW_WRITERS, [SLOW_WRITER_S if longer_than_s is None else longer_than_s])
    return [SlowWriter(pid, name or "", state or "", seconds) for pid, name, state, seconds in found]


_logged: set[tuple[int, int]] = set()
"""Writers that were logged, by pid and by time held in powers of two: each at 10 s, 20 s, 40 s, …"""


def _log_slow_writers(writers: list[SlowWriter]) -> None:
    current = {(writer.pid, int(writer.seconds / max(SLOW_WRITER_S, 1.0)).bit_length()): writer for writer in writers}
    for key, writer in current.items():
        if key not in _logged:
            log.warning(
                "the mark waits for a writer: %s (pid %d) is %s and has not ended its transaction for %.0f s",
                writer.application or "a client", writer.pid, writer.state or "connected", writer.seconds,
            )  # fmt: skip
    _logged.clear()
    _logged.update(current)


def last_position(connection: Connection) -> Position:
    """The last position handed out so far, committed or not; 0 on an empty log."""
    row = single_row(connection, "SELECT target FROM memctl.frontier()")
    return Position(row[0])
