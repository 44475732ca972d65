"""The real sessions as stage 1 sees them: their events by stream, redacted as on their way into the log."""

from __future__ import annotations

import sys
import tarfile
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from events import as_read
from published import FOLDER as FOLDER
from transcript_files import format_of, parse_file

from memctl.domain.events.event import Event, NewEvent
from memctl.domain.events.facts import Fact
from memctl.domain.session.stream_facts import derive
from memctl.infra.redaction import prepare
from memctl.infra.transcripts.files import discover

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Data:
    """A folder of published data (tests/published.py). What it lacks is None: a measure says so and is left out."""

    def __init__(self, folder: Path, sessions: Path | None = None) -> None:
        self.folder = folder
        self._sessions = sessions
        self.lines: dict[str, tuple[str, int]] = {}
        """Where each of the events was read, by dedupe key: the file within the sessions' folder, and the line."""

    def file(self, name: str) -> Path | None:
        path = self.folder / name
        return path if path.exists() else None

    @property
    def has_sessions(self) -> bool:
        return self._sessions is not None or self.file("agent-sessions.tar.xz") is not None

    @cached_property
    def events(self) -> list[NewEvent]:
        """What the transcripts tell, redacted and each delivery once, in order of file and line."""
        with tempfile.TemporaryDirectory(prefix="memctl-eval-") as unpacked:
            folder = self._sessions
            if folder is None:
                folder = Path(unpacked)
                with tarfile.open(self.folder / "agent-sessions.tar.xz") as archive:
                    archive.extractall(folder)  # as the archive says; `filter` came with 3.11.4
            found: dict[str, NewEvent] = {}
            for path in sorted(discover([folder])):
                format = format_of(path)
                for parsed in parse_file(path, format) if format is not None else ():
                    for event in map(prepare, parsed.events):
                        found.setdefault(event.dedupe_key, event)
                        self.lines.setdefault(event.dedupe_key, (path.relative_to(folder).as_posix(), parsed.number))
        return list(found.values())

    @cached_property
    def streams(self) -> dict[str, list[Event]]:
        """The events of each session as the log holds them."""
        streams: dict[str, list[Event]] = defaultdict(list)
        for position, event in enumerate(self.events, 1):
            streams[event.stream].append(as_read(event, position))
        return dict(sorted(streams.items()))

    @cached_property
    def facts(self) -> dict[str, list[Fact]]:
        """What stage 1 makes of each session."""
        return {stream: derive(stream, events).drain() for stream, events in self.streams.items()}


UNSEEN = "agent-sessions-2.tar.xz"


@contextmanager
def unseen(data: Data) -> Iterator[Data | None]:
    """The sessions that no rule was made on; None where they are not there."""
    archive = data.file(UNSEEN)
    if archive is None:
        yield None
        return
    with tempfile.TemporaryDirectory(prefix="memctl-eval-") as unpacked:
        with tarfile.open(archive) as packed:
            packed.extractall(unpacked)  # as the archive says; `filter` came with 3.11.4
        yield Data(data.folder, Path(unpacked))


def in_order(facts: Iterable[list[Fact]]) -> list[Fact]:
    """The facts of many sessions in order of time."""
    return sorted((fact for of_one in facts for fact in of_one), key=lambda f: (f.occurred_at, f.stream))
