"""Builds the glances that were asked for, one after the other, and keeps a few of them while they are looked at."""

from __future__ import annotations

import contextlib
import logging
import threading
from dataclasses import dataclass

from memctl.infra.database import Connection, connect
from memctl.infra.readmodels import as_of_snapshots as glances
from memctl.infra.readmodels.as_of_snapshots import AsOfSnapshot
from memctl.workers.folding.poison import message_of
from memctl.workers.rebuild.as_of import as_of

log = logging.getLogger("memctl.glances")

LOOK_EVERY_S = 0.5
MOST_KEPT = 3
"""Glances that one worker keeps: each is a copy of the read models."""

KEPT_WHERE_WANTED_S = 30.0
"""For so long one is kept that nobody looks at, where another waits for its place."""


@dataclass
class _Kept:
    glance: AsOfSnapshot
    scratch: contextlib.ExitStack


class AsOfBuilder:
    """What one worker builds and keeps."""

    def __init__(self, database_url: str, kept_s: float = glances.KEPT_S) -> None:
        self._url = database_url
        self._kept_s = kept_s
        self._kept: list[_Kept] = []

    def run(self, stop: threading.Event) -> None:
        """Work until asked to stop; then drop what is kept. A fault is logged, and tried again."""
        while not stop.is_set():
            try:
                with connect(self._url, name="memctl glances") as connection:
                    try:
                        while not stop.wait(LOOK_EVERY_S):
                            self.look(connection)
                    finally:
                        self._drop_all(connection)
            except Exception as problem:
                log.warning("memory as it was cannot be built for now: %s", message_of(problem))
                stop.wait(10 * LOOK_EVERY_S)

    def look(self, connection: Connection) -> None:
        """Drop what nobody looks at any more, and build one that was asked for."""
        full = len(self._kept) >= MOST_KEPT and glances.wanted(connection) is not None
        kept_s = min(self._kept_s, KEPT_WHERE_WANTED_S) if full else self._kept_s
        for kept in [each for each in self._kept if glances.expired(connection, each.glance.id, kept_s)]:
            self._drop(connection, kept)
        if len(self._kept) < MOST_KEPT and (glance := glances.claim(connection)) is not None:
            self._build(connection, glance)

    def _build(self, connection: Connection, glance: AsOfSnapshot) -> None:
        scratch = contextlib.ExitStack()
        try:
            _, then = scratch.enter_context(as_of(self._url, glance.position))
        except Exception as problem:
            scratch.close()
            log.error("memory as of position %d could not be built: %s", glance.position, message_of(problem))
            glances.end(connection, glance.id, "failed", message_of(problem))
            return
        kept = _Kept(glance, scratch)
        self._kept.append(kept)
        if not glances.built(connection, glance.id, then):
            self._drop(connection, kept)

    def _drop_all(self, connection: Connection) -> None:
        for kept in list(self._kept):
            with contextlib.suppress(Exception):  # the next glance of anyone's drops what is left of it
                self._drop(connection, kept)
        self._kept.clear()

    def _drop(self, connection: Connection, kept: _Kept) -> None:
        self._kept.remove(kept)
        with kept.scratch:
            glances.end(connection, kept.glance.id, "dropped")
