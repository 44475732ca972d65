"""Wake-ups through Redis. Truth is in Postgres offsets: a lost wake-up costs latency and nothing else."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from redis import Redis
    from rq import Queue

DRAIN = "memctl.workers.jobs.drain"
"""The one job there is: it carries a stage and a shard, and reads everything else from Postgres."""

COALESCE_MS = 2000
"""A second wake-up for the same shard within this time is not queued, unless the job has begun to read since."""

EMBEDDED_FOR_S = 300
"""How long a rate of embedding is said after it was measured."""

_EMBEDDED = "memctl:embedded"
"""For all installations on this server: they share a machine's processors."""

_WAITING = "memctl:embedding"
"""By installation: when its last text was embedded, or since when one waits where none was; missing where none does."""

Shard = tuple[int, int]
"""Stage and shard."""


def connect(url: str) -> Redis:
    """A client that gives up soon: whoever wakes must not wait for a queue that is down."""
    from redis import Redis
    from redis.backoff import NoBackoff
    from redis.retry import Retry

    return Redis.from_url(url, socket_connect_timeout=1, socket_timeout=2, retry=Retry(NoBackoff(), 0))


def connect_waiting(url: str) -> Redis:
    """A client for a worker that blocks until there is a job."""
    from redis import Redis

    return Redis.from_url(url, socket_connect_timeout=5, health_check_interval=30)


def queue(redis: Redis, installation: str) -> Queue:
    from rq import Queue

    return Queue(f"memctl-{installation}", connection=redis)


def wake(redis: Redis, installation: str, shards: Iterable[Shard]) -> None:
    """Queue a drain for each shard that has none waiting. Raises: redis.exceptions.RedisError."""
    for stage, shard in shards:
        if redis.set(_key(installation, stage, shard), b"1", nx=True, px=COALESCE_MS):
            queue(redis, installation).enqueue_call(
                DRAIN, args=(stage, shard), result_ttl=0, failure_ttl=300, ttl=600, timeout=120
            )


def embeds(redis: Redis, per_s: float) -> None:
    """Note how many texts a second are embedded, for a while. Raises: redis.exceptions.RedisError."""
    redis.set(_EMBEDDED, f"{per_s:.3f}", ex=EMBEDDED_FOR_S)


def texts_wait(redis: Redis, installation: str, at: float, *, embedded: bool) -> None:
    """Note that texts wait for their vectors at a moment, and whether some were embedded by then.
    Raises: redis.exceptions.RedisError."""
    (redis.hset if embedded else redis.hsetnx)(_WAITING, installation, f"{at:.0f}")


def no_text_waits(redis: Redis, installation: str) -> None:
    """Note that no text waits for its vector. Raises: redis.exceptions.RedisError."""
    redis.hdel(_WAITING, installation)


class Embedding(NamedTuple):
    """How many texts a second are embedded (None: none of late), and by installation with texts that wait since when
    none was embedded, in seconds since 1970."""

    per_s: float | None = None
    since: Mapping[str, float] = MappingProxyType({})


def embedding(url: str) -> Embedding:
    """How the texts get on that wait for their vectors. Raises: redis.exceptions.RedisError."""
    redis = connect(url)
    try:
        rate, waiting = redis.get(_EMBEDDED), redis.hgetall(_WAITING)
        since = {k if isinstance(k, str) else k.decode(): float(at) for k, at in waiting.items()}
        return Embedding(None if rate is None else float(rate), since)
    finally:
        redis.close()


def about_to_read(redis: Redis, installation: str, stage: int, shard: int) -> None:
    """A drain is about to read: wake-ups from now on are for what comes after."""
    redis.delete(_key(installation, stage, shard))


def _key(installation: str, stage: int, shard: int) -> str:
    return f"memctl:{installation}:wake:{stage}:{shard}"
