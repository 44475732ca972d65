"""How everything is, in one look at the database: how far it is read, what waits, what needs a person."""

from __future__ import annotations

import msgspec

from memctl.api import dead_letters, stats
from memctl.api.dead_letters import Standing
from memctl.api.reader import Reader
from memctl.infra import outbox, processing, rebuilds
from memctl.infra.log.mark import mark_age
from memctl.infra.rebuilds import Progress

LATEST = 20
"""Rebuilds that are looked through for one that has ended."""


class Shard(msgspec.Struct, frozen=True):
    """Up to where a shard is folded, and how many positions it is behind."""

    stage: int
    shard: int
    position: int
    lag: int


class Health(msgspec.Struct, frozen=True, kw_only=True):
    """`to_write` counts points that the vector store does not have, `to_embed` those without their dense vector.
    `sizes` are bytes."""

    last_position: int
    mark: int
    mark_age_s: float
    """Age of the oldest event that may not be read yet."""
    shards: tuple[Shard, ...]
    to_write: int
    to_embed: int
    filling: outbox.Filling | None = None
    """The model that is to serve, where there is one."""
    standing: Standing
    processors: tuple[processing.Standing, ...] = ()
    replay: Progress | None = None
    """The one that is under way."""
    ended: Progress | None = None
    """The last one that has ended."""
    sizes: dict[str, int]

    @property
    def lag(self) -> int:
        """Of the shard that is furthest behind."""
        return max((shard.lag for shard in self.shards), default=0)

    @property
    def differed(self) -> bool:
        """Whether the last replay that has ended had found live rows that were not the log's."""
        return self.ended is not None and self.ended.message.startswith(rebuilds.DIFFERING)

    @property
    def failed(self) -> bool:
        """Whether the last replay that has ended has failed."""
        return self.ended is not None and self.ended.status == "failed"


def last_replay(reader: Reader) -> Progress | None:
    """The last one that has ended; a look at the past is none."""
    replays = rebuilds.progress(reader.connection, LATEST, past=False)
    return next((each for each in replays if each.ended_at is not None), None)


def health(reader: Reader) -> Health:
    found = stats.progress(reader)
    to_write, to_embed = outbox.backlog(reader.connection, reader.live.stage2)
    replays = rebuilds.progress(reader.connection, LATEST)
    return Health(
        last_position=found["last_position"],
        mark=found["mark"],
        mark_age_s=mark_age(reader.connection),
        shards=tuple(Shard(**shard) for shard in found["shards"]),
        to_write=to_write,
        to_embed=to_embed,
        filling=outbox.filling(reader.connection, reader.live.stage2),
        standing=dead_letters.standing(reader),
        processors=tuple(processing.standings(reader.connection, reader.space_id)),
        replay=next((each for each in replays if each.status == "running"), None),
        ended=last_replay(reader),
        sizes=stats.sizes(reader),
    )
