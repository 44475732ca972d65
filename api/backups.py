"""Backups and their return: written while writes go on, checked, and restored without what was forgotten since."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from memctl.api.forget import RECEIPTS, Recalled, write_receipts
from memctl.domain.erasing import Tombstone, scope_tombstones
from memctl.domain.errors import MemctlError
from memctl.infra.database import Connection, outages
from memctl.infra.embedded.places import make_private, write_private
from memctl.infra.log import archive, erase
from memctl.infra.log.archive import Manifest
from memctl.infra.log.mark import move_mark
from memctl.infra.log.spaces import space_id
from memctl.infra.settings import Settings

FOLDER = "backups"
"""In the data directory, where no other is named."""

SUFFIX = ".memctl.zip"


class BadReceipts(MemctlError):
    """{file} holds no receipts that can be read: line {line}."""

    hint = "without them, what was forgotten since the backup would come back; mend the file, or name another"
    file: str
    line: int


class Restored(msgspec.Struct, frozen=True, kw_only=True):
    """What a restore brought: events, and how many of them had been forgotten since and were left out."""

    file: str
    made_at: str
    events: int
    receipts: int
    """Receipts of what was forgotten after the backup was made."""
    left_out: int


def backup(settings: Settings, connection: Connection, folder: Path | None = None, keep: int | None = None) -> Path:
    """Write a backup with the receipts beside it; `keep`: remove all but the newest so many. Returns its path.

    Raises: DatabaseUnavailable, OSError.
    """
    where = folder or settings.data_dir / FOLDER
    if folder is None:
        make_private(where)
    else:
        where.mkdir(mode=0o700, parents=True, exist_ok=True)
    file = where / f"memctl-{datetime.now(UTC):%Y%m%dT%H%M%S%fZ}{SUFFIX}"
    with outages():
        archive.write(connection, file)
        write_receipts(settings.data_dir, connection)
    write_private(where / RECEIPTS, (settings.data_dir / RECEIPTS).read_text())
    for old in backups(where)[:-keep] if keep else []:
        old.unlink(missing_ok=True)
    return file


def backups(folder: Path) -> list[Path]:
    """The backups in a folder, oldest first."""
    return sorted(folder.glob(f"memctl-*{SUFFIX}")) if folder.is_dir() else []


def restore(settings: Settings, connection: Connection, file: Path, receipts: Iterable[Path] = ()) -> Restored:
    """Restore a backup into a log without events, then forget in it what was forgotten since.

    Receipts are read from those files, from beside the backup and from the data directory. All of it is one
    transaction; the workers fold it anew. `connection` is in autocommit mode. Raises: BadBackup, NotEmpty, BadReceipts,
    DatabaseUnavailable; then nothing was restored.
    """
    manifest = archive.check(file)
    told = list(_read([*receipts, file.parent / RECEIPTS, settings.data_dir / RECEIPTS]))
    with outages():
        with connection.transaction():
            connection.execute("SET LOCAL idle_in_transaction_session_timeout = 0")
            archive.restore(connection, file)
            known = {each.id for each in erase.receipts(connection) if each.finished_at is not None}
            fresh = {each.id: each for each in told if each.id not in known and each.scope.kind != "rules"}
            left_out = sum(_forget_again(connection, each) for each in fresh.values())
        move_mark(connection)
        write_receipts(settings.data_dir, connection)
    return _restored(file, manifest, len(fresh), left_out)


def _restored(file: Path, manifest: Manifest, receipts: int, left_out: int) -> Restored:
    events = manifest.tables["events"].rows
    return Restored(file=str(file), made_at=manifest.made_at, events=events, receipts=receipts, left_out=left_out)


def _forget_again(connection: Connection, each: Recalled) -> int:
    """Forget what a receipt is about, in a log that may hold it, or may be told of it later."""
    space = space_id(connection, each.space)
    erase.begin(connection, space, each.id, each.scope, each.reason)
    ids = set(each.erased)
    if each.scope.kind in ("session", "project", "before"):
        ids |= erase.found_by(connection, space, each.scope)
    ids |= erase.citing(connection, space, ids)
    emptied = erase.empty(connection, space, each.id, ids)
    stones = [Tombstone(kind="event", value=str(id)) for id in ids]
    erase.lay(connection, space, each.id, [*scope_tombstones(each.scope), *each.stones, *stones])
    erase.finish(connection, each.id, each.outcome)
    return len(emptied)


def _read(files: Iterable[Path]) -> Iterable[Recalled]:
    for file in dict.fromkeys(files):
        with contextlib.suppress(FileNotFoundError):
            for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
                try:
                    yield msgspec.json.decode(line, type=Recalled)
                except msgspec.MsgspecError as problem:
                    raise BadReceipts(file=str(file), line=number) from problem
