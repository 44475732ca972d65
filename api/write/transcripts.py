"""Reads the transcripts that hooks point to, from where each was left, beside the door.

A hook sends what its client chose to send; the transcript has the rest. A client writes it behind its hooks, so a file
is read soon after a hook has named it, and once more when it had time to settle.
"""

from __future__ import annotations

import contextlib
import heapq
import logging
import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from memctl.api.write.hang_watch import HUNG, Suspects, WatchedThread, line_of
from memctl.api.write.ingest import THREAD, ingest
from memctl.api.write.ingest_writer import OUTAGES, EventSink, IngestWriter, Writers
from memctl.infra.hooks.capture_policy import CapturePolicy
from memctl.infra.log import checkpoints
from memctl.infra.settings import Settings
from memctl.infra.transcripts.reading import Checkpoint

log = logging.getLogger("memctl.door")

SOON_S = 0.2
"""Hooks that run at the same moment ask for one reading."""

SETTLED_S = 3.0
"""After this time a client has written what belongs to a hook."""

TURN_S = 2.0
"""How long one file is read while others wait; then it is their turn."""

AGAIN_S, MOST_AGAIN_S = 1.0, 60.0
"""Between attempts at what could not be kept for now: the first, doubled up to the second."""

MOST_UNREAD = 64
"""Unread transcripts that are remembered."""

SUFFIX = ".jsonl"
WHOLE = ".json"
"""Of sessions that a client keeps as one document."""


class TranscriptReader(WatchedThread):
    """Reads named transcripts one after the other, on a thread of its own, until it is stopped.

    What cannot be kept for now, as Postgres or the team's API is away, it tries again; what it does not get to as the
    door ends, the next hook of that session or the next session's start asks for again. A file that an earlier
    door hung on is written line by line, and the line that hung a door alone is passed over.
    """

    helpers = (THREAD,)

    def __init__(
        self,
        settings: Settings,
        open_writer: Callable[[Settings], EventSink] = IngestWriter,
        suspects: Suspects | None = None,
    ) -> None:
        super().__init__(name="transcripts", daemon=True)
        self._suspects = suspects or Suspects(settings.data_dir / "spool")
        self._alone = False
        self._settings = settings
        self._changed = threading.Condition()
        self._due: list[tuple[float, str, bool, str]] = []
        """A heap: when, which file, whether its neighbours are to be read, too, and the space that they are of."""
        self._stopping = False
        self.unread: dict[str, str] = {}
        """Paths of what could not be read, with the kind of error; the latest `MOST_UNREAD`."""
        self._writers = Writers(settings, open_writer)
        self._turn_ends: float | None = None
        """Of the file at hand, from its first new line on: each turn gets on, however long it takes to get there."""
        self._pause = 0.0
        """How long nothing is tried after what could not be kept; 0 while all is."""
        self._not_before = 0.0
        """When that is over."""

    def read(self, path: str, *, neighbours: bool = False, space: str = "") -> None:
        """Have a transcript read into a space. `neighbours`: also those beside it that were read before and have grown
        since, whose sessions ended without a word."""
        if not path.endswith((SUFFIX, WHOLE)) or not Path(path).is_absolute():
            return
        now = time.monotonic()
        with self._changed:
            for delay, wider in ((SOON_S, neighbours), (SETTLED_S, False)):
                same = (at for at, other, w, of in self._due if (other, of) == (path, space) and w >= wider)
                if not any(now < at <= now + delay for at in same):
                    heapq.heappush(self._due, (now + delay, path, wider, space))
            self._changed.notify()

    def passed_over(self) -> dict[str, str]:
        """Lines and files that a door hung on, by what they are known by, with why."""
        return dict.fromkeys((each for each in self._suspects.aside if "#" in each), HUNG)

    def stop(self) -> None:
        """End, after the batch that is being written."""
        with self._changed:
            self._stopping = True
            self._changed.notify()

    def run(self) -> None:
        while (asked := self._next()) is not None:
            path, neighbours, space = asked
            self.at_since = time.monotonic()
            self.begin(Path(path), 0)
            try:
                self._read(Path(path), neighbours, self._writers.of(space).opened())
                self._pause = 0.0
                self.unread.pop(path, None)
            except TurnOver:
                with self._changed:
                    heapq.heappush(self._due, (time.monotonic(), *asked))
            except Stopped:
                break
            except OUTAGES as problem:
                if not self._pause:
                    log.warning("transcripts cannot be read for now: %s", problem)
                self._writers.close()
                self._put_off(*asked)
            except Exception as problem:
                self.unread[path] = kind = type(problem).__name__
                log.warning("a transcript could not be read, and will be when it is named again: %s", kind)
                if len(self.unread) > MOST_UNREAD:
                    del self.unread[next(iter(self.unread))]
                self._writers.close()
        self._writers.close()

    def _next(self) -> tuple[str, bool, str] | None:
        self.at_since = None
        with self._changed:
            while not self._stopping:
                wait = max(self._due[0][0], self._not_before) - time.monotonic() if self._due else None
                if wait is not None and wait <= 0:
                    return heapq.heappop(self._due)[1:]
                self._changed.wait(wait)
        return None

    def _put_off(self, path: str, neighbours: bool, space: str) -> None:
        """Have it tried again after a pause, in which nothing else is tried either: each would lengthen it."""
        self._pause = min(max(2 * self._pause, AGAIN_S), MOST_AGAIN_S)
        with self._changed:
            self._not_before = time.monotonic() + self._pause
            due = (wider for _, other, wider, of in self._due if (other, of) == (path, space))
            if not any(wider >= neighbours for wider in due):
                heapq.heappush(self._due, (self._not_before, path, neighbours, space))

    def _read(self, path: Path, neighbours: bool, writer: EventSink) -> None:
        paths = [path, *_of_subagents(path)]
        if neighbours:
            known = writer.known()
            paths += [other for other in _beside(path) if _grown(other, known)]
        # As it is now: what is passed over is not read again.
        policy = CapturePolicy(self._settings)
        # `Path.is_file` raises over a name that is too long, or a folder that is not ours to look into.
        files = [each for each in paths if os.path.isfile(each) and not self._aside(each, 0)]
        self._turn_ends = None
        account = ingest(writer, files, progress=self._go_on, policy=policy, watch=self)
        for each in files:
            self._suspects.passed(str(each))
        lines: dict[str, list[int]] = {}
        for bad in account.bad:
            lines.setdefault(bad.why, []).append(bad.line)
        for why, of in lines.items():  # no names: they may be what was said
            which = f"line {of[0]}" if len(of) == 1 else f"{len(of)} lines, from line {of[0]} on,"
            log.warning("%s of a transcript: %s", which, why)

    @property
    def alone(self) -> bool:
        return self._alone

    def begin(self, path: Path, number: int) -> bool:
        """This line is read next. Returns whether it is to be: False where an earlier door hung on it."""
        self._alone = str(path) in self._suspects.alone
        self.at = (line_of(path, number) if self._alone else str(path),)
        return not self._aside(path, number)

    def _aside(self, path: Path, number: int) -> bool:
        return line_of(path, number) in self._suspects.aside

    def _go_on(self, path: Path, size: int) -> None:
        if self._stopping:
            raise Stopped
        now = self.at_since = time.monotonic()
        if self._turn_ends is None:
            self._turn_ends = now + TURN_S
        # A document is read whole or not at all.
        if now > self._turn_ends and path.suffix == SUFFIX and self._due and self._due[0][0] <= now:
            raise TurnOver


class TurnOver(Exception):
    """Other files wait. This one is read on from here afterwards."""


class Stopped(Exception):
    """The door is closing. What was read whole is written first (`memctl.api.write.ingest`)."""


def _of_subagents(path: Path) -> Iterator[Path]:
    """The transcripts of a session's subagents: Claude Code keeps them in a folder named like the session's file."""
    with contextlib.suppress(OSError):
        yield from sorted(path.with_suffix("").glob(f"subagents/*{SUFFIX}"))


def _beside(path: Path) -> Iterator[Path]:
    with contextlib.suppress(OSError):
        yield from (other for other in sorted(path.parent.glob(f"*{SUFFIX}")) if other != path)


def _grown(path: Path, known: dict[str, Checkpoint]) -> bool:
    at = known.get(checkpoints.name_of(path))
    try:
        return at is not None and path.stat().st_size != at.offset
    except OSError:
        return False
