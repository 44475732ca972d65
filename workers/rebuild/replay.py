"""Replay: read models are rebuilt from the log beside the live ones, compared at one position, and switched.

Stage 1 is rebuilt a stream at a time, stage 2 from all facts; both by the same folds that the workers use. Only for
the last stretch are the live offsets held, so that both stand at the same position.
"""

import logging
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Literal, LiteralString

import msgspec
import psycopg

from memctl.domain.events.event import Position
from memctl.domain.support.errors import MemctlError
from memctl.infra.database import Connection, DatabaseUnavailable, advisory_lock, connect, outages
from memctl.infra.log.mark import marks, move_mark
from memctl.infra.log.migrate import refuse_newer
from memctl.infra.log.reach import Reach, least, next_section
from memctl.infra.log.read import stream_lengths
from memctl.infra.readmodels import dead_letters, facts, generations, rebuilds
from memctl.infra.readmodels import fingerprint as rules
from memctl.infra.readmodels import rows as readmodels
from memctl.infra.readmodels.generations import Lease, LeaseLost, Live
from memctl.infra.readmodels.rebuilds import Rebuild, RebuildProgress
from memctl.infra.settings import Settings
from memctl.infra.vectors import QdrantClient, VectorStoreUnavailable, store
from memctl.infra.vectors import models as vector_models
from memctl.infra.vectors.outbox import awaiting_dense, backlog, collection_of, queue_cached
from memctl.projections import layers
from memctl.projections.kernel import projections
from memctl.workers.folding.poison import CannotFold
from memctl.workers.folding.refold import refold
from memctl.workers.folding.sources import of_fact
from memctl.workers.folding.stage1 import Stage1
from memctl.workers.folding.stage2 import Stage2
from memctl.workers.rebuild.build import Leader, RebuildStopped, known_read_models
from memctl.workers.rebuild.profile import Profile
from memctl.workers.vectors.outbox_publisher import WRITING, OutboxPublisher, drop_collections

PATIENCE_S = 60.0
"""How long to wait for the leases of the live generations."""

MEETINGS = 3
"""How often the live offsets are held to switch, where their leases are taken away."""

WAITING_EVENTS = 20_000
"""Events of long sessions that are folded while all leases are held, so that rows can be compared: some two seconds."""

NAMED = 20
"""How many differing rows are named."""

REPORT_S = 0.3
"""Least seconds between two reports to the database of how far it is."""

log = logging.getLogger("memctl.replay")


class ReplayRunning(MemctlError):
    """Another replay is running on this database."""

    hint = "wait for it to end; its progress is where it was started"


class NothingToRollBackTo(MemctlError):
    """There is no former generation to roll back to: {why}."""


class WorkersHoldOn(MemctlError):
    """A worker has been writing the points of the vector store for more than {seconds:.0f} s."""

    hint = "look at `memctl status`; a worker may be stuck"


class Comparison(msgspec.Struct, frozen=True):
    """One read model (or `facts`, or `vectors`), live and rebuilt, at the same position."""

    name: str
    rows: int
    digest_live: str
    digest_rebuilt: str
    equal: bool
    differing: tuple[str, ...] = ()
    """Keys of rows that differ, or are on one side only: at most 20."""
    without_dense: int = 0
    """Of `vectors`: points that still wait for their dense vector, compared without it."""


class Replayed(msgspec.Struct):
    """What a replay did."""

    position: Position
    events: int = 0
    facts: int = 0
    seconds: float = 0.0
    compared: list[Comparison] = msgspec.field(default_factory=list)
    without_dense: int = 0
    """Points of what was built whose dense vectors the cache does not hold: they wait for the embedder."""
    former: Live | None = None
    outdated: bool = False
    """The live rows had been folded by other rules; there was nothing to compare with."""
    profile: Profile = msgspec.field(default_factory=Profile)

    @property
    def equal(self) -> bool:
        return all(comparison.equal for comparison in self.compared)

    @property
    def differing(self) -> str:
        """Which read models differed, in words; empty where none did or nothing was compared."""
        names = ", ".join(each.name for each in self.compared if not each.equal)
        return names and rebuilds.DIFFERING + names


Progress = Callable[[str, int, int], None]
"""Called with what is being done, how much of it is done, and how much there is."""


def stages_of(names: Sequence[str]) -> Literal[1, 2]:
    """The first stage that has to be rebuilt for these read models; everything after it is rebuilt too.

    Raises: UnknownReadModel.
    """
    known = {p.name: p.stage for p in projections()}
    return min((known[name] for name in known_read_models(names)), default=1)


@contextmanager
def vector_store(settings: Settings) -> Iterator[QdrantClient]:
    """A client of the vector store. Raises: NotRunning."""
    client = store.connect(settings.require("qdrant_url"), settings.qdrant_api_key)
    try:
        yield client
    finally:
        client.close()


def latest(database_url: str, limit: int) -> list[RebuildProgress]:
    """How far the latest rebuilds are, or how they ended; newest first. Raises: DatabaseUnavailable."""
    with outages(), connect(database_url, name="memctl status") as connection:
        return rebuilds.progress(connection, limit)


def replay(
    database_url: str,
    qdrant: QdrantClient | None,
    *,
    first_stage: Literal[1, 2] = 1,
    shards: int | None = None,
    verify: bool = False,
    switch: bool = True,
    processes: int | None = None,
    progress: Progress = lambda what, done, of: None,
) -> Replayed:
    """Rebuild from a stage on and switch to what was built; the former generation is kept until the next replay.

    Where the live rows were folded by other rules than this code's, everything is rebuilt, and nothing compared.
    `shards` None keeps the number of shards of stage 1. `qdrant` None leaves the vectors to the workers. `switch`
    False drops what was built once it has been compared. `processes` None takes one for each processor, as far as
    there is work for them.

    Killed at any moment, it leaves the live read models as they were, and the next one goes on where this one
    stopped. Raises: ReplayRunning, NewerSchema, LeaseHeld, WorkersHoldOn, and RebuildStopped with the event that a fold
    cannot take.
    """
    began = time.monotonic()
    with connect(database_url, name="memctl replay") as connection, _alone(connection):
        run = _Replay(database_url, connection, qdrant, processes, progress)
        result = run.build(first_stage, shards, verify, switch)
        if switch:
            with suppress(VectorStoreUnavailable):  # the outbox drops what is left over
                _clear(connection, qdrant, "previous", keep=result.former)
    result.seconds = time.monotonic() - began
    return result


def rollback(database_url: str, qdrant: QdrantClient | None) -> Replayed:
    """Switch back to the generation that was live before the last replay, once it has read as far.

    The one it replaces is kept instead, so a second call takes the first one back.
    Raises: NothingToRollBackTo, ReplayRunning, NewerSchema, LeaseHeld, WorkersHoldOn.
    """
    began = time.monotonic()
    with connect(database_url, name="memctl rollback") as connection, _alone(connection):
        run = _Replay(database_url, connection, qdrant, 1, lambda what, done, of: None)
        result = run.roll_back()
    result.seconds = time.monotonic() - began
    return result


class StillWaits(MemctlError):
    """{count} long sessions wait for their folds, and more came late for them meanwhile; nothing was compared."""

    hint = "try again, once `memctl status` says that all is read"


class _Replay:
    def __init__(
        self,
        database_url: str,
        connection: Connection,
        qdrant: QdrantClient | None,
        processes: int | None,
        progress: Progress,
    ) -> None:
        self._url = database_url
        self._connection = connection
        self._qdrant = qdrant
        self._processes = processes
        self._progress = progress
        self._rebuild: Rebuild | None = None
        self._reported = ("", 0.0)
        self._owner = f"replay:{socket.gethostname()}:{os.getpid()}"

    def build(self, first_stage: Literal[1, 2], shards: int | None, verify: bool, switch: bool) -> Replayed:
        connection = self._connection
        live = generations.live(connection)
        outdated = generations.stale(connection)
        if outdated or shards is not None:
            first_stage = 1
        rebuild = self._rebuild = self._begin(first_stage, shards, "replace" if switch else "compare")
        result = Replayed(rebuild.upto, outdated=outdated)
        if not rebuilds.lock(connection, rebuild.id):
            raise ReplayRunning
        try:
            leader = Leader(self._url, connection, rebuild, self._processes)
            for step in leader.build():
                self._report(step.what, step.done, step.of)
                if step.what == "events":
                    result.events = step.of
            result.profile = leader.profile()
            result.facts = sum(facts.count_facts(connection, rebuild.stage1, rebuild.upto).values())
            built = Live(rebuild.stage1, rebuild.stage2)
            self._switch_over(live, built, result, first_stage, verify, switch)
        except (RebuildStopped, CannotFold) as stopped:
            rebuilds.end(connection, rebuild.id, "failed", str(stopped))
            self._discard(rebuild)
            raise
        finally:
            rebuilds.unlock(connection, rebuild.id)
        if not switch:
            rebuilds.end(connection, rebuild.id, "dropped", result.differing or "compared, and dropped")
            self._discard(rebuild)
        return result

    def roll_back(self) -> Replayed:
        connection = self._connection
        live = generations.live(connection)
        previous = generations.generations(connection, "previous")
        pairs = [(facts_of, generation) for generation, stage, facts_of in previous if stage == 2]
        ready = {generation for generation, stage, _ in previous if stage == 1} | {live.stage1}
        pairs = [pair for pair in pairs if pair[0] in ready]
        if not pairs or pairs[-1][0] is None:
            raise NothingToRollBackTo(why="none is kept")
        former = Live(pairs[-1][0], pairs[-1][1])
        if generations.fingerprints(connection, former.stage1, former.stage2) != {rules.fingerprint()}:
            raise NothingToRollBackTo(
                why="the one that is kept was folded by other rules than this memctl's",
                hint="install the memctl that made it, then roll back",
            )
        first_stage: Literal[1, 2] = 1 if former.stage1 != live.stage1 else 2
        result = Replayed(generations.lowest_offset(connection, former.stage2))
        outdated = generations.stale(connection)
        result.outdated = outdated
        self._switch_over(live, former, result, first_stage, verify=False, switch=True)
        return result

    def _begin(self, first_stage: Literal[1, 2], shards: int | None, purpose: Literal["replace", "compare"]) -> Rebuild:
        """The rebuild that was begun and not ended, if it is what is asked for now; else a new one."""
        connection = self._connection
        live = generations.live(connection)
        wanted = shards or generations.shards(connection, live.stage1)
        building = {generation for generation, _, _ in generations.generations(connection, "building")}
        for old in [*rebuilds.running(connection, "replace"), *rebuilds.running(connection, "compare")]:
            if (
                (old.purpose, old.first_stage) == (purpose, first_stage)
                and old.stage2 in building
                and (first_stage == 1 or old.stage1 == live.stage1)
                and generations.shards(connection, old.stage1) == wanted
                and generations.fingerprints(connection, old.stage1, old.stage2) == {rules.fingerprint()}
                and rebuilds.step_state(connection, old.id, 0).planned
            ):
                log.info("going on with rebuild %d, which was begun before", old.id)
                rebuilds.go_on(connection, old.id)
                return old
            rebuilds.end(connection, old.id, "dropped", "stopped, and another one was asked for")
            self._discard(old)
        _clear(connection, self._qdrant, "building")
        move_mark(connection)
        with connection.transaction():
            stage1 = live.stage1
            upto = generations.lowest_offset(connection, stage1)
            if first_stage == 1:
                upto = marks(connection).lowest
                stage1 = generations.create(connection, 1, shards=wanted)
            of_rows = layers.shards_of(generations.shards(connection, stage1))
            stage2 = generations.create(connection, 2, shards=of_rows, facts_of=stage1)
            return rebuilds.begin(connection, purpose, first_stage, upto, stage1, stage2)

    def _discard(self, rebuild: Rebuild) -> None:
        """Drop what a rebuild built; what was live before it stays."""
        _clear(self._connection, self._qdrant, "building", only=Live(rebuild.stage1, rebuild.stage2))

    def _report(self, what: str, done: int, of: int) -> None:
        now = time.monotonic()
        if self._rebuild is not None and (
            what != self._reported[0] or now - self._reported[1] > REPORT_S or done >= of
        ):
            self._reported = (what, now)
            rebuilds.report(self._connection, self._rebuild.id, what, done, of)
        self._progress(what, done, of)

    def _catch_up(self, built: Live, first_stage: Literal[1, 2]) -> None:
        """Read what the log and the facts have got since, beside the workers; then write the points."""
        connection = self._connection
        if first_stage == 1:
            self._drain_stage1(built.stage1, self._marks())
        self._drain_stage2(built.stage2, built.stage1, generations.offset_of(connection, built.stage1))
        if self._qdrant is not None:
            self._write_points(self._qdrant, built.stage2)

    def _switch_over(
        self, live: Live, built: Live, result: Replayed, first_stage: Literal[1, 2], verify: bool, switch: bool
    ) -> None:
        """Catch up, and switch; once more where somebody took a lease in between, who may have changed what is live."""
        for left in reversed(range(MEETINGS)):
            with result.profile.serial("catching up", self._connection):
                self._catch_up(built, first_stage)
                if verify and not result.outdated:
                    self._try_what_waits(live)
            try:
                with result.profile.serial("comparing and switching", self._connection):
                    self._switch(live, built, result, first_stage, verify, switch)
                return
            except (LeaseLost, StillWaits) as problem:
                if not left:
                    raise
                log.info("catching up once more: %s", problem)

    def _try_what_waits(self, live: Live) -> None:
        """Fold what is parked only to be folded later: what was built has it."""
        for letter in dead_letters.parked(self._connection, live.stage1, live.stage2):
            if letter.to_be_tried:
                refold(self._connection, letters=[letter])

    def _fold_what_waits(self, live: Live, held: list[Lease]) -> None:
        """The same, of what was parked since: nobody folds meanwhile. Raises: StillWaits where that would take long."""
        waiting = [
            (letter.target.space_id, letter.target.key or "")
            for letter in dead_letters.parked(self._connection, live.stage1)
            if letter.to_be_tried
        ]
        lengths = stream_lengths(self._connection, waiting, self._marks().position, WAITING_EVENTS)
        if sum(lengths.values()) > WAITING_EVENTS:
            raise StillWaits(count=len(waiting))
        shards = generations.shards(self._connection, live.stage1)
        of_rows = [lease for lease in held if lease.generation == live.stage2]
        with self._connection.transaction():
            for lease in held if waiting else ():
                here = [key for key in waiting if generations.shard_of(key[1], shards) == lease.shard]
                if lease.generation != live.stage1 or not here:
                    continue
                Stage1(parks=True).refold(self._connection, lease, here)
                changes = facts.read_changes_of(self._connection, live.stage1, here, lease.reach.lowest)
                Stage2(parks=True).refold(self._connection, of_rows, live.stage1, changes=map(of_fact, changes))

    def _switch(
        self, live: Live, built: Live, result: Replayed, first_stage: Literal[1, 2], verify: bool, switch: bool
    ) -> None:
        """Hold the live offsets, bring both to one position, compare, and switch."""
        connection = self._connection
        with self._held(live) as held:
            compare = verify and not result.outdated
            result.position = self._meet(live if compare else None, built, held)
            if compare:
                result.compared = self._compare(live, built, first_stage)
            if self._qdrant is not None:
                result.without_dense = backlog(connection, built.stage2)[1]
            if not switch:
                return
            with connection.transaction():
                for lease in held:
                    generations.renew(connection, lease)  # still ours, so nothing has moved since
                generations.switch(connection, built.stage1, built.stage2)
                if self._rebuild is not None:
                    rebuilds.end(connection, self._rebuild.id, "done", result.differing)
            result.former = live

    def _marks(self) -> Reach:
        move_mark(self._connection)
        return marks(self._connection)

    def _drain_stage1(self, generation: int, upto: Reach) -> None:
        stage1 = Stage1()
        for shard in range(generations.shards(self._connection, generation)):
            lease = self._take(generation, shard)
            while next_section(lease.reach, upto):
                lease = stage1.drain_batch(self._connection, lease, upto)
            generations.release(self._connection, lease)

    def _drain_stage2(self, generation: int, facts_of: int, upto: Reach) -> None:
        stage2, shards = Stage2(), generations.shards(self._connection, generation)
        shard = 0
        while shard < shards:
            if generations.offsets(self._connection, generation)[shard].reach.covers(upto):
                shard += 1
                continue
            lease = self._take(generation, shard)
            # Whoever changes facts behind them sends all shards back, those before this one's layer too.
            offsets = generations.offsets(self._connection, facts_of, generation)
            may = least([upto, generations.may_read(shard, offsets)])
            try:
                while next_section(lease.reach, may):
                    lease = stage2.drain_batch(self._connection, lease, facts_of, may)
            except LeaseLost:
                shard = 0
                continue
            generations.release(self._connection, lease)
            shard = shard + 1 if may.covers(upto) else 0

    def _take(self, generation: int, shard: int) -> Lease:
        return generations.take(self._connection, generation, shard, self._owner, PATIENCE_S)

    def _write_points(self, client: QdrantClient, generation: int) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while True:
            with advisory_lock(self._connection, WRITING, generation) as mine:
                if mine:
                    points = OutboxPublisher(self._connection, client, generation)
                    queue_cached(self._connection, generation)
                    total, done = points.backlog()[0], 0
                    while wrote := points.sync():
                        done += wrote
                        self._report("vectors", min(done, total), total)
                    return
            if time.monotonic() > deadline:
                raise WorkersHoldOn(seconds=PATIENCE_S)
            time.sleep(0.02)

    @contextmanager
    def _held(self, live: Live) -> Iterator[list[Lease]]:
        """Hold the leases of every live shard: nothing moves but what we move."""
        wanted = [(o.generation, o.shard) for o in generations.offsets(self._connection, live.stage1, live.stage2)]
        held: list[Lease] = []
        ended = threading.Event()
        renewing = threading.Thread(target=self._renew, args=[held, ended], name="renew leases", daemon=True)
        renewing.start()
        try:
            for generation, shard in wanted:
                held.append(self._take(generation, shard))
            yield held
        finally:
            ended.set()
            renewing.join()
            if not self._connection.closed:
                for lease in held:
                    generations.release(self._connection, lease)

    def _renew(self, held: list[Lease], ended: threading.Event) -> None:
        """Renew the leases until `ended` is set. One that is lost all the same is found at the switch."""
        pause = generations.LEASE.total_seconds() / 5
        while not ended.wait(pause):
            # A connection that is lost, or a lock that somebody holds over one of them, is no reason to let go of all.
            with (
                suppress(psycopg.Error, DatabaseUnavailable),
                connect(self._url, name="memctl replay leases") as connection,
            ):
                connection.execute("SELECT set_config('lock_timeout', %s, false)", [f"{pause * 1000:.0f}"])
                for lease in list(held):
                    with suppress(LeaseLost, psycopg.errors.LockNotAvailable):
                        generations.renew(connection, lease)

    def _meet(self, live: Live | None, built: Live, held: list[Lease]) -> Position:
        """Bring what was built to the end of the log, and the live offsets with it if they are to be compared; returns
        the position. Of a stage 1 that was not rebuilt, the end is where the slowest shard stands."""
        upto = self._marks()
        stage1 = Stage1()
        for index, lease in enumerate(held):
            if live is not None and lease.generation == live.stage1:
                while next_section(lease.reach, upto):
                    lease = stage1.drain_batch(self._connection, lease, upto)
                held[index] = lease
        if built.stage1 not in [lease.generation for lease in held]:
            self._drain_stage1(built.stage1, upto)
        upto = least([upto, generations.offset_of(self._connection, built.stage1)])
        stage2 = Stage2()
        for index, lease in enumerate(held):
            if live is not None and lease.generation == live.stage2:
                while next_section(lease.reach, upto):
                    lease = stage2.drain_batch(self._connection, lease, live.stage1, upto)
                held[index] = lease
        self._drain_stage2(built.stage2, built.stage1, upto)
        if live is not None and built.stage1 != live.stage1:
            self._fold_what_waits(live, held)
        if self._qdrant is not None:
            for generation in (built.stage2, *([live.stage2] if live is not None else [])):
                self._write_points(self._qdrant, generation)
        return upto.position

    def _compare(self, live: Live, built: Live, first_stage: Literal[1, 2]) -> list[Comparison]:
        found = []
        if first_stage == 1:
            found.append(self._compare_rows("facts", *(facts.rows_query(g) for g in (live.stage1, built.stage1))))
        for p in projections():
            if p.stage >= first_stage:
                sides = (live.stage1, built.stage1) if p.stage == 1 else (live.stage2, built.stage2)
                found.append(self._compare_rows(p.name, *(readmodels.rows_query(p, g) for g in sides)))
        if self._qdrant is not None:
            found.append(self._compare_vectors(self._qdrant, live, built))
        return found

    def _compare_rows(self, name: str, live: LiteralString, built: LiteralString) -> Comparison:
        """Compare digests, and rows only in the ranges of keys that differ."""
        one, other = (readmodels.digest_of(self._connection, side) for side in (live, built))
        ranges = [n for n, pair in enumerate(zip(one.ranges, other.ranges, strict=True)) if pair[0] != pair[1]]
        differing = readmodels.differences_of(self._connection, live, built, ranges, NAMED) if ranges else []
        return Comparison(name, one.rows, one.hex, other.hex, not ranges, tuple(differing))

    def _compare_vectors(self, client: QdrantClient, live: Live, built: Live) -> Comparison:
        serving = vector_models.models(self._connection).serving
        assert serving is not None
        awaiting = frozenset(
            key
            for generation in (live.stage2, built.stage2)
            for key in awaiting_dense(self._connection, generation, serving.name)
        )
        sides = [
            store.point_digests(client, collection_of(self._connection, generation, serving.name), awaiting)
            for generation in (live.stage2, built.stage2)
        ]
        differing = sorted(key for key in sides[0].keys() | sides[1].keys() if sides[0].get(key) != sides[1].get(key))
        return Comparison(
            "vectors",
            len(sides[0]),
            store.digest_of_points(sides[0]),
            store.digest_of_points(sides[1]),
            not differing,
            tuple(differing[:NAMED]),
            len(awaiting),
        )


@contextmanager
def _alone(connection: Connection) -> Iterator[None]:
    with advisory_lock(connection, rebuilds.LOCK, 0) as mine:
        if not mine:
            raise ReplayRunning
        refuse_newer(connection)
        yield


def _clear(
    connection: Connection,
    qdrant: QdrantClient | None,
    status: Literal["building", "previous"],
    *,
    keep: Live | None = None,
    only: Live | None = None,
) -> None:
    """Drop generations of a status: all but those to keep, or only some."""
    kept = (keep.stage1, keep.stage2) if keep is not None else ()
    for generation, stage, _ in reversed(generations.generations(connection, status)):
        if generation in kept or (only is not None and generation not in (only.stage1, only.stage2)):
            continue
        if stage == 2 and qdrant is not None:
            with suppress(VectorStoreUnavailable):  # the outbox drops what is left over
                drop_collections(connection, qdrant, generation)
        generations.drop_alone(connection, generation)
