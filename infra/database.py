"""Connections to Postgres."""

import contextlib
import random
import select
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any, LiteralString, TypeVar

import psycopg
from psycopg import sql
from psycopg.abc import Params
from psycopg.adapt import Buffer, Dumper, Loader
from psycopg.pq import Format

from memctl.domain.support import patterns
from memctl.domain.support.errors import MemctlError

Connection = psycopg.Connection[tuple[Any, ...]]

T = TypeVar("T")


LOCK_TIMEOUT_S = 30.0
"""How long a statement waits for a lock that another holds."""

AT_ONCE = 64 << 20
"""Bytes of rows that one statement puts, about: over one of a gigabyte Postgres lets go of the connection."""

DEADLOCKS = 10
"""Attempts at a transaction that others keep from ending, as they want the same in another order."""


class DatabaseUnavailable(MemctlError):
    """Postgres does not answer."""

    hint = "run this again once it is back: what was kept stays, and nothing is doubled"


class DiskFull(DatabaseUnavailable):
    """Postgres has no room left on its disk."""

    hint = "make room, then run this again: what was kept stays, and nothing is doubled"


class TooManyConnections(DatabaseUnavailable):
    """Postgres takes no more connections."""

    hint = "end what is not needed, or raise max_connections; then run this again"


class TransactionPooling(DatabaseUnavailable):
    """A pooler serves each transaction by another session of Postgres: locks and limits do not last."""

    hint = "set the pooler's pool_mode to session for memctl, or let MEMCTL_DATABASE_URL name Postgres itself"


class OutOfMemory(DatabaseUnavailable):
    """Postgres lacks memory, or is at another limit of its own."""

    hint = "see Postgres's log; then run this again: what was kept stays, and nothing is doubled"


class Locked(DatabaseUnavailable):
    """Somebody else holds a lock in Postgres for too long."""

    hint = "see who in pg_stat_activity; then run this again: what was kept stays, and nothing is doubled"


class StatementEnded(DatabaseUnavailable):
    """Postgres ended a statement that ran too long, or that somebody cancelled."""

    hint = "run this again: what was kept stays, and nothing is doubled"


class NotPermitted(DatabaseUnavailable):
    """Postgres does not let memctl's role do this."""

    hint = (
        "grant it to the role that MEMCTL_DATABASE_URL names (`GRANT …`), or make the role the owner of schema memctl"
    )


class ReadOnly(DatabaseUnavailable):
    """This Postgres may only be read: a standby, or set to read-only."""

    hint = "let MEMCTL_DATABASE_URL name the one that is written to"


class DatabaseDamaged(DatabaseUnavailable):
    """Postgres cannot read what is on its disk."""

    hint = (
        "nothing was overwritten: copy the database's files before anything else; `memctl verify` names what cannot be"
        " read, and a backup from before the damage brings it back"
    )


class ReadModelsReplaced(DatabaseUnavailable):
    """The read models that were being read are gone: others have become live."""

    hint = "run this again; where they stay away, `memctl replay --all` rebuilds them"


class SpaceMoved(DatabaseUnavailable):
    """The space has moved to another database."""

    hint = "run this again: what was kept moved with it, and nothing is doubled"


class SchemaMissing(DatabaseUnavailable):
    """The database lacks a part of memctl's schema."""

    hint = "`memctl up` brings the schema up to date"


_BY_STATE: dict[str, type[DatabaseUnavailable]] = {
    "08": DatabaseUnavailable, "57P": DatabaseUnavailable, "25P03": DatabaseUnavailable, "25P04": DatabaseUnavailable,
    "53": OutOfMemory, "53100": DiskFull, "53300": TooManyConnections, "55P03": Locked, "40P01": Locked,
    "40001": Locked, "57014": StatementEnded, "25006": ReadOnly, "42501": NotPermitted,
    "3F000": SchemaMissing, "42P01": SchemaMissing,
    "42883": SchemaMissing, "XX001": DatabaseDamaged, "XX002": DatabaseDamaged, "58030": DatabaseDamaged,
    "58P01": DatabaseDamaged, "MC001": SpaceMoved,
}  # fmt: skip
"""What an SQLSTATE, or the beginning of one, means to a user; the longest that fits counts."""

OF_A_GENERATION = patterns.compile(r"memctl\.\w+_g\d+")
"""The table of a generation, in an error's words."""

_FULL = (
    "too many clients", "remaining connection slots", "too many connections",
    "no more connections allowed", "query_wait_timeout",  # PgBouncer's words
)  # fmt: skip

_LIMITS = (
    # Who waits for a lock reads afterwards what its holder wrote: an append the tombstones, for one.
    ("default_transaction_isolation", "read committed"),
    ("idle_in_transaction_session_timeout", "60s"),
    ("synchronous_commit", "on"),
    ("timezone", "UTC"),
)
"""What holds for every connection's session. As a statement: poolers refuse or drop what comes with the connection."""

_SET = "SELECT " + "".join(f"set_config('{name}', '{value}', false), " for name, value in _LIMITS)

_PID = b"SELECT pg_backend_pid()"

_PROBED_S = 2.0
"""How long a pooler gets to serve a second connection: where every place of its pool is taken, it waits."""


class _JsonbAsBytes(Loader):
    """jsonb as the bytes of its JSON text: rows are decoded by msgspec, straight into their types."""

    format = Format.BINARY

    def load(self, data: Buffer) -> bytes:
        return bytes(data)[1:]


class _JsonbTextAsBytes(Loader):
    format = Format.TEXT

    def load(self, data: Buffer) -> bytes:
        return bytes(data)


_DAMAGED = ("invalid page", "could not read block", "could not open file", "could not read file")


class Packed(bytes):
    """A parameter in Postgres' own binary format. Its type is what the statement casts it to."""


class _PackedDumper(Dumper):
    format = Format.BINARY
    oid = 0

    def dump(self, obj: Buffer) -> Buffer:
        return obj


def plain_url(url: str) -> str:
    """The URL as libpq reads it (SQLAlchemy's `postgresql+psycopg://` is understood too)."""
    head, separator, rest = url.partition("://")
    return head.split("+", 1)[0] + separator + rest


def connect(url: str, *, autocommit: bool = True, name: str = "memctl", statement_timeout_ms: int = 0) -> Connection:
    """A connection that answers in binary, with time limits that keep a lost client from stalling the log's mark.

    How text is encoded, what a transaction sees and when a commit is done are not left to defaults of the database.

    Raises: DatabaseUnavailable, with libpq's reason.
    """
    try:
        connection = psycopg.connect(
            plain_url(url),
            autocommit=True,
            application_name=name,
            client_encoding="utf8",  # whatever PGCLIENTENCODING says: arrays are packed so
            cursor_factory=psycopg.Cursor,
            connect_timeout=7,  # `status` has ten seconds in all
            keepalives_idle=30,
        )
        *_, pid = single_row(
            connection,
            f"{_SET}set_config('lock_timeout', '{LOCK_TIMEOUT_S * 1000:.0f}', false),"
            f" set_config('statement_timeout', '{statement_timeout_ms}', false), pg_backend_pid()".encode(),
        )
        if pid != connection.info.backend_pid:  # a pooler's own number
            _refuse_transaction_pooling(connection, url)
        connection.autocommit = autocommit
    except psycopg.OperationalError as problem:
        # Only words say why a connection is refused: it has no SQLSTATE yet.
        if any(words in str(problem) for words in _FULL):
            raise TooManyConnections(_message(TooManyConnections, problem)) from problem
        if any(words in str(problem) for words in _DAMAGED):
            raise DatabaseDamaged(_message(DatabaseDamaged, problem)) from problem
        raise DatabaseUnavailable(
            f"Postgres does not answer: {str(problem).strip()}",
            hint="start memctl with `memctl up`, or check MEMCTL_DATABASE_URL",
        ) from problem
    connection.adapters.register_loader("jsonb", _JsonbAsBytes)
    connection.adapters.register_loader("jsonb", _JsonbTextAsBytes)
    connection.adapters.register_dumper(Packed, _PackedDumper)
    return connection


def pooled(connection: Connection) -> bool:
    """Whether a pooler stands between."""
    return bool(single_row(connection, _PID)[0] != connection.info.backend_pid)


_of_sessions: set[str] = set()
"""URLs whose pooler gives each connection a session of its own."""


def _refuse_transaction_pooling(connection: Connection, url: str) -> None:
    """Raises: TransactionPooling where two connections that are open at once are served by one session in turns, or one
    by several."""
    if url in _of_sessions:
        return
    with contextlib.closing(psycopg.connect(plain_url(url))) as other:
        ours, theirs = set[int](), set[int]()
        for _ in range(3):
            # Twice: by turns, each might get every other session.
            ours |= {pid for _ in range(2) for (pid,) in connection.execute(_PID, prepare=False)}
            if not (served := _serving(other)):
                return
            theirs |= served
    if ours & theirs or len(ours) > 1 or len(theirs) > 1:
        connection.close()
        raise TransactionPooling
    _of_sessions.add(url)


def _serving(connection: Connection) -> set[int]:
    """The process of Postgres that serves a connection; none where it is not served in time."""
    link, answer = connection.pgconn, select.poll()
    link.send_query(_PID)
    answer.register(link.socket, select.POLLIN)
    if not answer.poll(_PROBED_S * 1000):
        return set()
    first, *_ = iter(link.get_result, None)
    return {int(first.get_value(0, 0) or 0)}


def outage(problem: psycopg.Error) -> DatabaseUnavailable | None:
    """An error of psycopg as one that a user can act on; None where the statement itself is at fault."""
    state = problem.sqlstate
    kind: type[DatabaseUnavailable] | None
    if state is None:  # the client's own words: a connection that is gone, or closed
        lost = isinstance(problem, psycopg.OperationalError | psycopg.InterfaceError)
        kind = DatabaseUnavailable if lost else None
    else:
        kind = next((_BY_STATE[state[:n]] for n in (5, 3, 2) if state[:n] in _BY_STATE), None)
    if kind is SchemaMissing and OF_A_GENERATION.search(str(problem)):
        kind = ReadModelsReplaced
    return kind(_message(kind, problem)) if kind else None


@contextlib.contextmanager
def outages() -> Iterator[None]:
    """Raise `DatabaseUnavailable`, or a kind of it, for what psycopg raises over a Postgres that cannot answer.

    For the doors, where a user waits; readers and workers in loops handle psycopg's own errors.
    """
    try:
        yield
    except psycopg.Error as problem:
        if known := outage(problem):
            raise known from problem
        raise


def _message(kind: type[DatabaseUnavailable], problem: psycopg.Error) -> str:
    what = "Postgres went away" if kind is DatabaseUnavailable else (kind.__doc__ or "").rstrip(".")
    said = problem.diag.message_primary or " ".join(str(problem).split())
    return f"{what}: {said}" if said else what


def single_row(
    connection: Connection, query: LiteralString | bytes | sql.SQL | sql.Composed, given: Params | None = None
) -> tuple[Any, ...]:
    """The row that a statement answers with which always has one: an aggregate, or what it inserts."""
    row = connection.execute(query, given).fetchone()
    assert row is not None
    return row


def in_parts(rows: Iterable[T], size: Callable[[T], int]) -> Iterator[list[T]]:
    """Rows in order, as many at a time as one statement may put. `size` returns how many bytes a row takes."""
    part: list[T] = []
    held = 0
    for row in rows:
        part.append(row)
        held += size(row)
        if held >= AT_ONCE:
            yield part
            part, held = [], 0
    if part:
        yield part


def past_deadlocks(act: Callable[[], T]) -> T:
    """What `act` answers. It is one transaction, and carried out again where Postgres ended it in favour of others.

    After a pause by chance: Postgres takes a second to see a deadlock, and who begins again at once is in the next one.
    """
    for attempt in range(1, DEADLOCKS):
        with contextlib.suppress(psycopg.errors.DeadlockDetected, psycopg.errors.SerializationFailure):
            return act()
        time.sleep(random.uniform(0, 0.4) * attempt)  # noqa: S311
    return act()


@contextlib.contextmanager
def advisory_lock(connection: Connection, *lock: int, patience_s: float = 0.0) -> Iterator[bool]:
    """Hold a session's advisory lock, of one number or of two, as long as the block lasts: whether it was had within
    that time. A session may hold it several times over.
    """
    numbers = ", ".join(map(str, lock))
    take, release = f"SELECT pg_try_advisory_lock({numbers})".encode(), f"SELECT pg_advisory_unlock({numbers})".encode()
    deadline = time.monotonic() + patience_s
    while not (mine := single_row(connection, take)[0]) and time.monotonic() < deadline:
        time.sleep(0.1)
    try:
        yield mine
    finally:
        if mine and not connection.closed:
            connection.execute(release)


@contextlib.contextmanager
def snapshot(connection: Connection) -> Iterator[None]:
    """Look at one moment: everything read within is as it stood when the first statement began."""
    before = connection.isolation_level
    connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
    try:
        with connection.transaction():
            yield
    finally:
        connection.isolation_level = before
