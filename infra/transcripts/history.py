"""A repository's history as a source of events: its commits, oldest first, and its tags.

git reads it, in a child that may take only so much time and write only so much, runs no program of the repository's,
and fetches nothing. A commit's key is its id, so what is read twice is a duplicate. What was read up to is the last
commit: whatever that one leads back to is not read again, also after a rebase.
"""

import os
import resource
import select
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import IO

from memctl.domain.events.event import Micros, NewEvent
from memctl.domain.events.observations import (
    LONGEST_FILE,
    MOST_FILES,
    CommitRecorded,
    Observation,
    TagRecorded,
    history_key,
    history_stream,
)
from memctl.domain.support.location import normalise
from memctl.infra.git import Checkout, checkout_of
from memctl.infra.process import processor_s
from memctl.infra.transcripts.reading import START, Checkpoint, Parsed

MOST_COMMITS, MOST_TAGS = 50_000, 5_000
"""The newest commits and tags that are read of one repository."""

MOST_S, MOST_BYTES, MOST_MEMORY = 300.0, 1 << 30, 2 << 30
"""How long git may take for one reading, what it may write, and what memory of its own it may take: four objects make
a tree of a billion files, of which git would hold each change before it writes the first."""

IDLE_S, IDLE_SHARE = 20.0, 0.002
"""Git that has written nothing for so long, and had less than so much of a processor, waits for what never comes: a
disk that is slow is asked by it again and again."""

LONGEST = 1 << 20
"""Bytes of a message, or of a name, that are kept; what lies behind them is passed over."""

_ASIDE = ("core.fsmonitor=false", "core.hooksPath=/dev/null", "log.showSignature=false", "log.mailmap=false",
          "diff.orderFile=/dev/null", "i18n.logOutputEncoding=UTF-8")  # fmt: skip
"""What a repository's configuration has no say in."""

MOST_APART = 16
"""Commits of one reading whose files git cannot list, or only with too much memory: they are read without."""

_LOG = ("log", "-z", "--topo-order", "--reverse", f"-{MOST_COMMITS}")
_COMMIT = "--format=%H%x00%ct%x00%B%x00"
_FILES = ("--raw", "--no-abbrev", "--no-renames", "--no-ext-diff", "--no-textconv")
_TAGS = (
    "for-each-ref", f"--count={MOST_TAGS}", "--sort=-creatordate", "refs/tags",
    "--format=%(refname:short)%00%(creatordate:unix)%00%(*objectname)%00%(objectname)%00",
)  # fmt: skip


class NoRepository(OSError):
    """There is no history to be read."""


def repository_at(path: Path) -> Path | None:
    """The root of the repository whose history is that of a path; None where it lies in none."""
    checkout = checkout_of(path.resolve())
    return Path(_home(checkout)) if checkout is not None else None


def _home(checkout: Checkout) -> str:
    return checkout.repository or checkout.root


class History:
    """One reading of a repository's history. It is read as a transcript is: a commit counts as a line.

    Raises: OSError where git is not there, refuses, or takes too much; what was read until then counts.
    """

    def __init__(self, path: Path) -> None:
        checkout = checkout_of(path)
        if checkout is None or not _home(checkout):
            raise NoRepository(0, "holds no repository")
        self._path = path
        self.location = normalise(_home(checkout))
        self.stream = history_stream(self.location)
        self._until = time.monotonic() + MOST_S
        self._left = MOST_BYTES
        self._behind: deque[tuple[int, str]] = deque([(0, "")], maxlen=3)
        """Where the last lines ended, and the last commit up to there."""

    @property
    def identity(self) -> tuple[int, int]:
        """The same for all names of a repository."""
        status = os.stat(self.location)
        return status.st_dev, status.st_ino

    def resume(self, last: Checkpoint) -> Checkpoint:
        """Where to read on: behind the last commit that was read, if the repository still has it."""
        known = last.digest and b"commit" in b"".join(self._fields("cat-file", "-t", last.digest, quietly=True))
        return last if known else START

    def parse(self, start: Checkpoint = START, upto: str = "HEAD") -> Iterator[Parsed]:
        """The commits up to one that are behind a checkpoint which `resume` found to hold."""
        end, number, last = start.offset, start.lines, start.digest
        self._behind.append((end, last))
        if not any(self._fields("rev-parse", "--verify", "--quiet", f"{upto}^{{commit}}", quietly=True)):
            return
        for size, at, commit in self._commits(f"{last}..{upto}" if last else upto):
            begin, end, number = end, end + size, number + 1
            self._behind.append((end, commit.line))
            yield Parsed(number, begin, end, True, "events", (self._event(commit, at),))

    def tags(self) -> Iterator[Parsed]:
        """All tags. They move, so no checkpoint knows of them."""
        fields = self._fields(*_TAGS)
        for number, name in enumerate(fields, 1):
            at, target, own = next(fields, b""), next(fields, b""), next(fields, b"")
            said, commit = _text(name).strip(), _text(target or own)
            tag = TagRecorded(line=f"tag {said[:80]} {commit}", parent=commit, name=said)
            yield Parsed(number, 0, 0, True, "events", (self._event(tag, _moment(at)),))

    def checkpoint(self, last: Parsed) -> Checkpoint:
        """The checkpoint behind what `parse` gave just now, or before that."""
        return Checkpoint(last.end, last.number, next(commit for end, commit in self._behind if end == last.end))

    def _commits(self, which: str) -> Iterator[tuple[int, Micros, CommitRecorded]]:
        """The commits of a range. One whose files git cannot list is read without them, and those behind it as ever."""
        behind, apart = list[str](), 0
        while True:
            last = ""
            try:
                for size, at, commit in self._listed(*_LOG, _COMMIT, *_FILES, "--end-of-options", which, *behind):
                    last = commit.line
                    yield size, at, commit
                return
            except NoRepository:
                behind += [f"^{last}"] if last else []
                heads = self._fields(*_LOG, "--format=%H", "--end-of-options", which, *behind, quietly=True)
                stuck = _text(next(heads, b"")).strip()
                heads.close()
                if not stuck or apart == MOST_APART:
                    raise
                apart += 1
                behind.append(f"^{stuck}")
                yield from self._listed("log", "-z", "-1", _COMMIT, "--end-of-options", stuck)

    def _listed(self, *command: str) -> Iterator[tuple[int, Micros, CommitRecorded]]:
        fields = self._fields(*command)
        field = next(fields, None)
        while field is not None:
            id, at, text = field, next(fields, b""), next(fields, b"")
            size, files, changed = len(id) + len(at) + len(text), list[str](), 0
            field = next(fields, None)
            while field is not None and not _is_id(field):
                if field.lstrip(b"\n").startswith(b":"):
                    name = next(fields, b"")
                    changed, size = changed + 1, size + len(name)
                    if len(files) < MOST_FILES:
                        files.append(_text(name)[:LONGEST_FILE])
                field = next(fields, None)
            commit = CommitRecorded(line=_text(id), text=_text(text).strip(), files=tuple(files), changed=changed)
            yield size, _moment(at), commit

    def _event(self, payload: Observation, at: Micros) -> NewEvent:
        return NewEvent(
            stream=self.stream, payload=payload, occurred_at=at, dedupe_key=history_key(self.stream, payload.line),
            actor="tool", location=self.location,
        )  # fmt: skip

    # --- the child ---

    def _fields(self, *command: str, quietly: bool = False) -> Generator[bytes, None, None]:
        """What git writes, field by field. `quietly`: that git refuses is an answer."""
        aside = [part for setting in _ASIDE for part in ("-c", setting)]
        said = tempfile.TemporaryFile()  # noqa: SIM115 - closed below
        try:
            git = subprocess.Popen(  # noqa: S603 - a path, and commands of our own
                ["git", "--no-pager", *aside, "-C", str(self._path), *command],  # noqa: S607 - the user's own git
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=said, env=_environment(),
            )  # fmt: skip
        except FileNotFoundError:
            said.close()
            raise NoRepository(0, "git is not installed") from None
        assert git.stdout is not None
        if sys.platform == "linux":
            resource.prlimit(git.pid, resource.RLIMIT_DATA, (MOST_MEMORY, MOST_MEMORY))
        try:
            yield from self._split(git.stdout, git.pid)
            if git.wait(max(self._until - time.monotonic(), 0.1)) and not quietly:
                said.seek(0)
                raise NoRepository(0, _text(said.read(300)).partition("\n")[0] or "git refuses")
        except subprocess.TimeoutExpired:
            raise self._too_long() from None
        finally:
            git.kill()
            git.wait()
            git.stdout.close()
            said.close()

    def _split(self, pipe: IO[bytes], pid: int) -> Iterator[bytes]:
        kept = b""
        while data := self._read(pipe, pid):
            *whole, rest = data.split(b"\0")
            for part in whole:
                yield kept + part[: LONGEST - len(kept)]
                kept = b""
            kept += rest[: LONGEST - len(kept)]
        if kept.strip():
            yield kept

    def _read(self, pipe: IO[bytes], pid: int) -> bytes:
        had, asked = processor_s(pid), time.monotonic()
        while not select.select([pipe], [], [], max(min(IDLE_S, self._until - time.monotonic()), 0))[0]:
            if time.monotonic() >= self._until:
                raise self._too_long()
            waited, has = time.monotonic() - asked, processor_s(pid)
            if had is not None and has is not None and waited >= IDLE_S and has - had < IDLE_SHARE * waited:
                raise OSError(0, "git waits and does nothing: is something in its folder a pipe and not a file?")
        data = os.read(pipe.fileno(), 1 << 16)
        self._left -= len(data)
        if self._left < 0:
            raise OSError(0, f"its history takes more than {MOST_BYTES >> 20} MB; what was read so far is kept")
        return data

    @staticmethod
    def _too_long() -> OSError:
        return OSError(0, f"git took more than {MOST_S:.0f} s; what was read so far is kept, and read on from there")


def _environment() -> dict[str, str]:
    """What git sees of ours: nothing that points it to another repository, and no way to fetch, ask or lock."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    return {**kept, "LC_ALL": "C", "GIT_OPTIONAL_LOCKS": "0", "GIT_NO_LAZY_FETCH": "1", "GIT_TERMINAL_PROMPT": "0",
            "GIT_ALLOW_PROTOCOL": "none", "GIT_NO_REPLACE_OBJECTS": "1"}  # fmt: skip


def _is_id(field: bytes) -> bool:
    return len(field) in (40, 64) and all(byte in b"0123456789abcdef" for byte in field)


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def _moment(seconds: bytes) -> Micros:
    number = seconds.strip()
    return Micros(int(number) * 1_000_000 if number.isdigit() and len(number) < 12 else 0)
