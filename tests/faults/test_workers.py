"""Workers, the queue and the vector server are killed, stopped and flushed: nothing is lost, nothing counted twice."""

from __future__ import annotations

import os
import random
import signal
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import redis
from events import observed
from forking import Forked
from histories import drained, example
from processes import children, memctl
from soak import FACTOR
from waiting import until
from working import caught_up, progress, prove, run_out

from memctl.domain.events.event import NewEvent
from memctl.domain.events.observations import ToolCalled, ToolReturned
from memctl.infra.database import Connection, connect
from memctl.infra.log.append import append
from memctl.infra.readmodels import generations
from memctl.workers.folding.drain import Drainer

HISTORY = [event for number in range(12 if FACTOR else 8) for event in example(number, day=number + 2)]


def test_workers_killed_again_and_again_end_in_the_same_rows(
    environment: dict[str, str], log: Connection, tmp_path: Path
) -> None:
    append(log, 1, HISTORY)
    output = tmp_path / "worker.log"
    for _ in range(5 if FACTOR else 3):
        at = progress(log)
        with memctl("worker", environment=environment, log=output) as worker:
            until(lambda at=at: progress(log) > at or caught_up(log))  # type: ignore[misc]
            worker.send_signal(signal.SIGKILL)
            worker.wait(10)
        run_out(log)
    with memctl("worker", environment=environment, log=output):
        until(lambda: caught_up(log))
    prove(log, environment)


def test_a_worker_stopped_past_its_lease_and_continued_changes_nothing(
    environment: dict[str, str], log: Connection, tmp_path: Path
) -> None:
    append(log, 1, HISTORY)
    with memctl("worker", environment=environment, log=tmp_path / "slow.log") as slow:
        until(lambda: stopped_with_a_lease(log, slow))
        at = progress(log)
        run_out(log)
        with memctl("worker", environment=environment, log=tmp_path / "other.log"):
            until(lambda: progress(log) > at)
            os.kill(children(slow.pid)[0], signal.SIGCONT)
            until(lambda: caught_up(log))
    prove(log, environment)


def stopped_with_a_lease(connection: Connection, worker: Forked) -> bool:
    """Stop what works for a worker; True if it holds a lease just then, between two transactions. Otherwise it goes
    on."""
    if not (forked := children(worker.pid)):
        return False
    os.kill(forked[0], signal.SIGSTOP)
    holds = connection.execute("SELECT 1 FROM memctl.offsets WHERE lease_until > clock_timestamp()").fetchone()
    busy = connection.execute(
        "SELECT 1 FROM pg_stat_activity WHERE application_name LIKE 'memctl worker%' AND state <> 'idle'"
        " AND datname = current_database()"
    ).fetchone()
    if holds is not None and busy is None:
        return True
    os.kill(forked[0], signal.SIGCONT)
    return False


def test_a_flushed_queue_costs_latency_and_nothing_else(
    environment: dict[str, str], log: Connection, redis_url: str, tmp_path: Path
) -> None:
    queue = redis.Redis.from_url(redis_url)
    with memctl("worker", environment=environment, log=tmp_path / "worker.log"):
        for start in range(0, len(HISTORY), 60):
            append(log, 1, HISTORY[start : start + 60])
            queue.flushdb()
        until(lambda: caught_up(log))
    prove(log, environment)


def test_without_a_queue_the_sweeper_drains(environment: dict[str, str], log: Connection, tmp_path: Path) -> None:
    append(log, 1, HISTORY)
    nowhere = {**environment, "MEMCTL_REDIS_URL": f"unix://{tmp_path}/nobody.sock"}
    with memctl("worker", environment=nowhere, log=tmp_path / "worker.log"):
        until(lambda: caught_up(log))
    prove(log, environment)


def test_replay_during_ingest_ends_in_the_same_rows(
    environment: dict[str, str], log: Connection, tmp_path: Path
) -> None:
    append(log, 1, HISTORY[: len(HISTORY) // 4])
    ended = threading.Event()

    def go_on() -> None:
        with connect(environment["MEMCTL_DATABASE_URL"]) as other:
            for event in HISTORY[len(HISTORY) // 4 :]:
                append(other, 1, [event])
        ended.set()

    with memctl("worker", environment=environment, log=tmp_path / "worker.log"):
        writer = threading.Thread(target=go_on)
        writer.start()
        prove(log, environment)
        prove(log, environment)
        writer.join(60)
        assert ended.is_set()
        until(lambda: caught_up(log))
        prove(log, environment)


WRITERS, TRANSACTIONS, PAIRS = 12, 200 if FACTOR else 16, 5


def tool_use(writer: int, turn: int, number: int) -> list[NewEvent]:
    """One of a session that is told in one transaction: what is skipped of it is not folded with what comes later."""
    session, call = f"w{writer}-{turn}", f"call-{writer}-{turn}-{number}"
    asked = ToolCalled(
        line=f"{call}-a", tool="Read", call=call, input={"file_path": f"/home/dana/ledger/{number % 9}.py"}
    )
    got = ToolReturned(line=f"{call}-b", parent=f"{call}-a", call=call, text="1\timport csv")
    return [
        observed(asked, session=session, at=number, actor="agent"),
        observed(got, session=session, at=number, actor="tool"),
    ]


class Rounds:
    """How often each of two workers has looked at all shards: whoever keeps a transaction open can wait for that."""

    def __init__(self) -> None:
        self.ended = threading.Event()
        self._done = [0, 0]
        self._turned = threading.Condition()

    def work(self, worker: int, url: str) -> None:
        drainer = Drainer(url, 100)
        while not self.ended.is_set():
            for stage, shard in drainer.behind():
                drainer.drain(stage, shard)
            with self._turned:
                self._done[worker] += 1
                self._turned.notify_all()
        drainer.close()

    def wait_for_one(self) -> None:
        """Until both have begun a round, and ended it, since now."""
        with self._turned:
            first, second = (done + 2 for done in self._done)
            assert self._turned.wait_for(lambda: self._done[0] >= first and self._done[1] >= second, timeout=60)


def test_twelve_writers_with_rollbacks_and_two_workers_skip_no_event(database_url: str, log: Connection) -> None:
    """A tenth of the transactions is rolled back; as many stay open until both workers have looked for what to read,
    while the other writers go on and take later positions."""
    rounds = Rounds()

    def write(writer: int) -> int:
        luck, kept = random.Random(writer), 0
        with connect(database_url, autocommit=False) as mine:
            for turn in range(TRANSACTIONS):
                append(mine, 1, [e for pair in range(PAIRS) for e in tool_use(writer, turn, pair)])
                fate = luck.random()
                if fate < 0.1:
                    mine.rollback()
                    continue
                if fate > 0.9:
                    rounds.wait_for_one()
                mine.commit()
                kept += PAIRS
        return kept

    with ThreadPoolExecutor(WRITERS + 2) as pool:
        workers = [pool.submit(rounds.work, worker, database_url) for worker in range(2)]
        try:
            kept = sum(pool.map(write, range(WRITERS)))
        finally:
            rounds.ended.set()
        for worker in workers:
            worker.result()
    drained(database_url)
    live = generations.live(log)
    for table, field in ((f"sessions_g{live.stage1}", "tool_calls"), (f"stats_g{live.stage1}", "tool_uses")):
        counted = log.execute(f"SELECT sum((row->>'{field}')::int) FROM memctl.{table}").fetchone()  # type: ignore[arg-type]
        assert counted == (kept,)
