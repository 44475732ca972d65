"""Append: one server-side call, deduplicated by key. What is committed is durable; what is not was never there."""

import contextlib
import hashlib
import os
import struct
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Literal
from uuid import UUID

import msgspec
from psycopg.pq import TransactionStatus

from memctl.domain.events.event import Event, NewEvent, Payload, Position, derived_bytes, stream_hash, type_of
from memctl.domain.events.observations import MESSAGE
from memctl.domain.projects.identity import bare
from memctl.domain.support import patterns
from memctl.infra.database import Connection, Packed

Redact = Callable[[Payload, str], tuple[Payload, str]]

Status = Literal["new", "duplicate", "variant", "forgotten"]

_NUL = patterns.compile(rb"\\+u0000")
"""NUL in JSON; not the six characters of an escaped backslash and `u0000`."""

_COLUMNS = {
    "id": "uuid", "stream": "text", "hash": "int2", "type": "text", "version": "int2", "occurred": "int8",
    "actor": "text", "location": "text", "session": "text", "causation": "uuid", "correlation": "uuid", "key": "text",
    "variant_of": "uuid", "sources": "text", "salt": "bytea", "payload": "text",
}  # fmt: skip
"""What the server's functions take of an event, in their order."""

_NEW, _SAME, _OTHER, _EMPTIED, _REFUSED = "n", "s", "o", "e", "f"
"""What the server says of each event: it was put; the same stands under its key, or something else, or something whose
words were erased; it lies under a tombstone, and then no event of the batch was put."""

_STATUS: dict[str, Status] = {_NEW: "new", _SAME: "duplicate", _OTHER: "variant", _EMPTIED: "forgotten"}

_OIDS = {"uuid": 2950, "text": 25, "int2": 21, "int8": 20, "bytea": 17}
_CALL_ONE = "SELECT memctl.append_event(%b, " + ", ".join(f"%b::{kind}" for kind in _COLUMNS.values()) + ")"
_CALL = (
    "SELECT positions, statuses FROM memctl.append_events(%b, "
    + ", ".join(f"%b::{kind}[]" for kind in _COLUMNS.values())
    + ")"
)

_Column = list[bytes | None]
"""One column of a batch, each value as Postgres reads it in binary."""

_KEYS = list(_COLUMNS).index("key")
_IDS = 0
_VARIANTS_OF = list(_COLUMNS).index("variant_of")

_length = struct.Struct(">i").pack
_array_head = struct.Struct(">iiIii").pack
_NULL = _length(-1)
_SALT = 16
"""Bytes of a payload's salt."""


class Appended(msgspec.Struct, frozen=True):
    """Where an event stands in the log: its position, and whether this append put it there.

    A `duplicate` was there already. A `variant` is another version under a key that was there (another payload, time or
    place, or by somebody else or in another stream), and is kept beside it. What is `forgotten` was erased and stands
    there empty, or lies under a tombstone and has no position (0): it is not kept.
    """

    position: Position
    status: Status


_NOT_KEPT = Appended(Position(0), "forgotten")

_CITED = "cited"
"""`stream` of the tombstones of what rested on what was forgotten. They keep out what cites it. They do not keep out
other versions under its key: these may rest on something else, and the order of arrival would decide which stand."""


def append(
    connection: Connection, space_id: int, events: Sequence[NewEvent], again: Redact | None = None
) -> list[Appended]:
    """Append a batch in the caller's transaction; on an autocommit connection outside of one, in one of its own.

    Returns one entry for each event, in order. Some thousand events at once are best. `again` redacts a payload and a
    location by the rules of today: what was stored by fewer rules and is the same but for them is a duplicate.
    """
    if not events:
        return []
    alone = connection.autocommit and connection.info.transaction_status == TransactionStatus.IDLE
    if any(event.sources for event in events):
        with connection.transaction() if alone else contextlib.nullcontext():
            resting = _resting_on_what_is_gone(connection, space_id, events)
            return _append_but(resting, connection, space_id, events, again)
    return _append(connection, space_id, events, again, alone)


def _append_but(
    refused: Collection[int], connection: Connection, space_id: int, events: Sequence[NewEvent], again: Redact | None
) -> list[Appended]:
    """Append events but those at these indices, which are not kept."""
    kept = [event for n, event in enumerate(events) if n not in refused]
    rest = iter(_append(connection, space_id, kept, again, alone=False) if kept else ())
    return [_NOT_KEPT if n in refused else next(rest) for n in range(len(events))]


def _append(
    connection: Connection, space_id: int, events: Sequence[NewEvent], again: Redact | None, alone: bool
) -> list[Appended]:
    columns = _columns(space_id, events)
    if len(events) == 1 and (only := _append_one(connection, space_id, columns)) is not None:
        return [only]
    with connection.transaction() if alone else contextlib.nullcontext():
        positions, statuses = _put(connection, space_id, columns)
        if _REFUSED in statuses:
            refused = {n for n, status in enumerate(statuses) if status == _REFUSED}
            return _append_but(refused, connection, space_id, events, again)
        appended = [Appended(Position(at), _STATUS[s]) for at, s in zip(positions, statuses, strict=True)]
        others = [n for n, status in enumerate(statuses) if status == _OTHER]
        if others and again is not None:
            others = _really_different(connection, space_id, events, columns, others, again)
            appended = [Appended(a.position, "duplicate") if a.status == "variant" else a for a in appended]
        if not others:
            return appended
        variants = _append_variants(connection, space_id, events, columns, others)
        if variants is None:  # by somebody else, since the look above
            once_more = _append(connection, space_id, events, again, alone=False)
            return [a if a.status == "new" else b for a, b in zip(appended, once_more, strict=True)]
        return [variants.get(n, a) for n, a in enumerate(appended)]


def _append_variants(
    connection: Connection,
    space_id: int,
    events: Sequence[NewEvent],
    columns: Sequence[_Column],
    which: Sequence[int],
) -> dict[int, Appended] | None:
    """Append events whose key is taken by another version, each as a version of its own; None where one is refused."""
    appended: dict[int, Appended] = {}
    for of_whom in (False, True):
        variants = _variants(space_id, events, columns, which, of_whom=of_whom)
        positions, statuses = _put(connection, space_id, variants)
        if _REFUSED in statuses:
            return None
        for n, at, status in zip(which, positions, statuses, strict=True):
            appended[n] = Appended(Position(at), "variant" if status == _NEW else "duplicate")
        which = [n for n, status in zip(which, statuses, strict=True) if status == _OTHER]
        if not which:
            break
    return appended


def _append_one(connection: Connection, space_id: int, columns: Sequence[_Column]) -> Appended | None:
    """Append a batch of one event, where nothing stands under its key; else None, and nothing was done."""
    values = [None if column[0] is None else Packed(column[0]) for column in columns]
    found = connection.execute(_CALL_ONE, [space_id, *values], binary=True, prepare=True).fetchone()
    assert found is not None
    if found[0] == _NOT_KEPT.position:
        return _NOT_KEPT
    return Appended(Position(found[0]), "new") if found[0] is not None else None


_GONE = """
    SELECT s.id, coalesce(t.receipt, e.receipt) FROM unnest(%(cited)s::uuid[]) AS s(id)
    LEFT JOIN LATERAL (
        SELECT receipt FROM memctl.tombstones
        WHERE space_id = %(space)s AND kind = 'event' AND stream IN ('', %(cited_only)s) AND value = s.id::text
        LIMIT 1) t ON true
    LEFT JOIN LATERAL (
        SELECT (SELECT receipt FROM memctl.receipts WHERE erased @> ARRAY[e.event_id] LIMIT 1)
        FROM memctl.deliveries d JOIN memctl.events e USING (position)
        WHERE d.space_id = %(space)s AND d.event_id = s.id AND e.payload IS NULL
            AND NOT EXISTS (SELECT FROM memctl.events v WHERE v.space_id = e.space_id AND v.variant_of = e.event_id
                            AND v.payload IS NOT NULL)) e ON true
    WHERE coalesce(t.receipt, e.receipt) IS NOT NULL"""


def _resting_on_what_is_gone(connection: Connection, space_id: int, events: Sequence[NewEvent]) -> set[int]:
    """Indices of events that cite a forgotten event, directly or through another event of this batch: an import of what
    another log learnt from it. Tombstones are laid for them, so that what cites them stays away, too. In a
    transaction."""
    # From here on whoever forgets waits for this append, or has been seen by it.
    (forgets,) = connection.execute("SELECT memctl.begin_append(%s)", [space_id]).fetchone() or (False,)
    if not forgets:
        return set()
    rests_on = [(*event.sources, *event.deliveries) for event in events]
    cited = list(set().union(*rests_on))
    under = gone(connection, space_id, cited)
    resting: set[int] = set()
    while under and (
        fresh := [n for n, ids in enumerate(rests_on) if n not in resting and not under.keys().isdisjoint(ids)]
    ):
        for n in fresh:
            own = UUID(bytes=derived_bytes(f"{space_id}:{events[n].dedupe_key}"))
            under[own] = next(under[id] for id in rests_on[n] if id in under)
            connection.execute(
                "INSERT INTO memctl.tombstones (space_id, kind, stream, value, receipt)"
                " VALUES (%s, 'event', %s, %s, %s) ON CONFLICT DO NOTHING",
                [space_id, _CITED, str(own), under[own]],
            )
        resting.update(fresh)
    return resting


def gone(connection: Connection, space_id: int, ids: Iterable[UUID]) -> dict[UUID, UUID]:
    """Those of the deliveries that are known to have been forgotten, each with a receipt that says so."""
    found = connection.execute(_GONE, {"space": space_id, "cited": list(ids), "cited_only": _CITED})
    return dict(found.fetchall())


def _really_different(
    connection: Connection,
    space_id: int,
    events: Sequence[NewEvent],
    columns: Sequence[_Column],
    which: Sequence[int],
    again: Redact,
) -> list[int]:
    """Those of the events that differ from all that is stored under their keys by more than rules that came since, or
    than the time of a message that has none of its own, or whose machine a path is of."""
    from memctl.infra.log.read import read_versions

    # All versions: the id of one is of the text that came, which jsonb may have laid out otherwise.
    ids = {n: UUID(bytes=key) for n in which if (key := columns[_IDS][n]) is not None}
    stored = read_versions(connection, space_id, set(ids.values()))
    timeless = {ids[n] for n in which if events[n].dedupe_key.startswith(MESSAGE)}
    known: dict[UUID, dict[tuple[object, ...], list[tuple[Payload, str]]]] = {}
    for id, versions in stored.items():  # each version is redacted once, however many of the events come under its key
        said = known.setdefault(id, {})
        for version in versions:
            said.setdefault(_envelope(version, id in timeless), []).append(
                bare(*again(version.payload, version.location))
            )
    return [
        n
        for n in which
        if bare(events[n].payload, events[n].location)
        not in known.get(ids[n], {}).get(_envelope(events[n], ids[n] in timeless), ())
    ]


def _envelope(event: Event | NewEvent, timeless: bool) -> tuple[object, ...]:
    """What an event says beside its words and its place, which rules of redaction may have changed."""
    at = None if timeless else event.occurred_at
    return type(event.payload), at, event.actor, event.stream, event.session_id, event.sources


def encode_payload(event: NewEvent) -> bytes:
    """The payload as JSON. NUL, which jsonb cannot hold, becomes U+FFFD (the doors clean it before this)."""
    data = msgspec.json.encode(event.payload)
    return _NUL.sub(_without_nul, data) if b"\\u0000" in data else data


def _without_nul(found: patterns.Match[bytes]) -> bytes:
    """An odd number of backslashes escapes the `u`; an even one is backslashes of the text."""
    slashes = len(found[0]) - 5
    return found[0][:-5] + b"ufffd" if slashes % 2 else found[0]


def _put(connection: Connection, space_id: int, columns: Sequence[_Column]) -> tuple[list[int], str]:
    arrays = [_array(_OIDS[kind], column) for kind, column in zip(_COLUMNS.values(), columns, strict=True)]
    found = connection.execute(_CALL, [space_id, *arrays], binary=True, prepare=True).fetchone()
    assert found is not None
    positions, statuses = found
    if _REFUSED in statuses:  # then nothing was put
        return [], statuses
    if len(positions) != len(columns[_IDS]) or len(statuses) != len(positions):
        raise AssertionError(f"append of {len(columns[_IDS])} events answered for {len(positions)}")
    return positions, statuses


class _Texts(dict[str, bytes]):
    """Texts that many events share, encoded once."""

    def __missing__(self, text: str) -> bytes:
        self[text] = data = text.encode()
        return data


class _Hashes(dict[str, bytes]):
    def __missing__(self, stream: str) -> bytes:
        self[stream] = data = stream_hash(stream).to_bytes(2, "big")
        return data


def _columns(space_id: int, events: Sequence[NewEvent]) -> list[_Column]:
    """The columns of a batch, in the order of `_COLUMNS`."""
    texts, hashes = _Texts(), _Hashes()
    kinds = [type_of(e.payload) for e in events]
    salts = os.urandom(_SALT * len(events))
    return [
        [derived_bytes(f"{space_id}:{e.dedupe_key}") for e in events],
        [texts[e.stream] for e in events],
        [hashes[e.stream] for e in events],
        [texts[kind.name] for kind in kinds],
        [kind.version.to_bytes(2, "big") for kind in kinds],
        [e.occurred_at.to_bytes(8, "big", signed=True) for e in events],
        [texts[e.actor] for e in events],
        [texts[e.location] for e in events],
        [texts[e.session_id] for e in events],
        [_id(e.causation_id) for e in events],
        [_id(e.correlation_id) for e in events],
        [e.dedupe_key.encode() for e in events],
        [None] * len(events),
        [("{" + ",".join(map(str, e.sources)) + "}").encode() if e.sources else None for e in events],
        [salts[at : at + _SALT] for at in range(0, len(salts), _SALT)],
        [encode_payload(e) for e in events],
    ]


def _variants(
    space_id: int, events: Sequence[NewEvent], columns: Sequence[_Column], which: Sequence[int], *, of_whom: bool
) -> list[_Column]:
    """The columns of events whose key is taken by another version, under an id that their own content gives them.

    `of_whom`: that id is taken too, by the same words of somebody else or in another stream, and these count as well.
    """
    variants = [[column[n] for n in which] for column in columns]
    ids, keys = variants[_IDS], variants[_KEYS]
    variants[_VARIANTS_OF] = list(ids)
    for i, n in enumerate(which):
        e = events[n]
        content = f"{e.type}\0{e.occurred_at}\0{e.location}\0"
        if of_whom:
            content += "\0".join((e.actor, e.stream, e.session_id, *map(str, e.sources))) + "\0"
        digest = hashlib.sha256(content.encode("utf-8", "surrogatepass") + encode_payload(e)).hexdigest()
        ids[i] = own = derived_bytes(f"{space_id}:{e.dedupe_key}#{digest}")
        keys[i] = f"{e.dedupe_key}#{UUID(bytes=own)}".encode()
    return variants


def _id(value: UUID | None) -> bytes | None:
    return None if value is None else value.bytes


def _array(oid: int, values: _Column) -> Packed | None:
    """A one-dimensional array as Postgres reads it in binary; None, which unnests to NULLs, where all are NULL."""
    parts = [_NULL if value is None else _length(len(value)) + value for value in values]
    nulls = values.count(None)
    if nulls == len(values):
        return None
    return Packed(_array_head(1, 1 if nulls else 0, oid, len(values), 1) + b"".join(parts))
