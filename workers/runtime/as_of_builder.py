"""Builds the snapshots that were asked for, one after the other, and keeps a few of them while they are looked at."""

import contextlib
import logging
import threading

from memctl.infra.database import Connection, connect
from memctl.infra.readmodels import as_of_snapshots
from memctl.infra.readmodels.as_of_snapshots import AsOfSnapshot
from memctl.infra.readmodels.dead_letters import fault_message
from memctl.workers.rebuild.as_of import as_of

log = logging.getLogger("memctl.as_of")

LOOK_EVERY_S = 0.5
MOST_KEPT = 3
"""Glances that one worker keeps: each is a copy of the read models."""

KEPT_WHERE_WANTED_S = 30.0
"""For so long one is kept that nobody looks at, where another waits for its place."""


class AsOfBuilder:
    """What one worker builds and keeps."""

    def __init__(self, database_url: str, kept_s: float = as_of_snapshots.KEPT_S) -> None:
        self._url = database_url
        self._kept_s = kept_s
        self._kept: dict[int, contextlib.ExitStack] = {}
        """By number of the snapshot, what ends with it."""

    def run(self, stop: threading.Event) -> None:
        """Work until asked to stop; then drop what is kept. A fault is logged, and tried again."""
        while not stop.is_set():
            try:
                with connect(self._url, name="memctl as of") as connection:
                    try:
                        while not stop.wait(LOOK_EVERY_S):
                            self.look(connection)
                    finally:
                        self._drop_all(connection)
            except Exception as problem:
                log.warning("memory as it was cannot be built for now: %s", fault_message(problem))
                stop.wait(10 * LOOK_EVERY_S)

    def look(self, connection: Connection) -> None:
        """Drop what nobody looks at any more, and build one that was asked for."""
        full = len(self._kept) >= MOST_KEPT and as_of_snapshots.wanted(connection) is not None
        kept_s = min(self._kept_s, KEPT_WHERE_WANTED_S) if full else self._kept_s
        for id in [each for each in self._kept if as_of_snapshots.expired(connection, each, kept_s)]:
            self._drop(connection, id)
        if len(self._kept) < MOST_KEPT and (snapshot := as_of_snapshots.claim(connection)) is not None:
            self._build(connection, snapshot)

    def _build(self, connection: Connection, snapshot: AsOfSnapshot) -> None:
        scratch = contextlib.ExitStack()
        try:
            _, then = scratch.enter_context(as_of(self._url, snapshot.position))
        except Exception as problem:
            scratch.close()
            log.error("memory as of position %d could not be built: %s", snapshot.position, fault_message(problem))
            as_of_snapshots.end(connection, snapshot.id, "failed", fault_message(problem))
            return
        self._kept[snapshot.id] = scratch
        if not as_of_snapshots.built(connection, snapshot.id, then):
            self._drop(connection, snapshot.id)

    def _drop_all(self, connection: Connection) -> None:
        for id in list(self._kept):
            with contextlib.suppress(Exception):  # the next snapshot of anyone's drops what is left of it
                self._drop(connection, id)
        self._kept.clear()

    def _drop(self, connection: Connection, id: int) -> None:
        with self._kept.pop(id):
            as_of_snapshots.end(connection, id, "dropped")
