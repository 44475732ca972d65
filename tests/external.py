"""Runs tests against servers as Debian packages them: `python tests/external.py [pytest's arguments]`.

Starts PostgreSQL 15 (or newer) and Redis in a temporary folder, on Unix sockets, and ends them afterwards; they end
also when this is killed. What is missing is named: `apt-get install postgresql-15 redis-server`.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psycopg
import redis
from vector_server import die_with_parent
from waiting import until

TESTS = ["tests/integration", "tests/faults"]


def main() -> int:
    programs = newest_postgres()
    queue = shutil.which("redis-server")
    if programs is None or queue is None:
        missing = "PostgreSQL 15" if programs is None else "redis-server"
        print(f"{missing} is not installed: apt-get install postgresql-15 redis-server", file=sys.stderr)
        return 1
    with tempfile.TemporaryDirectory(prefix="memctl-external-") as name:
        folder = Path(name)
        folder.chmod(0o711)  # whoever runs Postgres has to get to its folder inside
        with postgres(programs, folder) as database_url, redis_server(queue, folder) as redis_url:
            for url in (database_url, redis_url):
                print(f"testing against {url.partition('@')[2] or url}", file=sys.stderr)
            done = subprocess.run(
                [sys.executable, "-m", "pytest", *(sys.argv[1:] or ["-n", "2", "--dist", "loadfile", *TESTS])],
                env={**os.environ, "MEMCTL_TEST_DATABASE_URL": database_url, "MEMCTL_TEST_REDIS_URL": redis_url},
                check=False,
            )
    return done.returncode


def newest_postgres() -> Path | None:
    """The folder of Debian's newest PostgreSQL from 15 on."""
    found = [path for path in Path("/usr/lib/postgresql").glob("*/bin") if (path / "postgres").exists()]
    good = [path for path in found if path.parent.name.isdigit() and int(path.parent.name) >= 15]
    return max(good, key=lambda path: int(path.parent.name), default=None)


@contextlib.contextmanager
def postgres(programs: Path, folder: Path) -> Iterator[str]:
    data, password = folder / "pg", secrets.token_urlsafe(16)
    data.mkdir(mode=0o700)
    word = folder / "password"
    word.write_text(password)
    # Postgres does not run as root: then as the user that Debian's package made for it.
    other = pwd.getpwnam("postgres") if os.geteuid() == 0 else None
    if other is not None:
        os.chown(data, other.pw_uid, other.pw_gid)
        os.chown(word, other.pw_uid, other.pw_gid)
    user, group = (other.pw_uid, other.pw_gid) if other is not None else (None, None)
    made = [str(programs / "initdb"), "-D", str(data), "-U", "memctl", "--auth=scram-sha-256", "--encoding=UTF8"]
    subprocess.run(
        [*made, "--locale=C", f"--pwfile={word}"], user=user, group=group, cwd="/", check=True, stdout=sys.stderr
    )
    word.unlink()
    settings = ("listen_addresses=", f"unix_socket_directories={data}", "max_connections=100", "fsync=off")
    options = [part for setting in settings for part in ("-c", setting)]
    with (folder / "postgres.log").open("wb") as log:
        server = subprocess.Popen(
            [str(programs / "postgres"), "-D", str(data), *options],
            user=user, group=group, cwd="/", stdout=log, stderr=log, preexec_fn=die_with_parent,
        )  # fmt: skip
    url = f"postgresql://memctl:{password}@/postgres?host={data}"
    try:
        until(lambda: answers(url), "PostgreSQL's answering")
        yield url
    finally:
        server.send_signal(signal.SIGINT)
        server.wait(30)


def answers(url: str) -> bool:
    with contextlib.suppress(psycopg.OperationalError):
        psycopg.connect(url).close()
        return True
    return False


@contextlib.contextmanager
def redis_server(program: str, folder: Path) -> Iterator[str]:
    socket = folder / "redis.sock"
    options = ("--port", "0", "--unixsocket", str(socket), "--save", "", "--appendonly", "no", "--dir", str(folder))
    with (folder / "redis.log").open("wb") as log:
        server = subprocess.Popen([program, *options], stdout=log, stderr=log, preexec_fn=die_with_parent)
    url = f"unix://{socket}?db=0"
    try:
        until(lambda: listens(url), "Redis' answering")
        yield url
    finally:
        server.terminate()
        server.wait(10)


def listens(url: str) -> bool:
    with contextlib.suppress(redis.ConnectionError), contextlib.closing(redis.Redis.from_url(url)) as client:
        return bool(client.ping())
    return False


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that what was started is ended
    sys.exit(main())
