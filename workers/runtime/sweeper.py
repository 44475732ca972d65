"""The sweeper: looks every second for shards behind the mark, and wakes them. What Redis lost is found here."""

import logging
import threading
from collections.abc import Callable

from redis import Redis

from memctl.infra import queue
from memctl.infra.log.partitions import make_partitions
from memctl.workers.folding.drain import Drainer

log = logging.getLogger("memctl.sweeper")

EVERY_S = 1.0

LONGEST_PAUSE_S = 30.0
"""How long it waits at most after a sweep that failed."""

PARTITIONS_EVERY = 60
"""Sweeps from one look at the log's partitions to the next."""


class Sweeper:
    """Wakes what is behind; where the queue does not answer, drains it itself."""

    def __init__(self, drainer: Drainer, redis: Redis, installation: str, moved: Callable[[], None]) -> None:
        self._moved = moved
        self._drainer = drainer
        self._redis = redis
        self._installation = installation
        self._queue_down = False
        self._sweeps = 0

    def run(self, stop: threading.Event) -> None:
        """Sweep until asked to stop; a fault is logged and tried again with growing pauses."""
        pause = 0.0  # whoever takes another's place begins at once
        while not stop.wait(pause):
            try:
                self.sweep()
                pause = EVERY_S
            except Exception as problem:
                pause = min(max(pause * 2, EVERY_S), LONGEST_PAUSE_S)
                log.warning("sweep failed, trying again in %.0f s: %s", pause, problem)
                self._drainer.close()

    def sweep(self) -> None:
        """Move the mark, and wake (or drain) every shard behind it. Now and then make partitions ahead."""
        from redis.exceptions import RedisError

        behind = self._drainer.behind()
        try:
            if behind or self._queue_down:
                queue.wake(self._redis, self._installation, behind)
            if self._queue_down:
                log.info("the queue answers again")
                self._queue_down = False
        except RedisError as problem:
            if not self._queue_down:
                log.warning("the queue does not answer, draining without it: %s", problem)
                self._queue_down = True
            for stage, shard in behind:
                if self._drainer.attempt(stage, shard) and stage == 2:
                    self._moved()
        self._sweeps += 1
        if self._sweeps % PARTITIONS_EVERY == 1 and (made := make_partitions(self._drainer.connection)) > 0:
            log.info("made %d partitions of the log", made)
