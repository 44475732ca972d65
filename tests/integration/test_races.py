"""Races that were found by attacking the engine, each made certain by locks."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from typing import TypeVar
from uuid import UUID, uuid4

import psycopg
import pytest
from events import id_of
from histories import digests, example
from waiting import until, waits_for_a_lock

from memctl.domain.events.erasure import Scope
from memctl.domain.events.event import stream_hash
from memctl.infra.database import Connection, connect
from memctl.infra.log import erase
from memctl.infra.log.append import append
from memctl.infra.log.mark import mark, move_mark
from memctl.infra.readmodels import generations, rebuilds
from memctl.infra.readmodels import rows as readmodels
from memctl.workers.erasure.erase import erase_round
from memctl.workers.folding.refold import LiveChanged, refold
from memctl.workers.rebuild.replay import replay

T = TypeVar("T")


@pytest.fixture
def shards() -> int:
    return 4


def owners(connection: Connection, generation: int) -> list[str]:
    return [offset.owner or "" for offset in generations.offsets(connection, generation)]


@pytest.mark.filled
def test_a_replay_holds_the_other_leases_while_somebody_locks_the_row_of_one(
    database_url: str, log: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(generations, "LEASE", timedelta(seconds=0.5))
    live = generations.live(log)

    def runs_out() -> datetime:
        query = "SELECT lease_until FROM memctl.offsets WHERE generation = %s AND shard = 0"
        row = log.execute(query, [live.stage2]).fetchone()
        assert row is not None
        found: datetime = row[0]
        return found

    with connect(database_url) as other, connect(database_url) as another, ThreadPoolExecutor(1) as pool:
        with other.transaction():
            other.execute(f"LOCK TABLE memctl.memories_g{live.stage2} IN ACCESS EXCLUSIVE MODE".encode())
            replaying = pool.submit(replay, database_url, None, verify=True, processes=1)
            until(lambda: owners(log, live.stage2)[-1].startswith("replay:"))  # the last that it takes
            with another.transaction():
                another.execute(
                    "SELECT FROM memctl.offsets WHERE generation = %s AND shard = 0 FOR UPDATE", [live.stage1]
                )
                locked = runs_out()
                until(lambda: runs_out() > locked + 2 * generations.LEASE)
                assert generations.acquire(log, live.stage2, 0, "a worker") is None
        assert replaying.result(60).equal
    assert generations.live(log) != live


@pytest.mark.filled
def test_a_refold_folds_nothing_once_other_rows_are_live(database_url: str, log: Connection) -> None:
    live, before = generations.live(log), digests(log)
    stream = example()[0].stream
    held = generations.take(log, live.stage2, 0, "a worker", 5)
    raised: list[BaseException] = []

    def fold_again() -> None:
        with connect(database_url) as other:
            try:
                refold(other, streams=[(1, stream)], rows=[("memories", (1, "any"))])
            except LiveChanged as problem:
                raised.append(problem)

    folding = threading.Thread(target=fold_again)
    folding.start()
    # It knows which rows are live, and has the lease of its shard; the last lease it waits for.
    until(lambda: any(owner.startswith("refold:") for owner in owners(log, live.stage1)))
    with log.transaction():
        end = generations.lowest_offset(log, live.stage1)
        first = generations.create(log, 1, shards=4)
        second = generations.create(log, 2, facts_of=first)
        for generation in (first, second):
            generations.begin_at(log, generation, end)
        generations.switch(log, first, second)
    generations.release(log, held)
    folding.join(30)
    assert not folding.is_alive()
    assert len(raised) == 1
    assert digests(log, live) == before
    assert owners(log, live.stage1) == [""] * 4  # it lets go of what it held


def test_a_lease_that_is_being_moved_is_held_and_nobody_waits_for_it(database_url: str, log: Connection) -> None:
    live = generations.live(log)
    with connect(database_url, autocommit=False) as moving:
        moving.execute("SELECT FROM memctl.offsets WHERE generation = %s AND shard = 1 FOR UPDATE", [live.stage1])
        log.execute("SET lock_timeout = '500ms'")  # who waits for that row fails
        assert generations.acquire(log, live.stage1, 1, "another") is None
        assert generations.acquire(log, live.stage1, 2, "another") is not None
        moving.rollback()
    assert generations.acquire(log, live.stage1, 1, "another") is not None


def test_the_history_of_the_mark_never_runs_backwards(database_url: str, log: Connection) -> None:
    append(log, 1, example())
    here = move_mark(log)
    log.execute("DELETE FROM memctl.mark_history")  # so that either of the two would note where the mark is
    append(log, 1, example(1))

    def behind() -> None:
        with connect(database_url, name="behind") as other:
            other.execute("SELECT memctl.set_mark(%s, '{}')", [here])
            done.set()

    done = threading.Event()
    with connect(database_url, autocommit=False) as ahead:
        ahead.execute("SELECT memctl.set_mark(%s, '{}')", [here + 5])
        moving = threading.Thread(target=behind)
        moving.start()
        until(lambda: done.is_set() or waits_for_a_lock(log, "behind"))
        ahead.commit()
    moving.join(30)
    assert done.is_set()
    history = log.execute("SELECT position FROM memctl.mark_history ORDER BY reached_at").fetchall()
    assert history == [(here + 5,)]
    assert mark(log) == here + 5


@pytest.mark.filled
def test_a_helper_of_other_code_than_its_leader_does_nothing(database_url: str, log: Connection) -> None:
    ended: list[int] = []

    def meanwhile(what: str, done: int, of: int) -> None:
        if ended:
            return
        (rebuild,) = rebuilds.running(log, "replace")
        [(ours,)] = log.execute("SELECT fingerprint FROM memctl.generations WHERE generation = %s", [rebuild.stage2])
        change = "UPDATE memctl.generations SET fingerprint = %s WHERE generation = %s"
        log.execute(change, ["of the leader", rebuild.stage2])
        helper = [sys.executable, "-m", "memctl.workers.rebuild.build", str(rebuild.id), str(os.getpid())]
        environment = {**os.environ, "MEMCTL_DATABASE_URL": database_url}
        ended.append(subprocess.run(helper, env=environment, timeout=60, check=False).returncode)
        log.execute(change, [ours, rebuild.stage2])

    assert replay(database_url, None, processes=1, verify=True, progress=meanwhile).equal
    assert ended == [0]


def test_shards_are_told_alike_by_who_drains_and_who_folds_again() -> None:
    for shards in (1, 2, 3, 7, 16, 256):
        for number in range(500):
            stream = f"session/claude-code/{number}"
            low, high = generations.hashes_of(generations.shard_of(stream, shards), shards)
            assert low <= stream_hash(stream) <= high


def in_a_deadlock(url: str, act: Callable[[Connection], T], first: str, second: str) -> T:
    """What is answered by who waits for the first lock, held by another who then waits for the second one, and whom
    Postgres ends in favour of that other."""
    waits = "SELECT FROM pg_locks JOIN pg_stat_activity USING (pid) WHERE application_name = 'victim' AND NOT granted"
    with (
        ThreadPoolExecutor(1) as pool,
        connect(url, name="victim") as victim,
        connect(url, autocommit=False) as other,
        connect(url) as watching,
    ):
        other.execute(first)
        acting = pool.submit(act, victim)
        until(lambda: watching.execute(waits).fetchone() is not None, "who waits")
        # Postgres looks a second after somebody began to wait: on a busy machine it may end this one.
        with contextlib.suppress(psycopg.errors.DeadlockDetected):
            other.execute(second)
        other.rollback()
        return acting.result(60)


def test_a_generation_is_dropped_though_somebody_is_at_it_still(database_url: str, log: Connection) -> None:
    scratch = generations.create(log, 1, status="scratch")
    tables = sorted(readmodels.tables(1))
    first, second = (f"SELECT FROM memctl.{name}_g{scratch}" for name in (tables[-1], tables[0]))
    in_a_deadlock(database_url, lambda victim: generations.drop_alone(victim, scratch), first, second)
    assert generations.generations(log, "scratch") == []


@pytest.mark.filled
def test_what_is_to_be_forgotten_goes_though_somebody_wants_the_same_in_another_order(
    database_url: str, log: Connection
) -> None:
    delivery = example()[0]
    first = f"SELECT FROM memctl.events WHERE event_id = '{id_of(delivery)}' FOR SHARE"
    second = "SELECT FROM memctl.offsets FOR UPDATE"
    receipt, ids = uuid4(), [UUID(id_of(delivery))]
    erase.begin(log, 1, receipt, Scope(kind="id"), "")
    done = in_a_deadlock(database_url, lambda victim: erase_round(victim, 1, receipt, ids), first, second)
    assert (done.events, done.types.total()) == (1, 1)
    assert replay(database_url, None, verify=True, processes=1).equal
