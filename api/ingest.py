"""Ingest of transcripts: files and folders of them become events, and every line is accounted for."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import msgspec

from memctl.api.commands import Intake, Recorded
from memctl.domain.event import NewEvent
from memctl.infra.log import checkpoints
from memctl.infra.transcripts.files import discover
from memctl.infra.transcripts.reading import START, Checkpoint, Parsed, checkpoint, parse_file, resume
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
    a duplicate). Each batch is committed whole, together with how far its files were read: stopping at any moment
    loses nothing. Raises: FileNotFoundError for a named path that is not there; DatabaseUnavailable.
    """
    account = account if account is not None else Account()
    began = time.monotonic()
    known = {} if again else checkpoints.load_all(intake.connection, intake.space_id)
    with _Batches(intake, account) as batches:
        for path in discover(paths):
            account.files += 1
            _read(path, known, batches, account, progress)
    account.seconds += time.monotonic() - began
    return account


def follow(intake: Intake, paths: Iterable[Path], account: Account, tell: Callable[[Account], None]) -> None:
    """Ingest again and again as the files grow and new ones come, until interrupted. `tell` hears of every change."""
    sources = list(paths)
    seen: dict[Path, tuple[int, int]] = {}
    while True:
        changed = []
        for path in discover([p for p in sources if p.exists()]):
            try:
                status = path.stat()
            except FileNotFoundError:  # it went away between listing and looking
                continue
            if seen.get(path) != (status.st_size, status.st_mtime_ns):
                seen[path] = (status.st_size, status.st_mtime_ns)
                changed.append(path)
        before = account.new
        if changed:
            known = checkpoints.load_all(intake.connection, intake.space_id)
            with _Batches(intake, account) as batches:
                for path in changed:
                    _read(path, known, batches, account, lambda path, size: None)
        if account.new != before:
            tell(account)
        time.sleep(FOLLOW_EVERY_S)


class _Batches:
    """Collects events over files and commits them in batches, each while the next one is being read."""

    def __init__(self, intake: Intake, account: Account) -> None:
        self._intake = intake
        self._account = account
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="ingest")
        self._under_way: Future[Recorded] | None = None
        self._written: list[NewEvent] = []
        self._events: list[NewEvent] = []
        self._reached: dict[Path, Checkpoint] = {}
        self._held = 0

    def add(self, events: Iterable[NewEvent], size: int) -> bool:
        """Take in a line's events; True when the batch is full."""
        self._events.extend(events)
        self._held += size
        return len(self._events) >= BATCH or self._held >= BATCH_BYTES

    def reached(self, path: Path, at: Checkpoint) -> None:
        """Everything in a file up to there is in this batch or in those before."""
        self._reached[path] = at

    def commit(self) -> None:
        """Begin to write what was collected, once the batch before is written."""
        if not self._events and not self._reached:
            return
        events, reached = self._events, self._reached
        self._events, self._reached, self._held = [], {}, 0
        prepared = self._intake.prepare(events)
        self._settle()
        self._written = events
        self._under_way = self._writer.submit(self._intake.write, prepared, reached)

    def _settle(self) -> None:
        if self._under_way is None:
            return
        recorded = self._under_way.result()
        self._under_way = None
        account = self._account
        account.redacted.update(recorded.redactions)
        for event, done in zip(self._written, recorded.appended, strict=True):
            if done.status == "new":
                account.new += 1
                account.types[event.type] += 1
            elif done.status == "variant":
                account.variant += 1
            else:
                account.duplicate += 1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        try:
            if kind is None:
                self.commit()
            self._settle()
        finally:
            self._writer.shutdown()


def _read(path: Path, known: dict[str, Checkpoint], batches: _Batches, account: Account, progress: Progress) -> None:
    format = format_of(path)
    if format is None:
        return
    start = resume(path, known.get(checkpoints.name_of(path), START))
    if start.offset and start.offset == path.stat().st_size:
        account.unchanged += 1
        return
    last: Parsed | None = None

    def note() -> None:
        if last is not None:
            batches.reached(path, checkpoint(path, last.end, last.number))

    for parsed in parse_file(path, format, start):
        size = parsed.end - parsed.offset
        progress(path, size)
        _count(account, path, parsed)
        full = batches.add(parsed.events, size)
        if not parsed.whole:  # its newline will come: until then it is read again each time
            break
        last = parsed
        if full:
            note()
            batches.commit()
            last = None
    note()


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
