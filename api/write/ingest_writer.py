"""How clients' events come in: by what is to be captured, held back where workers are far behind, then by
`memctl.infra.event_writer`."""

import contextlib
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Generic, Protocol, Self, TypeVar

import msgspec
import psycopg
from psycopg import errors

from memctl.api.write.identify import Identifier
from memctl.domain.events.event import NewEvent
from memctl.domain.support.errors import MemctlError
from memctl.infra.backpressure import Backpressure
from memctl.infra.database import DatabaseUnavailable, outages, past_deadlocks
from memctl.infra.endpoints import NotRunning
from memctl.infra.event_writer import EventWriter
from memctl.infra.log import checkpoints
from memctl.infra.log.append import Appended
from memctl.infra.log.spaces import connect_to, log_id
from memctl.infra.readmodels import generations
from memctl.infra.readmodels.known_projects import occupants_at
from memctl.infra.redaction import Prepared
from memctl.infra.settings import Settings
from memctl.infra.transcripts.reading import Checkpoint

T = TypeVar("T")
W = TypeVar("W", bound="EventSink")

_REFUSALS = (
    psycopg.DataError, errors.CheckViolation, errors.NotNullViolation, errors.ProgramLimitExceeded,
    errors.StatementTooComplex, UnicodeEncodeError, OverflowError,
)  # fmt: skip
"""What is raised over what an event holds: a number out of range, a key too long for its index, …"""


class EventsRefused(MemctlError):
    """Postgres does not take what an event holds: {why}."""

    why: str


class NotTaken(EventsRefused):
    """The team's API does not take this: {why}."""

    # `why` is a reason of `memctl.api.write.remote_ingest`, or names a space. It quotes nothing that was said.


class WriteResult(msgspec.Struct, frozen=True):
    """What became of a batch: one entry for each event that was kept, in order, and what was redacted, by kind."""

    appended: tuple[Appended, ...]
    redactions: dict[str, int]
    refused: dict[int, str] = {}
    """Indices of events that Postgres does not take, and why. Empty unless refusals were asked for."""
    log: str = ""
    """The id of the log that they are in, for relays. A log that was restored elsewhere has another id."""


class Away(MemctlError):
    """Nothing can be kept for now: {why}"""

    why: str


OUTAGES = (
    Away, DatabaseUnavailable, NotRunning, psycopg.OperationalError, psycopg.InterfaceError, psycopg.ProgrammingError,
    OSError, MemoryError,
)  # fmt: skip
"""Errors of the environment: try again. Any other error is the event's own, and trying again does not help."""


class EventSink(Protocol):
    """Where events are kept: a log at hand (`IngestWriter`), or that of a team behind its API
    (`memctl.api.write.remote_writer`)."""

    settings: Settings

    @property
    def lost(self) -> bool:
        """Whether it has to be opened again."""

    def known(self) -> dict[str, Checkpoint]:
        """How far each file was read, by `checkpoints.name_of` its path. Raises: DatabaseUnavailable."""

    def record(self, events: Sequence[NewEvent]) -> WriteResult:
        """See `IngestWriter.record`. Raises: EventsRefused, DatabaseUnavailable, Away."""

    def prepare(self, events: Sequence[NewEvent]) -> Prepared:
        """See `IngestWriter.prepare`."""

    def write_rest(self, prepared: Prepared, reached: Mapping[Path, Checkpoint] | None = None) -> WriteResult:
        """See `IngestWriter.write_rest`. Raises: DatabaseUnavailable, Away."""

    def close(self) -> None: ...


class IngestWriter(EventWriter):
    """Appends to one space over a connection of its own to where that lives. Not for several threads."""

    def __init__(self, settings: Settings, *, identify: bool = True) -> None:
        """`identify`: whether events happened on this machine, so that git's files here show which checkout it is."""
        with outages():
            connection, database = connect_to(settings, settings.space, "memctl intake")
        settings = settings.on(database)
        try:
            with outages():
                super().__init__(connection, settings)
                self.log_id = log_id(connection)
                generations.ensure_live(connection, settings.stage1_shards)
            self._identifier = Identifier(partial(occupants_at, connection, self.space_id)) if identify else None
            self._backpressure = Backpressure(connection, self.space_id)
        except BaseException:
            connection.close()
            raise

    @property
    def lost(self) -> bool:
        """Whether the connection is closed."""
        return self.connection.closed

    def known(self) -> dict[str, Checkpoint]:
        """How far each file was read, by `checkpoints.name_of` its path. Raises: DatabaseUnavailable."""
        with outages():
            return checkpoints.load_all(self.connection, self.space_id)

    def record(self, events: Sequence[NewEvent]) -> WriteResult:
        """Redact and append, in one transaction; what is returned is committed.

        Raises: EventsRefused, DatabaseUnavailable; then nothing of it was appended.
        """
        prepared = self.prepare(events)
        return self._recorded(prepared, self._append(prepared.events, {}), {})

    def write_rest(self, prepared: Prepared, reached: Mapping[Path, Checkpoint] | None = None) -> WriteResult:
        """As `record` does, but events that Postgres refuses are left out and reported.

        The others are then appended in several transactions, and `reached` is noted with the last. On this machine
        many events wait until those before them are folded (`memctl.infra.backpressure`). Raises:
        DatabaseUnavailable; then some may have been appended, and nothing is noted as reached.
        """
        with outages(), self._backpressure.room(len(prepared.events) if self._identifier is not None else 0):
            appended, refused = self._append_rest(prepared.events, reached or {})
        return self._recorded(prepared, appended, refused)

    def _recorded(self, prepared: Prepared, appended: Sequence[Appended], refused: dict[int, str]) -> WriteResult:
        if any(entry.status in ("new", "variant") for entry in appended):
            self.wake()
        return WriteResult(tuple(appended), dict(prepared.redactions), refused)

    def _append_rest(
        self, events: Sequence[NewEvent], reached: Mapping[Path, Checkpoint]
    ) -> tuple[list[Appended], dict[int, str]]:
        try:
            return self._append(events, reached), {}
        except EventsRefused as problem:
            if len(events) == 1:
                return self._append([], reached), {0: problem.why}
            if not events:
                raise
        middle = len(events) // 2
        first, refused = self._append_rest(events[:middle], {})
        second, others = self._append_rest(events[middle:], reached)
        return first + second, refused | {middle + index: why for index, why in others.items()}

    def _append(self, events: Sequence[NewEvent], reached: Mapping[Path, Checkpoint]) -> list[Appended]:
        """Append the events, and with them what git says of where they happened; one entry for each event given."""
        given = len(events)
        if self._identifier is not None:
            with outages():
                placed, found = self._identifier.placed(events)
            events = [*placed, *self.prepare(found).events]

        def kept() -> list[Appended]:
            if not reached:
                return self.append(events, by_todays_rules=True)
            with self.connection.transaction():
                appended = self.append(events, by_todays_rules=True)
                checkpoints.save(self.connection, self.space_id, reached)
            return appended

        try:
            with outages():
                # Somebody may append the same keys in another order: one of us has to begin again.
                return past_deadlocks(kept)[:given]
        except _REFUSALS as problem:
            raise EventsRefused(why=_reason(problem)) from problem

    def close(self) -> None:
        """Close the connection, which is this writer's own."""
        self.connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()


class KeptWriter(Generic[W]):
    """A writer that is made for whoever needs it first, and again once it is lost. For several threads."""

    def __init__(self, new: Callable[[], W]) -> None:
        self._new = new
        self._writer: W | None = None
        self._lock = threading.RLock()
        self._let_go = False

    def opened(self) -> W:
        with self._lock:
            if self._writer is None or self._writer.lost:
                self._writer = self._new()
            return self._writer

    def do(self, work: Callable[[W], T]) -> T:
        """What `work` returns, one thread after the other. It is done once more where the connection was lost, maybe
        long ago: the keys of events show what was committed all the same."""
        with self._lock:
            try:
                return work(self.opened())
            except (DatabaseUnavailable, psycopg.Error):
                self.close()
                return work(self.opened())
            finally:
                if self._let_go:
                    self.close()

    def let_go(self) -> None:
        """Keep no writer open from now on but while it is at work."""
        self._let_go = True
        if self._lock.acquire(blocking=False):  # else who is at work closes it
            try:
                self.close()
            finally:
                self._lock.release()

    def close(self) -> None:
        with self._lock, contextlib.suppress(Exception):
            writer, self._writer = self._writer, None
            if writer is not None:
                writer.close()


MOST_WRITERS = 16
"""Spaces for which a connection is kept open to write, those written to last."""


class Writers(Generic[W]):
    """A writer for each space: who writes to one waits for nobody of another. For several threads."""

    def __init__(self, settings: Settings, new: Callable[[Settings], W]) -> None:
        self._settings = settings
        self._new = new
        self._lock = threading.Lock()
        self._kept: OrderedDict[str, KeptWriter[W]] = OrderedDict()

    def of(self, space: str) -> KeptWriter[W]:
        """That of a space; of the settings' own for ""."""
        space = space or self._settings.space
        settings = self._settings.of_space(space)
        with self._lock:
            kept = self._kept.setdefault(space, KeptWriter(lambda: self._new(settings)))
            self._kept.move_to_end(space)
            oldest = self._kept.popitem(last=False)[1] if len(self._kept) > MOST_WRITERS else None
        if oldest is not None:
            oldest.let_go()
        return kept

    def close(self) -> None:
        with self._lock:
            for kept in self._kept.values():
                kept.close()


def _reason(problem: BaseException) -> str:
    if isinstance(problem, psycopg.Error) and problem.diag.message_primary:
        return problem.diag.message_primary
    return " ".join(str(problem).split())
