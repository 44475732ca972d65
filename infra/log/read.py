"""Reading the log: in order of position and only up to the mark, or one stream whole.

A payload of a known type that cannot be read as one is handed over as `Undecodable`: it is for whoever folds it to
stop at it. An event of a type or version that this memctl does not know is never handed over, and never passed by.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import attrgetter
from typing import Any, NamedTuple
from uuid import UUID

from memctl.domain.events.event import (
    Event,
    FutureSchemaVersion,
    Micros,
    Payload,
    Position,
    UnknownEventType,
    credible,
    decode_payload,
    event_types,
)
from memctl.domain.events.skipping import Undecodable
from memctl.infra.database import Connection, single_row
from memctl.infra.log.reach import Section

_BY_ID = "position = ANY(ARRAY(SELECT * FROM memctl.positions_of(%s, %s)))"
"""SQL: that an event has one of some ids; given space and ids."""

_VERSIONS = "position = ANY(ARRAY(SELECT * FROM memctl.positions_of_versions(%s, %s)))"
"""SQL: that an event is of one of some deliveries, in any version; given space and ids."""

_COLUMNS = """position, event_id, space_id, stream, type, schema_version,
    (extract(epoch FROM occurred_at) * 1000000)::bigint, (extract(epoch FROM recorded_at) * 1000000)::bigint,
    actor, location, session_id, dedupe_key, payload, variant_of, sources"""

_RANGE = f"""SELECT {_COLUMNS} FROM memctl.events
    WHERE position > %s AND position <= %s AND stream_hash BETWEEN %s AND %s AND payload IS NOT NULL{{of}}
    ORDER BY position LIMIT %s"""

# As the partial index has it, letter by letter: of sessions, stage 2 folds facts instead.
_RECORDED = """type NOT IN ('context.compacted', 'notice.received', 'prompt.submitted', 'response.received',
    'session.ended', 'session.started', 'tool.called', 'tool.failed', 'tool.returned')"""

_TYPES = f"""SELECT {_COLUMNS}, variant_of IS NOT NULL OR EXISTS (
        SELECT FROM memctl.events v WHERE v.space_id = e.space_id AND v.variant_of = e.event_id)
    FROM memctl.events e WHERE position > %s AND position <= %s AND type = ANY(%s) AND {_RECORDED}{{of}}
    ORDER BY position"""

# The index of streams goes by 1,024 positions (`position >> 10`).
_STREAMS = f"""SELECT {_COLUMNS} FROM memctl.events
    JOIN unnest(%s::int4[], %s::text[], %s::int8[]) AS wanted(space_id, stream, after) USING (space_id, stream)
    WHERE position > after AND position >> 10 >= after >> 10 AND position <= %s
    ORDER BY space_id, stream, position"""

_STREAM = f"""SELECT {_COLUMNS} FROM memctl.events
    WHERE space_id = %s AND stream = %s AND position > %s AND position >> 10 >= %s::int8 >> 10 AND payload IS NOT NULL
    ORDER BY position >> 10, position LIMIT %s"""

_LENGTHS = """SELECT space_id, stream, (SELECT count(*) FROM (SELECT FROM memctl.events e
        WHERE e.space_id = wanted.space_id AND e.stream = wanted.stream AND e.position <= %s LIMIT %s) AS few)
    FROM unnest(%s::int4[], %s::text[]) AS wanted(space_id, stream)"""

_ALL_STREAMS = f"""SELECT {_COLUMNS} FROM memctl.events
    WHERE (space_id, stream) > (%s, %s) AND (space_id, stream) <= (%s, %s) AND position <= %s
      AND stream LIKE 'session/%%/%%' AND payload IS NOT NULL
    ORDER BY space_id, stream"""

# All of the log is counted in the index of streams alone, which does not hold positions; what lies beyond is taken off.
_SIZES = """SELECT space_id, stream, sum(events)::bigint FROM (
        SELECT space_id, stream, count(*) AS events FROM memctl.events
        WHERE stream LIKE 'session/%%/%%' GROUP BY space_id, stream
        UNION ALL SELECT space_id, stream, -count(*) FROM memctl.events
        WHERE position > %s AND stream LIKE 'session/%%/%%' GROUP BY space_id, stream) AS counted
    GROUP BY space_id, stream HAVING sum(events) > 0 ORDER BY space_id, stream"""

# The type is written out for the sake of the partial index over it.
_SKIPS = f"""SELECT {_COLUMNS} FROM memctl.events
    WHERE type = 'event.skipped' AND position <= %s AND payload IS NOT NULL ORDER BY position"""

_HEADERS = f"""SELECT event_id, coalesce(variant_of, event_id), type, schema_version, stream, position, occurred_at,
    recorded_at, actor, session_id
    FROM memctl.events WHERE {_BY_ID}"""

_IDS = f"""SELECT {_COLUMNS} FROM memctl.events
    WHERE {_VERSIONS} AND position <= %s ORDER BY position"""

_END = Position(2**63 - 1)
"""Beyond every position."""

StreamKey = tuple[int, str]
"""Space and stream name."""


class Stretch(NamedTuple):
    """A stretch of the log: its events in order of position, and the position up to which there is no other."""

    events: list[Event]
    end: Position


def read_range(
    connection: Connection,
    after: Position,
    upto: Position,
    *,
    limit: int,
    hashes: tuple[int, int] = (0, 255),
    of: Section | None = None,
    most_bytes: int = 1 << 62,
) -> Stretch:
    """The first `limit` events with `after < position <= upto` whose stream hash lies in `hashes` (inclusive), of the
    spaces of a section; fewer where their payloads come to `most_bytes`.

    Never pass an `upto` beyond the mark. Erased payloads are left out. The stretch ends before an event that this
    memctl does not know. Raises: UnknownEventType or FutureSchemaVersion when that is the very first.
    """
    events: list[Event] = []
    count = size = 0
    where, spaces = (of.where, of.params) if of else ("", [])
    for row in connection.execute(_RANGE.format(of=where), [after, upto, *hashes, *spaces, limit], binary=True):
        count += 1
        try:
            events.append(_event(row))
        except (UnknownEventType, FutureSchemaVersion) as problem:
            if events:
                return Stretch(events, events[-1].position)
            raise type(problem)(f"position {row[0]}: {problem}", hint=problem.hint) from None
        size += len(row[12] or b"")
        if size >= most_bytes:
            return Stretch(events, events[-1].position)
    return Stretch(events, events[-1].position if count == limit else upto)


def read_types(connection: Connection, payloads: Iterable[type[Payload]], section: Section) -> list[tuple[Event, bool]]:
    """Events of those types in a section, in order of position, and whether there are other versions of the delivery,
    of whatever type. Never pass beyond the mark."""
    given = [section.after, section.upto, list(names_of(payloads)), *section.params]
    rows = connection.execute(_TYPES.format(of=section.where), given, binary=True)
    return [(_event(row[:-1]), row[-1]) for row in rows if row[12] is not None]


def names_of(payloads: Iterable[type[Payload]]) -> frozenset[str]:
    """The wire names of those payloads."""
    wanted = frozenset(payloads)
    return frozenset(name for name, entry in event_types().items() if entry.payload in wanted)


def read_streams(
    connection: Connection,
    streams: Sequence[StreamKey],
    upto: Position,
    after: Mapping[StreamKey, Position] | None = None,
) -> dict[StreamKey, list[Event]]:
    """Every event of those streams up to a position, by stream, in order of position.

    `after` says of some to leave out what stands at or before a position.
    """
    found: dict[StreamKey, list[Event]] = {key: [] for key in streams}
    if not found:
        return found
    spaces, names, begins = zip(*((*key, (after or {}).get(key, 0)) for key in streams), strict=True)
    for row in connection.execute(_STREAMS, [list(spaces), list(names), list(begins), upto], binary=True):
        if row[12] is not None:
            event = _event(row)
            found[event.space_id, event.stream].append(event)
    return found


def read_stream(connection: Connection, space_id: int, stream: str, before: Position | None = None) -> list[Event]:
    """Every event of a stream, or those before a position, in order of position. Sees what this transaction sees."""
    found = read_streams(connection, [(space_id, stream)], Position((before or 2**63 - 1) - (before is not None)))
    return found[space_id, stream]


def read_stream_after(connection: Connection, space_id: int, stream: str, after: Position, limit: int) -> list[Event]:
    """The first `limit` events of a stream behind a position, in order of position. Erased payloads are left out."""
    return [_event(row) for row in connection.execute(_STREAM, [space_id, stream, after, after, limit], binary=True)]


def first_unknown(connection: Connection, upto: Position) -> str:
    """The first event up to a position of a type or version that this memctl does not know, in words; "" if none."""
    known = event_types()
    found = connection.execute(
        "SELECT type, schema_version, min(position) FROM memctl.events WHERE position <= %s GROUP BY 1, 2 ORDER BY 3",
        [upto],
    )
    for name, version, position in found.fetchall():
        if name not in known or version > known[name].version:
            return f"the event at position {position} is {name!r} version {version}, which this memctl does not know"
    return ""


def stream_sizes(connection: Connection, upto: Position) -> Iterator[tuple[StreamKey, int]]:
    """Every session stream in order of space and name, with the number of its events up to a position.

    Reads through a server-side cursor inside a transaction of `connection`.
    """
    with connection.cursor(name="stream_sizes") as cursor:
        cursor.itersize = 10_000
        for space_id, stream, events in cursor.execute(_SIZES, [upto]):
            yield (space_id, stream), events


def stream_lengths(
    connection: Connection, streams: Sequence[StreamKey], upto: Position, most: int
) -> dict[StreamKey, int]:
    """How many events each stream has up to a position; one more than `most` where it has more than those."""
    if not streams:
        return {}
    spaces, names = zip(*streams, strict=True)
    rows = connection.execute(_LENGTHS, [upto, most + 1, list(spaces), list(names)])
    return {(space_id, stream): count for space_id, stream, count in rows}


def newest_position(connection: Connection) -> Position:
    """Where the last event of the log stands that is committed; 0 on an empty log."""
    return Position(single_row(connection, "SELECT coalesce(max(position), 0) FROM memctl.events")[0])


def scan_streams(
    connection: Connection, upto: Position, after: StreamKey, to: StreamKey
) -> Iterator[tuple[StreamKey, list[Event]]]:
    """The session streams after `after` up to and with `to` in order of space and name, each with all its events up
    to a position.

    Reads through a server-side cursor inside a transaction of `connection`: memory is that of one stream.
    """
    with connection.cursor(name="scan_streams") as cursor:
        cursor.execute(_ALL_STREAMS, [*after, *to, upto], binary=True)
        key: StreamKey | None = None
        events: list[Event] = []
        while rows := cursor.fetchmany(2000):
            for row in rows:
                event = _event(row)
                here = (event.space_id, event.stream)
                if key is not None and here != key:
                    yield key, _in_order(events)
                    events = []
                key = here
                events.append(event)
        if key is not None:
            yield key, _in_order(events)


def _in_order(events: list[Event]) -> list[Event]:
    """By position. They come nearly so: who sorts here needs no room for all streams."""
    events.sort(key=attrgetter("position"))
    return events


def read_versions(
    connection: Connection, space_id: int, ids: Iterable[UUID], upto: Position = _END
) -> dict[UUID, list[Event]]:
    """Every version of deliveries that stands at or before a position, by delivery id."""
    wanted = list(ids)
    by_delivery: dict[UUID, list[Event]] = {}
    for row in connection.execute(_IDS, [space_id, wanted, upto], binary=True):
        if row[12] is not None:
            event = _event(row)
            by_delivery.setdefault(event.delivery_id, []).append(event)
    return by_delivery


def read_events(
    connection: Connection,
    space_id: int,
    ids: Iterable[UUID],
    upto: Position = _END,
    payloads: Iterable[type[Payload]] | None = None,
) -> dict[UUID, Event]:
    """Events by delivery id: of several versions, of one of those `payloads` where any are named, the one that counts.

    Who folds gives the position it folds up to, and the payloads that it folds: a version beyond it was not there then,
    and one of another type is for others to fold.
    """
    from memctl.domain.events.event_order import preferred

    found = read_versions(connection, space_id, ids, upto)
    if payloads is not None:
        names = names_of(payloads)
        found = {key: [event for event in versions if event.type in names] for key, versions in found.items()}
    return {key: preferred(versions) for key, versions in found.items() if versions}


def read_headers(connection: Connection, space_id: int, ids: Iterable[UUID]) -> dict[UUID, dict[str, Any]]:
    """What stands about events beside their payloads, by id: for those too that cannot be read."""
    found: dict[UUID, dict[str, Any]] = {}
    for row in connection.execute(_HEADERS, [space_id, list(ids)], binary=True):
        event_id, delivery_id, kind, version, stream, position, occurred, recorded, actor, session_id = row
        found[event_id] = {
            "id": event_id, "delivery": delivery_id, "type": kind, "schema_version": version, "stream": stream,
            "position": position, "occurred_at": occurred.isoformat(), "recorded_at": recorded.isoformat(),
            "actor": actor, "session": session_id,
        }  # fmt: skip
    return found


def read_skips(connection: Connection, upto: Position) -> list[Event]:
    """Every `event.skipped` up to a position, in order of position."""
    return [_event(row) for row in connection.execute(_SKIPS, [upto], binary=True)]


def _event(row: tuple[Any, ...]) -> Event:
    (position, event_id, space_id, stream, kind, version, occurred, recorded, actor, location, session_id, key, payload,
     variant_of, sources) = row  # fmt: skip
    return Event(
        position=Position(position),
        event_id=event_id,
        space_id=space_id,
        stream=stream,
        type=kind,
        occurred_at=credible(occurred, recorded),
        recorded_at=Micros(recorded),
        actor=actor,
        location=location,
        session_id=session_id,
        dedupe_key=key,
        payload=_payload(kind, version, payload),
        variant_of=variant_of,
        sources=tuple(sources or ()),
    )


def _payload(kind: str, version: int, data: bytes) -> Payload:
    try:
        return decode_payload(kind, version, data)
    except (UnknownEventType, FutureSchemaVersion, MemoryError):
        raise
    except Exception as problem:  # an upcast step may raise anything
        return Undecodable(problem=type(problem).__name__)
