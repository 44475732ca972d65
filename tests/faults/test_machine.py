"""A machine that appends, rolls back, crashes, steals leases and replays in any order, beside a model in memory.

All of it in two spaces at once. After each step the log holds what was acknowledged and nothing else, the mark of each
space is below every open writer of it, and offsets have not gone back. In the end the read models are those that the
model's events give in one go.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from urllib.parse import urlsplit

import msgspec
import psycopg
import pytest
import servers
from draining import catch_up
from histories import digests, example
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test
from soak import examples
from waiting import until

from memctl.domain.events.event import NewEvent, Position, type_of
from memctl.domain.events.observations import PromptSubmitted, ResponseReceived, event_id_of
from memctl.infra.database import Connection, connect
from memctl.infra.log.append import Appended, append, encode_payload
from memctl.infra.log.mark import last_position, mark, marks, move_mark
from memctl.infra.log.reach import Reach, least, next_section
from memctl.infra.log.spaces import space_id
from memctl.infra.readmodels import generations
from memctl.infra.readmodels.generations import Lease, LeaseLost
from memctl.projections import layers
from memctl.workers.folding.drain import Drainer
from memctl.workers.folding.stage1 import Stage1
from memctl.workers.folding.stage2 import Stage2
from memctl.workers.rebuild.replay import replay

DYING = """
CREATE FUNCTION die() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_terminate_backend(pg_backend_pid());
    PERFORM pg_sleep(60);
    RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER dying_append AFTER INSERT ON memctl.events DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
    WHEN (current_setting('test.die', true) = 'on') EXECUTE FUNCTION die();
CREATE CONSTRAINT TRIGGER dying_fold AFTER UPDATE ON memctl.offsets DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
    WHEN (current_setting('test.die', true) = 'on') EXECUTE FUNCTION die();
"""
"""A session that said `SET test.die = 'on'` is ended by its COMMIT, before anything is committed."""

SHARDS = 3
WRITERS = 2
WORKERS = 2
SPACES = (1, 2)
"""The writers whose transactions stay open append to one each."""

Content = tuple[str, int, str, bytes]


@functools.cache
def pool() -> list[NewEvent]:
    """Two sessions, and another telling of some of their texts."""
    told = [*example(0), *example(1)]
    return [*told, *(again for event in told if (again := told_otherwise(event)) is not None)]


def told_otherwise(event: NewEvent) -> NewEvent | None:
    if not isinstance(event.payload, PromptSubmitted | ResponseReceived):
        return None
    return msgspec.structs.replace(event, payload=msgspec.structs.replace(event.payload, text="as told by another"))


def content_of(event: NewEvent) -> Content:
    return type_of(event.payload).name, event.occurred_at, event.location, encode_payload(event)


class Model:
    """What was acknowledged, and what an append has to answer."""

    def __init__(self) -> None:
        self.log: dict[Position, tuple[int, NewEvent]] = {}
        self._first: dict[tuple[int, str], Position] = {}
        self._contents: dict[tuple[int, str], dict[Content, Position]] = {}

    def expected(self, space: int, events: list[NewEvent]) -> list[str]:
        contents = {key: list(known) for key, known in self._contents.items()}
        statuses = []
        for event in events:
            known = contents.setdefault((space, event.dedupe_key), [])
            content = content_of(event)
            statuses.append("duplicate" if content in known else "variant" if known else "new")
            if content not in known:
                known.append(content)
        return statuses

    def acknowledge(self, space: int, events: list[NewEvent], answers: list[Appended]) -> None:
        for event, answer in zip(events, answers, strict=True):
            key = (space, event.dedupe_key)
            if answer.status == "duplicate":
                assert answer.position == self._contents[key][content_of(event)]
                continue
            assert answer.position not in self.log
            self.log[answer.position] = space, event
            self._first.setdefault(key, answer.position)
            self._contents.setdefault(key, {})[content_of(event)] = answer.position

    def ids(self) -> dict[Position, tuple[str, bool]]:
        """By position: the dedupe key's event id, and whether it is the first telling."""
        return {
            at: (str(event_id_of(space, event.dedupe_key)), self._first[space, event.dedupe_key] == at)
            for at, (space, event) in self.log.items()
        }


class Writer:
    """A connection with a transaction that is open across steps. It writes a session that nobody else writes."""

    def __init__(self, url: str, number: int) -> None:
        self.url = url
        self.space = SPACES[number]
        self.events = example(10 + number)
        self.committed = 0
        self.written: list[tuple[NewEvent, Appended]] = []
        self.connection = connect(url, autocommit=False)

    def write(self, count: int) -> None:
        start = self.committed + len(self.written)
        events = self.events[start : start + count]
        answers = append(self.connection, self.space, events)
        assert [answer.status for answer in answers] == ["new"] * len(events)
        self.written += zip(events, answers, strict=True)

    def ended(self) -> list[tuple[NewEvent, Appended]]:
        written, self.written = self.written, []
        return written


class Worker:
    """Folds a batch a step, and may be stopped between any two of them."""

    def __init__(self, url: str, batch: int) -> None:
        self.url = url
        self.stage1, self.stage2 = Stage1(batch), Stage2(batch)
        self.connection = connect(url)
        self.stage = 0
        self.lease: Lease | None = None

    def fold(self) -> None:
        assert self.lease is not None
        if self.stage == 1:
            self.lease = self.stage1.drain_batch(self.connection, self.lease, marks(self.connection))
        else:
            live = generations.live(self.connection)
            upto = generations.may_read(
                self.lease.shard, generations.offsets(self.connection, live.stage1, live.stage2)
            )
            self.lease = self.stage2.drain_batch(self.connection, self.lease, live.stage1, upto)


class Engine(RuleBasedStateMachine):
    def __init__(self, server: str, template: str) -> None:
        super().__init__()
        self.server, self.template = server, template
        self._made = servers.fresh_database(server, template=template)
        self.url = self._made.__enter__()
        self.log = connect(self.url)
        self.model = Model()
        self.ongoing = [example(2), example(3)]
        self.writers = [Writer(self.url, number) for number in range(WRITERS)]
        self.workers = [Worker(self.url, batch) for batch in (1, 7)]
        self.drainers = [Drainer(self.url, batch) for batch in (5, 2000)]
        self.holders: dict[tuple[int, int], tuple[Worker, int]] = {}
        """Generation and shard: who took its lease last, and the epoch it got."""
        self.running: set[tuple[int, int]] = set()
        """Leases that have not run out."""
        self.reached = Reach(Position(0))
        self.offsets: dict[tuple[int, int], Reach] = {}
        self.lowest = (Reach(Position(0)), Reach(Position(0)))
        self.replays = 0

    # appending

    @rule(space=st.sampled_from(SPACES), start=st.integers(0, 79), count=st.integers(1, 12), backwards=st.booleans())
    def append(self, space: int, start: int, count: int, backwards: bool) -> None:
        events = (pool() * 2)[start : start + count]
        events = events[::-1] if backwards else events
        expected = self.model.expected(space, events)
        answers = append(self.log, space, events)
        assert [answer.status for answer in answers] == expected
        assert all(answer.position > self.reached.of(space) for answer in answers if answer.status != "duplicate")
        self.model.acknowledge(space, events, answers)

    @rule(number=st.integers(0, 1), count=st.integers(1, 6))
    def go_on(self, number: int, count: int) -> None:
        """A session as it is: its events come in order, and nobody else tells of it. One in each space."""
        events, self.ongoing[number] = self.ongoing[number][:count], self.ongoing[number][count:]
        answers = append(self.log, SPACES[number], events)
        assert [answer.status for answer in answers] == ["new"] * len(events)
        self.model.acknowledge(SPACES[number], events, answers)

    @rule(start=st.integers(0, 79), count=st.integers(1, 5))
    def crash_at_the_commit_of_an_append(self, start: int, count: int) -> None:
        events = (pool() * 2)[start : start + count]
        if set(self.model.expected(1, events)) == {"duplicate"}:
            return  # nothing would be inserted
        with connect(self.url) as connection:
            connection.execute("SET test.die = 'on'")
            with pytest.raises(psycopg.errors.AdminShutdown):
                append(connection, 1, events)

    @rule(number=st.integers(0, WRITERS - 1), count=st.integers(1, 4))
    def write(self, number: int, count: int) -> None:
        self.writers[number].write(count)

    @rule(number=st.integers(0, WRITERS - 1))
    def commit(self, number: int) -> None:
        writer = self.writers[number]
        writer.connection.commit()
        written = writer.ended()
        writer.committed += len(written)
        self.model.acknowledge(writer.space, [event for event, _ in written], [answer for _, answer in written])

    @rule(number=st.integers(0, WRITERS - 1))
    def roll_back(self, number: int) -> None:
        self.writers[number].connection.rollback()
        self.writers[number].ended()

    @rule(number=st.integers(0, WRITERS - 1))
    def crash_between_append_and_commit(self, number: int) -> None:
        writer = self.writers[number]
        self.end_backend(writer.connection)
        writer.ended()
        writer.connection = connect(self.url, autocommit=False)

    # the mark

    @rule()
    def move_mark(self) -> None:
        move_mark(self.log, patience_s=0)
        for writer in self.writers:
            if not writer.written:
                assert mark(self.log, writer.space) == last_position(self.log)

    # folding

    @rule(
        number=st.integers(0, WORKERS - 1),
        stage=st.integers(1, 2),
        shard=st.integers(0, layers.shards_of(SHARDS) - 1),
        batches=st.integers(0, 4),
    )
    def fold(self, number: int, stage: int, shard: int, batches: int) -> None:
        worker = self.workers[number]
        if worker.lease is None:
            self.take(worker, stage, shard)
        for _ in range(batches):
            if worker.lease is None:
                return
            if self.is_holder(worker):
                worker.fold()
                self.running.add((worker.lease.generation, worker.lease.shard))
            else:
                self.is_refused(worker)

    def take(self, worker: Worker, stage: int, shard: int) -> None:
        live = generations.live(self.log)
        where = (live.stage1, shard % SHARDS) if stage == 1 else (live.stage2, shard)
        lease = generations.acquire(worker.connection, *where, owner=f"worker {id(worker)}")
        assert (lease is None) == (where in self.running)
        if lease is not None:
            worker.stage, worker.lease = stage, lease
            self.holders[where] = (worker, lease.epoch)
            self.running.add(where)

    @rule()
    def let_all_leases_run_out(self) -> None:
        self.log.execute("UPDATE memctl.offsets SET lease_until = '-infinity' WHERE lease_until IS NOT NULL")
        self.running.clear()

    @rule(number=st.integers(0, WORKERS - 1), forgets=st.booleans())
    def crash_between_fold_and_commit(self, number: int, forgets: bool) -> None:
        worker = self.workers[number]
        if worker.lease is None or not self.is_holder(worker):
            return
        worker.connection.execute("SET test.die = 'on'")
        with self.unchanged(), pytest.raises(psycopg.errors.AdminShutdown):
            worker.fold()
        worker.connection.close()
        worker.connection = connect(self.url)
        worker.lease = None
        if forgets:  # the process went with its connection
            worker.stage1, worker.stage2 = Stage1(3), Stage2(3)

    @rule(number=st.integers(0, WORKERS - 1))
    def let_go(self, number: int) -> None:
        worker = self.workers[number]
        if worker.lease is None:
            return
        if self.is_holder(worker):
            self.running.discard((worker.lease.generation, worker.lease.shard))
        generations.release(worker.connection, worker.lease)
        worker.lease = None

    @rule(number=st.integers(0, 1))
    def drain(self, number: int) -> None:
        """One of two drainers goes through all shards: what it kept in memory since its last turn may be old."""
        live = generations.live(self.log)
        of_rows = range(layers.shards_of(SHARDS))
        for stage, shard in (*((1, shard) for shard in range(SHARDS)), *((2, shard) for shard in of_rows)):
            where = (live.stage1 if stage == 1 else live.stage2, shard)
            offsets = generations.offsets(self.log, live.stage1, live.stage2)
            before = {(offset.generation, offset.shard): offset.reach for offset in offsets}
            moved = self.drainers[number].drain(stage, shard, budget_s=60)
            readable = marks(self.log) if stage == 1 else generations.may_read(shard, offsets)
            # Who has nothing to read takes no lease: whoever held it last may go on, also when it has run out.
            assert moved == (where not in self.running and next_section(before[where], readable) is not None)
            if moved:
                self.holders.pop(where, None)

    @precondition(lambda self: self.replays < 1)
    @rule()
    def replay(self) -> None:
        self.replays += 1
        self.let_all_leases_run_out()
        assert replay(self.url, None, verify=True).equal
        self.holders.clear()

    # what holds after each step

    @invariant()
    def the_log_holds_what_was_acknowledged(self) -> None:
        found = self.log.execute(
            "SELECT position, coalesce(variant_of, event_id)::text, variant_of IS NULL FROM memctl.events"
        )
        assert {Position(row[0]): (row[1], row[2]) for row in found} == self.model.ids()

    @invariant()
    def the_mark_is_below_every_open_writer_and_does_not_go_back(self) -> None:
        reached = marks(self.log)
        assert reached.covers(self.reached)
        for writer in self.writers:
            assert all(reached.of(writer.space) < answer.position for _, answer in writer.written)
        self.reached = reached

    @invariant()
    def offsets_stay_behind_what_they_read_and_do_not_go_back(self) -> None:
        live = generations.live(self.log)
        found = generations.offsets(self.log, live.stage1, live.stage2)
        for offset in found:
            assert offset.reach.covers(self.offsets.get((offset.generation, offset.shard), Reach(Position(0))))
            self.offsets[offset.generation, offset.shard] = offset.reach
            assert marks(self.log).covers(offset.reach)
        one = least(offset.reach for offset in found if offset.stage == 1)
        two = least(offset.reach for offset in found if offset.stage == 2)
        assert one.covers(two)
        for offset in found:
            assert offset.stage == 1 or generations.may_read(offset.shard, found).covers(offset.reach)
        assert one.covers(self.lowest[0])
        assert two.covers(self.lowest[1])
        self.lowest = (one, two)

    def teardown(self) -> None:
        try:
            self.the_read_models_are_those_of_the_model()
        finally:
            for held in (*self.writers, *self.workers, *self.drainers):
                (held if isinstance(held, Drainer) else held.connection).close()
            self.log.close()
            self._made.__exit__(None, None, None)

    def the_read_models_are_those_of_the_model(self) -> None:
        for writer in self.writers:
            writer.connection.rollback()
            writer.ended()
        self.let_all_leases_run_out()
        catch_up(self.drainers[0])
        with servers.fresh_database(self.server, template=self.template) as url, connect(url) as other:
            for space in SPACES:
                append(other, space, [event for _, (of, event) in sorted(self.model.log.items()) if of == space])
            fresh = Drainer(url)
            catch_up(fresh)
            fresh.close()
            assert digests(self.log) == digests(other)

    # means

    def is_holder(self, worker: Worker) -> bool:
        assert worker.lease is not None
        where = (worker.lease.generation, worker.lease.shard)
        return self.holders.get(where) == (worker, worker.lease.epoch)

    def is_refused(self, worker: Worker) -> None:
        """A worker whose lease another took writes nothing. (What it reads may be gone by then.)"""
        with self.unchanged(), pytest.raises((LeaseLost, psycopg.errors.UndefinedTable)):
            worker.fold()
        worker.lease = None

    @contextmanager
    def unchanged(self) -> Iterator[None]:
        before = self.state()
        yield
        assert self.state() == before

    def state(self) -> object:
        live = generations.live(self.log)
        return live, generations.offsets(self.log, live.stage1, live.stage2), digests(self.log)

    def end_backend(self, connection: Connection) -> None:
        pid = [connection.info.backend_pid]
        self.log.execute("SELECT pg_terminate_backend(%s)", pid)
        alive = "SELECT 1 FROM pg_stat_activity WHERE pid = %s"
        until(lambda: self.log.execute(alive, pid).fetchone() is None, "the end of a backend")
        connection.close()


@pytest.fixture(scope="module")
def template(postgres_server: str, migrated_template: str) -> Iterator[str]:
    """Name of a database in which sessions die when told to, with read models and no event."""
    with servers.fresh_database(postgres_server, template=migrated_template) as url:
        with connect(url) as connection:
            connection.execute(DYING)
            generations.ensure_live(connection, SHARDS)
            assert space_id(connection, "another", SPACES[1]) == SPACES[1]
        yield urlsplit(url).path.lstrip("/")


def test_a_lease_that_ran_out_holds_as_long_as_nobody_takes_it(
    postgres_server: str, template: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A drainer that has nothing to read takes none. (The machine found it, which had taken that one for lost.)"""
    monkeypatch.setattr(generations, "LEASE", timedelta(hours=1))
    machine = Engine(postgres_server, template)
    machine.go_on(number=0, count=6)
    machine.move_mark()
    machine.fold(number=0, stage=1, shard=0, batches=20)
    machine.let_all_leases_run_out()
    machine.drain(number=0)
    machine.fold(number=0, stage=1, shard=0, batches=1)
    machine.teardown()


def test_whatever_happens_in_whatever_order_the_log_and_the_read_models_agree_with_the_model(
    postgres_server: str, template: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(generations, "LEASE", timedelta(hours=1))  # leases run out when the machine says so
    run_state_machine_as_test(
        functools.partial(Engine, postgres_server, template),
        settings=settings(
            examples(8),
            stateful_step_count=40,
            deadline=None,
            phases=[Phase.explicit, Phase.generate],
            suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
        ),
    )
