"""Everything at once, as long as a history takes to be told: an attempt to make a read model skip, repeat or differ.

Writers tell a random history in pieces, roll back, and keep transactions open; workers are killed, stopped past their
leases and continued; streams and rows are folded anew, generations rebuilt, compared, switched and rolled back with
other numbers of shards, deliveries forgotten, sources left out; connections are ended, tables locked, leases moved by a
day, the queue emptied. The second half is told in peace, for whatever is folded anew mends what was wrong before.

All of it in several threads and processes, so a seed gives the same history and the same attempts, but not the same
interleaving.
"""

from __future__ import annotations

import contextlib
import random
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any
from uuid import UUID

import fates
import psycopg
import pytest
import redis
import servers
from events import stated
from faults.test_order import forgotten
from forking import Forked
from histories import digests, drained, example
from orders import folded
from processes import memctl, signal_all
from soak import seeded
from unit.test_history_laws import history
from waiting import until
from working import caught_up, prove, run_out

from memctl.domain.events.event import Micros, NewEvent, derived_id
from memctl.domain.events.feedback import MemoryRated
from memctl.domain.events.observations import event_id_of
from memctl.domain.events.skipping import EventSkipped
from memctl.infra import queue
from memctl.infra.database import Connection, DatabaseUnavailable, connect
from memctl.infra.log.append import append
from memctl.infra.log.mark import last_position, mark
from memctl.infra.log.spaces import installation
from memctl.infra.readmodels import dead_letters, generations
from memctl.infra.readmodels import rows as readmodels
from memctl.infra.readmodels.generations import LeaseHeld, LeaseLost
from memctl.infra.redaction import prepare
from memctl.infra.vectors.outbox import backlog
from memctl.projections.kernel import projections
from memctl.workers.erasure import forgetting
from memctl.workers.erasure.erase import RebuildAtWork, erase_round
from memctl.workers.folding.refold import LiveChanged, refold
from memctl.workers.processors.runner import model
from memctl.workers.rebuild.audit import audit
from memctl.workers.rebuild.build import RebuildStopped
from memctl.workers.rebuild.replay import NothingToRollBackTo, ReplayRunning, WorkersHoldOn, replay, rollback

WRITERS, MEDDLERS = 3, 2
HISTORIES, STEPS = 3, 40
"""How many are told, in which sessions have the same names, and of how many steps a session is at most."""

REFUSED = (LeaseHeld, LeaseLost, LiveChanged, NothingToRollBackTo, RebuildAtWork, ReplayRunning, WorkersHoldOn)
"""What whoever comes at a bad moment is told; nothing was done then."""

LOST = (DatabaseUnavailable, psycopg.OperationalError, psycopg.InterfaceError)
"""What whoever loses his connection is told; a rebuild says it in words of its own."""


@pytest.fixture
def shards() -> int:
    return 3


class Turmoil:
    def __init__(self, url: str, redis_url: str, luck: random.Random) -> None:
        self.url, self.redis_url, self.luck = url, redis_url, luck
        self.kept: list[NewEvent] = []
        self.half = threading.Event()
        """Set once the first writer is through with half of what it tells: from then on nobody meddles or disturbs."""
        self.told = threading.Event()
        """Set once every writer is through."""
        self.done: dict[str, int] = {}

    # telling

    def write(self, mine: list[NewEvent], luck: random.Random) -> None:
        """Tell these in order; what was not acknowledged is told again."""
        at = 0
        while at < len(mine):
            with contextlib.suppress(*LOST), connect(self.url, autocommit=False, name="writer") as connection:
                while at < len(mine):
                    some = mine[at : at + luck.choice((1, 3, 12))]
                    answers = append(connection, 1, some)
                    self.told.wait(luck.choice((0, 0.01, 0.2, 0.5)))  # with a transaction that is open
                    if luck.random() < 0.15:
                        connection.rollback()
                        continue
                    connection.commit()
                    self.kept += [e for e, a in zip(some, answers, strict=True) if a.status != "forgotten"]
                    at += len(some)
                    if 2 * at >= len(mine):
                        self.half.set()

    def wait_for(self, writing: list[Future[None]]) -> None:
        """Wake the workers all the time, also while transactions are open, until all is told."""
        try:
            with connect(self.url, name="waker") as connection:
                here = installation(connection)
            with contextlib.closing(redis.Redis.from_url(self.redis_url)) as client:
                while not all(each.done() for each in writing):
                    queue.wake(client, here, [(stage, shard) for stage in (1, 2) for shard in range(4)])
                    self.told.wait(0.02)
            for each in writing:
                each.result()
        finally:
            self.half.set()
            self.told.set()

    # meddling

    def meddle(self, luck: random.Random) -> None:
        ways = [self.fold_anew, self.rebuild, self.rebuild, self.roll_back, self.forget, self.leave_out, self.look]
        while not self.half.is_set():
            way = luck.choice(ways)
            try:
                with connect(self.url, name="meddler") as connection:
                    way(connection, luck)
                self.count(way.__name__)
            except REFUSED as refusal:
                self.count(type(refusal).__name__)
            except LOST:
                self.count("lost")
            except psycopg.errors.UndefinedTable:  # a generation that was live a moment ago
                self.count("gone")
            except RebuildStopped as stopped:
                if "went away" not in str(stopped) and "something was forgotten" not in str(stopped):
                    raise
                self.count("lost")

    def count(self, what: str) -> None:
        self.done[what] = self.done.get(what, 0) + 1

    def fold_anew(self, connection: Connection, luck: random.Random) -> None:
        stage2 = generations.live(connection).stage2
        rows = [(p.name, (1, key)) for p in projections(2) for key, _ in readmodels.all_rows(connection, p, stage2)]
        streams = connection.execute("SELECT DISTINCT stream FROM memctl.events WHERE stream ~ '^session/'").fetchall()
        refold(
            connection,
            streams=[(1, row[0]) for row in luck.sample(streams, min(len(streams), luck.randint(0, 2)))],
            rows=luck.sample(rows, min(len(rows), 5)),
        )

    def rebuild(self, _: Connection, luck: random.Random) -> None:
        done = replay(
            self.url,
            None,
            first_stage=luck.choice((1, 2)),
            shards=luck.choice((None, None, 1, 4)),
            switch=luck.random() < 0.7,
            verify=luck.random() < 0.7,
            processes=luck.choice((1, 2)),
        )
        assert done.equal, [c for c in done.compared if not c.equal]

    def roll_back(self, _: Connection, luck: random.Random) -> None:
        rollback(self.url, None)

    def forget(self, connection: Connection, luck: random.Random) -> None:
        there = connection.execute(
            "SELECT DISTINCT coalesce(variant_of, event_id) FROM memctl.events WHERE payload IS NOT NULL"
            " AND type <> 'event.skipped' ORDER BY 1"  # what was left out stays recorded, whoever asks
        ).fetchall()
        ids = {row[0] for row in luck.sample(there, min(len(there), 3))}
        seed = luck.random()
        while True:  # a forgetting that was begun is brought to its end
            try:
                with connect(self.url, name="meddler") as mine:
                    forgotten(mine, ids, random.Random(seed))
                return
            except (*LOST, *REFUSED):
                self.count("forget again")

    def leave_out(self, connection: Connection, luck: random.Random) -> None:
        """An event out of its stream, or a source out of one row or all rows of a read model."""
        stage2 = generations.live(connection).stage2
        if luck.random() < 0.5:
            statement: Any = (
                "SELECT coalesce(variant_of, event_id), stream, '', NULL FROM memctl.events WHERE stream ~ '^session/'"
            )
        else:
            statement = (
                "SELECT source, 'skipped/' || split_part(target, ':', 1), split_part(target, ':', 1),"
                f" substr(target, strpos(target, ':') + 1) FROM memctl.routes_g{stage2}"
            )
        found = connection.execute(statement + " ORDER BY 1, 4").fetchall()
        if not found:
            return
        source, stream, projection, key = luck.choice(found)
        payload = EventSkipped(skipped=source, projection=projection, key=key if luck.random() < 0.7 else None)
        named = derived_id(f"{payload.skipped} {payload.projection} {payload.key}")
        skip = NewEvent(stream=stream, payload=payload, occurred_at=Micros(1), dedupe_key=f"skip:{named}", actor="user")
        self.kept.append(skip)
        append(connection, 1, [skip])

    def look(self, connection: Connection, luck: random.Random) -> None:
        """Beside everything, the rows are those that their sources give."""
        found = audit(connection)
        for part in (found.routes, found.unfounded, found.differing):
            assert part.count == 0, part

    # disturbing

    def disturb(self, workers: Workers) -> None:
        ways: list[Callable[[Connection], None]] = [
            workers.kill_one, workers.kill_one, workers.stop_one, self.end_connections, self.end_connections, self.lock,
            self.set_the_clock, self.empty_the_queue,
        ]  # fmt: skip
        while not self.half.wait(0.3):
            with contextlib.suppress(*LOST), connect(self.url, name="disturber") as connection:
                way = self.luck.choice(ways)
                way(connection)
                self.count(way.__name__)

    def end_connections(self, connection: Connection) -> None:
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database()"
            " AND pid <> pg_backend_pid() AND backend_type = 'client backend' ORDER BY random() LIMIT 2"
        )

    def lock(self, connection: Connection) -> None:
        table = self.luck.choice(("memctl.offsets", "memctl.projection_state", "memctl.mark", "memctl.events"))
        with connection.transaction():
            connection.execute("SET LOCAL lock_timeout = '100ms'")
            with contextlib.suppress(psycopg.errors.LockNotAvailable), connection.transaction():
                connection.execute(f"LOCK TABLE {table} IN SHARE ROW EXCLUSIVE MODE".encode())
                self.half.wait(0.2)

    def set_the_clock(self, connection: Connection) -> None:
        moved = self.luck.choice(("1 day", "-1 day"))
        connection.execute("UPDATE memctl.offsets SET lease_until = lease_until + %s::interval", [moved])

    def empty_the_queue(self, _: Connection) -> None:
        with contextlib.closing(redis.Redis.from_url(self.redis_url)) as client:
            client.flushdb()


class Workers:
    """Two worker processes, of which one at a time is killed, or stopped for a while."""

    def __init__(self, environment: dict[str, str], folder: Path, luck: random.Random) -> None:
        self._environment, self._folder, self._luck = environment, folder, luck
        self._held = contextlib.ExitStack()
        self._stopped: Forked | None = None
        self.running = [self._start() for _ in range(2)]

    def _start(self) -> Forked:
        output = self._folder / "workers.log"
        return self._held.enter_context(memctl("worker", environment=self._environment, log=output))

    def kill_one(self, connection: Connection) -> None:
        number = self._luck.randrange(2)
        self.running[number].kill()
        self.running[number].wait(20)
        if self._stopped is self.running[number]:
            self._stopped = None
        self.running[number] = self._start()

    def stop_one(self, connection: Connection) -> None:
        """Stop one; the one that was stopped before goes on, and its leases have run out."""
        run_out(connection)
        before, self._stopped = self._stopped, self._luck.choice(self.running)
        signal_all(self._stopped, signal.SIGSTOP)
        if before is not None and before is not self._stopped:
            signal_all(before, signal.SIGCONT)

    def all_go_on(self) -> None:
        for number, worker in enumerate(self.running):
            if worker.poll() is not None:
                self.running[number] = self._start()
            else:
                signal_all(worker, signal.SIGCONT)

    def close(self) -> None:
        self._held.close()


@pytest.fixture
def workers(environment: dict[str, str], tmp_path: Path) -> Iterator[Callable[[random.Random], Workers]]:
    with contextlib.ExitStack() as held:

        def start(luck: random.Random) -> Workers:
            workers = Workers({**environment, "MEMCTL_READ_BATCH": str(luck.choice((7, 40, 2000)))}, tmp_path, luck)
            held.callback(workers.close)
            return workers

        yield start


def standing(log: Connection) -> object:
    """What to look at where it does not go on."""
    live = generations.live(log)
    busy = "SELECT application_name, state, wait_event, query FROM pg_stat_activity WHERE datname = current_database()"
    return (
        live,
        generations.offsets(log, live.stage1, live.stage2),
        mark(log),
        last_position(log),
        backlog(log, live.stage2),
        dead_letters.halts(log, live),
        log.execute(busy.encode()).fetchall(),
    )


@pytest.mark.parametrize("stopped", [False, True])
def test_what_follows_from_forgetting_is_gone_too_also_where_it_was_stopped_in_between(
    log: Connection, database_url: str, monkeypatch: pytest.MonkeyPatch, stopped: bool
) -> None:
    """As these tests forget, which take everything that a receipt names for gone."""
    generations.ensure_live(log, 2)
    session = example(0)
    append(log, 1, session)
    drained(database_url)
    memory = next(key for key, _ in readmodels.all_rows(log, model("memories"), generations.live(log).stage2))
    append(log, 1, [stated("knowledge/verdicts", MemoryRated(memory=memory, value=1.0))])
    drained(database_url)
    ids = {event_id_of(1, event.dedupe_key) for event in session}

    def stopped_after(*given: Any, **named: Any) -> None:
        erase_round(*given, **named)
        raise KeyboardInterrupt

    if stopped:
        monkeypatch.setattr(forgetting, "erase_round", stopped_after)
        with pytest.raises(KeyboardInterrupt):
            forgotten(log, ids, random.Random(1))
        monkeypatch.setattr(forgetting, "erase_round", erase_round)
    forgotten(log, ids, random.Random(1))
    told = log.execute("SELECT type FROM memctl.events WHERE payload IS NOT NULL").fetchall()
    assert told == []


@seeded("MEMCTL_TEST_TURMOIL", "a minute")
def test_whatever_is_done_at_once_no_read_model_skips_repeats_or_differs(
    seed: int,
    environment: dict[str, str],
    workers: Callable[[random.Random], Workers],
    postgres_server: str,
    templates: servers.Templates,
    tmp_path: Path,
) -> None:
    luck = random.Random(seed)
    told = [event for _ in range(HISTORIES) for event in history(luck, STEPS)]
    events = [prepare(event) for event in fates.arriving(luck, told)]
    turmoil = Turmoil(environment["MEMCTL_DATABASE_URL"], environment["MEMCTL_REDIS_URL"], luck)
    running = workers(random.Random(luck.random()))
    with ThreadPoolExecutor(WRITERS + MEDDLERS + 1) as pool:
        pieces = [events[n::WRITERS] for n in range(WRITERS)]
        writing = [pool.submit(turmoil.write, mine, random.Random(luck.random())) for mine in pieces]
        others = [pool.submit(turmoil.meddle, random.Random(luck.random())) for _ in range(MEDDLERS)]
        others.append(pool.submit(turmoil.wait_for, writing))
        turmoil.disturb(running)  # here: a process dies with the thread that started it
        running.all_go_on()
        for each in others:
            each.result(300)
    with connect(turmoil.url) as log:
        settle(turmoil, log, tmp_path / "workers.log")
        prove(log, environment)
        erased: set[UUID] = {row[0] for row in log.execute("SELECT unnest(erased) FROM memctl.receipts")}
        kept = [event for event in turmoil.kept if event_id_of(1, event.dedupe_key) not in erased]
        print(f"{len(kept)} events kept, {len(erased)} forgotten;", turmoil.done)
        there = log.execute(
            "SELECT DISTINCT coalesce(variant_of, event_id) FROM memctl.events WHERE payload IS NOT NULL"
        )
        assert {row[0] for row in there} == {event_id_of(1, event.dedupe_key) for event in kept}
        luck.shuffle(kept)
        assert folded(postgres_server, templates, kept, []) == digests(log)


def settle(turmoil: Turmoil, log: Connection, output: Path) -> None:
    """Wait until the workers have caught up; nothing is left that does not go on."""
    run_out(log)
    try:
        until(lambda: caught_up(log))
    except AssertionError:
        print(turmoil.done, standing(log), output.read_text()[-5000:], sep="\n")
        raise
    live = generations.live(log)
    assert not dead_letters.parked(log, live.stage1, live.stage2)
    turmoil.look(log, turmoil.luck)
