"""What the queue calls, by name (`infra/queue.py`). The worker process sets up its drainer once; a bare `rq worker`
gets one on first use."""

import contextlib
import time
from collections.abc import Callable

from redis import Redis

from memctl.infra import queue
from memctl.workers.folding.drain import BUDGET_S, Drainer


class Wakes:
    """This process' end of the queue: its drainer, and whom to call when stage 2 has moved."""

    def __init__(
        self, drainer: Drainer, redis: Redis, installation: str, moved: Callable[[], None] = lambda: None
    ) -> None:
        self.drainer = drainer
        self.redis = redis
        self.installation = installation
        self.moved = moved

    def drain(self, stage: int, shard: int) -> None:
        from redis.exceptions import RedisError

        with contextlib.suppress(RedisError):
            queue.about_to_read(self.redis, self.installation, stage, shard)
        began = time.monotonic()
        if not self.drainer.attempt(stage, shard):
            return
        if time.monotonic() - began >= BUDGET_S or self.drainer.cut_off:  # others had to wait; there is more
            with contextlib.suppress(RedisError):
                queue.wake(self.redis, self.installation, [(stage, shard)])
        # What stage 1 made is folded on at once: another turn in the queue would cost more than most batches.
        if stage == 2 or (self.drainer.alone and self.drainer.attempt(2, 0)):
            self.moved()
        if not self.drainer.alone:  # whoever is free takes one
            with contextlib.suppress(RedisError):
                queue.wake(self.redis, self.installation, self.drainer.following())


_wakes: Wakes | None = None


def set_up(wakes: Wakes) -> None:
    global _wakes
    _wakes = wakes


def drain(stage: int, shard: int) -> None:
    """Drain one shard: the job that `memctl.infra.queue.wake` queues."""
    if _wakes is None:
        from memctl.infra.log.spaces import installation
        from memctl.infra.settings import load_settings

        settings = load_settings()
        drainer = Drainer(settings.require("database_url"))
        redis = queue.connect(settings.require("redis_url"))
        set_up(Wakes(drainer, redis, installation(drainer.connection)))
    assert _wakes is not None
    _wakes.drain(stage, shard)
