"""Receipts as a file: what was forgotten, by ids and scope and never a word of it, for whoever restores a backup."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any
from uuid import UUID

import msgspec

from memctl.domain.erasing import Scope, Tombstone
from memctl.domain.errors import MemctlError
from memctl.infra.database import Connection
from memctl.infra.embedded.places import write_private
from memctl.infra.log import erase

RECEIPTS = "receipts.jsonl"
"""In the data directory and beside backups: every receipt, one a line."""


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


def write_receipts(folder: Path, connection: Connection) -> None:
    """Every receipt, in a file that only its owner reads: it outlives the database."""
    stones = erase.stones(connection)
    lines = [
        msgspec.json.encode(
            Recalled(
                id=each.id, space=each.space, scope=each.scope, reason=each.reason, begun_at=each.begun_at,
                erased=each.erased, outcome=each.outcome, stones=tuple(stones.get(each.id, ())),
            )
        )
        for each in erase.receipts(connection)
    ]  # fmt: skip
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    write_private(folder / RECEIPTS, "".join(line.decode() + "\n" for line in lines))


def read_receipts(files: Iterable[Path]) -> Iterator[Recalled]:
    """The receipts of those of the files that are there. Raises: BadReceipts."""
    for file in dict.fromkeys(files):
        with contextlib.suppress(FileNotFoundError):
            for number, line in enumerate(file.read_bytes().splitlines(), 1):
                try:
                    yield msgspec.json.decode(line, type=Recalled)
                except msgspec.MsgspecError as problem:
                    raise BadReceipts(file=str(file), line=number) from problem
