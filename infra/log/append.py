"""Append: one server-side call, deduplicated by key. What is committed is durable; what is not was never there."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from typing import Any, Literal

import msgspec

from memctl.domain.event import NewEvent, Position, stream_hash, type_of
from memctl.domain.observations import event_id_of
from memctl.infra.database import Connection

Status = Literal["new", "duplicate", "variant"]

_NUL = re.compile(rb"(?<!\\)((?:\\\\)*)\\u0000")
"""NUL in JSON; not the six characters of an escaped backslash and `u0000`."""

_STATUS: dict[str, Status] = {"n": "new", "d": "duplicate", "v": "variant"}

_COLUMNS = {
    "id": "uuid", "variant_id": "uuid", "stream": "text", "hash": "int2", "type": "text", "version": "int2",
    "occurred": "int8", "actor": "text", "location": "text", "session": "text", "causation": "uuid",
    "correlation": "uuid", "key": "text", "sources": "text", "payload": "text",
}  # fmt: skip

_CALL = (
    "SELECT ordinal, at_position, status::text FROM memctl.append_events(%b, "
    + ", ".join(f"%b::{kind}[]" for kind in _COLUMNS.values())
    + ")"
)
_STAGE = (
    "CREATE TEMPORARY TABLE IF NOT EXISTS incoming (ord int4, "
    + ", ".join(f"{name} {kind}" for name, kind in _COLUMNS.items())
    + ") ON COMMIT DELETE ROWS"
)
_CALL_STAGED = (
    "SELECT r.ordinal, r.at_position, r.status::text FROM (SELECT "
    + ", ".join(f"array_agg({name} ORDER BY ord) AS {name}" for name in _COLUMNS)
    + " FROM incoming) a, LATERAL memctl.append_events(%b, "
    + ", ".join(f"a.{name}" for name in _COLUMNS)
    + ") r"
)


class Appended(msgspec.Struct, frozen=True):
    """Where an event stands in the log: its position, and whether this append put it there.

    A `duplicate` was there already; a `variant` is another payload under a key that was there, kept beside it.
    """

    position: Position
    status: Status


def append(connection: Connection, space_id: int, events: Sequence[NewEvent]) -> list[Appended]:
    """Append a batch in the caller's transaction (or one of its own on an autocommit connection).

    Returns one entry for each event, in order. Batches of up to some thousand events; larger ones by `append_bulk`.
    """
    if not events:
        return []
    columns: list[list[Any]] = [list(column) for column in zip(*(_columns(space_id, e) for e in events), strict=True)]
    found = connection.execute(_CALL, [space_id, *columns], binary=True).fetchall()
    return _in_order(found, len(events))


def append_bulk(connection: Connection, space_id: int, events: Sequence[NewEvent]) -> list[Appended]:
    """As `append`, staged by COPY: for batches of thousands. Opens a transaction of its own."""
    if not events:
        return []
    with connection.transaction(), connection.cursor() as cursor:
        cursor.execute(_STAGE)
        with cursor.copy("COPY incoming FROM STDIN WITH (FORMAT binary)") as copy:
            copy.set_types(["int4", *_COLUMNS.values()])
            for ordinal, e in enumerate(events, 1):
                copy.write_row((ordinal, *_columns(space_id, e)))
        found = cursor.execute(_CALL_STAGED, [space_id], binary=True).fetchall()
    return _in_order(found, len(events))


def encode_payload(event: NewEvent) -> bytes:
    """The payload as JSON. NUL, which jsonb cannot hold, becomes U+FFFD (the doors clean it before this)."""
    data = msgspec.json.encode(event.payload)
    return _NUL.sub(rb"\1\\ufffd", data) if b"\\u0000" in data else data


def _columns(space_id: int, event: NewEvent) -> tuple[Any, ...]:
    payload = encode_payload(event)
    kind = type_of(event.payload)
    told = f"{kind.name}\0{event.occurred_at}\0{event.location}\0".encode("utf-8", "surrogatepass")
    digest = hashlib.sha256(told + payload).hexdigest()
    return (
        event_id_of(space_id, event.dedupe_key),
        event_id_of(space_id, f"{event.dedupe_key}#{digest}"),
        event.stream,
        stream_hash(event.stream),
        kind.name,
        kind.version,
        event.occurred_at,
        event.actor,
        event.location,
        event.session_id,
        event.causation_id,
        event.correlation_id,
        event.dedupe_key,
        "{" + ",".join(map(str, event.sources)) + "}" if event.sources else None,
        payload.decode(),
    )


def _in_order(found: list[tuple[Any, ...]], expected: int) -> list[Appended]:
    if len(found) != expected:
        raise AssertionError(f"append of {expected} events answered for {len(found)}")
    return [Appended(Position(at), _STATUS[status]) for _, at, status in sorted(found)]
