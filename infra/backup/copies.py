"""Backups in a folder: written while writes go on, with the receipts of what was forgotten beside them."""

from __future__ import annotations

import contextlib
import shutil
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from memctl.domain.support.errors import MemctlError
from memctl.infra.backup import archive
from memctl.infra.backup.receipts import write_receipts
from memctl.infra.data_dir import make_private
from memctl.infra.database import Connection, outages
from memctl.infra.log.migrate import revisions

if TYPE_CHECKING:
    from memctl.infra.settings_model import Settings

FOLDER = "backups"
"""In the data directory, where no other is named."""

SUFFIX = ".memctl.zip"
_STAMP = "%Y%m%dT%H%M%S%fZ"

_EMBEDDED_EVERY_HOURS = 24
_LEAST_ROOM = 64 << 20
"""Bytes that a backup on schedule leaves free beside twice the size of the last one."""

_ABANDONED_S = 3600

_BEFORE_UPGRADE = "memctl-before-upgrade-"
_UPGRADES_KEPT = 2
"""Copies made before upgrades: that of the last, and one in case that failed half way."""


class NoRoom(MemctlError):
    """A backup needs some {needed} MB in {folder}, and {free} are free."""

    hint = "make room, or let `backup.folder` in config.toml name another disk"
    folder: str
    needed: int
    free: int


class KeptBackups(NamedTuple):
    """The backups of a folder. `newest` is when the last was made; bytes of all of them."""

    folder: Path
    files: int
    size: int
    newest: datetime | None
    every: timedelta | None
    """How often one is made; None where nobody asked for it."""

    def overdue(self, now: datetime) -> bool:
        """Whether the last is twice as old as it should be."""
        # One that was made later than now was so before the clock was set back.
        return self.every is not None and self.newest is not None and abs(now - self.newest) > 2 * self.every


def folder_of(settings: Settings) -> Path:
    """Where backups go that are not asked to be elsewhere."""
    return settings.backup.folder or settings.data_dir / FOLDER


def backup(settings: Settings, connection: Connection, folder: Path | None = None, keep: int | None = None) -> Path:
    """Write a backup with the receipts beside it; `keep`: remove all but the newest so many, of those that bear the
    names they were given. Returns its path.

    Raises: DatabaseUnavailable, OSError.
    """
    where = folder or folder_of(settings)
    if where == settings.data_dir / FOLDER:
        make_private(where)
    else:
        where.mkdir(mode=0o700, parents=True, exist_ok=True)
    remove_unfinished(where, _ABANDONED_S)
    file = where / f"memctl-{datetime.now(UTC):{_STAMP}}{SUFFIX}"
    with outages():
        archive.write(connection, file)
        write_receipts(connection, settings.data_dir, where)
    made = [each for each in backups(where) if _stamp(each) is not None]
    for old in made[:-keep] if keep else []:
        old.unlink(missing_ok=True)
    return file


def before_upgrade(settings: Settings, connection: Connection) -> Path | None:
    """A backup of a log that an older memctl left, for whoever wants to go back to that one; None of any other.

    It stands beside those on schedule, and of its kind the last few are kept; none is made where one holds as much.
    Raises: NoRoom, DatabaseUnavailable, OSError.
    """
    with outages():
        at, newest = revisions(connection)
        if not at or at >= newest:
            return None
        (last,) = connection.execute("SELECT max(position) FROM memctl.events").fetchone() or (None,)
    folder = folder_of(settings)
    if last is None or any(_holds(file, at, last) for file in backups(folder)):
        return None
    _need_room(folder)
    made = backup(settings, connection)
    file = made.rename(made.with_name(made.name.replace("memctl-", _BEFORE_UPGRADE, 1)))
    for old in sorted(folder.glob(f"{_BEFORE_UPGRADE}*{SUFFIX}"))[:-_UPGRADES_KEPT]:
        old.unlink(missing_ok=True)
    return file


def _holds(file: Path, schema: str, position: int) -> bool:
    try:
        manifest = archive.read_manifest(file)
    except archive.BadBackup:
        return False
    return (manifest.schema, manifest.position) == (schema, position)


def _need_room(folder: Path) -> None:
    """Raises: NoRoom, where there is none for a backup of twice the last one's size."""
    files = backups(folder)
    needed = _LEAST_ROOM + (2 * files[-1].stat().st_size if files else 0)
    place = next(each for each in (folder, *folder.parents) if each.is_dir())
    if (free := shutil.disk_usage(place).free) < needed:
        raise NoRoom(folder=str(folder), needed=needed >> 20, free=free >> 20)


def backups(folder: Path) -> list[Path]:
    """The backups in a folder, oldest first; those that somebody named otherwise, too."""
    return sorted(folder.glob(f"memctl-*{SUFFIX}"), key=_made_at) if folder.is_dir() else []


def remove_unfinished(folder: Path, older_than_s: float = 0.0, of: str = "memctl-") -> None:
    """Remove what processes that were killed had written of backups (or files that begin with `of`), where nobody wrote
    to it for that long."""
    for part in folder.iterdir() if folder.is_dir() else ():
        if not (part.name.startswith(f".{of}") and part.name.endswith(".part")):
            continue
        with contextlib.suppress(FileNotFoundError):
            if time.time() - part.stat().st_mtime > older_than_s:
                part.unlink()


def kept(settings: Settings) -> KeptBackups:
    """What stands where backups on schedule go."""
    folder = folder_of(settings)
    files = backups(folder)
    size = sum(file.stat().st_size for file in files)
    return KeptBackups(folder, len(files), size, _made_at(files[-1]) if files else None, every(settings))


def every(settings: Settings) -> timedelta | None:
    """How often a backup is made: where nobody said, each day of memctl's own database, never of another's server."""
    hours = settings.backup.every_hours
    if hours is None:
        hours = 0 if settings.configured("database_url") else _EMBEDDED_EVERY_HOURS
    return timedelta(hours=hours) if hours else None


def due(settings: Settings, connection: Connection, now: datetime) -> bool:
    """Whether a backup is to be made now: the last is old enough, and something was recorded or forgotten since.

    Raises: NoRoom.
    """
    interval, found = every(settings), kept(settings)
    if interval is None or (found.newest is not None and now - found.newest < interval):
        return False
    files = backups(found.folder)
    if not _changed(connection, files[-1] if files else None, found.newest):
        return False
    _need_room(found.folder)
    return True


def _changed(connection: Connection, last: Path | None, at: datetime | None) -> bool:
    if last is None:
        row = connection.execute("SELECT EXISTS (SELECT FROM memctl.events)").fetchone()
    else:
        try:
            position = archive.read_manifest(last).position
        except archive.BadBackup:
            return True
        row = connection.execute(
            "SELECT EXISTS (SELECT FROM memctl.events WHERE position > %s)"
            " OR EXISTS (SELECT FROM memctl.receipts WHERE begun_at > %s)",
            [position, at],
        ).fetchone()
    return bool(row and row[0])


def _made_at(file: Path) -> datetime:
    return _stamp(file) or datetime.fromtimestamp(file.stat().st_mtime, UTC)


def _stamp(file: Path) -> datetime | None:
    """When a backup was made, by its name; None where somebody gave it another."""
    stamp = file.name.removeprefix("memctl-").removesuffix(SUFFIX)
    try:
        return datetime.strptime(stamp, _STAMP).replace(tzinfo=UTC)
    except ValueError:
        return None
