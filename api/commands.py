"""The way in: events are cleaned and redacted, appended, and the workers woken. Every door uses this one."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec
import psycopg
from psycopg.errors import DeadlockDetected, SerializationFailure

from memctl.domain.event import NewEvent
from memctl.infra import generations, queue
from memctl.infra.database import Connection, DatabaseUnavailable, connect
from memctl.infra.log import checkpoints
from memctl.infra.log.append import Appended, append, append_bulk
from memctl.infra.log.spaces import installation, space_id
from memctl.infra.redaction import Prepared, Redactor, prepare_all
from memctl.infra.settings import Settings
from memctl.infra.transcripts.reading import Checkpoint

log = logging.getLogger("memctl.commands")

DEADLOCKS = 10
"""Attempts at a batch that others append at the same time."""

BULK = 200
"""From this many events on, a batch is staged by COPY."""


class Recorded(msgspec.Struct, frozen=True):
    """What became of a batch: one entry for each event, in order, and what was redacted, by kind."""

    appended: tuple[Appended, ...]
    redactions: dict[str, int]


class Intake:
    """Appends to one space of the log over a connection of its own. Not for several threads."""

    def __init__(self, settings: Settings) -> None:
        self.connection: Connection = connect(settings.require("database_url"), name="memctl intake")
        self.space_id = space_id(self.connection, settings.space)
        generations.ensure_live(self.connection, settings.stage1_shards)
        self._redis = queue.connect(settings.redis_url) if settings.redis_url else None
        self._installation = installation(self.connection)
        self._redactor = Redactor(cache=settings.data_dir / "cache")

    def record(self, events: Sequence[NewEvent], reached: Mapping[Path, Checkpoint] | None = None) -> Recorded:
        """Redact and append, and note how far files were read; what is returned is committed."""
        return self.write(self.prepare(events), reached)

    def prepare(self, events: Sequence[NewEvent]) -> Prepared:
        """Clean, redact and cap. Touches nothing else, so another thread may write meanwhile."""
        return prepare_all(events, self._redactor)

    def write(self, prepared: Prepared, reached: Mapping[Path, Checkpoint] | None = None) -> Recorded:
        """Append what was prepared; what is returned is committed."""
        appended = self._append(prepared.events, reached or {})
        if any(entry.status != "duplicate" for entry in appended):
            self._wake()
        return Recorded(tuple(appended), dict(prepared.redactions))

    def _append(self, events: Sequence[NewEvent], reached: Mapping[Path, Checkpoint]) -> list[Appended]:
        put = append_bulk if len(events) >= BULK else append
        for attempt in range(1, DEADLOCKS + 1):
            try:
                with self.connection.transaction():
                    appended = put(self.connection, self.space_id, events)
                    if reached:
                        checkpoints.save(self.connection, self.space_id, reached)
                return appended
            except (DeadlockDetected, SerializationFailure):
                # Somebody appends the same keys in another order; one of us has to begin again.
                if attempt == DEADLOCKS:
                    raise
            except psycopg.OperationalError as problem:
                raise DatabaseUnavailable(
                    f"Postgres went away: {str(problem).strip()}",
                    hint="run this again once it is back: what was appended is kept, and nothing is doubled",
                ) from problem
        raise AssertionError("unreachable")

    def _wake(self) -> None:
        if self._redis is None:
            return
        from redis.exceptions import RedisError

        live = generations.live(self.connection)
        shards = [(1, offset.shard) for offset in generations.offsets(self.connection, live.stage1)]
        try:
            queue.wake(self._redis, self._installation, shards)
        except RedisError as problem:  # the sweeper finds it within a second or so
            log.debug("nobody could be woken: %s", problem)

    def close(self) -> None:
        self.connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()
