"""Whoever appends in bulk gives way: a transcript of 200,000 events is read no faster than it is folded, so that what
others append meanwhile is folded within seconds. Hooks and commands append at once."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import psycopg

from memctl.domain.events.event import Position
from memctl.infra.database import Connection
from memctl.infra.log.mark import last_position
from memctl.infra.readmodels import generations

MOST_UNFOLDED = 2_000
"""Events that may wait to be folded as somebody appends in bulk: a second's work."""

FEW = 100
"""So many events are no bulk: they wait for nobody."""

IDLE_S = 3.0
"""After this time in which no fold moved and nobody held a lease, nobody folds: then nobody is waited for."""

LONGEST_S = 15.0
"""The longest that one batch waits, whoever folds."""

_LOOK_EVERY_S = 0.02
_LOCK = 0x62756C6B
"""The advisory lock of who appends in bulk: one at a time, or each would append as soon as there is room for one."""


class Backpressure:
    """What one writer knows of the folds it gives way to. Not for several threads."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._still: Position | None = None
        """Where the folds stood when they were waited for in vain."""

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
            while (lowest := (found := self._looked())[0]) != self._still:
                now = time.monotonic()
                if found[1] or lowest != reached:
                    reached, busy_at = lowest, now
                held = held or self._locked()
                if held and last_position(self._connection) - lowest <= MOST_UNFOLDED:
                    break
                if now - busy_at > IDLE_S or now - began > LONGEST_S:
                    self._still = lowest
                time.sleep(_LOOK_EVERY_S)
            yield
        finally:
            if held:
                with suppress(psycopg.Error):  # it ends with the connection, too
                    self._connection.execute("SELECT pg_advisory_unlock(%s)", [_LOCK])

    def _looked(self) -> tuple[Position, bool]:
        """Up to where all is folded, and whether somebody is at it."""
        live = generations.live(self._connection)
        found = generations.offsets(self._connection, live.stage1, live.stage2)
        return min(each.position for each in found), any(each.owner is not None for each in found)

    def _locked(self) -> bool:
        row = self._connection.execute("SELECT pg_try_advisory_lock(%s)", [_LOCK]).fetchone()
        return row is not None and bool(row[0])
