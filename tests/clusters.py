"""Debian's PostgreSQL, PgBouncer and HAProxy as servers of one's own, over TCP, for what is tried by make targets.

Each ends with its test, also where that is killed. What is missing is named: `apt-get install postgresql-15 pgbouncer
haproxy redis-server nginx caddy`.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import secrets
import shutil
import signal
import socket
import subprocess
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import psycopg
import pytest
from external import newest_postgres
from vector_server import die_with_parent
from waiting import until

USER = pwd.getpwnam("postgres") if os.geteuid() == 0 else None
"""Neither Postgres nor PgBouncer runs as root: then as the user that Debian's package made for it."""


def needed(program: str) -> str:
    """The path of a program. Raises: pytest.fail's, naming what to install."""
    found = shutil.which(program) or shutil.which(program, path="/usr/sbin:/sbin")
    if found is None:
        packages = "postgresql-15 pgbouncer haproxy redis-server nginx caddy"
        pytest.fail(f"{program} is not installed: apt-get install {packages}")
    return found


def free_port() -> int:
    with contextlib.closing(socket.socket()) as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def as_postgres(*command: str | Path, **environment: str) -> str:
    """What a program prints that runs as the user of Postgres. Raises: CalledProcessError, with what it said."""
    done = subprocess.run(
        [*map(str, command)], **_user(), cwd="/", env={**os.environ, **environment}, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def _user() -> dict[str, Any]:
    return {} if USER is None else {"user": USER.pw_uid, "group": USER.pw_gid, "extra_groups": []}


def make_folder(folder: Path) -> Path:
    """A folder of the user that Postgres runs as, whom the ones above let through."""
    folder.mkdir(mode=0o700, parents=True)
    if USER is not None:
        os.chown(folder, USER.pw_uid, USER.pw_gid)
    return folder


class Cluster:
    """A PostgreSQL in `data`, on a port of its own. Nothing runs until `start`."""

    def __init__(self, data: Path, **settings: str) -> None:
        found = newest_postgres()
        self.programs = found if found is not None else pytest.fail("apt-get install postgresql-15")
        self.data, self.port, self.settings = data, free_port(), settings
        self.password = secrets.token_urlsafe(12)
        self._server: subprocess.Popen[bytes] | None = None

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def url(self) -> str:
        return f"postgresql://memctl:{self.password}@{self.address}/postgres"

    def make(self) -> None:
        """Make an empty one, with a role that may replicate."""
        make_folder(self.data)
        word = self.data.parent / f"{self.data.name}.password"
        word.write_text(self.password)
        if USER is not None:
            os.chown(word, USER.pw_uid, USER.pw_gid)
        as_postgres(
            self.programs / "initdb", "-D", self.data, "-U", "memctl", "--auth=scram-sha-256", "--encoding=UTF8",
            "--locale=C", f"--pwfile={word}",
        )  # fmt: skip
        word.unlink()

    def copy(self, data: Path, *options: str, **settings: str) -> Cluster:
        """Another one, of a base backup of this."""
        other = Cluster(data, **settings)
        other.password = self.password
        make_folder(data)
        as_postgres(
            self.programs / "pg_basebackup", "-D", data, "-d", self.url, "--checkpoint=fast", *options,
        )  # fmt: skip
        return other

    def start(self, **settings: str) -> None:
        """Start it, and wait until it answers."""
        self.settings |= settings
        own = {
            "listen_addresses": "127.0.0.1", "port": str(self.port), "unix_socket_directories": str(self.data),
            "max_connections": "100", **self.settings,
        }  # fmt: skip
        options = [part for name, value in own.items() for part in ("-c", f"{name}={value}")]
        with (self.data.parent / f"{self.data.name}.log").open("ab") as log:
            self._server = subprocess.Popen(
                [str(self.programs / "postgres"), "-D", str(self.data), *options],
                **_user(), cwd="/", stdout=log, stderr=log, preexec_fn=die_with_parent,
            )  # fmt: skip
        until(self.answers, "PostgreSQL's answering")

    def answers(self) -> bool:
        assert self._server is not None
        assert self._server.poll() is None, (self.data.parent / f"{self.data.name}.log").read_text()[-2000:]
        with contextlib.suppress(psycopg.OperationalError):
            psycopg.connect(self.url, connect_timeout=5).close()
            return True
        return False

    def kill(self) -> None:
        """End every process of it at once, as a machine without power does."""
        self.stop(signal.SIGQUIT)

    def stop(self, number: signal.Signals = signal.SIGINT) -> None:
        if self._server is not None:
            self._server.send_signal(number)
            self._server.wait(60)
            self._server = None

    def promote(self) -> None:
        as_postgres(self.programs / "pg_ctl", "promote", "-w", "-D", self.data)

    def ask(self, statement: str) -> Any:
        """The first value that a statement answers with; None where it answers with nothing."""
        with psycopg.connect(self.url, autocommit=True) as connection:
            cursor = connection.execute(statement.encode())
            row = cursor.fetchone() if cursor.description else None
            return row[0] if row else None


@contextlib.contextmanager
def cluster(folder: Path, **settings: str) -> Iterator[Cluster]:
    found = Cluster(folder, **settings)
    found.make()
    found.start()
    with ended(found):
        yield found


@contextlib.contextmanager
def ended(*clusters: Cluster) -> Iterator[None]:
    """Stop them on leaving, those that run."""
    try:
        yield
    finally:
        for each in clusters:
            each.stop()


@contextlib.contextmanager
def proxy(command: list[str], folder: Path, answers: Callable[[], bool]) -> Iterator[subprocess.Popen[bytes]]:
    """A program between memctl and its servers."""
    with (folder / "proxy.log").open("ab") as log:
        server = subprocess.Popen(command, **_user(), cwd="/", stdout=log, stderr=log, preexec_fn=die_with_parent)
    try:
        until(lambda: server.poll() is not None or answers(), f"{command[0]}'s answering")
        assert server.poll() is None, (folder / "proxy.log").read_text()[-2000:]
        yield server
    finally:
        server.terminate()
        server.wait(10)


def connects(port: int) -> bool:
    with contextlib.suppress(OSError):
        socket.create_connection(("127.0.0.1", port), 5).close()
        return True
    return False


@contextlib.contextmanager
def pgbouncer(folder: Path, to: Cluster, **settings: str) -> Iterator[str]:
    """URL of a PgBouncer before a cluster, with its defaults but for `settings`."""
    make_folder(folder)
    port = free_port()
    users = folder / "users.txt"
    users.write_text(f'"memctl" "{to.password}"\n')
    own: Mapping[str, str] = {
        "listen_addr": "127.0.0.1", "listen_port": str(port), "unix_socket_dir": "", "auth_type": "scram-sha-256",
        "auth_file": str(users), **settings,
    }  # fmt: skip
    lines = [
        "[databases]",
        f"* = host=127.0.0.1 port={to.port}",
        "[pgbouncer]",
        *(f"{k} = {v}" for k, v in own.items()),
    ]
    (folder / "pgbouncer.ini").write_text("\n".join(lines) + "\n")
    with proxy([needed("pgbouncer"), str(folder / "pgbouncer.ini")], folder, lambda: connects(port)):
        yield f"postgresql://memctl:{to.password}@127.0.0.1:{port}/postgres"
