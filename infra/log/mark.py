"""The mark of a space: up to it every position of that space is settled, so a reader of it that stays at or below never
skips an event.

Sequence order is not commit order. Appenders hold a shared advisory lock of their space from before their first
`nextval` for it until their transaction ends; the mark of a space moves to the last position handed out, to whichever
space, once those who held its lock then are gone (*wait for lockers*). Writers never wait. Who holds positions of two
spaces holds both locks. Neither writers of other spaces nor transactions of other databases matter.
"""

import logging
import time
from collections.abc import Callable, Iterable
from datetime import datetime

import msgspec

from memctl.domain.events.event import Position
from memctl.infra.database import Connection, single_row
from memctl.infra.log.reach import Reach, as_json, next_section, reach_of

log = logging.getLogger("memctl.mark")

PATIENCE_S = 0.25
"""How long a move waits for appenders that are still writing, before it leaves the mark where it is."""


LITTLE_S = 0.01
"""How long it waits for them where there is something to read without them."""


LOOK_EVERY_S = 1.0
"""How often at most who moves the marks again and again looks for slow writers, to log them."""

SLOW_WRITER_S = 10.0
"""An append takes milliseconds. A transaction that has appended and is still open after this time is logged."""


_APPENDERS = 0x6D656D63
"""The first number of the advisory locks that whoever appends shares, as the schema has it; the second is the space,
or 0 for any."""


class SlowWriter(msgspec.Struct, frozen=True):
    """A client of Postgres that does not let go: of positions, so that nobody reads what was appended to its spaces
    after its transaction began, or of a lock that memctl waits for (`spaces` is empty then).

    `state` is pg_stat_activity's; one that is `idle in transaction` is ended by its session's
    `idle_in_transaction_session_timeout`, which every connection of memctl's sets to a minute.
    """

    pid: int
    application: str
    state: str
    seconds: float
    spaces: tuple[str, ...] = ()

    @property
    def held(self) -> str:
        """Whose readers it holds up, in words."""
        return " and ".join(self.spaces) or "nobody's"


def marks(connection: Connection) -> Reach:
    """Where the mark of each space stands, without moving any."""
    return reach_of(*single_row(connection, "SELECT position, held FROM memctl.mark"))


def mark(connection: Connection, space_id: int | None = None) -> Position:
    """Where the mark of a space stands, or the lowest of all, without moving it."""
    found = marks(connection)
    return found.lowest if space_id is None else found.of(space_id)


def mark_age(connection: Connection, space_id: int) -> float:
    """Seconds since the oldest event of the space above its mark was recorded; 0 where all may be read."""
    row = single_row(
        connection,
        "SELECT coalesce(extract(epoch FROM clock_timestamp() - (SELECT recorded_at FROM memctl.events"
        " WHERE space_id = %(space)s"
        " AND position > (SELECT memctl.of_space(position, held, %(space)s) FROM memctl.mark)"
        " ORDER BY position LIMIT 1)), 0)::float8",
        {"space": space_id},
    )
    return max(float(row[0]), 0.0)


def move_mark(connection: Connection, space_id: int | None = None, *, patience_s: float = PATIENCE_S) -> Position:
    """Move the mark of a space (None: of all) as far as it may go, and return where it stands (the lowest of all).
    `connection` is in autocommit mode.

    Waits for the appenders of that moment, at most `patience_s` seconds; later ones are never waited for.
    """
    reached = _move(connection, space_id, lambda marks: patience_s)
    return reached.lowest if space_id is None else reached.of(space_id)


def move_marks(connection: Connection, read: Reach) -> Reach:
    """Move the mark of each space as far as it may go, for who has read so far. While appenders are writing, it waits
    for something to read: but hardly where there is, and not once more for who was waited for in vain."""

    def patience(marks: Reach) -> float:
        return PATIENCE_S if next_section(read, marks) is None else LITTLE_S

    return _move(connection, None, patience, again=False)


_in_vain: set[str] = set()
"""Transactions that were waited for as long as there was patience, and have not ended."""

_looked_at = [0.0]
"""When slow writers were last looked for."""


def _move(
    connection: Connection, space_id: int | None, patience: Callable[[Reach], float], *, again: bool = True
) -> Reach:
    marks, target, held = _frontier(connection)
    if not held:
        return marks
    wanted = {space for space in held if space_id is None or space in (space_id, 0)}
    if not again:
        _in_vain.intersection_update(set().union(*held.values()))
        wanted = {space for space in wanted if not held[space] & _in_vain}
    began, pause, most = time.monotonic(), 0.0005, 0.0
    while wanted & held.keys():
        most = patience(marks)
        if time.monotonic() - began > most:
            break
        time.sleep(pause)
        pause = min(pause * 2, 0.02)
        marks, _, holders = _frontier(connection)
        left = _both(held, holders)
        if any(marks.of(space) < target for space in held.keys() - left.keys()) and 0 not in left:
            marks = _set_mark(connection, target, left)
        held = left
    if not again and most > LITTLE_S:
        _in_vain.update(*(held[space] for space in wanted & held.keys()))
    if held and (again or time.monotonic() - _looked_at[0] > LOOK_EVERY_S):
        _log_slow_writers(slow_writers(connection))
        _looked_at[0] = time.monotonic()
    return marks


def _both(held: dict[int, set[str]], holders: dict[int, set[str]]) -> dict[int, set[str]]:
    """By space, who held a position then and still does."""
    return {space: still for space, then in held.items() if (still := then & holders.get(space, set()))}


_holders = msgspec.json.Decoder(dict[int, set[str]])


def _frontier(connection: Connection) -> tuple[Reach, Position, dict[int, set[str]]]:
    """Where the marks stand, having been moved as far as they may without waiting, the last position handed out before,
    and by space (0: any) who may hold one of those."""
    position, held, target, holders = single_row(connection, "SELECT * FROM memctl.frontier()")
    return reach_of(position, held), Position(target), _holders.decode(holders)


def position_holders(connection: Connection, space_id: int) -> set[str]:
    """The transactions that may hold positions of a space which are not committed yet."""
    (row,) = single_row(connection, "SELECT memctl.position_holders()")
    holders = _holders.decode(row)
    return holders.get(0, set()) | holders.get(space_id, set())


def _set_mark(connection: Connection, target: Position, unsettled: Iterable[int]) -> Reach:
    """Every space but those is settled up to there."""
    waiting = as_json(dict.fromkeys(unsettled, target))
    return reach_of(*single_row(connection, "SELECT * FROM memctl.set_mark(%s, %s::jsonb)", [target, waiting]))


def hold_off_appends(connection: Connection) -> None:
    """No append is under way in any space, none begins, and no space is made, until the caller's transaction ends.
    Whoever appends waits, or is asked to try again. Whoever holds a position already is waited for."""
    connection.execute("LOCK TABLE memctl.spaces IN EXCLUSIVE MODE")
    connection.execute(
        "SELECT pg_advisory_xact_lock(%s, space) FROM (SELECT 0 UNION SELECT space_id FROM memctl.spaces ORDER BY 1)"
        " AS every(space)",
        [_APPENDERS],
    )


def hold_off_space(connection: Connection, space_id: int) -> None:
    """No append to a space is under way, none begins, and nothing of it begins to be forgotten, until the caller's
    transaction ends. Its mark moves meanwhile. Raises: LockNotAvailable, where somebody is at it for long."""
    connection.execute("SET LOCAL lock_timeout = '500ms'")
    connection.execute("SELECT pg_advisory_xact_lock(%s, %s)", [_APPENDERS, space_id])
    connection.execute("SELECT FROM memctl.spaces WHERE space_id = %s FOR UPDATE", [space_id])


def hold_positions(connection: Connection, space_id: int) -> None:
    """Who hands out positions of a space by itself holds its mark until the caller's transaction ends."""
    connection.execute("SELECT pg_advisory_xact_lock_shared(%s, %s)", [_APPENDERS, space_id])


def position_at(connection: Connection, moment: datetime, space_id: int | None = None) -> Position:
    """Where the mark of a space stood at a moment, or the lowest of all (0 before the log began), to about a second."""
    row = connection.execute(
        "SELECT position, held FROM memctl.mark_history WHERE reached_at <= %s ORDER BY reached_at DESC LIMIT 1",
        [moment],
    ).fetchone()
    then = reach_of(*row) if row is not None else Reach(Position(0))
    return then.lowest if space_id is None else then.of(space_id)


EVERY_SPACE = "every space"
"""What a slow writer is said to hold up that may hold positions of any space."""

_SLOW_WRITERS = f"""
WITH holding AS (
    SELECT l.pid, coalesce(s.name, '{EVERY_SPACE}') AS space
    FROM jsonb_each(memctl.position_holders()) AS h(space, holders)
    JOIN pg_locks l ON l.locktype = 'advisory' AND l.granted AND h.holders ? l.virtualtransaction
    LEFT JOIN memctl.spaces s ON s.space_id = h.space::int)
SELECT pid, application, state, max(seconds),
    (SELECT coalesce(array_agg(DISTINCT h.space ORDER BY h.space), '{{}}') FROM holding h WHERE h.pid = found.pid)
FROM (
    SELECT a.pid, a.application_name AS application, a.state,
        extract(epoch FROM clock_timestamp() - a.xact_start)::float8 AS seconds
    FROM pg_stat_activity a
    WHERE a.wait_event_type IS DISTINCT FROM 'Lock' AND a.pid IN (SELECT pid FROM holding)
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
    """Who holds up for longer than `SLOW_WRITER_S` seconds the mark of a space, or a connection of memctl's that waits
    for a lock; the longest first."""
    found = connection.execute(_SLOW_WRITERS, [SLOW_WRITER_S if longer_than_s is None else longer_than_s])
    return [SlowWriter(pid, name or "", state or "", s, tuple(spaces)) for pid, name, state, s, spaces in found]


_logged: set[tuple[int, int]] = set()
"""Writers that were logged, by pid and by time held in powers of two: each at 10 s, 20 s, 40 s, …"""


def _log_slow_writers(writers: list[SlowWriter]) -> None:
    current = {(writer.pid, int(writer.seconds / max(SLOW_WRITER_S, 1.0)).bit_length()): writer for writer in writers}
    for key, writer in current.items():
        if key not in _logged:
            log.warning(
                "the mark of %s waits for a writer: %s (pid %d) is %s and has not ended its transaction for %.0f s",
                writer.held, writer.application or "a client", writer.pid, writer.state or "connected", writer.seconds,
            )  # fmt: skip
    _logged.clear()
    _logged.update(current)


def last_position(connection: Connection) -> Position:
    """The last position handed out so far, committed or not; 0 on an empty log."""
    row = single_row(connection, "SELECT target FROM memctl.frontier()")
    return Position(row[0])
