"""The way in: events are cleaned and redacted, appended, and the workers woken. Every door uses this one."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from types import TracebackType
from typing import Self

from memctl.domain.event import NewEvent
from memctl.infra import generations, queue
from memctl.infra.database import Connection, connect
from memctl.infra.log.append import Appended, append, append_bulk
from memctl.infra.log.spaces import installation, space_id
from memctl.infra.redaction import prepare
from memctl.infra.settings import Settings

log = logging.getLogger("memctl.commands")

BULK = 200
"""From this many events on, a batch is staged by COPY."""


class Intake:
    """Appends to one space of the log over a connection of its own. Not for several threads."""

    def __init__(self, settings: Settings) -> None:
        self.connection: Connection = connect(settings.require("database_url"), name="memctl intake")
        self.space_id = space_id(self.connection, settings.space)
        generations.ensure_live(self.connection, settings.stage1_shards)
        self._redis = queue.connect(settings.redis_url) if settings.redis_url else None
        self._installation = installation(self.connection)

    def record(self, events: Sequence[NewEvent]) -> list[Appended]:
        """Redact and append; what is returned is committed. One entry for each event, in order."""
        prepared = [prepare(event) for event in events]
        put = append_bulk if len(prepared) >= BULK else append
        done = put(self.connection, self.space_id, prepared)
        if any(entry.status != "duplicate" for entry in done):
            self._wake()
        return done

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
