"""Workers, the queue and the vector server are killed, stopped and flushed: nothing is lost, nothing counted twice."""

from __future__ import annotations

import random
import signal
import subprocess
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import redis
from events import observed, until
from histories import example
from processes import memctl
from soak import FACTOR
from working import caught_up, progress, prove, run_out

from memctl.domain.event import NewEvent
from memctl.domain.observations import ToolCalled, ToolReturned
from memctl.infra import generations
from memctl.infra.database import Connection, connect
from memctl.infra.log.append import append

HISTORY = [event for number in range(12 if FACTOR else 8) for event in example(number, day=number + 2)]


def test_workers_killed_again_and_again_end_in_the_same_rows(
    environment: dict[str, str], log: Connection, tmp_path: Path
) -> None:
    append(log, 1, HISTORY)
    output = tmp_path / "worker.log"
    for _ in range(5 if FACTOR else 3):
        at = progress(log)
        with memctl("worker", environment=environment, log=output) as worker:
            until(lambda at=at: progress(log) > at or caught_up(log), within_s=60)  # type: ignore[misc]
            worker.send_signal(signal.SIGKILL)
            worker.wait(10)
        run_out(log)
    with memctl("worker", environment=environment, log=output):
        until(lambda: caught_up(log), within_s=90)
    prove(log, environment)


def test_a_worker_stopped_past_its_lease_and_continued_changes_nothing(
    environment: dict[str, str], log: Connection, tmp_path: Path
) -> None:
    append(log, 1, HISTORY)
    with memctl("worker", environment=environment, log=tmp_path / "slow.log") as slow:
        until(lambda: stopped_with_a_lease(log, slow), within_s=60)
        at = progress(log)
        run_out(log)
        with memctl("worker", environment=environment, log=tmp_path / "other.log"):
            until(lambda: progress(log) > at, within_s=60)
            slow.send_signal(signal.SIGCONT)
            until(lambda: caught_up(log), within_s=90)
    prove(log, environment)


def stopped_with_a_lease(connection: Connection, worker: subprocess.Popen[bytes]) -> bool:
    """Stop a worker; True if it holds a lease just then, between two transactions. Otherwise it goes on."""
    worker.send_signal(signal.SIGSTOP)
    holds = connection.execute("SELECT 1 FROM memctl.offsets WHERE lease_until > clock_timestamp()").fetchone()
    busy = connection.execute(
        "SELECT 1 FROM pg_stat_activity WHERE application_name LIKE 'memctl worker%' AND state <> 'idle'"
        " AND datname = current_database()"
    ).fetchone()
    if holds is not None and busy is None:
        return True
    worker.send_signal(signal.SIGCONT)
    return False


def test_a_flushed_queue_costs_latency_and_nothing_else(
    environment: dict[str, str], log: Connection, redis_url: str, tmp_path: Path
) -> None:
    queue = redis.Redis.from_url(redis_url)
    with memctl("worker", environment=environment, log=tmp_path / "worker.log"):
        for start in range(0, len(HISTORY), 60):
            append(log, 1, HISTORY[start : start + 60])
            queue.flushdb()
        until(lambda: caught_up(log), within_s=90)
    prove(log, environment)


def test_without_a_queue_the_sweeper_drains(environment: dict[str, str], log: Connection, tmp_path: Path) -> None:
    append(log, 1, HISTORY)
    nowhere = {**environment, "MEMCTL_REDIS_URL": f"unix://{tmp_path}/nobody.sock"}
    with memctl("worker", environment=nowhere, log=tmp_path / "worker.log"):
        until(lambda: caught_up(log), within_s=90)
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
        until(lambda: caught_up(log), within_s=90)
        prove(log, environment)


WRITERS, TRANSACTIONS, PAIRS = 12, 420 if FACTOR else 60, 10


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


def connections(log: Connection) -> int:
    row = log.execute(
        "SELECT count(*) FROM pg_stat_activity"
        " WHERE datname = current_database() AND application_name = 'memctl worker'"
    ).fetchone()
    assert row is not None
    return int(row[0])


def test_twelve_writers_with_rollbacks_and_two_workers_skip_no_event(
    environment: dict[str, str], log: Connection, tmp_path: Path
) -> None:
    """14,400 events are written (in a soak 100,800), a tenth of them rolled back, in whatever order they commit."""

    def write(writer: int) -> int:
        luck, kept = random.Random(writer), 0
        with connect(environment["MEMCTL_DATABASE_URL"], autocommit=False) as mine:
            for turn in range(TRANSACTIONS):
                events = [e for pair in range(PAIRS) for e in tool_use(writer, turn, pair)]
                append(mine, 1, events)
                if luck.random() < 0.1:
                    mine.rollback()
                else:
                    mine.commit()
                    kept += PAIRS
        return kept

    fast = {**environment, "MEMCTL_READ_BATCH": "2000"}
    with (
        memctl("worker", environment=fast, log=tmp_path / "one.log"),
        memctl("worker", environment=fast, log=tmp_path / "two.log"),
    ):
        # Each has a connection to drain with and one of its sweeper's: else all is written before anybody reads.
        until(lambda: connections(log) >= 4, within_s=60)
        with ThreadPoolExecutor(WRITERS) as pool:
            kept = sum(pool.map(write, range(WRITERS)))
        until(lambda: caught_up(log), within_s=240)
    live = generations.live(log)
    for table, field in ((f"sessions_g{live.stage1}", "tool_calls"), (f"stats_g{live.stage1}", "tool_uses")):
        counted = log.execute(f"SELECT sum((row->>'{field}')::int) FROM memctl.{table}").fetchone()  # type: ignore[arg-type]
        assert counted == (kept,)
