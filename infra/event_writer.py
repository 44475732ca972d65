"""The one way by which events come into a space's log: redacted, appended, and the workers woken."""

import logging
from collections.abc import Sequence

import psycopg

from memctl.domain.events.event import Micros, NewEvent, Payload
from memctl.infra import queue
from memctl.infra.database import Connection
from memctl.infra.log.append import Appended, append
from memctl.infra.log.spaces import installation, space_id
from memctl.infra.readmodels import generations
from memctl.infra.redaction import Prepared, prepare_all
from memctl.infra.settings import Settings

log = logging.getLogger("memctl.write")


class EventWriter:
    """Appends to one space over a connection of the caller's. Not for several threads.

    Inside a transaction the caller commits what was appended, and wakes the workers afterwards.
    """

    def __init__(self, connection: Connection, settings: Settings) -> None:
        self.connection = connection
        self.settings = settings
        self.space_id = space_id(connection, settings.space)
        self.redactor = settings.redactor()
        self._redis = queue.connect(settings.redis_url) if settings.redis_url else None
        self.installation = installation(connection)

    def prepare(self, events: Sequence[NewEvent]) -> Prepared:
        """Clean, redact and cap. Touches nothing else, so another thread may write meanwhile."""
        return prepare_all(events, self.redactor)

    def append(self, prepared: Sequence[NewEvent], *, by_todays_rules: bool = False) -> list[Appended]:
        """Append prepared events; one entry for each, in order.

        `by_todays_rules`: what is stored under an event's key counts as the same where today's rules of redaction make
        it so; else it is another version of it.
        """
        return append(self.connection, self.space_id, prepared, self._by_todays_rules if by_todays_rules else None)

    def wake(self) -> None:
        """Wake the workers. The append is committed by now, so nothing that fails here is its failure."""
        if self._redis is None:
            return
        from redis.exceptions import RedisError

        try:
            live = generations.live(self.connection)
            shards = [(1, offset.shard) for offset in generations.offsets(self.connection, live.stage1)]
            queue.wake(self._redis, self.installation, shards)
        except (RedisError, psycopg.Error) as problem:  # the sweeper finds it within a second or so
            log.debug("nobody could be woken: %s", problem)

    def _by_todays_rules(self, payload: Payload, location: str) -> tuple[Payload, str]:
        event = NewEvent(stream="", payload=payload, occurred_at=Micros(0), dedupe_key="", actor="", location=location)
        (prepared,) = self.prepare([event]).events
        return prepared.payload, prepared.location
