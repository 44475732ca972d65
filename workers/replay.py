"""Replay: read models are built anew from the log beside the live ones, compared at one position, and switched.

Stage 1 is rebuilt a stream at a time, stage 2 from all facts; both by the same folds that the workers use. Only for
the last stretch are the live offsets held, so that both stand at the same position.
"""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Literal

import msgspec

from memctl.domain.errors import MemctlError
from memctl.domain.event import Position
from memctl.domain.facts import Fact
from memctl.infra import facts, generations, readmodels
from memctl.infra.database import Connection, connect
from memctl.infra.generations import Lease, LeaseLost, Live
from memctl.infra.log.mark import move_mark
from memctl.infra.log.read import scan_streams
from memctl.infra.outbox import awaiting_dense, collection_of
from memctl.infra.vectors import VectorStoreUnavailable, digests, store
from memctl.projections.kernel import projections
from memctl.projections.stage1 import Delta, fold_stream
from memctl.workers.outbox import WRITING, Outbox, only_one
from memctl.workers.stage1 import Stage1
from memctl.workers.stage2 import Stage2, of_fact

if TYPE_CHECKING:
    from qdrant_client import QdrantClient

CHUNK = 5000
"""Facts written, or folded, at once."""

PATIENCE_S = 60.0
"""How long to wait for the leases of the live generations."""

NAMED = 20
"""How many differing rows are named."""

_LOCK = 0x7265706C  # "repl"


class ReplayRunning(MemctlError):
    """Another replay is running on this database."""

    hint = "wait for it to end; its progress is where it was started"


class UnknownReadModel(MemctlError):
    """There is no read model called {name}."""

    exit_code = 2


class WorkersHoldOn(MemctlError):
    """The workers did not let go of the live read models within {seconds:.0f} s."""

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
    former: Live | None = None
    outdated: bool = False
    """The live rows had been folded by other rules; there was nothing to compare with."""

    @property
    def equal(self) -> bool:
        return all(comparison.equal for comparison in self.compared)


Progress = Callable[[str, int, int], None]
"""Told what is being done, how much of it is done, and how much there is."""


def stages_of(names: Sequence[str]) -> Literal[1, 2]:
    """The first stage that has to be rebuilt for these read models; everything after it is rebuilt too.

    Raises: UnknownReadModel.
    """
    known = {p.name: p.stage for p in projections()}
    for name in names:
        if name not in known:
            raise UnknownReadModel(name=name, hint="one of: " + ", ".join(sorted(known)))
    return min((known[name] for name in names), default=1)


def replay(
    database_url: str,
    qdrant: QdrantClient | None,
    *,
    first_stage: Literal[1, 2] = 1,
    model: str = "",
    dimensions: int = 384,
    verify: bool = False,
    progress: Progress = lambda what, done, of: None,
) -> Replayed:
    """Rebuild from a stage on and switch to what was built; the former generation is kept until the next replay.

    Where the live rows were folded by other rules than this code's, everything is rebuilt, and nothing compared.
    `qdrant` None leaves the vectors to the workers. Killed at any moment, it leaves the live read models as they were,
    and what it had built is cleared away by the next one. Raises: ReplayRunning, WorkersHoldOn, UnknownEventType,
    or whatever a fold raises on an event it cannot take.
    """
    began = time.monotonic()
    with connect(database_url, name="memctl replay") as connection, _alone(connection):
        _clear(connection, qdrant, "building")
        run = _Replay(database_url, connection, qdrant, model, dimensions, progress)
        try:
            result = run.build(first_stage, verify)
        except BaseException:
            with suppress(Exception):
                _clear(connection, qdrant, "building")
            raise
        with suppress(VectorStoreUnavailable):  # the outbox drops what is left over
            _clear(connection, qdrant, "previous", keep=result.former)
    result.seconds = time.monotonic() - began
    return result


class _Replay:
    def __init__(
        self,
        database_url: str,
        connection: Connection,
        qdrant: QdrantClient | None,
        model: str,
        dimensions: int,
        progress: Progress,
    ) -> None:
        self._url = database_url
        self._connection = connection
        self._qdrant = qdrant
        self._model = model
        self._dimensions = dimensions
        self._progress = progress
        self._owner = f"replay:{socket.gethostname()}:{os.getpid()}"

    def build(self, first_stage: Literal[1, 2], verify: bool) -> Replayed:
        connection = self._connection
        live = generations.live(connection)
        outdated = generations.stale(connection)
        if outdated:
            first_stage = 1
        result = Replayed(move_mark(connection), outdated=outdated)
        stage1, shards = live.stage1, generations.shards(connection, live.stage1)
        if first_stage == 1:
            stage1 = generations.create(connection, 1, shards=shards)
            result.events = self._build_stage1(stage1, result.position)
            readmodels.finish(connection, 1, stage1)
            self._drain_stage1(stage1, shards, move_mark(connection))
        stage2 = generations.create(connection, 2, facts_of=stage1)
        result.facts = self._build_stage2(stage2, stage1)
        readmodels.finish(connection, 2, stage2)
        self._drain_stage2(stage2, stage1, generations.lowest_offset(connection, stage1))
        if self._qdrant is not None:
            self._write_points(self._qdrant, stage2)

        built = Live(stage1, stage2)
        with self._held(live) as held:
            result.position = self._meet(None if outdated else live, built, held, shards)
            if verify and not outdated:
                result.compared = self._compare(live, built, first_stage)
            with connection.transaction():
                for lease in held:
                    generations.renew(connection, lease)  # still ours, so nothing has moved since
                generations.switch(connection, stage1, stage2)
            result.former = live
        return result

    def _build_stage1(self, generation: int, upto: Position) -> int:
        """Fold every stream of the log up to a position; returns the number of events."""
        row = self._connection.execute(
            "SELECT count(*) FROM memctl.events WHERE position <= %s AND stream LIKE 'session/%%/%%'", [upto]
        ).fetchone()
        assert row is not None
        total, done = row[0], 0
        with self._reader() as reader:
            writer = _Stage1Writer(self._connection, generation, upto)
            for (space_id, stream), events in scan_streams(reader, upto):
                _, delta = fold_stream(stream, events)
                writer.put(space_id, stream, delta)
                done += len(events)
                self._progress("events", done, total)
            writer.flush()
        self._connection.execute("UPDATE memctl.offsets SET position = %s WHERE generation = %s", [upto, generation])
        return int(done)

    def _build_stage2(self, generation: int, facts_of: int) -> int:
        """Fold every fact and every recorded event; returns the number of facts."""
        stage2, done = Stage2(CHUNK), 0
        with self._reader() as reader:
            # One snapshot: the offset of stage 1, and the facts as they stood at it.
            reader.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
            upto = generations.lowest_offset(reader, facts_of)
            total = facts.count_facts(reader, facts_of, upto)
            lease = Lease(generation, 0, Position(0), 0, (0, 255))
            for changes in facts.scan_facts(reader, facts_of, upto, CHUNK):
                stage2.fold(self._connection, lease, facts_of, [of_fact(c) for c in changes], upto, fresh=True)
                done += len(changes)
                self._progress("facts", done, total)
        for start in range(0, len(recorded := stage2.recorded(self._connection, Position(0), upto)), CHUNK):
            chunk = recorded[start : start + CHUNK]
            stage2.fold(self._connection, lease, facts_of, chunk, upto, fresh=True)
        self._connection.execute("UPDATE memctl.offsets SET position = %s WHERE generation = %s", [upto, generation])
        return done

    def _reader(self) -> Connection:
        """A connection for one long read, which may be idle for as long as a fold takes."""
        reader = connect(self._url, autocommit=True, name="memctl replay reader")
        reader.execute("SET idle_in_transaction_session_timeout = 0")
        reader.autocommit = False
        return reader

    def _drain_stage1(self, generation: int, shards: int, upto: Position) -> None:
        stage1 = Stage1()
        for shard in range(shards):
            lease = self._take(generation, shard)
            while lease.position < upto:
                lease = stage1.drain_batch(self._connection, lease, upto)
            generations.release(self._connection, lease)

    def _drain_stage2(self, generation: int, facts_of: int, upto: Position) -> None:
        lease = self._take(generation, 0)
        stage2 = Stage2()
        while lease.position < upto:
            lease = stage2.drain_batch(self._connection, lease, facts_of, upto)
        generations.release(self._connection, lease)

    def _take(self, generation: int, shard: int) -> Lease:
        deadline = time.monotonic() + PATIENCE_S
        while (lease := generations.acquire(self._connection, generation, shard, self._owner)) is None:
            if time.monotonic() > deadline:
                raise WorkersHoldOn(seconds=PATIENCE_S)
            time.sleep(0.02)
        return lease

    def _write_points(self, client: QdrantClient, generation: int) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while True:
            with only_one(self._connection, WRITING, generation) as mine:
                if mine:
                    points = Outbox(self._connection, client, generation, self._model, self._dimensions)
                    total, done = points.backlog()[0], 0
                    while wrote := points.sync():
                        done += wrote
                        self._progress("vectors", min(done, total), total)
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
        """Renew the leases until told that it is over. One that is lost all the same is found at the switch."""
        with connect(self._url, name="memctl replay leases") as connection:
            while not ended.wait(generations.LEASE.total_seconds() / 5):
                for lease in list(held):
                    with suppress(LeaseLost):
                        generations.renew(connection, lease)

    def _meet(self, live: Live | None, built: Live, held: list[Lease], shards: int) -> Position:
        """Bring live and built offsets to one position; returns it. Outdated live ones (None) stay where they are."""
        upto = move_mark(self._connection)
        stage1 = Stage1()
        for index, lease in enumerate(held):
            if live is not None and lease.generation == live.stage1:
                while lease.position < upto:
                    lease = stage1.drain_batch(self._connection, lease, upto)
                held[index] = lease
        if live is None or built.stage1 != live.stage1:
            self._drain_stage1(built.stage1, shards, upto)
        stage2 = Stage2()
        for index, lease in enumerate(held):
            if live is not None and lease.generation == live.stage2:
                while lease.position < upto:
                    lease = stage2.drain_batch(self._connection, lease, live.stage1, upto)
                held[index] = lease
        self._drain_stage2(built.stage2, built.stage1, upto)
        if self._qdrant is not None:
            for generation in (built.stage2, *([live.stage2] if live is not None else [])):
                self._write_points(self._qdrant, generation)
        return upto

    def _compare(self, live: Live, built: Live, first_stage: Literal[1, 2]) -> list[Comparison]:
        found = []
        if first_stage == 1:
            found.append(self._compare_facts(live.stage1, built.stage1))
        for p in projections():
            old, new = (live.stage1, built.stage1) if p.stage == 1 else (live.stage2, built.stage2)
            if p.stage < first_stage:
                continue
            rows, digest_live = readmodels.digest(self._connection, p, old)
            _, digest_rebuilt = readmodels.digest(self._connection, p, new)
            equal = digest_live == digest_rebuilt
            differing = () if equal else tuple(readmodels.differences(self._connection, p, old, new, NAMED))
            found.append(Comparison(p.name, rows, digest_live, digest_rebuilt, equal, differing))
        if self._qdrant is not None:
            found.append(self._compare_vectors(self._qdrant, live, built))
        return found

    def _compare_facts(self, live: int, built: int) -> Comparison:
        rows, digest_live = facts.digest(self._connection, live)
        _, digest_rebuilt = facts.digest(self._connection, built)
        equal = digest_live == digest_rebuilt
        differing = () if equal else tuple(facts.differences(self._connection, live, built, NAMED))
        return Comparison("facts", rows, digest_live, digest_rebuilt, equal, differing)

    def _compare_vectors(self, client: QdrantClient, live: Live, built: Live) -> Comparison:
        awaiting = frozenset(
            key for generation in (live.stage2, built.stage2) for key in awaiting_dense(self._connection, generation)
        )
        sides = [
            digests.point_digests(client, collection_of(self._connection, generation), awaiting)
            for generation in (live.stage2, built.stage2)
        ]
        differing = sorted(key for key in sides[0].keys() | sides[1].keys() if sides[0].get(key) != sides[1].get(key))
        return Comparison(
            "vectors",
            len(sides[0]),
            digests.digest(sides[0]),
            digests.digest(sides[1]),
            not differing,
            tuple(differing[:NAMED]),
            len(awaiting),
        )


class _Stage1Writer:
    """Buffers facts and rows of whole streams, and writes them by COPY."""

    def __init__(self, connection: Connection, generation: int, at: Position) -> None:
        self._connection = connection
        self._generation = generation
        self._at = at
        self._facts: list[tuple[int, Fact]] = []
        self._rows: dict[str, list[tuple[int, str, str, bytes]]] = {p.name: [] for p in projections(1)}

    def put(self, space_id: int, stream: str, delta: Delta) -> None:
        self._facts.extend((space_id, fact) for fact in delta.facts.values())
        for (name, key), row in delta.rows.items():
            if row is not None:
                self._rows[name].append((space_id, key, stream, msgspec.json.encode(row)))
        if len(self._facts) >= CHUNK:
            self.flush()

    def flush(self) -> None:
        with self._connection.transaction():
            facts.copy_facts(self._connection, self._generation, self._at, self._facts)
            for p in projections(1):
                readmodels.copy_rows(self._connection, p, self._generation, self._rows[p.name])
                self._rows[p.name] = []
        self._facts = []


@contextmanager
def _alone(connection: Connection) -> Iterator[None]:
    row = connection.execute("SELECT pg_try_advisory_lock(%s, 0)", [_LOCK]).fetchone()
    if not (row and row[0]):
        raise ReplayRunning
    try:
        yield
    finally:
        if not connection.closed:
            connection.execute("SELECT pg_advisory_unlock(%s, 0)", [_LOCK])


def _clear(
    connection: Connection,
    qdrant: QdrantClient | None,
    status: Literal["building", "previous"],
    keep: Live | None = None,
) -> None:
    """Drop generations of a status, but the one that was live until now."""
    kept = (keep.stage1, keep.stage2) if keep is not None else ()
    for generation, stage, _ in reversed(generations.generations(connection, status)):
        if generation in kept:
            continue
        if stage == 2 and qdrant is not None:
            store.drop_collection(qdrant, collection_of(connection, generation))
        with connection.transaction():
            generations.drop(connection, generation)
