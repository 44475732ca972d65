"""Generations: which build of each stage is live, how far it has read, and who may move it on.

A generation is one build of a stage. A generation of stage 2 is built over the facts of one generation of stage 1.
Tables carry the generation's number in their name; one row says which two are live.
"""

import importlib.metadata
import time
from collections.abc import Collection, Mapping
from datetime import timedelta
from typing import Literal

import msgspec

from memctl.domain.events.event import Position, stream_hash
from memctl.domain.support import patterns
from memctl.domain.support.errors import MemctlError
from memctl.infra.database import Connection, past_deadlocks, single_row
from memctl.infra.log.reach import Reach, as_json, least, reach_of
from memctl.infra.readmodels import fingerprint as rules
from memctl.infra.readmodels import rows as readmodels
from memctl.projections import layers

Status = Literal["building", "live", "previous", "scratch", "dropped"]

LEASE = timedelta(seconds=15)

CHANGED = 1 << 32
"""By how much an epoch grows when a lease is taken to change events that were read: who kept anything that was made of
them sees that it may no longer hold. Nobody takes a lease so often."""


class LeaseLost(MemctlError):
    """Another worker took over the lease of shard {shard}; nothing of this batch was written."""


class LeaseHeld(MemctlError):
    """Another process has held shard {shard} of generation {generation} for more than {seconds:.0f} s."""

    hint = "look at `memctl status`: a worker may be stuck, or a replay be switching"


class Live(msgspec.Struct, frozen=True):
    """The generations that queries read now."""

    stage1: int
    stage2: int

    def of(self, stage: int) -> int:
        """The one of a stage."""
        return self.stage1 if stage == 1 else self.stage2


class Lease(msgspec.Struct, frozen=True):
    """The right to move one shard's offset, until it runs out or someone with a higher epoch has it."""

    generation: int
    shard: int
    position: Position
    epoch: int
    hashes: tuple[int, int]
    held: Mapping[int, Position] = {}
    """Spaces of which it has read less than up to `position`, and how far."""
    shards: int = 1
    """How many shards the generation has."""

    @property
    def reach(self) -> Reach:
        return Reach(self.position, self.held)


class Offset(msgspec.Struct, frozen=True):
    """How far one shard of a generation has read, of each space, and who holds its lease, as long as it lasts."""

    generation: int
    stage: int
    shard: int
    reach: Reach
    owner: str | None

    @property
    def position(self) -> Position:
        """Up to here it has read of every space."""
        return self.reach.lowest


class NoneYet(MemctlError):
    """The database has no read models yet."""

    hint = "run `memctl up`, or `memctl init` for servers of your own"


def live(connection: Connection) -> Live:
    """The live generations. Raises: NoneYet."""
    row = connection.execute("SELECT stage1, stage2 FROM memctl.projection_state").fetchone()
    if row is None:
        raise NoneYet
    return Live(*row)


def stale(connection: Connection) -> bool:
    """Whether the live read models were folded by other rules than this code's: then it must not fold into them."""
    found = live(connection)
    return fingerprints(connection, found.stage1, found.stage2) != {rules.fingerprint()}


def made_by_newer(connection: Connection) -> bool:
    """Whether a newer memctl than this one made the live read models."""
    return any(made > _release(importlib.metadata.version("memctl")) for made in _made_by(connection))


def made_by_older(connection: Connection) -> bool:
    """Whether an older memctl than this one made the live read models, or a part of them."""
    return any(made < _release(importlib.metadata.version("memctl")) for made in _made_by(connection))


def _made_by(connection: Connection) -> list[tuple[int, ...]]:
    found = live(connection)
    rows = connection.execute(
        "SELECT made_by FROM memctl.generations WHERE generation = ANY(%s)", [[found.stage1, found.stage2]]
    )
    return [_release(row[0]) for row in rows]


_NUMBER = patterns.compile(r"\d+")


def _release(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in _NUMBER.findall(version)[:3])


def ensure_live(connection: Connection, shards: int) -> Live:
    """Make the first generations if there are none. Safe to call at once from several processes."""
    with connection.transaction():
        connection.execute("LOCK TABLE memctl.projection_state IN EXCLUSIVE MODE")
        row = connection.execute("SELECT stage1, stage2 FROM memctl.projection_state").fetchone()
        if row is not None:
            return Live(*row)
        first = create(connection, 1, shards=shards, unlogged=False)
        second = create(connection, 2, shards=layers.shards_of(shards), facts_of=first, unlogged=False)
        connection.execute("INSERT INTO memctl.projection_state (stage1, stage2) VALUES (%s, %s)", [first, second])
        connection.execute(
            "UPDATE memctl.generations SET status = 'live', switched_at = clock_timestamp() WHERE generation = ANY(%s)",
            [[first, second]],
        )
        readmodels.finish(connection, 1, first)
        readmodels.finish(connection, 2, second)
        return Live(first, second)


def create(
    connection: Connection,
    stage: Literal[1, 2],
    *,
    shards: int = 1,
    facts_of: int | None = None,
    unlogged: bool = True,
    status: Literal["building", "scratch"] = "building",
) -> int:
    """A new generation of a stage, with its empty tables and its offsets at 0; returns its number."""
    row = single_row(
        connection,
        "INSERT INTO memctl.generations (stage, facts_of, status, shards, fingerprint, made_by)"
        " VALUES (%s, %s, %s, %s, %s, %s) RETURNING generation",
        [stage, facts_of, status, shards, rules.fingerprint(), importlib.metadata.version("memctl")],
    )
    generation: int = row[0]
    connection.execute(
        "INSERT INTO memctl.offsets (generation, shard) SELECT %s, generate_series(0, %s)", [generation, shards - 1]
    )
    readmodels.create_tables(connection, stage, generation, unlogged=unlogged)
    return generation


def begin_at(connection: Connection, generation: int, position: Position) -> None:
    """A generation that was built up to a position reads on from there. Does nothing where it has read further."""
    connection.execute(
        "UPDATE memctl.offsets SET position = %s WHERE generation = %s AND position < %s",
        [position, generation, position],
    )


def reset_offsets(connection: Connection) -> None:
    """Let every generation read from the beginning, with nobody holding a lease, in the caller's transaction."""
    connection.execute(
        "UPDATE memctl.offsets SET position = 0, held = '{}', epoch = epoch + %s, owner = NULL, lease_until = NULL,"
        " updated_at = clock_timestamp()",
        [CHANGED],
    )


def trust_nothing(connection: Connection, live: Live) -> None:
    """Events that were read are gone from the log: whoever folds loses its lease, and all that it has kept of them."""
    connection.execute(
        "UPDATE memctl.offsets SET epoch = epoch + %s, owner = NULL, lease_until = NULL WHERE generation = ANY(%s)",
        [CHANGED, [live.stage1, live.stage2]],
    )


def read_again(connection: Connection, facts_of: int, position: Position) -> None:
    """Facts of a stage 1 were changed as of a position that others than the live stage 2 may have passed, or be about
    to: a generation that is being built over them, or kept, reads from before it again. In the caller's transaction.

    Whoever drains such a generation loses its lease: what it has read of this batch may be older than the change.
    """
    # The rebuild before its offset, as who leads it takes them.
    connection.execute(
        "UPDATE memctl.rebuilds SET upto = least(upto, %s)"
        " WHERE status = 'running' AND first_stage = 2 AND stage1 = %s",
        [max(position - 1, 0), facts_of],
    )
    connection.execute(
        "UPDATE memctl.offsets o SET position = least(memctl.lowest(o.position, o.held), %s), held = '{}',"
        " epoch = o.epoch + 1, owner = NULL, lease_until = NULL"
        " FROM memctl.generations g WHERE g.generation = o.generation"
        " AND g.stage = 2 AND g.facts_of = %s AND g.status IN ('building', 'previous')",
        [max(position - 1, 0), facts_of],
    )


def fingerprints(connection: Connection, *generations: int) -> set[str]:
    """The fingerprints of the rules by which generations are folded."""
    rows = connection.execute(
        "SELECT DISTINCT fingerprint FROM memctl.generations WHERE generation = ANY(%s)", [list(generations)]
    )
    return {row[0] for row in rows}


def drop(connection: Connection, generation: int) -> None:
    """Drop a generation's tables. Its entry stays, as history."""
    readmodels.drop_tables(connection, generation)
    connection.execute("DELETE FROM memctl.offsets WHERE generation = %s", [generation])
    connection.execute("DELETE FROM memctl.dead_letters WHERE generation = %s", [generation])
    connection.execute("DELETE FROM memctl.halts WHERE generation = %s", [generation])
    connection.execute("DELETE FROM memctl.waiting_for_vectors WHERE generation = %s", [generation])
    connection.execute("UPDATE memctl.generations SET status = 'dropped' WHERE generation = %s", [generation])


def drop_alone(connection: Connection, generation: int) -> None:
    """Drop a generation in a transaction of its own: whoever is at it still may hold its tables in another order."""

    def dropped() -> None:
        with connection.transaction():
            drop(connection, generation)

    past_deadlocks(dropped)


def generations(connection: Connection, status: Status) -> list[tuple[int, int, int | None]]:
    """(generation, stage, facts_of) of the generations in that status, oldest first."""
    found = connection.execute(
        "SELECT generation, stage, facts_of FROM memctl.generations WHERE status = %s ORDER BY generation", [status]
    ).fetchall()
    return [(row[0], row[1], row[2]) for row in found]


def switch(connection: Connection, stage1: int, stage2: int) -> Live:
    """Make these generations the live ones, in the caller's transaction; returns the former ones.

    Raises: MemctlError when one of them has read less than the one it replaces.
    """
    row = single_row(connection, "SELECT stage1, stage2 FROM memctl.projection_state FOR UPDATE")
    former = Live(*row)
    for old, new in ((former.stage1, stage1), (former.stage2, stage2)):
        if not offset_of(connection, new).covers(offset_of(connection, old)):
            raise MemctlError(
                f"generation {new} has read less of the log than generation {old}, which it was to replace",
                hint="run the replay again",
            )
    replaced = [old for old, new in ((former.stage1, stage1), (former.stage2, stage2)) if old != new]
    connection.execute("UPDATE memctl.generations SET status = 'previous' WHERE generation = ANY(%s)", [replaced])
    connection.execute(
        "UPDATE memctl.generations SET status = 'live', switched_at = clock_timestamp() WHERE generation = ANY(%s)",
        [[stage1, stage2]],
    )
    connection.execute("UPDATE memctl.projection_state SET stage1 = %s, stage2 = %s", [stage1, stage2])
    return former


def built_over(connection: Connection, stage1: int) -> int | None:
    """The newest generation of stage 2 that is folded from the facts of one of stage 1."""
    row = connection.execute(
        "SELECT max(generation) FROM memctl.generations WHERE facts_of = %s AND status IN ('building', 'live')",
        [stage1],
    ).fetchone()
    return None if row is None else row[0]


def offset_of(connection: Connection, generation: int) -> Reach:
    """Up to here every shard of the generation has read, of each space."""
    found = connection.execute("SELECT position, held FROM memctl.offsets WHERE generation = %s", [generation])
    return least(reach_of(*row) for row in found)


def lowest_offset(connection: Connection, generation: int, space_id: int | None = None) -> Position:
    """Up to here every shard of the generation has read of a space, or of all."""
    found = offset_of(connection, generation)
    return found.lowest if space_id is None else found.of(space_id)


def shards(connection: Connection, generation: int) -> int:
    """How many shards a generation has."""
    row = single_row(connection, "SELECT shards FROM memctl.generations WHERE generation = %s", [generation])
    return int(row[0])


def offsets(connection: Connection, *generations: int) -> list[Offset]:
    found = connection.execute(
        "SELECT o.generation, g.stage, o.shard, o.position, o.held,"
        " CASE WHEN o.lease_until > clock_timestamp() THEN o.owner END FROM memctl.offsets o"
        " JOIN memctl.generations g USING (generation) WHERE o.generation = ANY(%s) ORDER BY 1, 3",
        [list(generations)],
    ).fetchall()
    return [Offset(row[0], row[1], row[2], reach_of(row[3], row[4]), row[5]) for row in found]


def may_read(shard: int, found: Collection[Offset]) -> Reach:
    """Up to where a shard of stage 2 may read, by the offsets of both stages: as far as every shard of stage 1 has, or
    of the layer before its own."""
    of = sum(each.stage == 2 for each in found)
    layer = layers.layer_of(shard, of)
    return least(
        each.reach
        for each in found
        if (each.stage == 1 if layer == 0 else each.stage == 2 and layers.layer_of(each.shard, of) == layer - 1)
    )


def hashes_of(shard: int, shards: int) -> tuple[int, int]:
    """The stream hashes (inclusive) that belong to a shard."""
    return shard * 256 // shards, (shard + 1) * 256 // shards - 1


def shard_of(stream: str, shards: int) -> int:
    """The shard whose `hashes_of` hold the stream's hash."""
    return ((stream_hash(stream) + 1) * shards - 1) // 256


def acquire(connection: Connection, generation: int, shard: int, owner: str, *, changes: bool = False) -> Lease | None:
    """Take the lease of a shard if nobody holds it, or its holder let it run out. Its epoch grows with each taking, and
    by `CHANGED` where it is taken to change events that were read (`changes`).

    One that lasts longer than a lease may was given before the clock was set back: it has run out too. Taking and
    letting go wait for no disk: when Postgres loses them in a crash, it has lost every connection that relied on them,
    and a batch that is on disk has its lease there too.
    """
    row = connection.execute(
        # One whose row is locked is being moved at this moment: it is held, however long that takes.
        "WITH free AS (SELECT generation, shard FROM memctl.offsets WHERE generation = %s AND shard = %s"
        " AND (lease_until IS NULL OR lease_until < clock_timestamp() OR lease_until > clock_timestamp() + 2 * %s)"
        " AND set_config('synchronous_commit', 'off', true) = 'off'"  # always true
        " FOR UPDATE SKIP LOCKED)"
        " UPDATE memctl.offsets o SET owner = %s, epoch = epoch + %s, lease_until = clock_timestamp() + %s"
        " FROM free f JOIN memctl.generations g USING (generation)"
        " WHERE o.generation = f.generation AND o.shard = f.shard RETURNING o.position, o.epoch, g.shards, o.held",
        [generation, shard, LEASE, owner, CHANGED if changes else 1, LEASE],
    ).fetchone()
    if row is None:
        return None
    held = reach_of(row[0], row[3]).held
    return Lease(generation, shard, Position(row[0]), row[1], hashes_of(shard, row[2]), held, row[2])


def take(
    connection: Connection, generation: int, shard: int, owner: str, patience_s: float, *, changes: bool = False
) -> Lease:
    """Take the lease of a shard, waiting for whoever holds it. Raises: LeaseHeld."""
    deadline = time.monotonic() + patience_s
    while (lease := acquire(connection, generation, shard, owner, changes=changes)) is None:
        if time.monotonic() > deadline:
            raise LeaseHeld(generation=generation, shard=shard, seconds=patience_s)
        time.sleep(0.02)
    return lease


def advance(connection: Connection, lease: Lease, to: Position | Reach) -> Lease:
    """Move the offset by compare-and-set on offset and epoch, in the caller's transaction; renews the lease.

    Raises: LeaseLost when someone else moved it or took the lease, and the caller must roll back.
    """
    reach = to if isinstance(to, Reach) else Reach(to)
    moved = connection.execute(
        "UPDATE memctl.offsets SET position = %s, held = %s, lease_until = clock_timestamp() + %s,"
        " updated_at = clock_timestamp()"
        " WHERE generation = %s AND shard = %s AND position = %s AND held = %s AND epoch = %s",
        [reach.position, as_json(reach.held), LEASE,
         lease.generation, lease.shard, lease.position, as_json(lease.held), lease.epoch],
    )  # fmt: skip
    if moved.rowcount != 1:
        raise LeaseLost(shard=lease.shard)
    return msgspec.structs.replace(lease, position=reach.position, held=reach.held)


def renew(connection: Connection, lease: Lease) -> Lease:
    """Hold on to a lease for its full time from now. Raises: LeaseLost."""
    held = connection.execute(
        "UPDATE memctl.offsets SET lease_until = clock_timestamp() + %s"
        " WHERE generation = %s AND shard = %s AND epoch = %s",
        [LEASE, lease.generation, lease.shard, lease.epoch],
    )
    if held.rowcount != 1:
        raise LeaseLost(shard=lease.shard)
    return lease


def release_all(connection: Connection, owner: str) -> None:
    """Let go of every lease of an owner that has ended; `owner` is how its name begins."""
    connection.execute(
        "UPDATE memctl.offsets SET owner = NULL, lease_until = NULL WHERE starts_with(owner, %s)", [owner]
    )


def release(connection: Connection, lease: Lease) -> None:
    """Let go of a lease; does nothing when it is someone else's by now."""
    connection.execute(
        "UPDATE memctl.offsets SET owner = NULL, lease_until = NULL"
        " WHERE generation = %s AND shard = %s AND epoch = %s"
        " AND set_config('synchronous_commit', 'off', true) = 'off'",  # always true: see acquire
        [lease.generation, lease.shard, lease.epoch],
    )
