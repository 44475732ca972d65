"""Receipts as a file: what was forgotten, by ids and scope and never a word of it, for whoever restores a backup."""

import contextlib
from collections.abc import Iterable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any
from uuid import UUID

import msgspec

from memctl.domain.events.erasure import Scope, Tombstone
from memctl.domain.support.errors import MemctlError
from memctl.domain.support.json_bodies import in_shape
from memctl.infra.data_dir import write_private
from memctl.infra.database import Connection, snapshot
from memctl.infra.files import NoRegularFile, opened
from memctl.infra.log import erase

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


def write_receipts(connection: Connection, *folders: Path) -> None:
    """Every receipt, in a file of each folder that only its owner reads: it outlives the database.

    One writer at a time: of two, the one that read less might be the one that writes last. Not in a transaction.
    """
    with _alone(connection):
        with snapshot(connection):
            stones = erase.tombstones_by_receipt(connection)
            receipts = erase.receipts(connection)
        lines = [
            msgspec.json.encode(
                Recalled(
                    id=each.id, space=each.space, scope=each.scope, reason=each.reason, begun_at=each.begun_at,
                    erased=each.erased, outcome=each.outcome, stones=tuple(stones.get(each.id, ())),
                )
            )
            for each in receipts
        ]  # fmt: skip
        for folder in folders:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            write_private(folder / RECEIPTS, "".join(line.decode() + "\n" for line in lines))


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
