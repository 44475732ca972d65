"""Receipts as a file: what was forgotten, by ids and scope and never a word of it, for whoever restores a backup."""

import contextlib
from collections.abc import Iterable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any
from uuid import UUID

import msgspec

from memctl.domain.events.erasure import Scope, Tombstone, scope_tombstones
from memctl.domain.support.errors import MemctlError
from memctl.domain.support.json_bodies import in_shape
from memctl.infra.data_dir import write_private
from memctl.infra.database import Connection, snapshot
from memctl.infra.files import NoRegularFile, opened
from memctl.infra.log import erase
from memctl.infra.log.spaces import installation, space_id

RECEIPTS = "receipts.jsonl"
"""In the data directory and beside backups: every receipt, one a line."""

LOCK = 0x72637074
"""Advisory lock of whoever writes receipts ("rcpt")."""


class BadReceipts(MemctlError):
    """{file} holds no receipts that can be read: line {line}."""

    hint = "without them, what was forgotten since the backup would come back; mend the file, or name another"
    file: str
    line: int


class Recalled(msgspec.Struct, frozen=True, kw_only=True):
    """A receipt as a line of `receipts.jsonl`."""

    id: UUID
    space: str
    scope: Scope
    reason: str
    begun_at: datetime
    erased: tuple[UUID, ...]
    outcome: dict[str, Any]
    stones: tuple[Tombstone, ...] = ()
    log: str = ""
    """The installation that it was written down for."""


def write_receipts(connection: Connection, *folders: Path) -> None:
    """Every receipt, in a file of each folder that only its owner reads: it outlives the database. Those of the files
    stay that the database does not know, for it may have been set back in time.

    One writer at a time: of two, the one that read less might be the one that writes last. Not in a transaction.
    """
    with _alone(connection):
        here = installation(connection)
        with snapshot(connection):
            stones = erase.tombstones_by_receipt(connection)
            receipts = erase.receipts(connection)
        known = {
            each.id: Recalled(
                id=each.id, space=each.space, scope=each.scope, reason=each.reason, begun_at=each.begun_at,
                erased=each.erased, outcome=each.outcome, stones=tuple(stones.get(each.id, ())), log=here,
            )
            for each in receipts
        }  # fmt: skip
        for folder in folders:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            found, file = dict[UUID, Recalled](), folder / RECEIPTS
            try:
                found = {each.id: each for each in read_receipts([file])}
            except BadReceipts:  # not written over: who restores a backup mends it
                file.replace(file.with_suffix(".damaged"))
            lines = [msgspec.json.encode(each).decode() + "\n" for each in (found | known).values()]
            write_private(file, "".join(lines))


def unknown(connection: Connection, folder: Path) -> list[Recalled]:
    """What was forgotten in this database by the receipts of a folder, and what it knows nothing of: it was set back in
    time. Raises: BadReceipts."""
    here, known = installation(connection), {each.id for each in erase.receipts(connection)}
    away = {name for (name,) in connection.execute("SELECT name FROM memctl.spaces WHERE database <> ''")}
    found = {each.id: each for each in read_receipts([folder / RECEIPTS]) if each.log == here}
    return [each for id, each in found.items() if id not in known and each.space not in away]


def begin_again(connection: Connection, each: Recalled) -> int:
    """Open a receipt with all that is known to be meant by it. Returns the space."""
    space = space_id(connection, each.space)
    erase.begin(connection, space, each.id, each.scope, each.reason)
    if each.scope.kind != "rules":  # else today's are applied
        erase.to_come(connection, each.id, each.erased)
        stones = [Tombstone(kind="event", value=str(id)) for id in each.erased]
        erase.lay_tombstones(connection, space, each.id, [*scope_tombstones(each.scope), *each.stones, *stones])
    return space


@contextlib.contextmanager
def _alone(connection: Connection) -> Iterator[None]:
    # Taken before the snapshot: what a lock in it waited for, it would not see.
    connection.execute("SELECT pg_advisory_lock(%s)", [LOCK])
    try:
        yield
    finally:
        if not connection.closed:
            connection.execute("SELECT pg_advisory_unlock(%s)", [LOCK])


def read_receipts(files: Iterable[Path]) -> Iterator[Recalled]:
    """The receipts of those of the files that are there. Raises: BadReceipts."""
    for file in dict.fromkeys(files):
        with contextlib.suppress(FileNotFoundError):
            number = 0
            try:
                with opened(file) as lines:
                    for line in lines:
                        number += 1
                        yield in_shape(line, Recalled)
            except (msgspec.MsgspecError, NoRegularFile) as problem:
                raise BadReceipts(file=str(file), line=number) from problem
