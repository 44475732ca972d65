"""Reading the log: in order of position and only up to the mark, or one stream whole."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any
from uuid import UUID

from memctl.domain.event import Event, Micros, Payload, Position, decode_payload, event_types
from memctl.infra.database import Connection

_COLUMNS = """position, event_id, space_id, stream, type, schema_version,
    (extract(epoch FROM occurred_at) * 1000000)::bigint, (extract(epoch FROM recorded_at) * 1000000)::bigint,
    actor, location, session_id, dedupe_key, payload, variant_of, sources"""

_RANGE = f"""SELECT {_COLUMNS} FROM memctl.events
    WHERE position > %s AND position <= %s AND stream_hash BETWEEN %s AND %s AND payload IS NOT NULL
    ORDER BY position LIMIT %s"""

_TYPES = f"""SELECT {_COLUMNS} FROM memctl.events
    WHERE position > %s AND position <= %s AND type = ANY(%s) ORDER BY position"""

_STREAMS = f"""SELECT {_COLUMNS} FROM memctl.events
    WHERE (space_id, stream) IN (SELECT * FROM unnest(%s::int4[], %s::text[])) AND position <= %s
    ORDER BY space_id, stream, position"""

_ALL_STREAMS = f"""SELECT {_COLUMNS} FROM memctl.events
    WHERE position <= %s AND stream_hash BETWEEN %s AND %s AND payload IS NOT NULL
      AND (space_id, stream) > (%s, %s) AND stream LIKE 'session/%%/%%'
    ORDER BY space_id, stream, position"""

_IDS = f"""SELECT {_COLUMNS} FROM memctl.events
    WHERE space_id = %s AND (event_id = ANY(%s) OR variant_of = ANY(%s)) ORDER BY position"""

StreamKey = tuple[int, str]
"""Space and stream name."""


def read_range(
    connection: Connection,
    after: Position,
    upto: Position,
    *,
    limit: int,
    hashes: tuple[int, int] = (0, 255),
) -> list[Event]:
    """Events with `after < position <= upto` whose stream hash lies in `hashes` (inclusive), in order of position.

    Never pass an `upto` beyond the mark. Erased payloads are left out.
    Raises: UnknownEventType or FutureSchemaVersion rather than skip an event.
    """
    rows = connection.execute(_RANGE, [after, upto, *hashes, limit], binary=True)
    return [_event(row) for row in rows]


def read_types(
    connection: Connection, payloads: Iterable[type[Payload]], after: Position, upto: Position
) -> list[Event]:
    """Events of those types with `after < position <= upto`, in order of position. Never pass beyond the mark."""
    names = [name for name, entry in event_types().items() if entry.payload in set(payloads)]
    rows = connection.execute(_TYPES, [after, upto, names], binary=True)
    return [_event(row) for row in rows if row[12] is not None]


def read_streams(connection: Connection, streams: Sequence[StreamKey], upto: Position) -> dict[StreamKey, list[Event]]:
    """Every event of those streams up to a position, by stream, in order of position."""
    found: dict[StreamKey, list[Event]] = {key: [] for key in streams}
    spaces, names = [key[0] for key in streams], [key[1] for key in streams]
    for row in connection.execute(_STREAMS, [spaces, names, upto], binary=True):
        if row[12] is not None:
            event = _event(row)
            found[event.space_id, event.stream].append(event)
    return found


def scan_streams(
    connection: Connection, upto: Position, *, hashes: tuple[int, int] = (0, 255), after: StreamKey = (0, "")
) -> Iterator[tuple[StreamKey, list[Event]]]:
    """Every session stream after `after` in order of space and name, each with all its events up to a position.

    Reads through a server-side cursor inside a transaction of `connection`: memory is that of one stream.
    """
    with connection.cursor(name="scan_streams") as cursor:
        cursor.itersize = 2000
        key: StreamKey | None = None
        events: list[Event] = []
        for row in cursor.execute(_ALL_STREAMS, [upto, *hashes, *after], binary=True):
            event = _event(row)
            here = (event.space_id, event.stream)
            if key is not None and here != key:
                yield key, events
                events = []
            key = here
            events.append(event)
        if key is not None:
            yield key, events


def read_events(connection: Connection, space_id: int, ids: Iterable[UUID]) -> dict[UUID, Event]:
    """Events by delivery id. Where a key was delivered in variants, the one that stage 1 takes is returned."""
    from memctl.domain.ordering import preferred

    wanted = list(ids)
    by_delivery: dict[UUID, list[Event]] = {}
    for row in connection.execute(_IDS, [space_id, wanted, wanted], binary=True):
        if row[12] is not None:
            event = _event(row)
            by_delivery.setdefault(event.delivery_id, []).append(event)
    return {key: preferred(variants) for key, variants in by_delivery.items()}


def _event(row: tuple[Any, ...]) -> Event:
    (position, event_id, space_id, stream, kind, version, occurred, recorded, actor, location, session_id, key, payload,
     variant_of, sources) = row  # fmt: skip
    return Event(
        position=Position(position),
        event_id=event_id,
        space_id=space_id,
        stream=stream,
        type=kind,
        occurred_at=Micros(occurred),
        recorded_at=Micros(recorded),
        actor=actor,
        location=location,
        session_id=session_id,
        dedupe_key=key,
        payload=decode_payload(kind, version, payload),
        variant_of=variant_of,
        sources=tuple(sources or ()),
    )
