"""Partitions of the log: ranges of positions, of a bounded size, made ahead of who appends.

What lies beyond all of them goes into the rest, so no append fails for want of one. No append makes one: under that
lock a writer that sleeps would hold up all others.
"""

import msgspec
from psycopg import errors

from memctl.infra.database import Connection

POSITIONS = 10_000_000
"""Positions of a partition: some 15 GB of it, and an index of streams that is built in a minute."""

PATIENCE_MS = 500
"""How long a lock of the log is waited for: readers and appends wait behind who waits for it. It is tried again."""


class Partition(msgspec.Struct, frozen=True):
    """A part of the log: its table, its positions from `first` up to and without `beyond` (None of the rest, which
    takes what lies beyond all others), bytes with its indexes, and its tablespace ("" where it is the database's)."""

    name: str
    first: int | None
    beyond: int | None
    size: int
    tablespace: str


class Partitions(msgspec.Struct, frozen=True):
    """The log's partitions in order of position, how far they are used, and how many events the rest holds."""

    parts: tuple[Partition, ...]
    used: int
    in_rest: int

    @property
    def ends(self) -> int:
        """The position at which the last of them ends."""
        return max(part.beyond or 0 for part in self.parts)

    @property
    def full(self) -> tuple[Partition, ...]:
        """Those that no new event goes to."""
        return tuple(part for part in self.parts if part.beyond is not None and part.beyond <= self.used)


def make_partitions(connection: Connection, positions: int = POSITIONS) -> int:
    """Make partitions for what has been handed out, with half of one to spare; returns how many. What the rest has
    taken becomes one. `connection` is in autocommit mode.

    Where others hold the log for long, none is made, and -1 is returned: ask again later.
    """
    try:
        with connection.transaction():
            connection.execute("SELECT set_config('lock_timeout', %s, true)", [f"{PATIENCE_MS}ms"])
            row = connection.execute("SELECT memctl.make_partitions(%s, %s)", [positions, 0]).fetchone()
    except (errors.LockNotAvailable, errors.DeadlockDetected):
        return -1
    return int(row[0]) if row else 0


def partitions(connection: Connection) -> Partitions:
    """What partitions there are."""
    rows = connection.execute(
        "SELECT short, first, beyond, pg_total_relation_size(name),"
        " coalesce(t.spcname, '') FROM memctl.partitions p JOIN pg_class c ON c.oid = name"
        " LEFT JOIN pg_tablespace t ON t.oid = c.reltablespace ORDER BY first NULLS LAST"
    ).fetchall()
    row = connection.execute(
        "SELECT coalesce(pg_sequence_last_value('memctl.events_position_seq'), 0),"
        " (SELECT count(*) FROM memctl.events_rest)"
    ).fetchone()
    used, in_rest = row or (0, 0)
    return Partitions(tuple(Partition(*each) for each in rows), used, in_rest)


def tables(connection: Connection) -> list[str]:
    """Names of memctl's tables, by name; of the log the whole, not its partitions."""
    rows = connection.execute(
        "SELECT relname FROM pg_class WHERE relnamespace = 'memctl'::regnamespace AND relkind IN ('r', 'p')"
        " AND NOT relispartition ORDER BY 1"
    )
    return [name for (name,) in rows]
