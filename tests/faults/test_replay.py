"""A replay that is killed, again and again, while events arrive: it goes on where it was, and ends in the same rows."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest
from forking import Ran, ran
from histories import digests, drained, example
from soak import FACTOR
from waiting import until

from memctl.infra.database import Connection, connect
from memctl.infra.log.append import append
from memctl.infra.readmodels import rebuilds

REPLAY = """
import os, signal, sys
from memctl.workers.rebuild import build as rebuild; from memctl.workers.rebuild import replay
rebuild.EVENTS, rebuild.SOURCES = 40, 10
url, left, processes = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
def told(what, done, of):
    global left
    left -= 1
    if left == 0:
        os.kill(os.getpid(), signal.SIGKILL)
print(replay.replay(url, None, verify=True, processes=processes, progress=told).equal)
"""


STRIDE = 3 if FACTOR else 6


@pytest.fixture
def filled(filled_url: str) -> Iterator[tuple[str, Connection]]:
    with connect(filled_url) as connection:
        yield filled_url, connection


def replayed(url: str, kill_at: int, processes: int) -> Ran:
    return ran(url, str(kill_at), str(processes), environment=os.environ, script=("-c", REPLAY))


def others(connection: Connection) -> list[str]:
    rows = connection.execute(
        "SELECT application_name FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
        " AND application_name LIKE 'memctl replay%'"
    )
    return [row[0] for row in rows]


def test_a_replay_killed_at_every_turn_goes_on_and_ends_in_the_same_rows(filled: tuple[str, Connection]) -> None:
    url, connection = filled
    rebuilt = set()
    for turn in range(1, 40):
        done = replayed(url, kill_at=STRIDE * turn - STRIDE + 1, processes=2)
        # Its helpers end with it, and so does all that it held in the database.
        until(lambda: not others(connection), "the end of what it held")
        [last] = rebuilds.progress(connection)
        rebuilt.add(last.rebuild)
        if done.code == 0:
            break
        assert done.code == -signal.SIGKILL, done.said
        assert last.status == "stopped"
        if turn % 3 == 0:
            append(connection, 1, example(10 + turn, day=20))
            drained(url)
    assert done.out.split() == ["True"], done.said
    assert turn > 2
    assert len(rebuilt) == 1  # it was one rebuild all the time
    now = digests(connection)
    assert replayed(url, kill_at=0, processes=1).out.split() == ["True"]
    assert digests(connection) == now


def test_a_helper_that_is_killed_or_stopped_does_not_stop_the_replay(filled: tuple[str, Connection]) -> None:
    url, connection = filled
    command = [sys.executable, "-c", REPLAY, url, "0", "3"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as leader:
        until(lambda: leader.poll() is not None or children(leader.pid), "a helper")
        for child in children(leader.pid)[:1]:
            os.kill(child, signal.SIGKILL)
        out, _ = leader.communicate(timeout=120)
    assert out.split() == ["True"]
    until(lambda: not others(connection), "the end of the helpers")


def children(pid: int) -> list[int]:
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat") as stat:
                    if int(stat.read().rsplit(")", 1)[1].split()[1]) == pid:
                        found.append(int(name))
            except OSError:
                continue
    return found


def test_what_a_crash_of_the_database_emptied_is_not_believed_to_be_built(filled: tuple[str, Connection]) -> None:
    url, connection = filled
    before = digests(connection)
    assert replayed(url, kill_at=6, processes=1).code == -signal.SIGKILL
    until(lambda: not others(connection), "the end of what it held")
    [stopped] = rebuilds.progress(connection)
    unlogged = connection.execute(
        "SELECT 'memctl.' || relname FROM pg_class WHERE relpersistence = 'u' AND relkind = 'r'"
    ).fetchall()
    assert ("memctl.rebuild_tasks",) in unlogged
    assert (f"memctl.routes_g{stopped.generations[1]}",) in unlogged  # while stage 1 was finished, and is kept
    for (table,) in unlogged:
        connection.execute(f"TRUNCATE {table}")  # as a crash does it
    assert replayed(url, kill_at=0, processes=1).out.split() == ["True"]
    assert digests(connection) == before
    assert [p.status for p in rebuilds.progress(connection, 5)] == ["done", "dropped"]
