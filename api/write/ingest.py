"""Ingest of transcripts: files and folders of them become events, and every line is accounted for."""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self

import msgspec

from memctl.api.write.hang_watch import HUNG
from memctl.api.write.ingest_writer import EventSink, WriteResult
from memctl.domain.events.event import NewEvent
from memctl.domain.events.observations import SessionStarted
from memctl.infra.git import tracks
from memctl.infra.hooks.capture_policy import CapturePolicy, Spans
from memctl.infra.log import checkpoints
from memctl.infra.log.append import Appended
from memctl.infra.redaction import Prepared
from memctl.infra.transcripts.files import EXAMPLE, discover, kept_by_a_client
from memctl.infra.transcripts.history import History
from memctl.infra.transcripts.reading import START, Checkpoint, Parsed, Transcript
from memctl.infra.transcripts.sniff import damaged_head, sniff_head

log = logging.getLogger("memctl.ingest")

BATCH = 250
"""Events committed at once: what others append meanwhile is folded behind them."""

BATCH_BYTES = 8 * 1024 * 1024
"""A batch is committed early once its lines hold this much, so memory stays flat."""

FOLLOW_EVERY_S = 1.0

MOST_BAD, MOST_KINDS = 1_000, 1_000
"""Lines that an account lists as bad, the first ones, and kinds of lines that it counts apart: a file may hold millions
of either."""


class BadLine(msgspec.Struct, frozen=True):
    """A line, or a part of one, that could not be read or kept, and why. Line 0: the file, from some line on."""

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
    forgotten: int = 0
    """Events that were forgotten before, and are not kept again."""
    types: Counter[str] = msgspec.field(default_factory=Counter)
    """New events by type."""
    redacted: Counter[str] = msgspec.field(default_factory=Counter)
    """Secrets and private parts that were replaced by markers, by kind."""
    ignored: Counter[str] = msgspec.field(default_factory=Counter)
    bad: list[BadLine] = msgspec.field(default_factory=list)
    """The first of them."""
    bad_lines: int = 0
    seconds: float = 0.0

    def take(self, kind: str, done: Appended) -> None:
        """Count what became of an event of that type."""
        match done.status:
            case "new":
                self.new += 1
                self.types[kind] += 1
            case "variant":
                self.variant += 1
            case "forgotten":
                self.forgotten += 1
            case _:
                self.duplicate += 1

    def refuse(self, file: Path, line: int, why: str) -> None:
        """Count what could not be read or kept."""
        self.bad_lines += 1
        if len(self.bad) < MOST_BAD:
            self.bad.append(BadLine(str(file), line, why))

    def ignore(self, kind: str) -> None:
        """Count a line that gives no events."""
        self.ignored[kind if kind in self.ignored or len(self.ignored) < MOST_KINDS else "of other kinds"] += 1

    def as_json(self) -> dict[str, Any]:
        """The account as `memctl ingest --json` prints it."""
        return {
            "files": self.files,
            "unchanged": self.unchanged,
            "lines": self.lines,
            "bytes": self.read_bytes,
            "events": {
                "new": self.new,
                "duplicate": self.duplicate,
                "variant": self.variant,
                "forgotten": self.forgotten,
            },
            "types": dict(self.types.most_common()),
            "with_events": self.with_events,
            "blank": self.blank,
            "incomplete": self.incomplete,
            "redacted": dict(self.redacted.most_common()),
            "ignored": dict(self.ignored.most_common()),
            "bad_lines": self.bad_lines,
            "bad": [msgspec.to_builtins(line) for line in self.bad],
            "seconds": round(self.seconds, 3),
        }


Progress = Callable[[Path, int], None]
"""Is called with the file and the number of its bytes that were just read."""

THREAD = "ingest"
"""The name of the thread that writes batches."""


class Watch(Protocol):
    """Knows what an earlier process was held by."""

    @property
    def alone(self) -> bool:
        """Whether each line of the file at hand is written by itself."""
        ...

    def begin(self, path: Path, number: int) -> bool:
        """This line is read next; line 0 is the file as a whole. Returns whether it is to be read."""
        ...


def ingest(
    writer: EventSink,
    paths: Iterable[Path],
    *,
    again: bool = False,
    account: Account | None = None,
    progress: Progress = lambda path, size: None,
    policy: CapturePolicy | None = None,
    watch: Watch | None = None,
) -> Account:
    """Read transcripts and append their events; returns the account.

    A file is read on from where it was left, unless `again`, which reads it from its start (what is known already is
    a duplicate). Each batch is committed whole, together with how far its files were read: stopping at any moment
    loses nothing. What was said where and while saving was off, as `policy` knows, is passed over. What cannot be
    read, and what Postgres does not take, is listed among the bad. Raises: DatabaseUnavailable, and whatever `progress`
    raises, once what was read is written.
    """
    account = account if account is not None else Account()
    began = time.monotonic()
    reading = _Reading(account, {} if again else writer.known(), policy=policy, watch=watch)
    try:
        _read_all(writer, paths, reading, progress)
    finally:
        account.files += len(reading.files)
        account.unchanged += reading.unchanged
        account.seconds += time.monotonic() - began
    return account


def ingest_history(
    writer: EventSink, roots: Iterable[Path], *, again: bool = False, account: Account, progress: Progress
) -> Account:
    """Read the history of repositories and append its events: each commit once, from where it was left on.

    It is accounted for as transcripts are, a commit as a line. Raises: DatabaseUnavailable, and whatever `progress`
    raises, once what was read is written.
    """
    began = time.monotonic()
    known = {} if again else writer.known()
    try:
        with Batches(writer, account) as batches:
            for root in roots:
                account.files += 1
                try:
                    _read_history(History(root), root, known.get(checkpoints.name_of(root), START), batches, progress)
                except OSError as problem:
                    account.refuse(root, 0, _reason(problem))
    finally:
        account.seconds += time.monotonic() - began
    return account


def _read_history(history: History, root: Path, known: Checkpoint, batches: Batches, progress: Progress) -> None:
    last: Parsed | None = None
    try:
        for parsed in history.parse(history.resume(known)):
            progress(root, parsed.end - parsed.offset)
            count(batches.account, root, parsed)
            full, last = batches.add(root, parsed), parsed
            if full:
                batches.reached(root, history.checkpoint(parsed))
                batches.commit()
                last = None
    finally:
        if last is not None:
            batches.reached(root, history.checkpoint(last))
    for parsed in history.tags():
        count(batches.account, root, parsed)
        batches.add(root, parsed)


def follow(
    writer: EventSink,
    paths: Iterable[Path],
    account: Account,
    on_change: Callable[[Account], None],
    stop: threading.Event,
    *,
    agent: str = "",
    policy: CapturePolicy | None = None,
) -> None:
    """Ingest again and again as the files grow and new ones come, until asked to stop: then what was begun is written
    and counted. `on_change` is called after every change; with `agent`, only that client's files are read.
    """
    sources = list(paths)
    seen: dict[Path, tuple[int, int]] | None = None
    while not stop.is_set():
        first, seen, changed = seen is None, seen or {}, []
        for source in sources:
            # What is not there, or goes away while it is looked at, may come later.
            with contextlib.suppress(OSError):
                for path in discover([source], agent):
                    with contextlib.suppress(OSError):
                        status = path.stat()
                        account.files += not first and path not in seen
                        if seen.get(path) != (status.st_size, status.st_mtime_ns):
                            seen[path] = (status.st_size, status.st_mtime_ns)
                            changed.append(path)
        before = account.new
        if changed:
            _read_all(writer, changed, _Reading(account, writer.known(), policy=policy), lambda path, size: None)
        if account.new != before:
            on_change(account)
        stop.wait(FOLLOW_EVERY_S)


@dataclass(slots=True)
class _Reading:
    """One pass over files."""

    account: Account
    known: dict[str, Checkpoint]
    files: set[tuple[int, int]] = field(default_factory=set)
    """Device and inode of those read: under another name a file is not read again."""
    unchanged: int = 0
    policy: CapturePolicy | None = None
    watch: Watch | None = None


def _read_all(writer: EventSink, paths: Iterable[Path], reading: _Reading, progress: Progress) -> None:
    with Batches(writer, reading.account) as batches:
        for path in _found(paths, reading.account):
            _read(reading, path, batches, progress)


def _found(sources: Iterable[Path], account: Account) -> Generator[Path]:
    for source in sources:
        try:
            yield from discover([source], refused=lambda path, why: account.refuse(path, 0, _reason(why)))
        except OSError as problem:
            account.refuse(source, 0, _reason(problem))


@dataclass(slots=True)
class _Batch:
    """Events, each with the line that it comes from, and how far files are read when they are written."""

    events: list[tuple[NewEvent, Path, int]] = field(default_factory=list)
    reached: dict[Path, Checkpoint] = field(default_factory=dict)
    size: int = 0


OF_A_REPOSITORY = "a repository has it, so anybody may have written it; copy it elsewhere to read it as yours"


class Batches:
    """Collects events over files and commits them in batches, each while the next one is being read.

    It may be interrupted at any point: a batch is let go of only once it is handed over, and one that is handed over
    twice adds nothing. After one that could not be written none is, or a checkpoint would pass over its events.
    """

    def __init__(self, writer: EventSink, account: Account) -> None:
        self._writer = writer
        self.account = account
        self._pool = ThreadPoolExecutor(1, thread_name_prefix=THREAD)
        self._under_way: tuple[_Batch, Future[WriteResult]] | None = None
        self._batch = _Batch()

    def add(self, path: Path, parsed: Parsed) -> bool:
        """Take in a line's events; True when the batch is full."""
        batch = self._batch
        batch.events.extend([(event, path, parsed.number) for event in parsed.events])
        batch.size += parsed.end - parsed.offset
        return len(batch.events) >= BATCH or batch.size >= BATCH_BYTES

    def reached(self, path: Path, at: Checkpoint) -> None:
        """Everything in a file up to there is in this batch or in those before."""
        self._batch.reached[path] = at

    def commit(self) -> None:
        """Begin to write what was collected, once the batch before is written."""
        batch = self._batch
        if not batch.events and not batch.reached:
            return
        prepared = self._prepared(batch)
        self._settle()
        self._under_way = batch, self._pool.submit(self._writer.write_rest, prepared, batch.reached)
        self._batch = _Batch()

    def finish(self) -> None:
        """Write what was collected."""
        self.commit()
        self._settle()

    def _prepared(self, batch: _Batch) -> Prepared:
        """Its events, redacted; one that cannot be is reported as a bad line and left out. Of its error the kind is
        said alone: a message may quote what was said."""
        with contextlib.suppress(Exception):
            return self._writer.prepare([event for event, _, _ in batch.events])
        found: list[Prepared] = []
        asked, batch.events = batch.events, []
        for event, path, line in asked:
            try:
                found.append(self._writer.prepare([event]))
                batch.events.append((event, path, line))
            except Exception as problem:
                self.account.refuse(path, line, f"not kept: redacting it failed ({type(problem).__name__})")
        counts = sum((Counter(each.redactions) for each in found), Counter[str]())
        return Prepared([event for each in found for event in each.events], dict(counts))

    def _settle(self) -> None:
        if self._under_way is None:
            return
        batch, writing = self._under_way
        recorded = writing.result()
        self._under_way = None
        account = self.account
        account.redacted.update(recorded.redactions)
        appended = iter(recorded.appended)
        for index, (event, path, line) in enumerate(batch.events):
            if why := recorded.refused.get(index):
                account.refuse(path, line, f"not kept: {why}")
                continue
            account.take(event.type, next(appended))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        try:
            self._settle()
            self.finish()
        except Exception as problem:
            if error is None:
                raise
            if problem is not error:
                log.warning("what had been read when it ended was not written, and will be read again: %s", problem)
        finally:
            self._pool.shutdown()


def _read(reading: _Reading, path: Path, batches: Batches, progress: Progress) -> None:
    """Read a file on from where it was left, into batches; however it ends, what was read whole is noted."""
    last: tuple[Transcript, Parsed] | None = None
    off = _Off()
    brought, name = not kept_by_a_client(path), checkpoints.name_of(path)

    @cache
    def passed_over() -> Spans:
        return reading.policy.passed_over_before(name) if reading.policy is not None else []

    def note() -> None:
        if reading.policy is not None:
            reading.policy.passed_over(name, off.taken())
        if last is not None:
            transcript, parsed = last
            batches.reached(path, transcript.checkpoint(parsed))

    with contextlib.closing(_lines(reading, path)) as lines:
        try:
            for transcript, parsed in lines:
                progress(path, parsed.end - parsed.offset)
                if reading.policy is not None:
                    saved = _without_unsaved(parsed, reading.policy, passed_over)
                    off.add(parsed, passed_over=saved is not parsed)
                    parsed = saved
                if brought:
                    parsed = msgspec.structs.replace(parsed, events=tuple(map(_brought, parsed.events)))
                count(reading.account, path, parsed)
                full = batches.add(path, parsed)
                if not parsed.whole:  # its newline will come: until then it is read again each time
                    break
                last = transcript, parsed
                if reading.watch is not None and reading.watch.alone:
                    note()
                    batches.finish()
                    last = None
                elif full:
                    note()
                    batches.commit()
                    last = None
        finally:
            note()
    if reading.watch is not None:
        batches.finish()  # what a batch holds is of the file at hand


def _lines(reading: _Reading, path: Path) -> Generator[tuple[Transcript, Parsed]]:
    """A file's lines from where it was left. A file that cannot be read, or no further, is listed among the bad, and so
    is one that a repository brings: whoever wrote to that says in it what they please, in the user's name."""
    if path.parent != EXAMPLE.parent and tracks(path.resolve()) is not None:
        reading.account.refuse(path, 0, OF_A_REPOSITORY)
        return
    try:
        with Transcript(path) as transcript:
            if transcript.identity in reading.files:
                return
            reading.files.add(transcript.identity)
            reader = sniff_head(transcript.file)
            if reader is None:
                if why := damaged_head(path):
                    reading.account.refuse(path, 0, why)
                return
            format = reader(path)
            watch = reading.watch
            begin = None if watch is None else lambda number: "" if watch.begin(path, number) else HUNG
            start = transcript.resume(reading.known.get(checkpoints.name_of(path), START), format)
            if start.offset and start.offset == transcript.size:
                reading.unchanged += 1
                return
            for parsed in transcript.parse(format, start, begin):
                yield transcript, parsed
    except OSError as problem:
        reading.account.refuse(path, 0, _reason(problem))


def _brought(event: NewEvent) -> NewEvent:
    """An event of a file that lies elsewhere than clients keep theirs."""
    payload = event.payload
    if isinstance(payload, SessionStarted) and payload.repository:
        payload = msgspec.structs.replace(payload, brought=True)
    return msgspec.structs.replace(event, payload=payload, brought=True)


RESTS_S = 3_600
"""Seconds after which a file that breaks off in its first record is said to be damaged: its client has ended."""


class _Off:
    """Bytes of a file that were passed over since they were last taken: runs of lines, with those between them of which
    nothing would have been kept."""

    def __init__(self) -> None:
        self._spans: Spans = []
        self._goes_on = False

    def add(self, parsed: Parsed, *, passed_over: bool) -> None:
        if passed_over:
            at = self._spans.pop()[0] if self._goes_on else parsed.offset
            self._spans.append((at, parsed.end))
        self._goes_on = bool(self._spans) and (passed_over or (self._goes_on and not parsed.events))

    def taken(self) -> Spans:
        taken, self._spans, self._goes_on = self._spans, [], False
        return taken


_OF_AIDER = "session/aider/"
"""Streams of sessions whose lines bear no time but that of the session's beginning."""


def _without_unsaved(parsed: Parsed, policy: CapturePolicy, passed_over: Callable[[], Spans]) -> Parsed:
    """A line without what was said where and while saving was off. One without a time of its own was said now, or when
    it was passed over."""
    timeless = any(event.stream.startswith(_OF_AIDER) for event in parsed.events)
    before = timeless and any(at <= parsed.offset and parsed.end <= to for at, to in passed_over())
    kept = tuple(
        event
        for event in parsed.events
        if not policy.saving_was_off(event.session_id, event.location, event.occurred_at)
        and not (timeless and (before or policy.off("save", event.session_id, event.location)))
    )
    if len(kept) == len(parsed.events):
        return parsed
    if kept or parsed.why:
        return msgspec.structs.replace(parsed, events=kept)
    return msgspec.structs.replace(parsed, events=(), outcome="ignored", kind="off")


def _rests(path: Path) -> bool:
    """Whether nobody is likely to write a file to its end still."""
    with contextlib.suppress(OSError):
        return time.time() - path.stat().st_mtime > RESTS_S
    return False


def _reason(problem: OSError) -> str:
    return problem.strerror or str(problem) or type(problem).__name__


def count(account: Account, path: Path, parsed: Parsed) -> None:
    """Enter a line in the account; what becomes of its events is added once they are written."""
    if parsed.outcome == "incomplete":
        account.incomplete += 1
        if parsed.end and not parsed.offset and _rests(path):
            account.refuse(path, 0, f"breaks off, and was not written to for {RESTS_S // 60} minutes: nothing is read")
        return
    account.lines += 1
    account.read_bytes += parsed.end - parsed.offset
    if parsed.outcome == "events":
        account.with_events += 1
    elif parsed.outcome == "ignored":
        account.ignore(parsed.kind)
    elif parsed.outcome == "blank":
        account.blank += 1
    if parsed.why:
        account.refuse(path, parsed.number, parsed.why)
