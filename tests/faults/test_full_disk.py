"""Postgres runs out of disk: what was acknowledged stays, and work goes on once there is room again.

The test begins itself anew in a mount namespace of its own, where it mounts a small disk: whatever becomes of the
test, the disk is gone with it.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest
import servers
from events import observed
from histories import digests
from processes import memctl, signal_all
from waiting import until
from working import caught_up, prove

from memctl.api.write.door import ready_spool
from memctl.domain.events.event import NewEvent
from memctl.domain.events.observations import PromptSubmitted, event_id_of
from memctl.infra.database import DatabaseUnavailable, connect, outage
from memctl.infra.hooks.spool import Delivery, refusals, spool
from memctl.infra.log.append import append
from memctl.infra.log.migrate import migrate
from memctl.infra.readmodels import generations
from memctl.workers.rebuild.replay import replay

INSIDE = "MEMCTL_TEST_SMALL_DISK"
DISK = 220 * 1024 * 1024


@pytest.mark.skipif(INSIDE in os.environ, reason="this is the inside")
@pytest.mark.parametrize("inside", ["test_inside", "test_supervisor_inside", "test_spool_inside"])
def test_a_full_disk_loses_nothing_and_once_there_is_room_work_goes_on(tmp_path: Path, inside: str) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    unshare = ["unshare", "--mount"] if os.geteuid() == 0 else ["unshare", "--mount", "--map-root-user"]
    mount = ["mount", "-t", "tmpfs", "-o", f"size={DISK}", "none", str(disk)]
    tried = subprocess.run([*unshare, *mount], capture_output=True, text=True, check=False)
    if tried.returncode != 0:
        pytest.skip(f"no disk can be mounted here: {tried.stderr.strip()}")
    within = [sys.executable, "-m", "pytest", "-q", "-p", "no:xdist", "-p", "no:cacheprovider", f"{__file__}::{inside}"]
    script = f'{" ".join(mount)} && exec "$@"'
    done = subprocess.run(
        [*unshare, "sh", "-c", script, "sh", *within],
        env={**os.environ, INSIDE: str(disk)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    assert "1 passed" in done.stdout


def long_prompt(number: int) -> NewEvent:
    """20 kB that do not compress, so that the disk fills."""
    payload = PromptSubmitted(line=f"line-{number}", text=f"please keep this: {os.urandom(10_000).hex()}")
    return observed(payload, session=f"s{number % 5}", at=number)


def fill(ballast: Path, *, but: int) -> None:
    """Leave so many bytes of the disk."""
    with ballast.open("wb") as file:
        disk = os.statvfs(ballast)
        os.posix_fallocate(file.fileno(), 0, disk.f_bavail * disk.f_frsize - but)


@pytest.mark.skipif(INSIDE not in os.environ, reason="run by the test above, where a small disk is mounted")
def test_inside(environment_for: Callable[[str], dict[str, str]], tmp_path: Path) -> None:
    disk = Path(os.environ[INSIDE])
    kept: list[NewEvent] = []
    refused: psycopg.Error | None = None

    with servers.Mortal(disk / "pg") as postgres:
        migrate(postgres.url)
        with connect(postgres.url) as log:
            generations.ensure_live(log, 2)
        ballast = disk / "ballast"
        fill(ballast, but=12 * 1024 * 1024)
        environment = environment_for(postgres.url)
        output = tmp_path / "worker.log"
        with memctl("worker", environment=environment, log=output) as worker:
            with connect(postgres.url) as log:
                kept.append(long_prompt(0))
                append(log, 1, kept)
                until(lambda: caught_up(log))
            signal_all(worker, signal.SIGSTOP)  # so that it finds work, and no room for it
            with contextlib.closing(connect(postgres.url)) as writer:
                for number in range(1, 2000):
                    event = long_prompt(number)
                    try:
                        append(writer, 1, [event])
                    except psycopg.OperationalError as problem:
                        refused = problem
                        break
                    kept.append(event)
            assert refused is not None
            assert isinstance(outage(refused), DatabaseUnavailable)
            with contextlib.suppress(DatabaseUnavailable, psycopg.Error), connect(postgres.url) as writer:
                append(writer, 1, [event])
                kept.append(event)
            signal_all(worker, signal.SIGCONT)
            until(lambda: "cannot go on" in output.read_text())
            assert worker.poll() is None
            ballast.unlink()
            if not postgres.answers():  # without room for its WAL Postgres ends itself; its supervisor starts it again
                postgres.crash()
                postgres.start()
            with connect(postgres.url) as log:
                statuses = {answer.status for answer in append(log, 1, kept)}
                assert statuses == {"duplicate"}
                for number in range(5000, 5020):
                    kept.append(long_prompt(number))
                    append(log, 1, kept[-1:])
                until(lambda: caught_up(log))
                assert worker.poll() is None
                found = {row[0] for row in log.execute("SELECT event_id FROM memctl.events")}
                assert found == {event_id_of(1, event.dedupe_key) for event in kept}
                prove(log, environment)
        with connect(postgres.url) as log:
            live, rows = generations.live(log), digests(log)
        fill(ballast, but=4 * 1024 * 1024)
        with pytest.raises(psycopg.OperationalError) as built:
            replay(postgres.url, None)
        assert isinstance(outage(built.value), DatabaseUnavailable)
        ballast.unlink()
        if not postgres.answers():
            postgres.crash()
            postgres.start()
        with connect(postgres.url) as log:
            assert (generations.live(log), digests(log)) == (live, rows)
            prove(log, environment)


SAYS = "import itertools, sys, time\nfor n in itertools.count(): print('words', n, flush=True); time.sleep(0.001)\n"
SUPERVISED = """
[supervisord]
nodaemon = true
silent = true
logfile = {disk}/supervisor.log
logfile_maxbytes = 1MB
[program:says]
command = {python} {program}
redirect_stderr = true
stdout_logfile = {disk}/says.log
stdout_logfile_maxbytes = 20KB
stdout_logfile_backups = 2
"""


@pytest.mark.skipif(INSIDE not in os.environ, reason="run by the test above, where a small disk is mounted")
def test_supervisor_inside(tmp_path: Path) -> None:
    disk = Path(os.environ[INSIDE])
    ballast, said, source = disk / "ballast", disk / "says.log", tmp_path / "says.py"
    source.write_text(SAYS)
    (disk / "conf").write_text(SUPERVISED.format(disk=disk, python=sys.executable, program=source))
    argv = [sys.executable, "-m", "memctl.infra.embedded.supervise", "-n", "-c", str(disk / "conf")]

    def last() -> str:
        return said.read_text().rpartition("words ")[2] if said.exists() else ""

    def written(pid: str) -> int:
        """Bytes that a process wrote: it is the same one throughout."""
        return int(Path(f"/proc/{pid}/io").read_text().split()[3])

    with (disk / "err").open("wb") as errors, subprocess.Popen(argv, stdout=errors, stderr=errors) as supervisor:
        until(lambda: last() != "")
        with (disk / "err").open("ab") as padding:  # up to the end of its page, so that it needs room as well
            padding.write(b"." * (4096 - os.fstat(padding.fileno()).st_size % 4096))
        fill(ballast, but=0)
        (program,) = Path(f"/proc/{supervisor.pid}/task/{supervisor.pid}/children").read_text().split()
        before = written(program)
        until(lambda: written(program) > before + 100_000)
        ballast.unlink()
        seen = last()
        until(lambda: last() not in ("", seen))
        assert written(program) > before
        assert supervisor.poll() is None
        supervisor.terminate()


@pytest.mark.skipif(INSIDE not in os.environ, reason="run by the test above, where a small disk is mounted")
def test_spool_inside() -> None:
    disk = Path(os.environ[INSIDE])
    ready_spool(disk)  # as a door does that begins
    ballast = disk / "ballast"
    fill(ballast, but=0)
    for number in range(3):
        with pytest.raises(OSError, match="No space left"):
            spool(disk / "spool", Delivery(f"{number:032x}", 1, "claude-code", "", b"x" * 20_000))
    told = refusals(disk / "spool")
    ballast.unlink()
    assert told is not None
    assert told.deliveries == 3
