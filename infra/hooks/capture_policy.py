"""Where memory is switched off: for everything, a session or a project; for saving, for recall, or for both.

`memctl off` writes `off.json` in the data directory; a project's own `.memctl.toml` says `save = false` or
`recall = false` for what lies below it. What happens while saving is off is not kept, and is not read later either (by
when `memctl off` held, and by what of a transcript was passed over meanwhile), unless a person reads that transcript on
purpose (`memctl ingest --again`). What happened before `memctl off` is kept, also where it is read only afterwards.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import msgspec

from memctl.domain.support.errors import MemctlError
from memctl.domain.support.location import above, normalise
from memctl.infra.data_dir import write_private
from memctl.infra.files import NoRegularFile, of_a_stranger, read_file
from memctl.infra.hook import OFF_FILE
from memctl.infra.project_file import PROJECT_FILE, read_project_file

if TYPE_CHECKING:
    from memctl.infra.settings_model import Settings

What = Literal["save", "recall"]
BOTH: tuple[What, ...] = ("save", "recall")

FILE = OFF_FILE
_LARGEST = 16 << 20
"""Bytes of it that are read."""
MOST_PAST = 200
"""Times for which it is known that saving was off, the latest; what was said in earlier ones is read like anything."""

FRESH_S = 2.0
"""For how long what a file said is believed."""

MOST_PROJECTS = 4096
"""Project's files that are known as they were read."""

Stamp = tuple[int, int, int, int, int]
"""What changes with a file's content."""

PASSED_FILE = "passed-over.jsonl"
"""In the data directory: which bytes of which transcripts were read while saving was off there, so that nobody looks
for them in the log. A line names a file by a digest of what its checkpoint is noted under."""

_LARGEST_PASSED = 64 << 20
"""Bytes of it that are read: half a million lines."""

Spans = list[tuple[int, int]]
"""Bytes of a file, from and up to, in the order in which they were read."""


class OffUnreadable(MemctlError):
    """{path} cannot be read: {why}"""

    hint = "mend it or delete it; until then nothing is kept and nothing is recalled"


class PastSwitches(msgspec.Struct, frozen=True):
    """From when until when saving was off, in microseconds since 1970: for a session, a project, or else everywhere."""

    since: int
    until: int
    session: str = ""
    project: str = ""


class Off(msgspec.Struct, frozen=True):
    """What is off. `sessions` by id, `projects` by absolute path, with all that lies below it. `past`: when saving was
    off before, the latest last, because transcripts of those times are read later."""

    everywhere: frozenset[What] = frozenset()
    sessions: dict[str, frozenset[What]] = {}
    projects: dict[str, frozenset[What]] = {}
    since: dict[str, int] = {}
    """When saving went off: of sessions and projects by their names, of everywhere by none."""
    past: tuple[PastSwitches, ...] = ()

    def held(self, session: str, location: str, at: int) -> bool:
        """Whether saving was off then, in microseconds since 1970; of what bears no time (0), whether it is off now."""
        here = self._here(session, location)
        if any("save" in what and (at <= 0 or at >= self.since.get(name, 0)) for name, what in here):
            return True
        return any(
            each.since <= at < each.until
            and (not each.session or each.session == session)
            and (not each.project or each.project in _upward(location))
            for each in self.past
        )

    def has(self, what: What, session: str, location: str) -> bool:
        return any(what in named for _, named in self._here(session, location))

    def _here(self, session: str, location: str) -> Iterator[tuple[str, frozenset[What]]]:
        """What is off there, by the names that `since` has."""
        yield "", self.everywhere
        if session in self.sessions:
            yield session, self.sessions[session]
        for place in _upward(location) if self.projects else ():
            if place in self.projects:
                yield place, self.projects[place]


def read_off(data_dir: Path) -> Off:
    """What is switched off. Raises: OffUnreadable."""
    path = data_dir / FILE
    try:
        return msgspec.json.decode(read_file(path, _LARGEST), type=Off)
    except FileNotFoundError:
        return Off()
    except (OSError, msgspec.MsgspecError) as problem:
        raise OffUnreadable(path=path, why=str(problem)) from problem


def switch(data_dir: Path, on: bool, what: Iterable[What] = BOTH, *, session: str = "", project: str = "") -> Off:
    """Switch saving, recall or both off or on again: for a session, a project's path, or else everywhere.

    Returns what is off from now on. Raises: OffUnreadable, OSError.
    """
    off, named = read_off(data_dir), frozenset(what)
    project = normalise(project) if project else ""

    def turned(was: frozenset[What]) -> frozenset[What]:
        return was - named if on else was | named

    def entered(known: dict[str, frozenset[What]], key: str) -> dict[str, frozenset[What]]:
        return {name: each for name, each in {**known, key: turned(known.get(key, frozenset()))}.items() if each}

    if session:
        off = msgspec.structs.replace(off, sessions=entered(off.sessions, session))
    elif project:
        off = msgspec.structs.replace(off, projects=entered(off.projects, project))
    else:
        off = msgspec.structs.replace(off, everywhere=turned(off.everywhere))
    if "save" in named:
        off = _timed(off, on, session, project)
    data_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
    write_private(data_dir / FILE, json.dumps(msgspec.to_builtins(off), indent=2, sort_keys=True))
    return off


def _timed(off: Off, on: bool, session: str, project: str) -> Off:
    """With when saving went off there, or was off, as it is switched off or on now."""
    key, now = session or project, time.time_ns() // 1000
    since = dict(off.since)
    if not on:
        since.setdefault(key, now)
        return msgspec.structs.replace(off, since=since)
    if key not in since:
        return off
    past = PastSwitches(since.pop(key), now, session, "" if session else project)
    return msgspec.structs.replace(off, since=since, past=(*off.past, past)[-MOST_PAST:])


class CapturePolicy:
    """What is off now, for a process that goes on. A file that cannot be read counts as everything being off."""

    def __init__(self, settings: Settings) -> None:
        self._data_dir = settings.data_dir
        # What a project's file says holds for that project, also where this process was started in it.
        mine = [what for what in BOTH if not settings.origin(what).endswith(PROJECT_FILE)]
        self._everywhere = frozenset(what for what in mine if not getattr(settings, what))
        self._off = Off()
        self._read_at = float("-inf")
        self._projects: dict[str, frozenset[str]] = {}
        """By folder, what its `.memctl.toml` switches off."""
        self._read: dict[str, tuple[Stamp, frozenset[str]]] = {}
        """The same as it was read, and of which file: one that is as it was is not read again."""

    def off(self, what: What, session: str, location: str) -> bool:
        """Whether saving or recall is off for that session at that place (an absolute path)."""
        if what in self._everywhere:
            return True
        self._look()
        return self._off.has(what, session, location) or self._said_at(what, location)

    def saving_was_off(self, session: str, location: str, at: int) -> bool:
        """Whether what was said then (microseconds since 1970) in that session at that place is not to be kept: saving
        was off by `memctl off`, or is by what bears no time, as a project's own file."""
        if "save" in self._everywhere:
            return True
        self._look()
        return self._off.held(session, location, at) or self._said_at("save", location)

    def passed_over_before(self, name: str) -> Spans:
        """Bytes of a transcript that are not to be kept, as they were noted."""
        return PassedOverTranscripts(self._data_dir).of(name)

    def _look(self) -> None:
        now = time.monotonic()
        if now - self._read_at > FRESH_S:
            self._read_at = now
            self._projects.clear()
            try:
                self._off = read_off(self._data_dir)
            except OffUnreadable:
                self._off = Off(everywhere=frozenset(BOTH))

    def passed_over(self, name: str, spans: Spans) -> None:
        """Note that those bytes of a transcript are not to be kept. `name` is what its checkpoint is noted under."""
        if not spans:
            return
        self._data_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
        line = json.dumps({"file": _digest(name), "spans": spans}) + "\n"
        handle = os.open(self._data_dir / PASSED_FILE, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NONBLOCK, 0o600)
        try:
            os.write(handle, line.encode())
        finally:
            os.close(handle)

    def _said_at(self, what: What, location: str) -> bool:
        return any(what in self._said_by(folder) for folder in _upward(location))

    def _said_by(self, folder: str) -> frozenset[str]:
        known = self._projects.get(folder)
        if known is None:
            known = self._projects[folder] = self._now_said_by(folder)
        return known

    def _now_said_by(self, folder: str) -> frozenset[str]:
        file = Path(folder) / PROJECT_FILE
        try:
            found = file.stat()
            if of_a_stranger(file):
                return frozenset()
        except (OSError, ValueError):
            return frozenset()
        stamp = (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)
        before = self._read.get(folder)
        if before is not None and before[0] == stamp:
            return before[1]
        if len(self._read) >= MOST_PROJECTS:
            self._read.clear()
        said = _project_off(file)
        self._read[folder] = stamp, said
        return said


class PassedOverTranscripts:
    """What was read of transcripts while saving was off."""

    def __init__(self, data_dir: Path) -> None:
        self._spans: dict[str, Spans] = {}
        with contextlib.suppress(FileNotFoundError, NoRegularFile):  # which status says
            for line in read_file(data_dir / PASSED_FILE, _LARGEST_PASSED).decode(errors="replace").splitlines():
                with contextlib.suppress(ValueError, KeyError, TypeError):  # torn
                    noted = json.loads(line)
                    self._spans.setdefault(noted["file"], []).extend((at, to) for at, to in noted["spans"])

    def of(self, name: str) -> Spans:
        """Bytes of a file, by what its checkpoint is noted under."""
        return self._spans.get(_digest(name), [])


def _digest(name: str) -> str:
    return hashlib.blake2b(name.encode(), digest_size=16).hexdigest()


def _project_off(file: Path) -> frozenset[str]:
    try:
        said = read_project_file(file)
    except (OSError, ValueError):  # whoever runs memctl there is shown that it cannot be read
        return frozenset()
    return frozenset(what for what in BOTH if said.get(what) is False)


def _upward(location: str) -> tuple[str, ...]:
    """A place and those around it, the root too."""
    if not location.startswith("/"):
        return (location,) if location else ()
    return (location, *above(location), "/")
