"""Folding single streams and rows again: for what was parked, for rows that were damaged, and for what was erased.

Everything is written in one transaction that holds the leases of all that it touches, and no offset moves. A stream
that was parked since it took long is folded before that: others would wait as long.
"""

import contextlib
import os
import socket
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from uuid import UUID

from memctl.domain.events.event import Position
from memctl.domain.support.errors import MemctlError
from memctl.infra.database import Connection
from memctl.infra.log.migrate import refuse_newer
from memctl.infra.log.reach import Reach
from memctl.infra.log.read import StreamKey, read_events, read_streams
from memctl.infra.readmodels import dead_letters, facts, generations
from memctl.infra.readmodels.dead_letters import DeadLetter, Target
from memctl.infra.readmodels.facts import SourceKey
from memctl.infra.readmodels.generations import Lease
from memctl.infra.readmodels.rows import RowKey
from memctl.projections.kernel import Recorded, folded_as_recorded
from memctl.workers.folding.drain import OtherRules
from memctl.workers.folding.sources import Source, of_fact
from memctl.workers.folding.stage1 import CannotStore, Ready, Stage1, fold_ahead, storable
from memctl.workers.folding.stage2 import Stage2
from memctl.workers.folding.trial import never_ending

PATIENCE_S = 30.0
"""How long to wait for a lease that a worker holds."""


class LiveChanged(MemctlError):
    """Other read models have become live meanwhile; nothing was folded."""

    hint = "try again"


def refold(
    connection: Connection,
    *,
    streams: Iterable[StreamKey] = (),
    rows: Iterable[tuple[str, RowKey]] = (),
    letters: Sequence[DeadLetter] = (),
    recorded: Iterable[SourceKey] = (),
    parks: bool = True,
    first: Callable[[], None] = lambda: None,
    last: Callable[[], None] = lambda: None,
    ready: dict[StreamKey, Ready] | None = None,
) -> None:
    """Fold streams, rows of stage 2 (projection, and key) and what was parked again, and all that follows from it.

    The rows are then those of a full rebuild at the same position. `letters` are of the live generations; what cannot
    be folded still is parked again, or with `parks` False raised; what made no progress before is tried apart first,
    while others go on, unless it is `ready`. So is looked for what cannot be stored, and `ready` is changed then.
    `recorded` are events (space, delivery) that stage 2 folds as they are and that have changed or are gone. `first`
    and `last` are called in the transaction, before and after it folds: what they raise undoes everything, and where
    something cannot be stored they are called twice. `connection` is in autocommit mode.
    Raises: NewerSchema, OtherRules where the live rows were folded by other code, LeaseHeld, LiveChanged, LeaseLost,
    CannotFold; then nothing was written.
    """
    refuse_newer(connection)
    if generations.stale(connection):
        raise OtherRules
    live = generations.live(connection)
    rows = list(rows)
    changed = set(streams)
    wanted = {
        *changed,
        *((each.target.space_id, each.target.key or "") for each in letters if not each.target.projection),
    }
    known = dead_letters.parked_at(connection, live.stage1, (Target("", *key) for key in wanted))
    known += dead_letters.parked_at(connection, live.stage2, (Target(name, *key) for name, key in rows))
    of_rows = [letter for letter in letters if letter.target.projection]
    endless = {} if ready else never_ending(connection, [*known, *of_rows])
    shards = generations.shards(connection, live.stage1)
    by_shard: dict[int, list[StreamKey]] = {}
    for key in sorted(wanted):
        by_shard.setdefault(generations.shard_of(key[1], shards), []).append(key)
    ready = ready or _ready(connection, live.stage1, [letter for letter in known if letter.target not in endless])
    needed = [*((live.stage1, shard) for shard in sorted(by_shard)), (live.stage2, 0)]
    changes_in = {(live.stage1, generations.shard_of(stream, shards)) for _, stream in changed}

    def fold(looked: bool) -> None:
        with _held(connection, needed, changes_in) as leases, connection.transaction():
            if generations.live(connection) != live:
                raise LiveChanged
            # However long this takes, nobody else takes these shards: their rows stay locked.
            *stage1, stage2 = (generations.renew(connection, lease) for lease in leases)
            connection.execute("SET LOCAL idle_in_transaction_session_timeout = 0")
            first()
            changes = []
            for lease in stage1:
                here = by_shard[lease.shard]
                Stage1(parks=parks, endless=endless).refold(connection, lease, here, ready, looked)
                # Stage 2 is given them also where it has yet to read them, and what was changed in these streams
                # before: else its rows hold what is gone until it does, and who forgets does not learn what follows.
                # That it reads them again changes nothing.
                since = Position(min(stage2.reach.lowest + 1, lease.reach.lowest))
                changes += facts.read_changes_of(connection, live.stage1, here, since)
            sources = [*map(of_fact, changes), *_as_they_stand(connection, recorded, stage2.reach)]
            folds = Stage2(parks=parks, endless=endless)
            folds.refold(connection, stage2, live.stage1, rows, changes=sources, letters=of_rows)
            if stage1:
                generations.read_again(connection, live.stage1, min(lease.reach.lowest for lease in stage1))
            last()
            connection.execute("SET LOCAL synchronous_commit = on")  # leases, which may be lost, turn it off

    try:
        fold(looked=bool(changed) or not ready)
    except CannotStore:
        read = _read(connection, live.stage1)
        ready.update({key: storable(connection, live.stage1, read(key), key) for key in ready})
        fold(looked=True)


def _ready(connection: Connection, generation: int, letters: Iterable[DeadLetter]) -> dict[StreamKey, Ready]:
    """Those of the streams that were parked, folded up to where their shards are now."""
    read, found = _read(connection, generation), {}
    for letter in letters:
        key = (letter.target.space_id, letter.target.key or "")
        if not letter.target.projection:
            found[key] = fold_ahead(key, read_streams(connection, [key], read(key))[key])
    return found


def _read(connection: Connection, generation: int) -> Callable[[StreamKey], Position]:
    """Up to where the shard of a stream has read."""
    shards = generations.shards(connection, generation)
    read = {offset.shard: offset.reach for offset in generations.offsets(connection, generation)}
    return lambda key: read[generations.shard_of(key[1], shards)].of(key[0])


def _as_they_stand(connection: Connection, recorded: Iterable[SourceKey], upto: Reach) -> Iterator[Source]:
    by_space: dict[int, set[UUID]] = defaultdict(set)
    for space_id, id in recorded:
        by_space[space_id].add(id)
    for space_id, ids in by_space.items():
        found = read_events(connection, space_id, ids, upto.of(space_id), folded_as_recorded())
        for id in ids:
            event = found.get(id)
            yield Source((space_id, id), None if event is None else Recorded(event, event.payload))


@contextlib.contextmanager
def _held(
    connection: Connection, wanted: Sequence[tuple[int, int]], changes_in: Collection[tuple[int, int]]
) -> Iterator[list[Lease]]:
    """The leases of these (generation, shard), in that order. Everybody who takes several takes them so. Events of some
    are to be changed."""
    owner = f"refold:{socket.gethostname()}:{os.getpid()}"
    held: list[Lease] = []
    try:
        for generation, shard in wanted:
            changes = (generation, shard) in changes_in
            held.append(generations.take(connection, generation, shard, owner, PATIENCE_S, changes=changes))
        yield held
    finally:
        if not connection.closed:
            for lease in held:
                generations.release(connection, lease)
