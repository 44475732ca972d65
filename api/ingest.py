"""Ingest of transcripts: files and folders of them become events, and every line is accounted for."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import msgspec

from memctl.api.commands import Intake
from memctl.domain.event import NewEvent
from memctl.infra.log import checkpoints
from memctl.infra.transcripts.files import discover
from memctl.infra.transcripts.reading import START, Parsed, checkpoint, parse_file, resume
from memctl.infra.transcripts.sniff import format_of

BATCH = 2000
"""Events committed at once."""

BATCH_BYTES = 8 * 1024 * 1024
"""A batch is committed early once its lines hold this much, so memory stays flat."""

FOLLOW_EVERY_S = 1.0


class BadLine(msgspec.Struct, frozen=True):
    """A line, or a part of one, that could not be read, and why."""

    file: str
    line: int
    why: str


class Account(msgspec.Struct):
    """What became of every line. `lines` = those with events + ignored + blank + bad ones without events."""

    files: int = 0
    unchanged: int = 0
    """Files that had been read to their end before."""
    lines: int = 0
    read_bytes: int = 0
    with_events: int = 0
    blank: int = 0
    incomplete: int = 0
    new: int = 0
    duplicate: int = 0
    variant: int = 0
    types: Counter[str] = msgspec.field(default_factory=Counter)
    """New events by type."""
    redacted: Counter[str] = msgspec.field(default_factory=Counter)
    """Secrets and private parts that were replaced by markers, by kind."""
    ignored: Counter[str] = msgspec.field(default_factory=Counter)
    bad: list[BadLine] = msgspec.field(default_factory=list)
    seconds: float = 0.0

    def as_json(self) -> dict[str, Any]:
        """The account as `memctl ingest --json` prints it."""
        return {
            "files": self.files,
            "unchanged": self.unchanged,
            "lines": self.lines,
            "bytes": self.read_bytes,
            "events": {"new": self.new, "duplicate": self.duplicate, "variant": self.variant},
            "types": dict(self.types.most_common()),
            "with_events": self.with_events,
            "blank": self.blank,
            "incomplete": self.incomplete,
            "redacted": dict(self.redacted.most_common()),
            "ignored": dict(self.ignored.most_common()),
            "bad": [msgspec.to_builtins(line) for line in self.bad],
            "seconds": round(self.seconds, 3),
        }


Progress = Callable[[Path, int], None]
"""Told the file and the bytes of it just read."""


def ingest(
    intake: Intake,
    paths: Iterable[Path],
    *,
    again: bool = False,
    account: Account | None = None,
    progress: Progress = lambda path, size: None,
) -> Account:
    """Read transcripts and append their events; returns the account.

    A file is read on from where it was left, unless `again`, which reads it from its start (what is known already is
    a duplicate). Each batch is committed whole, and only then noted as read: stopping at any moment loses nothing.
    Raises: FileNotFoundError for a named path that is not there.
    """
    account = account if account is not None else Account()
    began = time.monotonic()
    for path in discover(paths):
        account.files += 1
        _ingest_file(intake, path, again, account, progress)
    account.seconds += time.monotonic() - began
    return account


def follow(intake: Intake, paths: Iterable[Path], account: Account, tell: Callable[[Account], None]) -> None:
    """Ingest again and again as the files grow and new ones come, until interrupted. `tell` hears of every change."""
    known = list(paths)
    seen: dict[Path, tuple[int, int]] = {}
    while True:
        changed = []
        for path in discover([p for p in known if p.exists()]):
            try:
                status = path.stat()
            except FileNotFoundError:  # it went away between listing and looking
                continue
            if seen.get(path) != (status.st_size, status.st_mtime_ns):
                seen[path] = (status.st_size, status.st_mtime_ns)
                changed.append(path)
        before = account.new
        for path in changed:
            _ingest_file(intake, path, False, account, lambda path, size: None)
        if account.new != before:
            tell(account)
        time.sleep(FOLLOW_EVERY_S)


def _ingest_file(intake: Intake, path: Path, again: bool, account: Account, progress: Progress) -> None:
    format = format_of(path)
    if format is None:
        return
    start = START if again else resume(path, checkpoints.load(intake.connection, intake.space_id, path))
    pending: list[NewEvent] = []
    reached, lines, held = start.offset, start.lines, 0

    def commit() -> None:
        nonlocal held
        _append(intake, pending, account)
        pending.clear()
        if reached > start.offset:
            checkpoints.save(intake.connection, intake.space_id, path, checkpoint(path, reached, lines))
        held = 0

    for parsed in parse_file(path, format, start):
        progress(path, parsed.end - parsed.offset)
        _count(account, path, parsed)
        pending.extend(parsed.events)
        if parsed.outcome == "incomplete":
            break
        if not parsed.whole:  # its newline will come: until then it is read again each time
            break
        held += parsed.end - parsed.offset
        reached, lines = parsed.end, parsed.number
        if len(pending) >= BATCH or held >= BATCH_BYTES:
            commit()
    if reached == start.offset and not pending:
        account.unchanged += 1
        return
    commit()


def _count(account: Account, path: Path, parsed: Parsed) -> None:
    if parsed.outcome == "incomplete":
        account.incomplete += 1
        return
    account.lines += 1
    account.read_bytes += parsed.end - parsed.offset
    if parsed.outcome == "events":
        account.with_events += 1
    elif parsed.outcome == "ignored":
        account.ignored[parsed.kind] += 1
    elif parsed.outcome == "blank":
        account.blank += 1
    if parsed.why:
        account.bad.append(BadLine(str(path), parsed.number, parsed.why))


def _append(intake: Intake, events: list[NewEvent], account: Account) -> None:
    if not events:
        return
    recorded = intake.record(events)
    account.redacted.update(recorded.redactions)
    for event, done in zip(events, recorded.appended, strict=True):
        if done.status == "new":
            account.new += 1
            account.types[event.type] += 1
        elif done.status == "variant":
            account.variant += 1
        else:
            account.duplicate += 1
