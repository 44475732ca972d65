"""How far the read models are behind the log, and waiting until they have caught up."""

import time
from collections.abc import Callable, Iterator

import msgspec

from memctl.domain.events.event import Position
from memctl.domain.support.errors import MemctlError
from memctl.infra.database import Connection, connect, outages
from memctl.infra.log.mark import last_position
from memctl.infra.readmodels import generations
from memctl.infra.settings import Settings
from memctl.infra.vectors.outbox import backlog, queue_all

EVERY_S = 0.1


class Unfolded(msgspec.Struct, frozen=True):
    """What is still to be folded (positions of the log) and to be written to the vector store (points)."""

    events: int
    points: int
    dense: int
    """Points that wait for their dense vector; search finds them by words meanwhile."""


class NotCaughtUp(MemctlError):
    """The read models are still {events} positions behind after {seconds:.0f} s without progress."""

    hint = "see `memctl status`, and the worker's log"


def queue_again(settings: Settings, wait: Callable[[int, int], None] | None) -> tuple[int, int]:
    """Queue every point to be written to the vector store again. Returns how many, and how many wait for their dense
    vector. `wait` is called with how many are written, of how many, until all are. Raises: as `caught_up`."""
    with connect(settings.require("database_url"), name="memctl reindex") as connection:
        generation = generations.live(connection).stage2
        points = queue_all(connection, generation)
        if wait is not None:
            for now in caught_up(connection):
                wait(max(points - now.points, 0), points)
        _, dense = backlog(connection, generation)
    return points, dense


def waiting(connection: Connection, position: Position, space_id: int | None = None) -> Unfolded:
    """What has to happen until everything up to a position, of a space or of all, can be searched.

    Raises: DatabaseUnavailable.
    """
    with outages():
        live = generations.live(connection)
        reached = min(generations.lowest_offset(connection, each, space_id) for each in (live.stage1, live.stage2))
        points, dense = backlog(connection, live.stage2)
    return Unfolded(max(0, position - reached), points, dense)


def caught_up(connection: Connection, space_id: int | None = None, *, patience_s: float = 120.0) -> Iterator[Unfolded]:
    """Yield what is waiting for, again and again, until all that is in the log now (of a space) can be searched.

    Raises: NotCaughtUp when nothing has moved for `patience_s` seconds, DatabaseUnavailable.
    """
    with outages():
        target = last_position(connection)
    last, since = None, time.monotonic()
    while True:
        now = waiting(connection, target, space_id)
        yield now
        if not now.events and not now.points:
            return
        if last is None or (now.events, now.points) != (last.events, last.points):
            last, since = now, time.monotonic()
        elif time.monotonic() - since > patience_s:
            raise NotCaughtUp(events=now.events, seconds=patience_s)
        time.sleep(EVERY_S)
