"""The log's own integrity: what Postgres holds is what was appended, and whatever cannot be read is named.

Everything at or below the mark is settled, so the checks look at that much and no further: they may run beside
writers and beside each other, see the same events each time, and need no snapshot. Memory is that of one window.
"""

import contextlib
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, Generic, TypeVar

import msgspec
from psycopg import errors, sql

from memctl.domain.events.event import FutureSchemaVersion, Position, UnknownEventType, decode_payload
from memctl.domain.events.observations import event_id_of
from memctl.infra.database import Connection, single_row

NAMED = 20
"""How many of a kind of finding are named; all are counted."""

HASHED, DECODED = 100_000, 2_000
"""Positions looked at by one statement: in the server, and here (payloads travel)."""

UNREADABLE_ONE_BY_ONE = 100
"""Damaged places that are narrowed down to single positions; after that, whole windows are named."""

DAMAGE = (errors.InternalError_, errors.DataCorrupted, errors.IndexCorrupted, errors.UndefinedFile, errors.IoError)
"""What Postgres raises over a page, a row or a file that is not what it wrote."""

_HASHES = """
SELECT count(*), count(*) FILTER (WHERE erased),
    coalesce(array_agg(position ORDER BY position) FILTER (WHERE NOT as_hashed), '{}'),
    coalesce(array_agg(position ORDER BY position) FILTER (WHERE NOT in_shard), '{}')
FROM (SELECT position, payload IS NULL AS erased,
        CASE WHEN payload IS NULL THEN salt IS NULL
             ELSE coalesce(payload_hash = sha256(salt || convert_to(payload::text, 'UTF8')), false) END AS as_hashed,
        stream_hash = get_byte(sha256(convert_to(stream, 'UTF8')), 0) AS in_shard
    FROM memctl.events WHERE position > %s AND position <= %s) e"""

_CONTENTS = """
SELECT position, event_id, space_id, dedupe_key, variant_of, type, schema_version, payload
FROM memctl.events WHERE position > %s AND position <= %s ORDER BY position"""

_STRANDED_VARIANTS = """
SELECT position FROM memctl.events v WHERE variant_of IS NOT NULL AND position <= %s AND NOT EXISTS (
    SELECT FROM memctl.deliveries d JOIN memctl.events f USING (position)
    WHERE d.space_id = v.space_id AND d.event_id = v.variant_of AND f.variant_of IS NULL)
ORDER BY position"""

_ASTRAY = """
SELECT e.position FROM memctl.events e LEFT JOIN memctl.deliveries d
    ON d.space_id = e.space_id AND d.event_id = e.event_id AND d.position = e.position
WHERE e.position <= %(upto)s AND d.position IS NULL
UNION ALL
SELECT d.position FROM memctl.deliveries d WHERE d.position <= %(upto)s
    AND NOT EXISTS (SELECT FROM memctl.events e WHERE e.position = d.position)
ORDER BY 1"""

_TRIGGERS = {
    "events_deliver": ("deliver", "INSERT INTO memctl.deliveries"),
    "events_deliver_again": ("deliver", "INSERT INTO memctl.deliveries"),
    "events_no_change": ("refuse_change", "RAISE EXCEPTION"),
    "events_no_truncate": ("refuse_change", "RAISE EXCEPTION"),
    "events_hold_positions": ("hold_positions", "pg_advisory"),
}
"""The function that each calls, and what that one does."""

T = TypeVar("T")

Progress = Callable[[int, int], None]
"""Called with how many positions are done, and how many there are."""


class AuditFound(Generic[T]):
    """Findings of one kind: all are counted, the first are named."""

    def __init__(self) -> None:
        self.count = 0
        self.first: list[T] = []

    def add(self, *items: T) -> None:
        self.count += len(items)
        self.first += items[: NAMED - len(self.first)]


class Hashed:
    """What the server found when it hashed every payload and stream again. Positions, in order."""

    def __init__(self) -> None:
        self.events = 0
        self.erased = 0
        self.altered: AuditFound[int] = AuditFound()
        """The payload is not the one that was appended; or it is gone, and its salt is not."""
        self.misplaced: AuditFound[int] = AuditFound()
        """The stream belongs to another shard than the event says."""
        self.unreadable: AuditFound[str] = AuditFound()


class Decoded:
    """What was found when every event was read as a worker reads it."""

    def __init__(self) -> None:
        self.events = 0
        self.variants = 0
        self.types: Counter[str] = Counter()
        self.misnamed: AuditFound[int] = AuditFound()
        """The id is not the one that space and dedupe key give."""
        self.unknown: AuditFound[str] = AuditFound()
        """Of a type or a schema version that this memctl does not know."""
        self.undecodable: AuditFound[str] = AuditFound()
        self.unreadable: AuditFound[str] = AuditFound()


class Positions(msgspec.Struct, frozen=True):
    """How far positions have been handed out and settled; all 0 on an empty log."""

    handed_out: int
    mark: int
    highest: int
    """Of an event that is there, be it above the mark."""
    above: int
    """Events above the mark: just written, or their writer's neighbours are at it still."""
    history_disorder: int
    """Entries of the mark's history that lie below an earlier one, or above the mark."""


def hashed(connection: Connection, upto: Position, progress: Progress = lambda done, of: None) -> Hashed:
    """Hash every payload up to a position again, in the server: sha256 over the salt and the text of the jsonb."""
    result = Hashed()

    def look(after: int, last: int) -> None:
        row = single_row(connection, _HASHES, [after, last])
        result.events += row[0]
        result.erased += row[1]
        result.altered.add(*row[2])
        result.misplaced.add(*row[3])

    with _in_parallel(connection):
        _walk(connection, upto, HASHED, look, result.unreadable, progress)
    return result


def decoded(connection: Connection, upto: Position, progress: Progress = lambda done, of: None) -> Decoded:
    """Read every event up to a position: its id follows from its key, its type is known, its payload decodes."""
    result = Decoded()

    def look(after: int, last: int) -> None:
        rows = connection.execute(_CONTENTS, [after, last], binary=True).fetchall()
        for position, event_id, space_id, key, variant_of, kind, version, payload in rows:
            result.events += 1
            result.types[kind] += 1
            if variant_of is None:
                named = event_id_of(space_id, key) == event_id
            else:  # its key is that of the first, with its own id behind
                result.variants += 1
                first, _, own = key.rpartition("#")
                named = own == str(event_id) and event_id_of(space_id, first) == variant_of
            if not named:
                result.misnamed.add(position)
            if payload is None:
                continue
            try:
                decode_payload(kind, version, payload)
            except (UnknownEventType, FutureSchemaVersion):
                result.unknown.add(f"position {position}: {kind}, version {version}")
            except (msgspec.MsgspecError, KeyError, ValueError, TypeError) as problem:
                result.undecodable.add(f"position {position}: {kind}: {problem}")

    _walk(connection, upto, DECODED, look, result.unreadable, progress)
    return result


def positions(connection: Connection, mark: Position) -> Positions:
    """What the sequence, the mark and its history say of each other, the mark being where the caller found it."""
    row = single_row(
        connection,
        """SELECT coalesce(pg_sequence_last_value(pg_get_serial_sequence('memctl.events', 'position')::regclass), 0),
            coalesce((SELECT max(position) FROM memctl.events), 0),
            (SELECT count(*) FROM memctl.events WHERE position > %s),
            (SELECT count(*) FROM (SELECT position, lag(position) OVER (ORDER BY reached_at) AS before
                                   FROM memctl.mark_history) h
             WHERE position < before OR position > (SELECT position FROM memctl.mark))""",
        [mark],
    )
    return Positions(row[0], mark, row[1], row[2], row[3])


def stranded_variants(connection: Connection, upto: Position) -> list[int]:
    """Positions of variants whose first delivery is not in the log."""
    return [row[0] for row in connection.execute(_STRANDED_VARIANTS, [upto])]


def astray(connection: Connection, upto: Position) -> list[int]:
    """Positions at which an event stands that is not entered as a delivery, or one is entered and no event stands."""
    return [row[0] for row in connection.execute(_ASTRAY, {"upto": upto})]


def open_guards(connection: Connection) -> list[str]:
    """What of the log's guards is missing, of its table or of a partition: triggers that refuse changes and enter
    deliveries, the index that keeps keys unique, and the sequence that hands out positions in their order."""
    tables: dict[str, dict[str, tuple[str, str, str]]] = {}
    for table, trigger, *says in connection.execute(
        "SELECT c.relname, t.tgname, t.tgenabled::text, p.proname, p.prosrc FROM pg_class c"
        " LEFT JOIN pg_trigger t ON t.tgrelid = c.oid AND (NOT t.tgisinternal OR t.tgparentid <> 0)"
        " LEFT JOIN pg_proc p ON p.oid = t.tgfoid WHERE c.oid = 'memctl.events'::regclass OR c.oid IN"
        " (SELECT inhrelid FROM pg_inherits WHERE inhparent = 'memctl.events'::regclass) ORDER BY c.relname"
    ):
        tables.setdefault(table, {})[trigger] = (says[0], says[1], says[2])
    missing = []
    for table, found in tables.items():
        where = "" if table == "events" else f" of partition {table}"
        for trigger, (function, acts) in _TRIGGERS.items():
            if trigger not in found:
                missing.append(f"trigger {trigger}{where} is not there")
                continue
            enabled, calls, source = found[trigger]
            if enabled != "A":
                missing.append(f"trigger {trigger}{where} is not ENABLE ALWAYS")
            if calls != function or acts not in source:
                missing.append(f"trigger {trigger}{where} does not do what it is there for")
    index = connection.execute(
        "SELECT indisunique AND indisvalid AND indisready FROM pg_index"
        " WHERE indexrelid = to_regclass('memctl.deliveries_pkey')"
    ).fetchone()
    if index is None or not index[0]:
        missing.append("index deliveries_pkey, which keeps keys unique, is not there or not valid")
    sequence = connection.execute(
        "SELECT seqcache = 1 AND seqincrement > 0 AND NOT seqcycle FROM pg_sequence"
        " WHERE seqrelid = pg_get_serial_sequence('memctl.events', 'position')::regclass"
    ).fetchone()
    if sequence is None or not sequence[0]:
        # A connection that holds some in reserve uses them once the mark has passed them.
        missing.append(
            "the sequence of positions does not hand out one at a time, each above the last, so readers may have passed"
            " some by: make it CACHE 1 NO CYCLE again, then run `memctl replay --all`"
        )
    return missing


@contextlib.contextmanager
def _in_parallel(connection: Connection) -> Iterator[None]:
    """Let the server use its cores: to hash costs 20 µs an event, which its planner takes for next to nothing."""
    settings = ("parallel_setup_cost", "parallel_tuple_cost", "min_parallel_table_scan_size",
                "min_parallel_index_scan_size")  # fmt: skip
    for name in settings:
        connection.execute(sql.SQL("SET {} = 0").format(sql.SQL(name)))
    try:
        yield
    finally:
        if not connection.closed:
            for name in settings:
                connection.execute(sql.SQL("RESET {}").format(sql.SQL(name)))


def _walk(
    connection: Connection,
    upto: int,
    step: int,
    look: Callable[[int, int], Any],
    unreadable: AuditFound[str],
    progress: Progress,
) -> None:
    """Look at windows of positions up to one. `look(after, last)` counts a window as a whole or raises."""

    def narrow(after: int, last: int) -> None:
        try:
            look(after, last)
        except DAMAGE as problem:
            why = problem.diag.message_primary or str(problem)
            if last - after > 1 and unreadable.count < UNREADABLE_ONE_BY_ONE:
                middle = (after + last) // 2
                narrow(after, middle)
                narrow(middle, last)
            else:
                where = f"position {last}" if last - after == 1 else f"positions {after + 1} to {last}"
                unreadable.add(f"{where}: {why}")

    after = 0
    while after < upto:
        last = min(after + step, upto)
        narrow(after, last)
        after = last
        progress(after, upto)
