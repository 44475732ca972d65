"""Whoever appends in bulk gives way: a transcript of 200,000 events is read no faster than it is folded, so that what
others append meanwhile is folded within seconds. Hooks and commands append at once."""

import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import psycopg

from memctl.domain.events.event import Position
from memctl.infra.database import Connection, single_row
from memctl.infra.readmodels import generations

WORK_S = 0.5
"""How long the folds may be at work, as fast as they were lately, on what waits as somebody appends in bulk."""

LATELY_S = 10.0

LEAST_UNFOLDED, MOST_UNFOLDED = 200, 3_000
"""Events that may wait at any rate, and at most."""

FEW = 100
"""So many events are no bulk: they wait for nobody."""

IDLE_S = 3.0
"""After this time in which no fold moved and nobody held a lease, nobody folds: then nobody is waited for."""

LONGEST_S, AGAIN_S = 15.0, 1.0
"""The longest that one batch waits, whoever folds; and the next ones, while the folds stand where they stood."""

_LOOK_EVERY_S = 0.02
_LOCK = 0x62756C6B
"""The advisory lock of who appends in bulk: one at a time, or each would append as soon as there is room for one."""


class Pace:
    """How fast the folds went lately, by when they were seen to have moved, and up to where."""

    def __init__(self) -> None:
        self._seen: deque[tuple[float, Position]] = deque(maxlen=int(LATELY_S / _LOOK_EVERY_S))

    def saw(self, now: float, lowest: Position) -> None:
        while self._seen and now - self._seen[0][0] > LATELY_S:
            self._seen.popleft()
        if not self._seen or self._seen[-1][1] != lowest:
            self._seen.append((now, lowest))

    @property
    def most(self) -> int:
        """How many events may wait: fewer where each of them takes longer to fold."""
        (since, first), (last, lowest) = self._seen[0], self._seen[-1]
        rate = (lowest - first) / (last - since) if last > since else 0.0
        return min(max(int(rate * WORK_S), LEAST_UNFOLDED), MOST_UNFOLDED)


class Backpressure:
    """What one writer knows of the folds it gives way to. Not for several threads."""

    def __init__(self, connection: Connection, space_id: int) -> None:
        self._connection = connection
        self._space_id = space_id
        self._still: Position | None = None
        """Where the folds stood when they were waited for in vain."""
        self._folding = False
        """Somebody was at it then."""
        self._pace = Pace()

    @contextmanager
    def room(self, events: int) -> Iterator[None]:
        """Wait until there is room for so many events, and append in here."""
        if events <= FEW:
            yield
            return
        began = busy_at = time.monotonic()
        reached: Position | None = None
        held = False
        try:
            while True:
                lowest, folding = self.looked()
                now = time.monotonic()
                if lowest == self._still and (not self._folding or now - began > AGAIN_S):
                    break
                if folding or lowest != reached:
                    reached, busy_at = lowest, now
                held = held or bool(single_row(self._connection, "SELECT pg_try_advisory_lock(%s)", [_LOCK])[0])
                if held and self._waiting(lowest) <= self._pace.most:
                    break
                if now - busy_at > IDLE_S or now - began > LONGEST_S:
                    self._still, self._folding = lowest, folding
                    break
                time.sleep(_LOOK_EVERY_S)
            yield
        finally:
            if held:
                with suppress(psycopg.Error):  # it ends with the connection, too
                    self._connection.execute("SELECT pg_advisory_unlock(%s)", [_LOCK])

    def _waiting(self, lowest: Position) -> int:
        """How many events of any space are not folded yet, counted up to one more than may be. What was in the log
        already took positions too, and waits for nobody; `Pace` counts those."""
        query = "SELECT count(*) FROM (SELECT FROM memctl.events WHERE position > %s LIMIT %s) AS waiting"
        return int(single_row(self._connection, query, [lowest, self._pace.most + 1])[0])

    def looked(self) -> tuple[Position, bool]:
        """Up to where all is folded, and whether somebody is at it."""
        live = generations.live(self._connection)
        found = generations.offsets(self._connection, live.stage1, live.stage2)
        lowest = min(each.reach.of(self._space_id) for each in found)
        self._pace.saw(time.monotonic(), lowest)
        return lowest, any(each.owner is not None for each in found)
