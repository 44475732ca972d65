"""Postgres is shut down at once, Redis hangs, jobs come twice, late or never, clocks jump: nothing lost or doubled."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest
import redis
import servers
from draining import catch_up
from histories import digests, drained, example
from processes import memctl
from servers import start_valkey
from vector_server import vector_server_process
from waiting import until
from working import caught_up, progress, prove

from memctl.domain.events.observations import event_id_of
from memctl.infra import queue
from memctl.infra.database import Connection, DatabaseUnavailable, connect
from memctl.infra.log.append import append
from memctl.infra.log.mark import last_position
from memctl.infra.log.migrate import migrate
from memctl.infra.log.spaces import installation
from memctl.infra.readmodels import generations
from memctl.workers.folding.drain import Drainer

HISTORY = [event for number in range(7) for event in example(number, day=number + 2)]


def test_postgres_shut_down_at_once_again_and_again_loses_nothing_and_doubles_nothing(
    environment_for: Callable[[str], dict[str, str]], tmp_path: Path
) -> None:
    kept = 0
    crashing = threading.Event()

    def write(url: str) -> None:
        """Append one event a commit; what was not acknowledged is sent again."""
        nonlocal kept
        while kept < len(HISTORY):
            with contextlib.suppress(psycopg.OperationalError, DatabaseUnavailable), connect(url) as connection:
                while kept < len(HISTORY):
                    append(connection, 1, [HISTORY[kept]])
                    kept += 1
            crashing.wait(0.01)

    with servers.Mortal(tmp_path / "pg") as postgres:
        migrate(postgres.url)
        with connect(postgres.url) as log:
            generations.ensure_live(log, 4)
        environment = environment_for(postgres.url)
        with memctl("worker", environment=environment, log=tmp_path / "worker.log"):
            writer = threading.Thread(target=write, args=[postgres.url], daemon=True)
            writer.start()
            for share in (0.3, 0.6):
                with connect(postgres.url) as log:
                    at = progress(log)
                    until(lambda at=at, log=log: progress(log) > at)  # type: ignore[misc]
                until(lambda share=share: kept > share * len(HISTORY))  # type: ignore[misc]
                postgres.crash()
                postgres.start()
            writer.join(60)
            with connect(postgres.url) as log:
                until(lambda: caught_up(log))
        with connect(postgres.url) as log:
            found = [row[0] for row in log.execute("SELECT event_id FROM memctl.events ORDER BY position")]
            assert found == [event_id_of(1, event.dedupe_key) for event in HISTORY]
            prove(log, environment)


def test_a_queue_that_hangs_and_then_comes_back_empty_costs_latency_and_nothing_else(
    environment: dict[str, str], log: Connection, tmp_path: Path
) -> None:
    half = len(HISTORY) // 2
    with start_valkey(tmp_path / "valkey") as valkey:
        hanging = {**environment, "MEMCTL_REDIS_URL": valkey.url}
        with memctl("worker", environment=hanging, log=tmp_path / "worker.log"):
            append(log, 1, HISTORY[:30])
            until(lambda: caught_up(log))
            os.kill(valkey.server.pid, signal.SIGSTOP)
            append(log, 1, HISTORY[30:half])
            until(lambda: caught_up(log))
            os.kill(valkey.server.pid, signal.SIGCONT)
            with contextlib.closing(redis.Redis.from_url(valkey.url)) as client:
                client.flushall()
            append(log, 1, HISTORY[half:])
            until(lambda: caught_up(log))
    prove(log, environment)


def test_a_vector_server_that_hangs_and_is_killed_keeps_nothing_else_waiting_and_gets_every_point(
    environment: dict[str, str], log: Connection, tmp_path: Path
) -> None:
    def folded() -> bool:
        return generations.lowest_offset(log, generations.live(log).stage2) >= last_position(log)

    with vector_server_process(tmp_path / "own") as server:
        assert server.process is not None
        hanging = {**environment, "MEMCTL_QDRANT_URL": server.url, "MEMCTL_QDRANT_API_KEY": server.token}
        with memctl("worker", environment=hanging, log=tmp_path / "worker.log"):
            append(log, 1, HISTORY[:30])
            until(lambda: caught_up(log))
            server.process.send_signal(signal.SIGSTOP)
            append(log, 1, HISTORY[30:])
            until(folded)
            assert not caught_up(log), "nothing was written that was not answered"
            server.kill()
            server.start(urlsplit(server.url).port or 0)
            until(lambda: caught_up(log))
        prove(log, hanging)


def test_jobs_that_come_twice_in_any_order_or_for_nothing_change_no_row(
    environment: dict[str, str], log: Connection, redis_url: str, tmp_path: Path
) -> None:
    luck = random.Random(5)
    client = redis.Redis.from_url(redis_url)
    jobs = queue.queue(client, installation(log))
    for start in range(0, len(HISTORY), 60):
        append(log, 1, HISTORY[start : start + 60])
        wanted = [(stage, shard) for stage in (1, 2) for shard in (0, 1, 2, 3, 99)] * 3
        for stage, shard in luck.sample(wanted, len(wanted)):
            jobs.enqueue_call(queue.DRAIN, args=(stage, shard), result_ttl=0, failure_ttl=60)
    with (
        memctl("worker", environment=environment, log=tmp_path / "one.log"),
        memctl("worker", environment=environment, log=tmp_path / "two.log"),
    ):
        until(lambda: caught_up(log) and jobs.count == 0)
    assert jobs.failed_job_registry.count == 0
    for output in ("one.log", "two.log"):
        assert "cannot go on" not in (tmp_path / output).read_text()
    client.close()
    prove(log, environment)


def test_jobs_dealt_to_two_workers_in_any_order_are_each_folded_on_what_the_other_left(
    database_url: str, log: Connection, postgres_server: str, migrated_template: str
) -> None:
    """Both keep the states of sessions and rows in memory; events of each session go now to one, now to the other."""
    luck = random.Random(5)
    workers = [Drainer(database_url, 40), Drainer(database_url, 40)]
    told = [event for at_once in zip(*(example(number) for number in range(4)), strict=True) for event in at_once]
    for start in range(0, len(told), 20):
        append(log, 1, told[start : start + 20])
        jobs = [(stage, shard) for stage in (1, 2) for shard in (0, 1, 2, 3, 99)] * 2
        for stage, shard in luck.sample(jobs, len(jobs)):
            luck.choice(workers).drain(stage, shard)
    catch_up(workers[0])
    for worker in workers:
        worker.close()
    with servers.fresh_database(postgres_server, template=migrated_template) as url, connect(url) as fresh:
        generations.ensure_live(fresh, 1)
        append(fresh, 1, told)
        drained(url)
        assert digests(log) == digests(fresh)


@pytest.mark.parametrize("jump", ["-1 day", "1 day"])
def test_a_clock_that_jumps_neither_blocks_a_shard_nor_lets_two_move_it(
    database_url: str, log: Connection, jump: str
) -> None:
    """A lease was taken, then the clock jumps: as if the lease had been given at another time."""
    append(log, 1, HISTORY[:30])
    live = generations.live(log)
    with connect(database_url) as other:
        leases = [generations.acquire(other, live.stage1, shard, "before the jump") for shard in range(4)]
        log.execute("UPDATE memctl.offsets SET lease_until = lease_until + %s::interval", [jump])
        drainer = Drainer(database_url)
        for shard in range(4):
            drainer.drain(1, shard)
        drainer.close()
        assert progress(log) > 0
        for lease in leases:
            assert lease is not None
            with pytest.raises(generations.LeaseLost):
                generations.advance(other, lease, lease.position)
