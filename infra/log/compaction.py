"""Compaction of deliveries: once there are many, their ids move into a large table that appends only read.

An id is random, so each append writes to another page of the index that it enters. While that is small, pages are
written many times between two checkpoints; the large one is written in the order of its ids.
"""

import time
from uuid import UUID

from psycopg import errors

from memctl.infra.database import Connection, single_row

DELIVERIES = 1_000_000
"""How many are left where appends enter theirs: some 60 MB of index."""

AT_ONCE = 2_000
"""Deliveries that are moved in one transaction, for which appends to their space wait: some 20 ms."""

PATIENCE_MS = 200
"""How long who appends just now is waited for: others wait behind. It is tried again at the next look."""

_FIRST = UUID(int=0)


class Compaction:
    """Moves deliveries, some at a time. Others may do the same: each finds what is left."""

    def __init__(self) -> None:
        self._spaces: list[int] = []
        self._after = _FIRST
        self._known = False
        """The planner knows that the large table is large."""

    @property
    def under_way(self) -> bool:
        """Whether some are left of those that were due."""
        return bool(self._spaces)

    def begin_if_due(self, connection: Connection) -> None:
        """Begin where there are more than `DELIVERIES`, if none is under way."""
        count = "SELECT count(*) FROM (SELECT FROM ONLY memctl.deliveries LIMIT %s) d"
        if not self._spaces and single_row(connection, count, [DELIVERIES + 1])[0] > DELIVERIES:
            found = connection.execute("SELECT space_id FROM memctl.spaces ORDER BY 1")
            self._spaces, self._after, self._known = [space for (space,) in found], _FIRST, False

    def work(self, connection: Connection, seconds: float) -> int:
        """Move deliveries for so long, some in any case, or until none are left; returns how many. `connection` is in
        autocommit mode. Where a writer of a space holds its lock for long, the rest waits for the next time.
        """
        total, until = 0, time.monotonic() + seconds
        while self._spaces:
            moved, self._after = self._next(connection, self._spaces[-1])
            total += moved
            if moved < AT_ONCE:
                self._spaces.pop()
                self._after = _FIRST
            if moved and not (self._known and self._spaces):
                connection.execute("ANALYZE memctl.compacted_deliveries")
                self._known = True
            if time.monotonic() >= until:
                break
        return total

    def _next(self, connection: Connection, space: int) -> tuple[int, UUID]:
        """Move the next of a space, in a transaction of its own: how many, and the last."""
        try:
            with connection.transaction():
                connection.execute("SELECT set_config('lock_timeout', %s, true)", [f"{PATIENCE_MS}ms"])
                asked = "SELECT moved, reached FROM memctl.compact_deliveries(%s, %s, %s)"
                moved, reached = single_row(connection, asked, [space, self._after, AT_ONCE])
        except (errors.LockNotAvailable, errors.DeadlockDetected):
            moved, reached = None, None
        return moved or 0, reached or _FIRST
