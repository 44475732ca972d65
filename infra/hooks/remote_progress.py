"""What a relay keeps on its machine: how far each transcript was read, and how it stands with the team's API."""

import contextlib
import os
import sqlite3
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Literal, Protocol

import msgspec

from memctl.infra.data_dir import Folders, write_private
from memctl.infra.files import NoRegularFile, read_file
from memctl.infra.hooks.spool import spooled_since
from memctl.infra.log.checkpoints import name_of
from memctl.infra.process import Process
from memctl.infra.transcripts.reading import START, Checkpoint

State = Literal["forwarding", "waiting", "refused", "outdated"]
"""It goes on; the API does not answer; it refuses the key; it is of another version. Only the first two mend
themselves."""

WRITE_EVERY_S = 1.0
"""Least time between two counts that are written; another state is written at once."""

_FILE, _RECORD = "relay.json", "relay.process"


class RemoteState(msgspec.Struct, frozen=True):
    """How a relay stands. `events` were taken by the API since it started; `left_out` were not, for the key is for
    other projects; `since` and `last_at` in seconds since 1970, the first for the state, the second for the last event
    taken (0 for none)."""

    api_url: str
    state: State = "forwarding"
    why: str = ""
    since: float = 0.0
    events: int = 0
    last_at: float = 0.0
    left_out: int = 0


LATE_S = 120.0
"""Seconds after which what waits should be sent: twice the longest pause between two attempts."""


class RelaySeen(msgspec.Struct, frozen=True):
    """A relay as `status` finds it: whether its process lives, how many deliveries wait, and the oldest of them for how
    many seconds."""

    standing: RemoteState
    running: bool
    waiting: int
    waiting_s: float = 0.0

    @property
    def refused(self) -> bool:
        """Whether the API takes nothing until a person mends that."""
        return self.standing.state in ("refused", "outdated")

    @property
    def late(self) -> bool:
        """Whether what waits should have been sent long ago."""
        return self.waiting_s > LATE_S


class Listener(Protocol):
    """Who hears how sending goes."""

    def took(self, events: int, left_out: int = 0) -> None:
        """The API took events, and left out some that are of no project of the key's."""

    def failed(self, state: State, why: str) -> bool:
        """The API did not take anything. Whether that is new."""


class Nobody:
    """For a command, which says itself how it went."""

    def took(self, events: int, left_out: int = 0) -> None:
        pass

    def failed(self, state: State, why: str) -> bool:
        return False


class Notes:
    """A relay's own account of how it stands, kept in a file for `status`. For several threads."""

    def __init__(self, folders: Folders, api_url: str) -> None:
        self._folders = folders
        self._lock = threading.Lock()
        self._written_at = 0.0
        self.standing = self._written = RemoteState(api_url, since=time.time())
        process = Process.of(os.getpid())
        assert process is not None
        process.record(folders.run / _RECORD)
        self._write()

    def took(self, events: int, left_out: int = 0) -> None:
        """The API took events, and left out some that are of no project of the key's."""
        with self._lock:
            now = time.time()
            before = self.standing
            self.standing = msgspec.structs.replace(
                before, events=before.events + events, last_at=now, left_out=before.left_out + left_out
            )
            self._now("forwarding", "")

    def failed(self, state: State, why: str) -> bool:
        """The API did not take anything. Whether that is new."""
        with self._lock:
            return self._now(state, why)

    def write_if_due(self) -> None:
        """Write what has changed, if it is time."""
        with self._lock:
            if self.standing != self._written and time.monotonic() - self._written_at > WRITE_EVERY_S:
                self._write()

    def _now(self, state: State, why: str) -> bool:
        before = self.standing
        if state == before.state:
            return False
        self.standing = msgspec.structs.replace(before, state=state, why=why, since=time.time())
        self._write()
        return True

    def close(self) -> None:
        with self._lock, contextlib.suppress(OSError):
            for name in (_FILE, _RECORD):
                (self._folders.run / name).unlink(missing_ok=True)

    def _write(self) -> None:
        self._written_at, self._written = time.monotonic(), self.standing
        write_private(self._folders.run / _FILE, msgspec.json.encode(self.standing).decode() + "\n")


def relay_seen(folders: Folders, api_url: str = "") -> RelaySeen | None:
    """The relay of a data directory; None where none was started, or the last one ended as it should, unless it is to
    run there for `api_url`."""
    try:
        standing = msgspec.json.decode(read_file(folders.run / _FILE), type=RemoteState)
    except (FileNotFoundError, NoRegularFile, msgspec.MsgspecError):
        return RelaySeen(RemoteState(api_url, since=0.0), False, *_waiting(folders)) if api_url else None
    process = Process.recorded(folders.run / _RECORD)
    return RelaySeen(standing, process is not None and process.lives(), *_waiting(folders))


def _waiting(folders: Folders) -> tuple[int, float]:
    """How many deliveries wait in the spool, and the oldest for how many seconds."""
    since = spooled_since(folders.spool)
    # One that is named later than now was so before the clock was set back.
    return len(since), max((abs(time.time() - each) for each in since), default=0.0)


class Checkpoints:
    """How far transcripts were read and their events taken by the API, in a SQLite file; lost, they are read again.

    For several threads.
    """

    def __init__(self, file: Path) -> None:
        self._lock = threading.Lock()
        self._connection = sqlite3.connect(file, timeout=10.0, check_same_thread=False)
        file.chmod(0o600)
        with self._connection as connection:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute(
                'CREATE TABLE IF NOT EXISTS checkpoints (path TEXT PRIMARY KEY, "offset" INTEGER, lines INTEGER,'
                " digest TEXT) WITHOUT ROWID"
            )
            connection.execute("CREATE TABLE IF NOT EXISTS log (id TEXT)")
            connection.execute("CREATE TABLE IF NOT EXISTS refused (key TEXT)")

    @property
    def log(self) -> str:
        """The log that the API last said it keeps; "" before the first time."""
        with self._lock:
            return self._log()

    def keeps(self, log: str) -> bool:
        """The API keeps this log. Whether it kept another before: then every file is to be read from its beginning,
        since this one may lack what that one was sent."""
        with self._lock, self._connection as connection:
            before = self._log()
            if log == before:
                return False
            connection.execute("DELETE FROM log")
            connection.execute("INSERT INTO log VALUES (?)", [log])
            if before:
                self._start_over()
            return bool(before)

    def goes_by(self, key: str) -> bool:
        """The API is asked with this key (what sets it apart from others). Returns whether it refused lines that came
        with another: then every file is to be read from its beginning."""
        with self._lock, self._connection as connection:
            others = connection.execute("DELETE FROM refused WHERE key <> ?", [key]).rowcount > 0
            if others:
                self._start_over()
            return others

    def refused(self, key: str) -> None:
        """The API refused lines that came with this key."""
        with self._lock, self._connection as connection:
            connection.execute("INSERT INTO refused SELECT ?1 WHERE ?1 NOT IN (SELECT key FROM refused)", [key])

    def known(self) -> dict[str, Checkpoint]:
        with self._lock:
            rows = self._connection.execute('SELECT path, "offset", lines, digest FROM checkpoints').fetchall()
        return {row[0]: Checkpoint(*row[1:]) for row in rows}

    def save(self, reached: Mapping[Path, Checkpoint], log: str) -> None:
        """Note how far files were read since the API kept that log; nothing where it keeps another by now."""
        with self._lock, self._connection as connection:
            if log and self._log() != log:
                return
            connection.executemany(
                "INSERT OR REPLACE INTO checkpoints VALUES (?, ?, ?, ?)",
                [(name_of(path), at.offset, at.lines, at.digest) for path, at in reached.items()],
            )

    def _start_over(self) -> None:
        at = [START.offset, START.lines, START.digest]
        self._connection.execute('UPDATE checkpoints SET "offset" = ?, lines = ?, digest = ?', at)

    def _log(self) -> str:
        row = self._connection.execute("SELECT id FROM log").fetchone()
        return str(row[0]) if row else ""

    def close(self) -> None:
        self._connection.close()
