"""Folding single streams and rows again: for what was parked, for rows that were damaged, and for what was erased.

Everything is written in one transaction that holds the leases of all that it touches, and no offset moves. A stream
that was parked since it took long is folded before that: others would wait as long.
"""

import contextlib
import os
import socket
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from uuid import UUID

import msgspec

from memctl.domain.events.event import Position
from memctl.domain.support.errors import MemctlError
from memctl.infra.database import Connection
from memctl.infra.log.migrate import refuse_newer
from memctl.infra.log.reach import Reach, least
from memctl.infra.log.read import StreamKey, newest_position, read_events, read_streams
from memctl.infra.readmodels import dead_letters, facts, generations
from memctl.infra.readmodels.dead_letters import DeadLetter, Fault, Target
from memctl.infra.readmodels.facts import SourceKey
from memctl.infra.readmodels.generations import Lease, LeaseHeld, Live
from memctl.infra.readmodels.rows import RowKey
from memctl.projections.kernel import Recorded, folded_as_recorded
from memctl.workers.folding.drain import OtherRules
from memctl.workers.folding.sources import SourceItem, of_fact
from memctl.workers.folding.stage1 import CannotStore, FoldedAhead, Stage1, fold_ahead, fold_storable
from memctl.workers.folding.stage2 import Stage2
from memctl.workers.folding.trial import never_ending

PATIENCE_S = 30.0
"""How long to wait for a lease that a worker holds."""

SOON_S, IDLE_S = 0.5, 10.0
"""How long is waited for the next event before stage 2 is held as well, and for stage 2 then."""


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
    ready: dict[StreamKey, FoldedAhead] | None = None,
    follows: bool = False,
) -> None:
    """Fold streams, rows of stage 2 (projection, and key) and what was parked again, and all that follows from it.

    The rows are then those of a full rebuild at the same position. `letters` are of the live generations; those that
    are parked no more are left alone, and what cannot be folded still is parked again, or with `parks` False raised;
    what made no progress before is tried apart first, while others go on, unless it is `ready`. So is looked for what
    cannot be stored, and `ready` is changed then. `recorded` are events (space, delivery) that stage 2 folds as they
    are and that have changed or are gone. `first` and `last` are called in the transaction, before and after it folds:
    what they raise undoes everything, and where something cannot be stored they are called twice. `connection` is in
    autocommit mode. With `follows`, what streams that were parked come to may be left to stage 2 as it goes on.
    Raises: NewerSchema, OtherRules where the live rows were folded by other code, LeaseHeld, LiveChanged, LeaseLost,
    CannotFold; then nothing was written.
    """
    refuse_newer(connection)
    if generations.stale(connection):
        raise OtherRules
    live = generations.live(connection)
    rows = list(rows)
    changed = set(streams)
    given, letters = letters, _parked_still(connection, live, letters)
    wanted = {
        *changed,
        *((each.target.space_id, each.target.key or "") for each in letters if not each.target.projection),
    }
    recorded = list(recorded)
    if given and not (changed or rows or letters or recorded):
        return
    known = dead_letters.parked_at(connection, live.stage1, (Target("", *key) for key in wanted))
    known += dead_letters.parked_at(connection, live.stage2, (Target(name, *key) for name, key in rows))
    of_rows = [letter for letter in letters if letter.target.projection]
    follows = follows and not (changed or rows or recorded or of_rows)
    endless = {} if ready else never_ending(connection, [*known, *of_rows])
    shards = generations.shards(connection, live.stage1)
    by_shard: dict[int, list[StreamKey]] = {}
    for key in sorted(wanted):
        by_shard.setdefault(generations.shard_of(key[1], shards), []).append(key)
    ready = ready or _ready(connection, live.stage1, [letter for letter in known if letter.target not in endless])
    work = _Work(
        live=live, by_shard=by_shard, changed=changed, rows=rows, recorded=recorded, of_rows=of_rows, ready=ready,
        endless=endless, parks=parks, follows=follows, first=first, last=last,
    )  # fmt: skip
    try:
        _fold(connection, work, checked=bool(changed) or not ready)
    except CannotStore:
        read = _read(connection, live.stage1)
        ready.update({key: fold_storable(connection, live.stage1, read(key), key) for key in ready})
        _fold(connection, work, checked=True)


class _Work(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be folded again, in one transaction."""

    live: Live
    by_shard: Mapping[int, Sequence[StreamKey]]
    """The streams, by their shards of stage 1."""
    changed: Collection[StreamKey]
    """Those of them whose events have changed; the others were parked."""
    rows: Sequence[tuple[str, RowKey]]
    recorded: Sequence[SourceKey]
    of_rows: Sequence[DeadLetter]
    ready: Mapping[StreamKey, FoldedAhead]
    endless: Mapping[Target, Fault]
    parks: bool
    follows: bool
    first: Callable[[], None]
    last: Callable[[], None]


def _fold(connection: Connection, work: _Work, checked: bool) -> None:
    live = work.live
    shards = {key: shard for shard, keys in work.by_shard.items() for key in keys}
    needed = [(live.stage1, shard) for shard in sorted(work.by_shard)]
    with (
        _held(connection, needed, {(live.stage1, shards[key]) for key in work.changed}, PATIENCE_S) as of_stage1,
        _stage2(connection, work, of_stage1) as of_stage2,
        connection.transaction(),
    ):
        if generations.live(connection) != live:
            raise LiveChanged
        # However long this takes, nobody else takes these shards: their rows stay locked.
        stage1 = [generations.renew(connection, lease) for lease in of_stage1]
        stage2 = None if of_stage2 is None else [generations.renew(connection, lease) for lease in of_stage2]
        connection.execute("SET LOCAL idle_in_transaction_session_timeout = 0")
        work.first()
        folded: list[tuple[Lease, list[StreamKey]]] = []
        for lease in stage1:
            every = work.by_shard[lease.shard]
            here = [key for key in every if key in work.changed or _is_parked(connection, live, key)]
            folds = Stage1(parks=work.parks, endless=work.endless)
            folds.refold(connection, lease, here, work.ready, checked, at_next=stage2 is None)
            folded.append((lease, here))
        if stage2 is not None:
            _fold_stage2(connection, work, stage2, folded)
        work.last()
        connection.execute("SET LOCAL synchronous_commit = on")  # leases, which may be lost, turn it off


def _fold_stage2(
    connection: Connection, work: _Work, stage2: Sequence[Lease], folded: Sequence[tuple[Lease, list[StreamKey]]]
) -> None:
    """Fold on in stage 2 what was folded in shards of stage 1."""
    changes = []
    for lease, here in folded:
        # Stage 2 is given them also where it has yet to read them, and what was changed in these streams before: else
        # its rows hold what is gone until it does, and who forgets does not learn what follows. That it reads them
        # again changes nothing.
        since = Position(min(least(each.reach for each in stage2).lowest + 1, lease.reach.lowest))
        changes += facts.read_changes_of(connection, work.live.stage1, here, since)
    folds = Stage2(parks=work.parks, endless=work.endless)
    folds.refold(
        connection, stage2, work.live.stage1, work.rows, changes=map(of_fact, changes),
        recorded=partial(_as_they_stand, connection, work.recorded), letters=work.of_rows,
    )  # fmt: skip
    if folded:
        generations.read_again(connection, work.live.stage1, min(lease.reach.lowest for lease, _ in folded))


def _parked_still(connection: Connection, live: Live, letters: Iterable[DeadLetter]) -> list[DeadLetter]:
    """Those of the letters that nobody has settled since they were read, as they are now."""
    found: list[DeadLetter] = []
    by_stage: dict[int, list[Target]] = {}
    for letter in letters:
        by_stage.setdefault(live.stage2 if letter.target.projection else live.stage1, []).append(letter.target)
    for generation, targets in by_stage.items():
        found += dead_letters.parked_at(connection, generation, targets)
    return found


def _is_parked(connection: Connection, live: Live, key: StreamKey) -> bool:
    return bool(dead_letters.parked_at(connection, live.stage1, [Target("", *key)]))


@contextlib.contextmanager
def _stage2(connection: Connection, work: _Work, shards: Sequence[Lease]) -> Iterator[Sequence[Lease] | None]:
    """The leases of stage 2, or None where that may follow these shards."""
    spaces = {key[0] for keys in work.by_shard.values() for key in keys}
    wanted = [(work.live.stage2, n) for n in range(generations.shards(connection, work.live.stage2))]
    with contextlib.ExitStack() as held:
        if work.follows:
            yield _unless_it_goes_on(connection, wanted, shards, spaces, held)
        else:
            yield held.enter_context(_held(connection, wanted, (), PATIENCE_S))


def _unless_it_goes_on(
    connection: Connection,
    wanted: Sequence[tuple[int, int]],
    shards: Sequence[Lease],
    spaces: Collection[int],
    held: contextlib.ExitStack,
) -> Sequence[Lease] | None:
    """None where more events wait for these shards: what is written as of the next position is read with those. The
    leases of stage 2 where none do: nobody waits for either. Raises: LeaseHeld."""
    began = time.monotonic()
    while not _goes_on(connection, shards, spaces):
        waited = time.monotonic() - began
        if waited > SOON_S:
            with contextlib.suppress(LeaseHeld):
                return held.enter_context(_held(connection, wanted, (), 0.0))
        if waited > IDLE_S:
            raise LeaseHeld(generation=wanted[0][0], shard=0, seconds=IDLE_S)
        time.sleep(0.02)
    return None


def _goes_on(connection: Connection, shards: Sequence[Lease], spaces: Collection[int]) -> bool:
    """Whether events stand in the log that none of these shards has read, and none of these spaces lags."""
    if any(space in lease.held for lease in shards for space in spaces):
        return False
    return newest_position(connection) > max(lease.reach.position for lease in shards)


def _ready(connection: Connection, generation: int, letters: Iterable[DeadLetter]) -> dict[StreamKey, FoldedAhead]:
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


def _as_they_stand(connection: Connection, recorded: Iterable[SourceKey], upto: Reach) -> Iterator[SourceItem]:
    by_space: dict[int, set[UUID]] = defaultdict(set)
    for space_id, id in recorded:
        by_space[space_id].add(id)
    for space_id, ids in by_space.items():
        found = read_events(connection, space_id, ids, upto.of(space_id), folded_as_recorded())
        for id in ids:
            event = found.get(id)
            yield SourceItem((space_id, id), None if event is None else Recorded(event, event.payload))


def _owner() -> str:
    return f"refold:{socket.gethostname()}:{os.getpid()}"


@contextlib.contextmanager
def _held(
    connection: Connection,
    wanted: Sequence[tuple[int, int]],
    changes_in: Collection[tuple[int, int]],
    patience_s: float,
) -> Iterator[list[Lease]]:
    """The leases of these (generation, shard), in that order. Everybody who takes several takes them so. Events of some
    are to be changed."""
    held: list[Lease] = []
    try:
        for generation, shard in wanted:
            changes = (generation, shard) in changes_in
            held.append(generations.take(connection, generation, shard, _owner(), patience_s, changes=changes))
        yield held
    finally:
        if not connection.closed:
            for lease in held:
                generations.release(connection, lease)
