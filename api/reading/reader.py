"""Reading: a bounded pool of connections, and one consistent look at the live generation for each request."""

import contextlib
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import datetime
from itertools import chain
from types import MappingProxyType
from typing import NamedTuple, TypeVar

import msgspec
import psycopg
from psycopg import errors

from memctl.api.reading.caller import Caller
from memctl.api.reading.deadline import QUESTION_S, is_late, work
from memctl.domain.support.errors import MemctlError
from memctl.domain.support.provenance import Provenance, member_of, words_of
from memctl.infra.database import OF_A_GENERATION, Connection, DatabaseUnavailable, connect, outages, single_row
from memctl.infra.log.spaces import HERE, LIVES_HERE, MOST_HOPS, Residence, SpaceMoving, connected
from memctl.infra.readmodels import generations
from memctl.infra.readmodels.generations import Live
from memctl.infra.settings import Settings
from memctl.infra.settings_model import UnknownDatabase

T = TypeVar("T")

STATEMENT_MS = int(QUESTION_S * 1000)
"""A query of a reader is ended after this."""


NO_SPACE = -1
"""Number of a space that nothing was kept in."""


class Then(NamedTuple):
    """Memory as it was: the generations that hold it, and the moment up to which it knows."""

    live: Live
    at: datetime


AS_OF: ContextVar[Callable[[], Then] | None] = ContextVar("memctl as of", default=None)
"""What the request at hand reads instead of memory as it is; asked for when it is read, so never by a bad request."""


class TooBusy(MemctlError):
    """memctl is answering as many requests as it can; try again in a moment."""


class BeingBuilt(DatabaseUnavailable):
    """The database has no {table} yet, or not any more."""

    hint = "the workers build what a new version of memctl needs; `memctl status` shows how far they are"
    table: str


@dataclass(frozen=True, slots=True)
class Reader:
    """One request's look at what is known: a connection in a read-only snapshot, and the generations live in it."""

    connection: Connection
    live: Live
    space_id: int
    space: str
    limited_to: tuple[str, ...] | None = None
    """Remotes and paths of the projects that the caller may read; None if the caller may read everything."""
    memo: dict[str, object] = field(default_factory=dict)
    """What was worked out for this request and may be asked for again."""
    alone: bool = False
    """Whether the database holds no other space."""
    here: bool = False
    """Whether the caller is on this machine, so that a path of theirs may be looked up."""
    member: str = ""
    """The member of the team who asks; empty for the owner."""
    residence: Residence = LIVES_HERE
    """Where the space lives, as this database knows it."""
    apart: bool = False
    """Whether other spaces are kept from the caller, and how much they hold."""

    def whose(self, row: msgspec.Struct) -> str:
        """Whose words a row is in, as the caller is shown it."""
        member, confirmed = getattr(row, "member", ""), getattr(row, "confirmed", False)
        said_by: Provenance = getattr(row, "said_by")  # noqa: B009  # rows of several models have it
        of_turn = said_by is Provenance.AGENT and getattr(row, "kind", "") == "turn"
        if of_turn and "\n→ " not in getattr(row, "text", ""):
            said_by = Provenance.USER_PASTED  # a prompt that no agent has answered
        return words_of(said_by, confirmed=confirmed, member=member, asking=self.member)


class Readers:
    """At most `size` connections in use, opened as they are needed. Callers read the space that they mean, or else
    `space`, where that lives: on the database of the URL, or on one of `databases`. For any number of threads."""

    def __init__(
        self,
        database_url: str,
        space: str,
        size: int = 8,
        patience_s: float = 5.0,
        databases: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self._urls = {**databases, HERE: database_url}
        self._space = space
        self._patience_s = patience_s
        self._free = threading.BoundedSemaphore(size)
        self._idle: dict[str, list[Connection]] = {name: [] for name in self._urls}
        self._lock = threading.Lock()
        self._closed = False

    def read(self, ask: Callable[[Reader], T], caller: Caller) -> T:
        """What `ask` answers over one snapshot, out of what the caller may read.

        Asked once more where the connection was lost, or a replay dropped the generation between two statements.
        Raises: TooBusy, BeingBuilt, DatabaseUnavailable, and whatever `ask` raises.
        """
        if (then := AS_OF.get()) is not None:
            then()  # before a connection is taken: it needs one of its own, and may have to be built first
        try:
            with self._reader(caller) as reader, work(reader.connection):
                return ask(reader)
        except (errors.UndefinedTable, errors.QueryCanceled, psycopg.OperationalError) as why:
            if isinstance(why, errors.QueryCanceled):
                raise TooBusy from why
        self._close_idle()  # what ended one connection has most likely ended them all
        with outages(), self._reader(caller) as reader, work(reader.connection):
            try:
                return ask(reader)
            except errors.UndefinedTable as why:
                missing = OF_A_GENERATION.search(str(why))
                if missing is None:
                    raise
                raise BeingBuilt(table=missing[0]) from why

    def close(self) -> None:
        """Close the idle connections now, and those in use when they come back."""
        with self._lock:
            self._closed = True
        self._close_idle()

    def _close_idle(self) -> None:
        with self._lock:
            idle, self._idle = self._idle, {name: [] for name in self._urls}
        for connection in chain.from_iterable(idle.values()):
            connection.close()

    @contextlib.contextmanager
    def _reader(self, caller: Caller) -> Iterator[Reader]:
        database, came_by = HERE, None
        for _ in range(MOST_HOPS):
            with self._connection(database) as connection, connection.transaction():
                reader = reader_of(connection, caller.space or self._space, caller)
                database = reader.residence.leads_to(came_by)
                if not database:
                    yield reader
                    return
            came_by = reader.residence.move
        raise SpaceMoving(space=caller.space or self._space)

    @contextlib.contextmanager
    def _connection(self, database: str) -> Iterator[Connection]:
        if database not in self._urls:
            raise UnknownDatabase(name=database)
        if not self._free.acquire(timeout=self._patience_s):
            raise TooBusy
        try:
            with self._lock:
                connection = self._idle[database].pop() if self._idle[database] else None
            if connection is None:
                connection = connect(self._urls[database], name="memctl api", statement_timeout_ms=STATEMENT_MS)
                connection.isolation_level, connection.read_only = psycopg.IsolationLevel.REPEATABLE_READ, True
            try:
                yield connection
            finally:
                with self._lock:
                    keep = not (self._closed or connection.closed or connection.broken or is_late())
                    if keep:
                        self._idle[database].append(connection)
                if not keep:
                    connection.close()
        finally:
            self._free.release()


REST_S = 2.0
"""Seconds for which a database that did not answer is not asked what was forgotten."""


class _Behind(Exception):
    """A standby has not received all that was forgotten."""


class StandbyReaders(Readers):
    """Readers of a standby of the database that `written` read. While the standby lacks what was forgotten in a space,
    `written` are asked of that."""

    def __init__(
        self, standby_url: str, written: Readers, space: str, size: int = 8,
        databases: Mapping[str, str] = MappingProxyType({}),
    ) -> None:  # fmt: skip
        super().__init__(standby_url, space, size, databases=databases)
        self._written = written
        self._forgotten: dict[str, object] = {}
        """By space, what was last known to be forgotten."""
        self._again_at: dict[str, float] = {}
        """By space, when its database is asked again that did not answer."""

    def read(self, ask: Callable[[Reader], T], caller: Caller) -> T:
        """As `Readers.read`. While nobody answers where it is written, and for `REST_S` behind that, what was known of
        it before counts."""
        if time.monotonic() >= self._again_at.get(caller.space, 0.0):
            try:
                self._forgotten[caller.space] = self._written.read(_forgotten, caller)
            except DatabaseUnavailable:
                self._again_at[caller.space] = time.monotonic() + REST_S
        forgotten = self._forgotten.get(caller.space)

        def look(reader: Reader) -> T:
            if _forgotten(reader) != forgotten:
                raise _Behind
            return ask(reader)

        try:
            return super().read(look, caller)
        except _Behind:
            return self._written.read(ask, caller)


def _forgotten(reader: Reader) -> object:
    """What differs once more was forgotten of the space, or redacted."""
    ended = "SELECT count(finished_at), max(finished_at) FROM memctl.receipts WHERE space_id = %s"
    return single_row(reader.connection, ended, [reader.space_id])


@contextlib.contextmanager
def opened(settings: Settings, caller: Caller, name: str) -> Iterator[Reader]:
    """A look over a connection of its own to where the space lives, which is named in the database. Raises: NotRunning,
    UnknownDatabase, DatabaseUnavailable, NoneYet."""
    space = caller.space or settings.space
    with connected(settings, space, name) as connection:
        yield reader_of(connection, space, caller)


def reader_of(connection: Connection, space: str, caller: Caller) -> Reader:
    """A look through a connection that is open, out of what the caller may read. Raises: NoneYet."""
    row = connection.execute(
        "SELECT p.stage1, p.stage2, coalesce(s.space_id, %s),"
        " s.space_id IS NOT NULL AND NOT EXISTS (SELECT FROM memctl.spaces o WHERE o.space_id <> s.space_id),"
        " coalesce(s.database, ''), coalesce(s.arriving, false), s.move"
        " FROM memctl.projection_state p LEFT JOIN memctl.spaces s ON s.name = %s",
        [NO_SPACE, space],
    ).fetchone()
    if row is None:
        raise generations.NoneYet
    stage1, stage2, number, alone, *lives = row
    # A space begins with the first event that is kept in it; until then nothing is there to be found.
    then = AS_OF.get()
    live = Live(stage1, stage2) if then is None else then().live
    member = member_of(caller.speaks("user"))
    return Reader(
        connection, live, number, space, caller.projects,
        alone=alone, here=caller.owner, member=member, residence=Residence(*lives), apart=caller.apart,
    )  # fmt: skip
