"""A backup's return: checked, and restored without what was forgotten since."""

import contextlib
import shutil
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from pathlib import Path
from uuid import UUID

import msgspec
import psycopg

from memctl.domain.events.erasure import Tombstone
from memctl.domain.support.errors import MemctlError
from memctl.infra import api_keys
from memctl.infra.backup import archive
from memctl.infra.backup.archive import BadBackup
from memctl.infra.backup.copies import backup, backups, folder_of
from memctl.infra.backup.receipts import RECEIPTS, Recalled, begin_again, read_receipts, write_receipts
from memctl.infra.data_dir import Folders, sync_folder
from memctl.infra.database import Connection, connect, outages
from memctl.infra.embedded import instance
from memctl.infra.embedded.programs import SERVERS
from memctl.infra.log import erase
from memctl.infra.log.mark import move_mark
from memctl.infra.log.spaces import elsewhere, space_names
from memctl.infra.settings import Settings
from memctl.workers.erasure.erase import nothing_rebuilt


class NoBackup(MemctlError):
    """There is no backup in {folder} that can be read through."""

    exit_code = 3
    hint = "name one: `memctl restore FILE`"
    folder: str


class NotOurs(MemctlError):
    """The database is a server of your own; memctl does not replace it."""

    hint = "let MEMCTL_DATABASE_URL name an empty database, and restore into that"


class Restored(msgspec.Struct, frozen=True, kw_only=True):
    """What a restore brought: events, and how many of them had been forgotten since and were left out."""

    file: str
    made_at: str
    events: int
    receipts: int
    """Receipts of what was forgotten after the backup was made."""
    left_out: int
    keys: int
    """Keys of the API that are in force again, as they were then."""
    redacted: bool
    """Whether rules of redaction were applied to the log after the backup was made: they have to be once more."""
    at_home: bool = True
    """Whether receipts of this data directory go on from those of the backup: else nobody knows what was forgotten."""
    begun: int = 0
    """Forgettings that were begun and not ended: they are open here, too."""


def write(settings: Settings, folder: Path | None, keep: int | None) -> Path:
    """`memctl.infra.backup.copies.backup` over a connection of its own."""
    with connect(settings.require("database_url"), name="memctl backup") as connection:
        return backup(settings, connection, folder, keep)


def left_out(settings: Settings) -> dict[str, str]:
    """The spaces that a backup of this database leaves out, each with the database that it lives on."""
    with connect(settings.require("database_url"), name="memctl backup") as connection, outages():
        return elsewhere(connection)


def restored(settings: Settings, file: Path, receipts: Iterable[Path]) -> Restored:
    """`restore` over a connection of its own."""
    with connect(settings.require("database_url"), name="memctl restore") as connection:
        return restore(settings, connection, file, receipts)


def restore(settings: Settings, connection: Connection, file: Path, receipts: Iterable[Path] = ()) -> Restored:
    """Restore a backup into a log without events, then forget in it what was forgotten since.

    Receipts are read from those files, from beside the backup and from the data directory. All of it is one
    transaction; the workers fold it again. What was redacted since is not yet cut again: see `Restored.redacted`.
    A forgetting that began and never ended is left to `forgetting.resume`, because only the rows that are yet to be
    folded show what follows from it. The receipts of both are open.
    `connection` is in autocommit mode. Raises: BadBackup, NotEmpty, BadReceipts, RebuildAtWork, DatabaseUnavailable;
    then nothing was restored.
    """
    room = None if settings.configured("database_url") else shutil.disk_usage(settings.data_dir).free
    manifest = archive.check(file, room)
    found = list(read_receipts([*receipts, file.parent / RECEIPTS, settings.data_dir / RECEIPTS]))
    own = settings.data_dir / RECEIPTS
    here = {each.id for each in read_receipts([own])} if own.exists() else None
    found.sort(
        key=lambda each: (bool(each.outcome), len(each.erased))
    )  # if several receipts have the same id, the last one counts
    with outages(), nothing_rebuilt(connection):
        with connection.transaction():
            connection.execute("SET LOCAL idle_in_transaction_session_timeout = 0")
            archive.restore(connection, file)
            known, in_force = _held(connection, file)
            since = {each.id: each for each in found if each.id not in known}
            redactions = [each for each in since.values() if each.scope.kind == "rules"]
            begun = [each for each in since.values() if each.scope.kind != "rules" and not each.outcome]
            fresh = [each for each in since.values() if each.scope.kind != "rules" and each.outcome]
            for each in (*redactions, *begun):
                begin_again(connection, each)
            left_out = sum(_forget_again(connection, each) for each in fresh)
        move_mark(connection)
        write_receipts(connection, settings.data_dir)
    return Restored(
        file=str(file), made_at=manifest.made_at, events=manifest.tables["events"].rows, receipts=len(fresh),
        left_out=left_out, keys=in_force, redacted=bool(redactions),
        at_home=here is not None and here >= known,
        begun=sum(each.scope.kind != "rules" for each in erase.receipts(connection, unfinished=True)),
    )  # fmt: skip


def _held(connection: Connection, file: Path) -> tuple[set[UUID], int]:
    """What a log that was just restored knows to be forgotten, by receipts, and how many keys are in force in it."""
    try:
        known = {each.id for each in erase.receipts(connection) if each.finished_at is not None}
        keys = [key for space in space_names(connection).values() for key in api_keys.listed(connection, space)]
    except (msgspec.MsgspecError, RecursionError, psycopg.DataError) as problem:
        raise BadBackup(file=str(file), why=f"it holds what no memctl wrote ({problem})") from problem
    now = datetime.now(UTC)
    return known, sum(key.holds(now) for key in keys)


def newest(settings: Settings) -> Path:
    """The newest backup of those on schedule that can be read through. Raises: NoBackup."""
    folder = folder_of(settings)
    for file in reversed(backups(folder)):
        with contextlib.suppress(BadBackup):
            archive.check(file)
            return file
    raise NoBackup(folder=str(folder))


def set_aside(settings: Settings, notify: Callable[[str], None] = lambda _: None) -> Path | None:
    """Put memctl's own database aside, damaged or not, and start the servers with a new one; where it lies now.

    Nothing reaches the new database before `instance.up`, because deliveries of hooks in the spool would be in the way
    of a backup. The vectors are written again from what is restored. Raises: NotOurs, and as `instance.up`.
    """
    if settings.configured("database_url"):
        raise NotOurs
    places = Folders(settings.data_dir)
    instance.down(settings, notify)
    aside = None
    if places.postgres.exists():
        aside = places.data / f"postgres-{datetime.now(UTC):%Y%m%dT%H%M%S}.damaged"
        places.postgres.rename(aside)
        sync_folder(places.data)
        notify(f"the database that was there lies in {aside}")
    for folder in (places.vectors, places.valkey):
        shutil.rmtree(folder, ignore_errors=True)
    instance.up(settings, SERVERS, notify)
    return aside


def _forget_again(connection: Connection, each: Recalled) -> int:
    """Forget what a receipt is about, in a log that may hold it now or may receive it later."""
    space = begin_again(connection, each)
    ids = set(each.erased)
    if each.scope.kind in ("session", "project", "before"):
        ids |= erase.found_by(connection, space, each.scope)
    ids |= erase.citing(connection, space, ids)
    emptied = erase.empty(connection, space, each.id, ids)
    erase.lay_tombstones(connection, space, each.id, [Tombstone(kind="event", value=str(id)) for id in ids])
    erase.finish(connection, each.id, each.outcome)
    return len(emptied)
