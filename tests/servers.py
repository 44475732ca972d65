"""Real servers for tests: our own embedded ones, or those that MEMCTL_TEST_DATABASE_URL and _REDIS_URL name.

Our own die with the test run, even when it is killed, and leave no file behind when it ends.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Self
from urllib.parse import urlsplit
from uuid import uuid4

import psycopg
import redis
from psycopg import sql

from memctl.infra.data_dir import make_private, make_socket_folder
from memctl.infra.embedded.postgres import start_postgres
from memctl.infra.embedded.run import running
from memctl.infra.embedded.valkey import Queue
from memctl.infra.process import Process


@dataclass(frozen=True)
class RunningValkey:
    url: str
    server: Process


@contextlib.contextmanager
def start_valkey(folder: Path, patience: float = 15.0) -> Iterator[RunningValkey]:
    """A Valkey in `folder` (absolute; created if missing), stopped on leaving, and when we die."""
    make_private(folder)
    sockets = make_socket_folder(folder)
    queue = Queue(folder, sockets)
    argv = [sys.executable, "-P", "-m", "memctl.infra.embedded.valkey", str(folder), str(sockets)]
    try:
        with running("Valkey", argv, queue.ready, log=folder / "log", patience=patience) as server:
            yield RunningValkey(queue.url, server)
    finally:
        shutil.rmtree(sockets, ignore_errors=True)


@contextlib.contextmanager
def postgres_server() -> Iterator[str]:
    """URL of a Postgres in which we may create databases; it names a database that exists."""
    if given := os.environ.get("MEMCTL_TEST_DATABASE_URL"):
        yield given.replace("postgresql+psycopg:", "postgresql:", 1)
        return
    with tempfile.TemporaryDirectory(prefix="memctl-test-") as name:
        folder = Path(name) / "pg"
        folder.mkdir(mode=0o700)
        # A killed server loses nothing by this, only a machine without power does; databases are made in half the time.
        (folder / "local.conf").write_text("fsync = off\nfull_page_writes = off\n")
        with start_postgres(folder) as server:
            yield server.url


class Mortal:
    """A Postgres of the test's own, in `folder`, that may be shut down at once and started again."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(mode=0o700)
        # What a commit did not write itself, nobody writes for it soon: a crash shows it.
        (folder / "local.conf").write_text("wal_writer_delay = 10s\n")
        self.folder = folder
        self._running = contextlib.ExitStack()
        self.start()

    def start(self) -> None:
        self._server = self._running.enter_context(start_postgres(self.folder))
        self.url = self._server.url

    def crash(self) -> None:
        """What `pg_ctl stop -m immediate` does: every process of it ends, and nothing is written any more."""
        self._server.server.end(signal.SIGQUIT)
        self._running.close()

    def answers(self) -> bool:
        try:
            psycopg.connect(self.url, connect_timeout=5).close()
        except psycopg.OperationalError:
            return False
        return True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._running.close()


@contextlib.contextmanager
def redis_server() -> Iterator[str]:
    """URL of a Redis or Valkey; see `empty_redis` for a database in it."""
    if given := os.environ.get("MEMCTL_TEST_REDIS_URL"):
        yield given
        return
    with tempfile.TemporaryDirectory(prefix="memctl-test-") as folder, start_valkey(Path(folder) / "valkey") as server:
        yield server.url


@contextlib.contextmanager
def fresh_database(server: str, template: str = "template1", name: str = "") -> Iterator[str]:
    """URL of a new database made from `template`, dropped on leaving, whoever is still connected to it."""
    name = name or f"memctl_test_{uuid4().hex}"
    made = sql.SQL("CREATE DATABASE {} TEMPLATE {}").format(sql.Identifier(name), sql.Identifier(template))
    with psycopg.connect(server, autocommit=True) as connection:
        if connection.execute("SHOW fsync").fetchone() == ("off",):
            # Less than half the work of copying block by block, and what it needs besides, a checkpoint, costs nothing.
            made += sql.SQL(" STRATEGY FILE_COPY")
        connection.execute(made)
    try:
        yield with_database(server, name)
    finally:
        drop_database(server, name)


def drop_database(server: str, name: str) -> None:
    """Drop a database, whoever of us is still connected to it.

    Not WITH (FORCE): that is refused while autovacuum, which is nobody of ours, is at work in it. A plain DROP tells
    autovacuum to go.
    """
    with psycopg.connect(server, autocommit=True) as connection:
        database = sql.Identifier(name)
        connection.execute(sql.SQL("ALTER DATABASE {} WITH ALLOW_CONNECTIONS false").format(database))
        connection.execute(
            "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity"
            " WHERE datname = %s AND backend_type = 'client backend'",
            [name],
        )
        connection.execute(sql.SQL("DROP DATABASE IF EXISTS {}").format(database))


@contextlib.contextmanager
def migrated_database(server: str) -> Iterator[str]:
    """Name of a database with memctl's schema and nobody connected to it: a template for `fresh_database`."""
    from memctl.infra.log.migrate import migrate

    with fresh_database(server) as url:
        migrate(url)
        yield urlsplit(url).path.lstrip("/")


class Templates:
    """Databases that tests take copies of, which costs a third of making their tables. Made when first asked for."""

    def __init__(self, server: str, migrated: str) -> None:
        self._server, self._migrated = server, migrated
        self._made: dict[object, str] = {}
        self._held = contextlib.ExitStack()

    def live(self, shards: int | None) -> str:
        """Name of one with read models of so many shards and no event; with `None`, of one that has none yet."""
        from memctl.infra.database import connect
        from memctl.infra.readmodels import generations

        def make(url: str) -> None:
            with connect(url) as connection:
                generations.ensure_live(connection, shards or 1)

        # The read models that tests bring along are among the tables.
        return self._migrated if shards is None else self._of((shards, *read_models()), make)

    def filled(self) -> str:
        """Name of one in which a history with something for every read model is folded."""
        import histories

        from memctl.infra.database import connect

        def fill(url: str) -> None:
            with connect(url) as connection:
                histories.filled(url, connection)

        return self._of(("filled", *read_models()), fill)

    def _of(self, what: object, make: Callable[[str], None]) -> str:
        if what not in self._made:
            url = self._held.enter_context(fresh_database(self._server, self._migrated))
            make(url)
            self._made[what] = urlsplit(url).path.lstrip("/")
        return self._made[what]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._held.close()


def read_models() -> tuple[str, ...]:
    from memctl.projections.kernel import projections

    return tuple(p.name for p in projections())


@contextlib.contextmanager
def empty_redis(server: str) -> Iterator[str]:
    """URL of a database of `server` that was empty and is ours until we leave, when it is emptied again.

    The claim is one key in it, so test runs side by side on one server take different databases.
    """
    for number in range(15, -1, -1):
        url = _with_redis_database(server, number)
        with contextlib.closing(redis.Redis.from_url(url)) as client:
            # An empty database and a claim are seen and made in one step, or two runs would both see it empty.
            claimed = client.eval(
                "if redis.call('DBSIZE') > 0 then return 0 end redis.call('SET', KEYS[1], 1) return 1",
                1,
                "memctl:claimed-by-tests",
            )
            if claimed:
                try:
                    yield url
                finally:
                    client.flushdb()
                return
    raise RuntimeError("no database of the test Redis is empty")


def with_database(server: str, name: str) -> str:
    parts = urlsplit(server)
    # Not urlunsplit: it takes the slashes from a URL without a host, which is what a socket's URL is.
    return f"{parts.scheme}://{parts.netloc}/{name}" + (f"?{parts.query}" if parts.query else "")


def _with_redis_database(server: str, number: int) -> str:
    if server.startswith("unix:"):
        return f"{server.partition('?')[0]}?db={number}"
    return urlsplit(server)._replace(path=f"/{number}").geturl()
