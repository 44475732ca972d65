"""Where everything that was recorded is now: each line of each transcript, compared with the log and the spool."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from pathlib import Path

import msgspec

from memctl.domain.events.observations import event_id_of
from memctl.infra.database import Connection
from memctl.infra.hooks.capture_policy import PassedOverTranscripts, Spans
from memctl.infra.log import checkpoints, erase
from memctl.infra.transcripts.files import discover
from memctl.infra.transcripts.history import History
from memctl.infra.transcripts.reading import START, Checkpoint, Parsed, Transcript
from memctl.infra.transcripts.sniff import sniff_head

LOOKED_UP, MOST_BYTES = 5_000, 16 << 20
"""Events whose ids are looked up at once, and bytes of their lines that are held until then."""

_ASIDE = (".damaged", ".refused")

Progress = Callable[[Path, int], None]
"""Is called with the file and the number of its bytes that were just read."""


class TranscriptLine(msgspec.Struct, frozen=True):
    """A place in a transcript. Line 0: the file."""

    file: str
    line: int
    why: str = ""

    def __str__(self) -> str:
        return f"{self.file}:{self.line}{self.why and '  ' + self.why}" if self.line else f"{self.file}  {self.why}"


class Ledger(msgspec.Struct):
    """What became of every line: `lines` = `with_events` + `ignored` + `blank` + `bad`, and every line with events is
    in the log, is missing, or has not been read yet."""

    files: int = 0
    lines: int = 0
    with_events: int = 0
    events: int = 0
    ignored: int = 0
    blank: int = 0
    bad: int = 0
    unread: int = 0
    """Lines with events that are not in the log, behind the place up to which their file has been read."""
    unread_files: int = 0
    passed_over: int = 0
    """Lines with events that are not to be in the log: saving was off where they were said, when they were read."""
    forgotten: int = 0
    """Lines with events that were forgotten, and are not to be in the log."""
    missing: int = 0
    missing_named: list[TranscriptLine] = msgspec.field(default_factory=list)
    gone: list[TranscriptLine] = msgspec.field(default_factory=list)
    """Files that were read once, and are not there any more or cannot be read: nothing can be said of their lines."""

    def lose(self, path: Path | str, why: OSError | str) -> None:
        """Count a file of which nothing can be said."""
        said = why if isinstance(why, str) else why.strerror or str(why)
        self.gone.append(TranscriptLine(str(path), 0, said))


class Spool(msgspec.Struct, frozen=True):
    """The spool folder. `oldest_s`: age of the longest waiting delivery; `refused`: how many found no room, ever."""

    waiting: int
    oldest_s: float
    aside: tuple[str, ...]
    refused: int
    refused_at: int


def account(
    connection: Connection,
    space_id: int,
    named: Iterable[Path] = (),
    *,
    passed_over: PassedOverTranscripts | None = None,
    keep: int = 20,
    progress: Progress = lambda path, size: None,
) -> Ledger:
    """Read transcripts again, line by line, and look every event's key up in the log.

    Without `named`, the files that were ever read, and a line counts as missing only where it lies before the place
    up to which its file has been read. Every line of a file or folder that is named has to be in the log.
    Raises: DatabaseUnavailable.
    """
    ledger = Ledger()
    known = checkpoints.load_all(connection, space_id)
    wanted = list(named)
    files = _named_files(wanted, ledger) if wanted else _known_files(known, ledger)
    looking = _LookUp(connection, space_id, ledger, keep)
    seen: set[tuple[int, int]] = set()
    for path, checkpoint in files:
        try:
            if path.is_dir():
                _read_history(path, checkpoint or START, looking)
                continue
            with Transcript(path) as transcript:
                if transcript.identity in seen:
                    continue
                seen.add(transcript.identity)
                spans = passed_over.of(checkpoints.name_of(path)) if passed_over is not None else []
                _read(path, transcript, checkpoint, spans, looking, progress)
        except OSError as problem:
            ledger.lose(path, problem)
    looking.settle()
    return ledger


def _named_files(named: Iterable[Path], ledger: Ledger) -> list[tuple[Path, Checkpoint | None]]:
    """What was named: where that is no transcript, or cannot be read, nothing is proved of it."""
    found: list[tuple[Path, Checkpoint | None]] = []

    for path in named:
        before = len(found) + len(ledger.gone)
        found += [(each, None) for each in discover([path], refused=ledger.lose)]
        if len(found) + len(ledger.gone) == before:
            ledger.lose(path, "no transcript is there")
    return found


def _known_files(known: dict[str, Checkpoint], ledger: Ledger) -> list[tuple[Path, Checkpoint | None]]:
    found: list[tuple[Path, Checkpoint | None]] = []
    for name, checkpoint in sorted(known.items()):
        if name.startswith("blake2b:"):
            ledger.lose(name, "its path is too long to have been noted; name it to have it read")
        else:
            found.append((Path(name), checkpoint))
    return found


def _read(
    path: Path,
    transcript: Transcript,
    checkpoint: Checkpoint | None,
    passed_over: Spans,
    looking: _LookUp,
    progress: Progress,
) -> None:
    reader = sniff_head(transcript.file)
    if reader is None:
        looking.ledger.lose(path, "is no transcript any more")
        return
    looking.ledger.files += 1
    format = reader(path)
    # A file that was rewritten since then has not been read as it is now.
    upto = None if checkpoint is None else transcript.resume(checkpoint, format).offset
    unread = looking.ledger.unread
    for parsed in transcript.parse(format, START):
        progress(path, parsed.end - parsed.offset)
        off = any(at <= parsed.offset and parsed.end <= to for at, to in passed_over)
        looking.add(path, parsed, must=upto is None or parsed.end <= upto, passed_over=off)
    looking.settle()
    looking.ledger.unread_files += looking.ledger.unread > unread


def _read_history(path: Path, checkpoint: Checkpoint, looking: _LookUp) -> None:
    """Look up a repository's commits: those up to the one that was read last have to be in the log."""
    history = History(path)
    known = history.resume(checkpoint)
    looking.ledger.files += 1
    unread = looking.ledger.unread
    if known.digest:
        for parsed in history.parse(upto=known.digest):
            looking.add(path, parsed, must=True, passed_over=False)
    for parsed in chain(history.parse(known), history.tags()):
        looking.add(path, parsed, must=False, passed_over=False)
    looking.settle()
    looking.ledger.unread_files += looking.ledger.unread > unread


class _LookUp:
    """Lines whose events are to be looked up, a batch at a time."""

    def __init__(self, connection: Connection, space_id: int, ledger: Ledger, keep: int) -> None:
        self._connection = connection
        self._space_id = space_id
        self._keep = keep
        self._waiting: list[tuple[Path, Parsed, bool, bool]] = []
        self._events = self._bytes = 0
        self.ledger = ledger

    def add(self, path: Path, parsed: Parsed, *, must: bool, passed_over: bool) -> None:
        """Count a line. `must`: its events have to be in the log, unless it was passed over when it was read."""
        ledger = self.ledger
        if parsed.outcome == "incomplete":
            return
        ledger.lines += 1
        if parsed.outcome != "events":
            ledger.ignored += parsed.outcome == "ignored"
            ledger.blank += parsed.outcome == "blank"
            ledger.bad += parsed.outcome == "bad"
            return
        ledger.with_events += 1
        ledger.events += len(parsed.events)
        self._waiting.append((path, parsed, must, passed_over))
        self._events += len(parsed.events)
        self._bytes += parsed.end - parsed.offset
        if self._events >= LOOKED_UP or self._bytes >= MOST_BYTES:
            self.settle()

    def settle(self) -> None:
        """Look up what waits, and name what is not there."""
        waiting, self._waiting = self._waiting, []
        self._events = self._bytes = 0
        ids = [[event_id_of(self._space_id, event.dedupe_key) for event in parsed.events] for _, parsed, *_ in waiting]
        there = {
            row[0]
            for row in self._connection.execute(
                "SELECT event_id FROM memctl.events"
                " WHERE position = ANY(ARRAY(SELECT * FROM memctl.positions_of(%s, %s)))",
                [self._space_id, [one for line in ids for one in line]],
                binary=True,
            )
        }
        for (path, parsed, must, passed_over), wanted in zip(waiting, ids, strict=True):
            absent = [event for event, one in zip(parsed.events, wanted, strict=True) if one not in there]
            if not absent:
                continue
            under = erase.forgotten(self._connection, self._space_id, absent)
            lacking = [event.type for number, event in enumerate(absent) if number not in under]
            if not lacking:
                self.ledger.forgotten += 1
                continue
            if not must:
                self.ledger.unread += 1
                continue
            if passed_over:
                self.ledger.passed_over += 1
                continue
            self.ledger.missing += 1
            if len(self.ledger.missing_named) < self._keep:
                self.ledger.missing_named.append(TranscriptLine(str(path), parsed.number, ", ".join(lacking)))


def spool_state(folder: Path) -> Spool:
    """What waits in the spool, what was set aside there, and what it had no room for. Raises: OSError."""
    from memctl.infra.hooks.spool import refusals, spooled

    waiting = spooled(folder)
    oldest = 0.0
    if waiting:
        written = waiting[0].name.partition("-")[0]  # names begin with the time of the delivery, in microseconds
        oldest = max(0.0, time.time() - int(written) / 1e6) if written.isdigit() else 0.0
    refused = refusals(folder)
    return Spool(
        len(waiting), oldest, tuple(_aside(folder)), refused.deliveries if refused else 0,
        refused.last_at if refused else 0,
    )  # fmt: skip


def _aside(folder: Path) -> Iterator[str]:
    if folder.is_dir():
        yield from sorted(path.name for path in folder.iterdir() if path.suffix in _ASIDE)
